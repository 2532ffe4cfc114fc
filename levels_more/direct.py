"""A program as a function of Python's own kind: called with arrays, it finds their memory itself, and runs.

A call through `ctypes` takes 0.13 µs and one through numba 0.16; this takes 0.02. It holds the GIL, so it is for short programs.
"""

import ctypes
import functools

import numpy as np

from levels.hardware import machine_code
from levels.low_level import NoProgram

# What CPython and NumPy promise to all that is compiled for them: where an object's type lies in it, and an array's memory.
_TYPE, _DATA = 8, 16
_PLAIN = 0x80  # METH_FASTCALL: arguments come side by side

_PYTHON = "PyErr_BadArgument", "PyErr_Occurred", "PyFloat_AsDouble", "PyLong_AsLongLong", "PyBool_FromLong"
# The words that a block begins with: what is called, on which of its words, by how many arguments; which words these are, and how
# many; how many words are copied; which one points at an answer, if that is not -1; and what Python has.
_HEAD = {
    "program": "ptr",
    "first": "i64",
    "arguments": "i64",
    "table": "ptr",
    "told": "i64",
    "copied": "i64",
    "answer": "i64",
}
_HEAD |= dict.fromkeys(("ndarray", *_PYTHON), "ptr")
HEAD = len(_HEAD)
_KINDS = {"ptr": 0, "i64": 1, "double": 2, "float": 3}  # of a word that is told: an array's memory, or a number

# Loads the head; lets each argument be its word, in the block or in a copy of it; and calls.
_CALL = "\n".join(
    [
        "define ptr @program(ptr %self, ptr %args, i64 %count) {",
        f"  %self.data = getelementptr i8, ptr %self, i64 {_DATA}",
        "  %block = load ptr, ptr %self.data",
        *(f"  %{name}.at = getelementptr i64, ptr %block, i64 {n}" for n, name in enumerate(_HEAD)),
        *(f"  %{name} = load {kind}, ptr %{name}.at" for name, kind in _HEAD.items()),
        f"""
  %own = getelementptr i64, ptr %block, i64 {HEAD}
  %copy = alloca i64, i64 %copied
  %bytes = mul i64 %copied, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %own, i64 %bytes, i1 false)
  %is.copied = icmp sgt i64 %copied, 0
  %words = select i1 %is.copied, ptr %copy, ptr %own
  %right = icmp eq i64 %count, %arguments
  br i1 %right, label %tell, label %wrong

tell:
  %i = phi i64 [0, %0], [%next, %again]
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
  %arg = getelementptr ptr, ptr %args, i64 %which
  %given = load ptr, ptr %arg
  switch i64 %kind, label %real [i64 0, label %array i64 1, label %whole]
array:
  %given.type = getelementptr i8, ptr %given, i64 {_TYPE}
  %type = load ptr, ptr %given.type
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %take, label %wrong
take:
  %given.data = getelementptr i8, ptr %given, i64 {_DATA}
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
  %is.so = load i64, ptr %said
  %result = call ptr %PyBool_FromLong(i64 %is.so)
  ret ptr %result
wrong:
  call i32 %PyErr_BadArgument()
  br label %fail
fail:
  ret ptr null
}}
""",
    ]
)


class Block(np.ndarray):
    """Memory for the words of programs, behind HEAD others. It keeps alive what they need."""

    def __new__(cls, count):
        return np.zeros(HEAD + count, np.int64).view(cls)


class _Method(ctypes.Structure):  # PyMethodDef
    _fields_ = [("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("how", ctypes.c_int), ("doc", ctypes.c_char_p)]


@functools.cache
def _method():
    """(the method that all these functions are, what owns its code)"""
    engine, address = machine_code(_CALL)
    return _Method(b"program", address, _PLAIN, None), engine


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def _address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


@functools.cache
def _is_so():
    """Whether objects and arrays lie as said above."""
    array = np.zeros(1)
    kind, data = (ctypes.c_void_p.from_address(id(array) + n).value for n in (_TYPE, _DATA))
    return (kind, data) == (id(np.ndarray), array.ctypes.data)


def called(program, block, told, arguments, first=0, copied=0, answer=-1):
    """The function that runs a program on a block, from its word `first` on, given so many arguments.

    `told` are (the number of a word, its kind in the program, which argument it is, what is added to a whole number or an
    address). With so many words `copied`, any number of calls may run at once. `answer` is the number of a word: the function
    gives True if the program writes 1 where that points. It trusts arrays to be as large as they should. Raises TypeError for
    what is no array or no number, and NoProgram where Python or NumPy keep things elsewhere.
    """
    if not _is_so():
        raise NoProgram("this Python, or NumPy, keeps things elsewhere")
    block.table = np.array([(n, _KINDS[kind], *rest) for n, kind, *rest in told], np.int64)
    head = _address(program.run), first, arguments, block.table.ctypes.data, len(told), copied, answer, id(np.ndarray)
    block[:HEAD] = *head, *(_address(getattr(ctypes.pythonapi, name)) for name in _PYTHON)
    block.program = program
    return _new(ctypes.addressof(_method()[0]), block, None)


def direct(program, arguments, **sizes):
    """A function that runs a program of level 1, in any number of threads.

    `arguments` names the words that its arguments are, arrays and numbers, in order; `sizes` says what others are; a word
    "answer" is as in `called`.
    """
    place, words = {name: n for n, name in enumerate(arguments)}, program.words
    block = Block(len(words))
    block[HEAD:] = [sizes.get(name, 0) for name in words]
    told = [(n, kind, place[name], 0) for n, (name, kind) in enumerate(words.items()) if name in place]
    answer = [*words].index("answer") if "answer" in words else -1
    return called(program, block, told, len(arguments), copied=len(words), answer=answer)
