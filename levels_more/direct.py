"""A program as a function of Python's own kind: called with arrays or buffers, it finds their memory itself, and runs.

A call through `ctypes` takes 0.13 µs and one through numba 0.16; this takes 0.02. It can make the tensors of its results, too,
each in half the time that Python takes. It holds the GIL, so it is for short programs.
"""

import ctypes
import functools
import threading

import numpy as np

from levels.hardware import Buffer, Device, Spec, machine_code
from levels.low_level import NoProgram, Tensor

# What CPython and NumPy promise to all that is compiled for them: where an object's type lies in it, an array's memory, and a
# tuple's size and items.
_TYPE, _DATA, _SIZE, _ITEMS = 8, 16, 16, 24
_PLAIN = 0x80  # METH_FASTCALL: arguments come side by side

_PYTHON = (
    *("PyErr_BadArgument", "PyErr_Clear", "PyErr_Occurred", "PyFloat_AsDouble", "PyLong_AsLongLong", "PyBool_FromLong"),
    *("PyList_New", "PyList_GetItem", "PyList_SetItem", "PyType_GenericAlloc", "PyType_IsSubtype"),
    *("PyObject_Vectorcall", "Py_IncRef", "Py_DecRef"),
)
# The words that a block begins with: what is called, on which of its words, by how many arguments; which words these are, and how
# many; how many words are copied; which one points at an answer, if that is not -1; the tensors that are made, and how many; and
# what Python has.
_HEAD = {
    "program": "ptr",
    "first": "i64",
    "arguments": "i64",
    "table": "ptr",
    "told": "i64",
    "copied": "i64",
    "answer": "i64",
    "specs": "ptr",
    "results": "i64",
}
_HEAD |= dict.fromkeys(("ndarray", "empty", "none", "Buffer", "Tensor", "tuple", *_PYTHON), "ptr")
_HEAD["runs"] = "i64"  # how often it has run
# And the words of a launch: the Spec of its result, how many there were, what else does it, whether the first input is overwritten.
_OF_A_LAUNCH = {"spec.wanted": "ptr", "launches": "i64", "otherwise": "ptr", "updates": "i64"}
_HEAD |= _OF_A_LAUNCH
HEAD, RUNS, LAUNCHES = len(_HEAD), *map([*_HEAD].index, ("runs", "launches"))
# of a word that is told: the memory of an array, of a buffer (or an array), of a result, or a number
_KINDS = {"ptr": 0, "i64": 1, "double": 2, "float": 3, "buffer": 4, "result": 5}


@functools.cache
def _slots():
    """How far into a buffer its spec, its data and its source are."""
    marks = [object() for _ in range(3)]
    buffer = Buffer(*marks)
    words = [ctypes.c_void_p.from_address(id(buffer) + n).value for n in range(0, Buffer.__basicsize__, 8)]
    return [8 * words.index(id(mark)) for mark in marks]


def _begin(name):
    """The first lines of a function, which load the head."""
    lines = [
        f"define ptr @{name}(ptr %self, ptr %args, i64 %count) {{",
        f"  %self.data = getelementptr i8, ptr %self, i64 {_DATA}",
        "  %block = load ptr, ptr %self.data",
    ]
    for n, (word, kind) in enumerate(_HEAD.items()):
        lines.append(f"  %{word}.at = getelementptr i64, ptr %block, i64 {n}\n  %{word} = load {kind}, ptr %{word}.at")
    return "\n".join(lines)


def _call():
    """The text of the function: it makes tensors; lets each argument be its word, in the block or in a copy of it; and calls."""
    spec, data, source = _slots()
    return (
        _begin("program")
        + f"""
  %own = getelementptr i64, ptr %block, i64 {HEAD}
  %copy = alloca i64, i64 %copied
  %bytes = mul i64 %copied, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %own, i64 %bytes, i1 false)
  %is.copied = icmp sgt i64 %copied, 0
  %words = select i1 %is.copied, ptr %copy, ptr %own
  %makes = icmp sgt i64 %results, 0
  br i1 %makes, label %list, label %ready

list:
  %new.list = call ptr %PyList_New(i64 %results)
  %is.list = icmp ne ptr %new.list, null
  br i1 %is.list, label %make, label %fail
make:
  %k = phi i64 [0, %list], [%k.next, %put]
  %is.more = icmp slt i64 %k, %results
  br i1 %is.more, label %array.of.it, label %ready
array.of.it:
  %spec.row = getelementptr [3 x ptr], ptr %specs, i64 %k
  %spec = load ptr, ptr %spec.row
  %shape = getelementptr ptr, ptr %spec.row, i64 1
  %new.array = call ptr %PyObject_Vectorcall(ptr %empty, ptr %shape, i64 2, ptr null)
  %is.made = icmp ne ptr %new.array, null
  br i1 %is.made, label %tensor.of.it, label %fail
tensor.of.it:
  %new = call ptr %PyType_GenericAlloc(ptr %Tensor, i64 0)
  %is.new = icmp ne ptr %new, null
  br i1 %is.new, label %put, label %lost
lost:
  call void %Py_DecRef(ptr %new.array)
  br label %fail
put:
  call void %Py_IncRef(ptr %spec)
  call void %Py_IncRef(ptr %none)
  %spec.slot = getelementptr i8, ptr %new, i64 {spec}
  store ptr %spec, ptr %spec.slot
  %data.slot = getelementptr i8, ptr %new, i64 {data}
  store ptr %new.array, ptr %data.slot
  %source.slot = getelementptr i8, ptr %new, i64 {source}
  store ptr %none, ptr %source.slot
  call i32 %PyList_SetItem(ptr %new.list, i64 %k, ptr %new)
  %k.next = add i64 %k, 1
  br label %make

ready:
  %made = phi ptr [null, %0], [%new.list, %make]
  %right = icmp eq i64 %count, %arguments
  br i1 %right, label %tell, label %wrong
tell:
  %i = phi i64 [0, %ready], [%next, %again]
  %is.left = icmp slt i64 %i, %told
  br i1 %is.left, label %one, label %all
one:
  %row = getelementptr [4 x i64], ptr %table, i64 %i
  %row.kind = getelementptr i64, ptr %row, i64 1
  %row.which = getelementptr i64, ptr %row, i64 2
  %row.beyond = getelementptr i64, ptr %row, i64 3
  %number = load i64, ptr %row
  %kind = load i64, ptr %row.kind
  %which = load i64, ptr %row.which
  %beyond = load i64, ptr %row.beyond
  %word = getelementptr i64, ptr %words, i64 %number
  %is.result = icmp eq i64 %kind, {_KINDS["result"]}
  br i1 %is.result, label %result.of.it, label %argument
result.of.it:
  %result = call ptr %PyList_GetItem(ptr %made, i64 %which)
  br label %held
argument:
  %arg = getelementptr ptr, ptr %args, i64 %which
  %given = load ptr, ptr %arg
  switch i64 %kind, label %real [i64 0, label %array i64 1, label %whole i64 {_KINDS["buffer"]}, label %tensor]
tensor:
  %tensor.at = getelementptr i8, ptr %given, i64 {_TYPE}
  %tensor.type = load ptr, ptr %tensor.at
  %is.bare = icmp eq ptr %tensor.type, %ndarray
  br i1 %is.bare, label %array, label %buffer
buffer:
  %is.buffer = call i32 %PyType_IsSubtype(ptr %tensor.type, ptr %Buffer)
  %is.tensor = icmp ne i32 %is.buffer, 0
  br i1 %is.tensor, label %held, label %wrong
held:
  %holds = phi ptr [%result, %result.of.it], [%given, %buffer]
  %held.at = getelementptr i8, ptr %holds, i64 {data}
  %its.array = load ptr, ptr %held.at
  %is.there = icmp ne ptr %its.array, null
  br i1 %is.there, label %array, label %wrong
array:
  %numbers = phi ptr [%given, %argument], [%given, %tensor], [%its.array, %held]
  %given.type = getelementptr i8, ptr %numbers, i64 {_TYPE}
  %type = load ptr, ptr %given.type
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %take, label %wrong
take:
  %given.data = getelementptr i8, ptr %numbers, i64 {_DATA}
  %data = load i64, ptr %given.data
  %place = add i64 %data, %beyond
  store i64 %place, ptr %word
  br label %again
whole:
  %whole.number = call i64 %PyLong_AsLongLong(ptr %given)
  %whole.sum = add i64 %whole.number, %beyond
  store i64 %whole.sum, ptr %word
  br label %check
real:
  %real.number = call double %PyFloat_AsDouble(ptr %given)
  %is.double = icmp eq i64 %kind, 2
  br i1 %is.double, label %long, label %short
long:
  store double %real.number, ptr %word
  br label %check
short:
  %short.number = fptrunc double %real.number to float
  store float %short.number, ptr %word
  br label %check
check:
  %error = call ptr %PyErr_Occurred()
  %no.error = icmp eq ptr %error, null
  br i1 %no.error, label %again, label %fail
again:
  %next = add i64 %i, 1
  br label %tell

all:
  %said = alloca i64
  store i64 0, ptr %said
  %answers = icmp sge i64 %answer, 0
  br i1 %answers, label %point, label %run
point:
  %to.answer = getelementptr i64, ptr %words, i64 %answer
  store ptr %said, ptr %to.answer
  br label %run
run:
  %begin = getelementptr i64, ptr %words, i64 %first
  call void %program(ptr %begin)
  %runs.so.far = add i64 %runs, 1
  store i64 %runs.so.far, ptr %runs.at
  %is.silent = icmp eq ptr %made, null
  br i1 %is.silent, label %say, label %give
say:
  %is.so = load i64, ptr %said
  %yes.or.no = call ptr %PyBool_FromLong(i64 %is.so)
  ret ptr %yes.or.no
give:
  ret ptr %made
wrong:
  call i32 %PyErr_BadArgument()
  br label %fail
fail:
  %left = phi ptr [null, %list], [%new.list, %array.of.it], [%new.list, %lost], [%made, %check], [%made, %wrong]
  %is.none = icmp eq ptr %left, null
  br i1 %is.none, label %end, label %drop
drop:
  call void %Py_DecRef(ptr %left)
  br label %end
end:
  ret ptr null
}}
"""
    )


def _start():
    """The text of `Plan.start` as such a function: it looks at the result, calls, and counts. What is unusual is done otherwise."""
    return (
        _begin("start")
        + f"""
  %enough = icmp eq i64 %count, 3
  br i1 %enough, label %look, label %else
look:
  %out = load ptr, ptr %args
  %reads.at = getelementptr ptr, ptr %args, i64 1
  %reads = load ptr, ptr %reads.at
  %out.type.at = getelementptr i8, ptr %out, i64 {_TYPE}
  %out.type = load ptr, ptr %out.type.at
  %is.buffer = call i32 %PyType_IsSubtype(ptr %out.type, ptr %Buffer)
  %out.is = icmp ne i32 %is.buffer, 0
  %reads.type.at = getelementptr i8, ptr %reads, i64 {_TYPE}
  %reads.type = load ptr, ptr %reads.type.at
  %reads.is = icmp eq ptr %reads.type, %tuple
  %both = and i1 %out.is, %reads.is
  br i1 %both, label %fit, label %else
fit:
  %out.spec.at = getelementptr i8, ptr %out, i64 {_slots()[0]}
  %out.spec = load ptr, ptr %out.spec.at
  %fits = icmp eq ptr %out.spec, %spec.wanted
  %size.at = getelementptr i8, ptr %reads, i64 {_SIZE}
  %size = load i64, ptr %size.at
  %all = add i64 %size, 1
  %right = icmp eq i64 %all, %arguments
  %good = and i1 %fits, %right
  br i1 %good, label %copy, label %else
copy:
  %items = getelementptr i8, ptr %reads, i64 {_ITEMS}
  %buffers = alloca ptr, i64 %arguments
  store ptr %out, ptr %buffers
  br label %next
next:
  %k = phi i64 [0, %copy], [%k.after, %put]
  %is.left = icmp slt i64 %k, %size
  br i1 %is.left, label %one, label %run
one:
  %item.at = getelementptr ptr, ptr %items, i64 %k
  %item = load ptr, ptr %item.at
  %is.same = icmp eq ptr %item, %out
  %is.input = icmp sge i64 %k, %updates
  %is.wrong = and i1 %is.same, %is.input
  br i1 %is.wrong, label %else, label %put
put:
  %k.after = add i64 %k, 1
  %to = getelementptr ptr, ptr %buffers, i64 %k.after
  store ptr %item, ptr %to
  br label %next
run:
  %said = call ptr @program(ptr %self, ptr %buffers, i64 %all)
  %is.done = icmp ne ptr %said, null
  br i1 %is.done, label %done, label %clear
done:
  call void %Py_DecRef(ptr %said)
  %launches.so.far = add i64 %launches, 1
  store i64 %launches.so.far, ptr %launches.at
  call void %Py_IncRef(ptr %out)
  ret ptr %out
clear:
  call void %PyErr_Clear()
  br label %else
else:
  %found = call ptr %PyObject_Vectorcall(ptr %otherwise, ptr %args, i64 %count, ptr null)
  ret ptr %found
}}
"""
    )


class Block(np.ndarray):
    """Memory for the words of programs, behind HEAD others. It keeps alive what they need."""

    def __new__(cls, count):
        return np.zeros(HEAD + count, np.int64).view(cls)


class _Method(ctypes.Structure):  # PyMethodDef
    _fields_ = [("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("how", ctypes.c_int), ("doc", ctypes.c_char_p)]


_methods, _making = {}, threading.Lock()


def _method(name):
    """(the method that all functions of a kind are, "program" or "start"; what owns its code)

    Python's functions point into it, so it is made once and never freed: with `functools.cache` two threads made one each, the
    loser's was freed, and the process crashed.
    """
    with _making:
        if name not in _methods:
            engine, _ = machine_code(_call() if name == "program" else _start() + _call())
            _methods[name] = _Method(name.encode(), engine.get_function_address(name), _PLAIN, None), engine
        return _methods[name]


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def _address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


@functools.cache
def _is_so():
    """Whether objects, arrays and tuples lie as said above."""
    array, items = np.zeros(1), (object(), object())
    places = [(array, _TYPE), (array, _DATA), (items, _SIZE), (items, _ITEMS)]
    found = [ctypes.c_void_p.from_address(id(x) + n).value for x, n in places]
    return found == [id(np.ndarray), array.ctypes.data, len(items), id(items[0])]


@functools.cache
def makes_alike():
    """Whether Python makes a tensor as this does: three slots, memory from np.empty, counted. (A reader may have changed that.)"""
    device = Device("cpu", None)
    spec = Spec(device, (1,), np.dtype(np.float64))
    x = Tensor(spec)
    plain = Tensor.__new__ is object.__new__ and Tensor.__init__ is Buffer.__init__ and device.empty is np.empty
    return plain and Buffer.__slots__ == ("spec", "data", "source") and (x.source, device.used) == (None, spec.nbytes)


def count(device, nbytes):
    """Count so many bytes as in use, for tensors that one of these functions makes. Raises MemoryError when less is free."""
    if device.memory is not None and device.used + nbytes > device.memory:
        device.alloc((nbytes,), np.bool_)  # says how much is free
    device.used += nbytes


def called(program, block, told, arguments, first=0, copied=0, answer=-1, results=()):
    """The function that runs a program on a block, from its word `first` on, given so many arguments.

    `told` are (the number of a word, its kind in the program, or "buffer" or "result", which argument or result it is, what is
    added to a whole number or an address). With so many words `copied`, any number of calls may run at once. `answer` is the
    number of a word: the function gives True if the program writes 1 where that points. With Specs of `results` it gives new
    tensors, in a list, which `count` has to count before. It trusts arrays to be as large as they should. Raises TypeError for
    what is no array, no buffer or no number, and NoProgram where Python or NumPy keep things elsewhere.
    """
    if not _is_so() or (results and not makes_alike()):
        raise NoProgram("this Python, or NumPy, keeps things elsewhere, or tensors are made another way")
    block.table = np.array([(n, _KINDS[kind], *rest) for n, kind, *rest in told], np.int64)
    block.results = [x for spec in results for x in (spec, spec.shape, spec.dtype)]
    block.specs = np.array([*map(id, block.results)], np.int64)
    head = _address(program.run), first, arguments, block.table.ctypes.data, len(told), copied, answer
    head += block.specs.ctypes.data, len(results), *map(id, (np.ndarray, np.empty, None, Buffer, Tensor, tuple))
    block[: HEAD - len(_OF_A_LAUNCH)] = *head, *(_address(getattr(ctypes.pythonapi, name)) for name in _PYTHON), 0
    block.program = program
    return _new(ctypes.addressof(_method("program")[0]), block, None)


def starter(run, spec, otherwise, updates):
    """`Plan.start` for a function of a result of this Spec, and of what is read; `otherwise` is the one in Python.

    `updates` says whether the first of these may be the result. How often it has run stands in the block, at LAUNCHES.
    """
    block = run.__self__
    block.kept_for_start = spec, otherwise
    block[HEAD - len(_OF_A_LAUNCH) : HEAD] = id(spec), 0, id(otherwise), updates
    return _new(ctypes.addressof(_method("start")[0]), block, None)


def direct(program, arguments, result=None, **sizes):
    """A function that runs a program of level 1, in any number of threads.

    `arguments` names the words that its arguments are, in order: buffers, arrays or numbers; `sizes` says what others are; a word
    "answer" is as in `called`. Of a `result`, (the word, a Spec), the function makes a new tensor each time, see there, too.
    """
    places = {name: ("buffer", n) for n, name in enumerate(arguments)}
    if result:
        places[result[0]] = "result", 0
    words, told = program.words, []
    for n, (name, kind) in enumerate(words.items()):
        if name in places:
            told.append((n, places[name][0] if kind == "ptr" else kind, places[name][1], 0))
    block = Block(len(words))
    block[HEAD:] = [sizes.get(name, 0) for name in words]
    answer = [*words].index("answer") if "answer" in words else -1
    results = [result[1]] if result else []
    return called(program, block, told, len(arguments), copied=len(words), answer=answer, results=results)
