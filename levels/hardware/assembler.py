"""A program is loads, arithmetic and stores: an assembler that writes one, instruction by instruction."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import ctypes
import functools
import hashlib
import numbers
import os
import re
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import llvmlite
import numpy as np
from llvmlite import binding as llvm

from .device import Buffer, host_features, host_lanes

CACHE = Path(os.environ.get("LEVELS_CACHE") or os.path.expanduser("~/.cache/levels"))


def target_machine():
    """LLVM's description of this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=host_features().flatten(), opt=3)


def optimised(text, target):
    """LLVM's own form of a program, optimised for this processor."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.loop_unrolling = False  # the loops run as they were written
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return module


def kept(key):
    """The bytes that were kept under this key, if they are there and whole; else None."""
    with suppress(OSError):
        data = (CACHE / hashlib.sha256(key.encode()).hexdigest()).read_bytes()
        if hashlib.sha256(data[32:]).digest() == data[:32]:
            return data[32:]
    return None


def keep(key, data):
    """Keep these bytes under a key. A full disk, or a folder that cannot be written, only costs time."""
    path = CACHE / hashlib.sha256(key.encode()).hexdigest()
    aside = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    with suppress(OSError):
        CACHE.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(hashlib.sha256(data).digest() + data)
        aside.replace(path)
    with suppress(OSError):
        aside.unlink(missing_ok=True)


def object_code(text, target):
    """The bytes of a program: those that were kept, or new ones."""
    processor = target.triple, llvm.get_host_cpu_name(), host_features().flatten()
    key = "\n".join((text, *processor, llvmlite.__version__, repr(optimised.__code__.co_code)))
    code = kept(key)
    if code is None:
        code = target.emit_object(optimised(text, target))
        keep(key, code)
    return code


@functools.lru_cache(maxsize=256)
def machine_code(text):
    """A program, ready to run: the engine that owns its code, and its address."""
    target = target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(object_code(text, target)))
    engine.finalize_object()
    return engine, engine.get_function_address("program")


def trimmed(assembly):
    """The instructions of an assembly text and the labels that they jump to, without directives and comments."""
    body = assembly.split("program:", 1)[1].splitlines()
    lines = [re.split(r"\s*(?:##|//|;|# )", line)[0].expandtabs(8).rstrip() for line in body]
    instructions = [line for line in lines if re.match(r"\s+[^.\s]", line)]
    jumps = {word + ":" for word in re.findall(r"[.\w$]+", " ".join(instructions))}
    return "\n".join(line for line in lines if line in jumps or line in instructions)


def operators(instruction):
    """The two methods that write this instruction: value · other, and other · value."""
    return lambda x, y: arithmetic(x.a, instruction, x, y), lambda x, y: arithmetic(x.a, instruction, y, x)


def compared(how):
    """The method that writes this comparison, by LLVM's name."""
    return lambda x, y: comparison(x.a, how, x, y)


class Value:
    """What a register will hold: one number, or one number in each lane. Its operators write instructions."""

    def __init__(self, a, register, lanes=1):
        self.a, self.register, self.lanes, self.scope = a, register, lanes, a.scope

    def __repr__(self):
        return f"{type(self).__name__} {self.register}"

    def __bool__(self):
        raise TypeError(f"{self.a.name}: {self!r} is not known while the program is written; use select(c, x, y)")

    __add__, __radd__ = operators("fadd")
    __sub__, __rsub__ = operators("fsub")
    __mul__, __rmul__ = operators("fmul")
    __truediv__, __rtruediv__ = operators("fdiv")

    def __neg__(self):
        return -0.0 - self  # 0.0 - self would make 0.0 of 0.0

    __lt__, __le__, __eq__, __ne__, __ge__, __gt__ = map(compared, ("olt", "ole", "oeq", "une", "oge", "ogt"))


class Condition(Value):
    """Yes or no, in each lane: what a comparison gives, and `select` takes."""


class Array:
    """Memory that a program reads or writes. A size is a number, or a name that the call will fill in."""

    def __init__(self, name, shape, rows_of=None):
        self.name, self.shape, self.rows_of = name, shape, rows_of  # rows_of: its integers index arrays of that size

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


class Index(Value):
    """A whole number in [0, extent). `first`: of lanes side by side, the number in lane 0."""

    def __init__(self, a, register, extent, lanes=1, first=None):
        super().__init__(a, register, lanes)
        self.extent, self.first = extent, first or (register if lanes == 1 else None)


def check_reach(name, array, axis, extent, sizes):
    """Raise IndexError if an index below `extent` can leave that axis of an array."""
    extent, size = sizes.get(extent, extent), sizes.get(array.shape[axis], array.shape[axis])
    if extent > size:
        raise IndexError(f"{name}: index {axis} of {array} goes up to {extent - 1}; the size there is {size}")


REAL = {np.dtype("f4"): "float", np.dtype("f8"): "double"}
FAST = "contract nsz arcp "  # float32 may fuse a·b + c into one instruction, and turn x/n into x·(1/n)


def laned(kind, lanes):
    """The type of a register with that many lanes."""
    return f"<{lanes} x {kind}>" if lanes > 1 else kind


def spread(a, kind, register, have, lanes):
    """A register with that many lanes: the same one where it has them, else its one number repeated."""
    if have == lanes:
        return register
    if not register.startswith("%"):
        return f"splat ({kind} {register})"
    wide = laned(kind, lanes)
    first = a.write(f"insertelement {wide} poison, {kind} {register}, i32 0")
    return a.write(f"shufflevector {wide} {first}, {wide} poison, <{lanes} x i32> zeroinitializer")


def live(a, thing):
    """Raise unless this belongs to the program and to a loop that is still open."""
    if thing.scope not in a.scopes:
        raise ValueError(f"{a.name}: {thing!r} is not of this program or its loop has ended; a sum carries numbers out")
    return thing


def numeric(a, operand):
    """The register of a value, or a Python number as a constant."""
    if isinstance(operand, numbers.Real):  # LLVM's notation: the bits of a float64
        return f"0x{np.float64(a.dtype.type(float(operand))).view(np.uint64):016X}"
    if not isinstance(operand, Value) or isinstance(operand, (Index, Condition)):
        raise TypeError(f"{a.name}: expected a number to compute with, got {operand!r}")
    return live(a, operand).register


def together(a, *operands, lanes=1):
    """The registers of numbers that meet in one instruction, all with as many lanes as the widest, and the lanes."""
    lanes = max([lanes, *(o.lanes for o in operands if isinstance(o, Value))])
    return [spread(a, a.real, numeric(a, o), getattr(o, "lanes", 1), lanes) for o in operands], lanes


def arithmetic(a, instruction, *operands):
    """Write one instruction: fadd, fsub, fmul, fdiv."""
    (x, y), lanes = together(a, *operands)
    return Value(a, a.write(f"{instruction} {a.flags}{laned(a.real, lanes)} {x}, {y}"), lanes)


def comparison(a, how, *operands):
    """Write one comparison. With a NaN it is false, except for !=, as in Python."""
    (x, y), lanes = together(a, *operands)
    return Condition(a, a.write(f"fcmp {how} {laned(a.real, lanes)} {x}, {y}"), lanes)


def select(condition, x, y):
    """x where the condition holds, else y. On Python's numbers it chooses at once."""
    if not isinstance(condition, Condition):
        return x if condition else y
    a = live(condition.a, condition).a
    (x, y), lanes = together(a, x, y, lanes=condition.lanes)
    chosen, kind = spread(a, "i1", condition.register, condition.lanes, lanes), laned(a.real, lanes)
    return Value(a, a.write(f"select {laned('i1', lanes)} {chosen}, {kind} {x}, {kind} {y}"), lanes)


def named(name, *operands):
    """Write one of LLVM's named instructions, such as sqrt(x) or maximum(x, y)."""
    a = next(x.a for x in operands if isinstance(x, Value))
    registers, lanes = together(a, *operands)
    kind = laned(a.real, lanes)
    return Value(a, a.write(f"call {kind} @llvm.{name}({', '.join(f'{kind} {x}' for x in registers)})"), lanes)


def index(a, i):
    """A whole number as an Index; an Index as it is."""
    if isinstance(i, Index):
        return live(a, i)
    if not isinstance(i, numbers.Integral) or not 0 <= i < 2**31:
        raise TypeError(f"{a.name}: {i!r} is no index; expected a whole number below 2^31 or the counter of a loop")
    return Index(a, str(int(i)), int(i) + 1)


def place(a, array, indices):
    """The position of array[indices], counted in elements: its register, how many it holds, and the lanes they serve."""
    if not isinstance(array, Array) or a.arrays.get(array.name) is not array:
        raise TypeError(f"{a.name}: {array!r} is not an array of this program")
    if len(indices) != len(array.shape):
        raise IndexError(f"{a.name}: {array} needs {len(array.shape)} indices, got {len(indices)}")
    indices = [index(a, i) for i in indices]
    for axis, (i, size) in enumerate(zip(indices, array.shape)):
        if i.extent != size:  # else it counts over this very size
            a.reaches.append((array, axis, i.extent))
            if not isinstance(i.extent, str) and not isinstance(size, str):
                check_reach(a.name, *a.reaches[-1], {})
    # lanes side by side: the place of the first will do
    consecutive = indices[-1].first and all(i.lanes == 1 for i in indices[:-1])
    places = 1 if consecutive else max(i.lanes for i in indices)
    position, *rest = [i.first if consecutive else spread(a, "i64", i.register, i.lanes, places) for i in indices]
    for i, size in zip(rest, array.shape[1:]):
        position = a.write(f"mul {laned('i64', places)} {position}, {spread(a, 'i64', a.size(size), 1, places)}")
        position = a.write(f"add {laned('i64', places)} {position}, {i}")
    return position, places, max(i.lanes for i in indices)


def load(a, array, *indices):
    """Load array[indices] into a register. A row number loads as an index of the arrays it counts the rows of."""
    position, places, lanes = place(a, array, indices)
    element, size = ("i64", 8) if array.rows_of else (a.real, a.dtype.itemsize)
    vector, pointer = laned(element, lanes), a.words["array", array.name]
    if places == 1:
        address = a.write(f"getelementptr {element}, ptr {pointer}, i64 {position}")
        text = f"load {element}, ptr {address}"
        if lanes > 1:
            masks = f"<{lanes} x i1> {a.mask}, {vector} zeroinitializer"
            text = f"call {vector} @llvm.masked.load(ptr align {size} {address}, {masks})"
        register = a.write(text)
    else:  # lane by lane, faster than the gather instruction where we tried; a masked lane reads element 0
        register, several = "poison", laned("i64", lanes)
        position = a.write(f"select {laned('i1', lanes)} {a.mask}, {several} {position}, {several} zeroinitializer")
        for lane in range(lanes):
            one = a.write(f"extractelement {several} {position}, i32 {lane}")
            one = a.write(f"getelementptr {element}, ptr {pointer}, i64 {one}")
            one = a.write(f"load {element}, ptr {one}")
            register = a.write(f"insertelement {vector} {register}, {element} {one}, i32 {lane}")
    return Index(a, register, array.rows_of, lanes) if array.rows_of else Value(a, register, lanes)


def store(a, value, array, *indices):
    """Store a value into array[indices]."""
    position, places, lanes = place(a, array, indices)
    if array.rows_of:
        raise TypeError(f"{a.name}: {array} holds row numbers, which a program only reads")
    (register,), wide = together(a, value, lanes=lanes)
    if wide > lanes:
        raise TypeError(f"{a.name}: a value of {wide} lanes does not fit one place of {array}; take its total")
    address = a.write(f"getelementptr {a.real}, ptr {a.words['array', array.name]}, {laned('i64', places)} {position}")
    if lanes == 1:
        return a.emit(f"store {a.real} {register}, ptr {address}")
    name, where = "store" if places == 1 else "scatter", f"{laned('ptr', places)} align {a.dtype.itemsize} {address}"
    a.emit(f"call void @llvm.masked.{name}(<{lanes} x {a.real}> {register}, {where}, <{lanes} x i1> {a.mask})")


class Sum:
    """A running sum: starts at 0.0, grows with `+=`, one partial sum a lane. `total()` adds the lanes."""

    def __init__(self, a):
        self.a, self.scope, self.kind = a, a.scope, laned(a.real, a.lanes)
        self.slot = a.slot(self.kind)
        a.emit(f"store {self.kind} zeroinitializer, ptr {self.slot}")

    def value(self):
        """What has been added up so far, one number a lane."""
        a = live(self.a, self).a
        return Value(a, a.write(f"load {self.kind}, ptr {self.slot}"), a.lanes)

    def __iadd__(self, term):
        a, old = self.a, self.value()
        if a.lanes > 1 and not a.mask and getattr(term, "lanes", 1) == 1:  # counts once, not once in each lane
            term = a.write(f"insertelement {self.kind} zeroinitializer, {a.real} {numeric(a, term)}, i32 0")
            term = Value(a, term, a.lanes)
        grown = (old + term).register
        if a.mask:  # masked lanes keep their sum
            grown = a.write(f"select <{a.lanes} x i1> {a.mask}, {self.kind} {grown}, {self.kind} {old.register}")
        a.emit(f"store {self.kind} {grown}, ptr {self.slot}")
        return self

    def total(self):
        """The sum as one number."""
        a, value = self.a, self.value()
        if value.lanes == 1:
            return value
        how, terms = "reassoc " * bool(a.flags), f"{a.real} 0.0, {self.kind} {value.register}"
        return Value(a, a.write(f"call {how}{a.real} @llvm.vector.reduce.fadd({terms})"))


@contextmanager
def loop(a, extent, lanes=1):
    """Write a loop over [0, extent); with lanes, each turn takes that many counters at once."""
    if a.scope is None or lanes not in (1, a.lanes) or lanes > 1 and a.mask:
        raise ValueError(f"{a.name}: a loop takes 1 counter at once or, outside of lanes, {a.lanes}; got {lanes}")
    end, n = a.size(extent), len(a.lines)
    a.emit(f"br label %before{n}", f"before{n}:", f"br label %test{n}", f"test{n}:")
    a.emit(f"%i{n} = phi i64 [0, %before{n}], [%next{n}, %again{n}]", f"%more{n} = icmp slt i64 %i{n}, {end}")
    a.emit(f"br i1 %more{n}, label %body{n}, label %after{n}", f"body{n}:")
    a.scopes.append((a, n))
    if lanes == 1:
        yield Index(a, f"%i{n}", extent)
    else:
        first, several = spread(a, "i64", f"%i{n}", 1, lanes), ", ".join(f"i64 {lane}" for lane in range(lanes))
        each = a.write(f"add <{lanes} x i64> {first}, <{several}>")
        a.mask = "splat (i1 true)"  # all lanes, in every turn: then a mask costs nothing, on any processor
        if not end.isdigit() or int(end) % lanes:
            a.mask = a.write(f"icmp slt <{lanes} x i64> {each}, {spread(a, 'i64', end, 1, lanes)}")
        yield Index(a, each, extent, lanes, first=f"%i{n}")
        a.mask = None
    if a.scopes.pop() != (a, n):
        raise ValueError(f"{a.name}: loops end in the reverse order of their beginnings")
    a.emit(f"br label %again{n}", f"again{n}:", f"%next{n} = add i64 %i{n}, {lanes}")
    a.emit(f"br label %test{n}", f"after{n}:")


def word(a, sort, name, kind):
    """One 64-bit word of the block of arguments that a call hands over: an address, a size or a number."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"{a.name}: {name!r} is not the name of a {sort}; expected a word such as 'rows'")
    if (sort, name) not in a.words:
        n = len(a.words)
        a.entry.append(f"  %address{n} = getelementptr i64, ptr %words, i64 {n}")
        a.entry.append(f"  %word{n} = load {kind}, ptr %address{n}")
        a.words[sort, name] = f"%word{n}"
    return a.words[sort, name]


def size(a, extent):
    """A size as a register: a positive whole number, or a name."""
    whole = isinstance(extent, numbers.Integral) and 0 < extent < 2**31
    return str(int(extent)) if whole else a.word("size", extent, "i64")


def array(a, name, *shape, rows_of=None):
    """An array that each call hands over. `rows_of`: it holds row numbers of the arrays of that size."""
    if name in a.arrays or not shape or ("number", name) in a.words:
        raise ValueError(f"{a.name}: array {name!r} needs a shape, and a name of its own")
    for size in shape if rows_of is None else (*shape, rows_of):
        a.size(size)
    a.word("array", name, "ptr")
    a.arrays[name] = Array(name, shape, rows_of)
    return a.arrays[name]


def number(a, name):
    """A number that each call hands over, such as a learning rate."""
    if name in a.arrays:
        raise ValueError(f"{a.name}: number {name!r} needs a name of its own")
    return Value(a, a.word("number", name, a.real))


def count(a, what):
    """A size, or an index, as a number to compute with."""
    register, lanes = (index(a, what).register, what.lanes) if isinstance(what, Index) else (a.size(what), 1)
    return Value(a, a.write(f"sitofp {laned('i64', lanes)} {register} to {laned(a.real, lanes)}"), lanes)


class Assembler:
    """Writes one program. float64: one number at a time, nothing reordered. float32: lanes, and sums in lanes."""

    def __init__(self, name, dtype, lanes=None):
        if np.dtype(dtype) not in REAL:
            raise TypeError(f"{name}: dtype is {np.dtype(dtype)}; a program computes in float32 or float64")
        self.name, self.dtype, single = name, np.dtype(dtype), np.dtype(dtype) == np.float32
        self.real, self.flags = REAL[self.dtype], FAST if single else ""
        self.lanes = lanes or (host_lanes() if single else 1)
        if not isinstance(self.lanes, int) or self.lanes not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"{name}: lanes is {lanes!r}; expected a power of two, at most 64")
        self.entry, self.lines, self.mask = [], [], None
        self.arrays, self.words, self.reaches = {}, {}, []
        self.scopes = [(self, None)]  # what is open, outermost first: the program itself, then its loops

    def emit(self, *lines):
        """Append lines; one that ends with a colon begins a block."""
        self.lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    def write(self, text):
        """Append an instruction, and name the register that it sets."""
        register = f"%v{len(self.lines)}"
        self.emit(f"{register} = {text}")
        return register

    def slot(self, kind):
        """A place for one value that changes: the address of memory on the stack, which LLVM turns into a register."""
        self.entry.append(f"  %slot{len(self.entry)} = alloca {kind}")
        return f"%slot{len(self.entry) - 1}"

    @property
    def scope(self):
        """The innermost open loop: what is written now belongs to it."""
        if not self.scopes:
            raise ValueError(f"{self.name}: the program is assembled; nothing can be added to it")
        return self.scopes[-1]

    def sum(self):
        return Sum(self)

    def text(self):
        """The whole program, in LLVM's language. A vector put aside on the stack must not straddle two cache lines."""
        aligned = " nounwind alignstack(64)" * (self.lanes > 1)
        start = [f"define void @program(ptr %words){aligned} {{", "entry:", *self.entry, "  br label %start", "start:"]
        return "\n".join([*start, *self.lines, "  ret void", "}", ""])

    def assemble(self):
        """End the program and turn it into machine code."""
        return Program(self)

    load, store, loop, word, size, array, number, count = load, store, loop, word, size, array, number, count


def memory_of(name, array, buffer, dtype, sizes):
    """The memory of a buffer, if it is what this array expects. Named sizes are learned on the way."""
    data = buffer.data if isinstance(buffer, Buffer) and buffer.device.kind == "cpu" else None
    if not isinstance(data, np.ndarray):
        raise TypeError(f"{name}: {array.name} is {buffer!r}; expected a live buffer on a CPU")
    dtype = np.dtype(np.int64) if array.rows_of else dtype
    fits = data.dtype == dtype and data.flags.c_contiguous and data.ndim == len(array.shape)
    for size, found in zip(array.shape, data.shape):
        fits = fits and found == (sizes.setdefault(size, found) if isinstance(size, str) else size)
    if not fits:
        known = f" with {sizes}" if sizes else ""
        raise ValueError(f"{name}: {array.name} is {data.shape} {data.dtype}; expected {array} {dtype}{known}")
    return data


def check_rows(name, array, buffer, data, limit):
    """These row numbers, if all lie in [0, limit), in memory that nobody else can change any more."""
    if not buffer.rows or buffer.rows[0] is not data:
        data = buffer.data = data.copy()
        data.flags.writeable = False
        buffer.rows = data, *((int(data.min()), int(data.max())) if data.size else (0, -1))
    _, low, high = buffer.rows
    if low < 0 or high >= limit:
        raise IndexError(f"{name}: {array.name} holds row {low if low < 0 else high}; there are {limit} rows")
    return data


def as_word(program, name, number):
    """A number as the 64-bit word that hands it over."""
    if not isinstance(number, numbers.Real):
        raise TypeError(f"{program.name}: {name} is {number!r}; expected a number")
    return int(program.dtype.type(float(number)).view(f"i{program.dtype.itemsize}"))


class Program:
    """Machine code with the names and shapes of what it works on. Call it with buffers and numbers by name."""

    def __init__(self, a):
        if len(a.scopes) != 1:
            raise ValueError(f"{a.name}: " + ("a loop has not ended" if a.scopes else "it is assembled already"))
        a.scopes.clear()
        self.name, self.dtype, self.arrays, self.words = a.name, a.dtype, dict(a.arrays), list(a.words)
        self.reaches, known = list(dict.fromkeys(a.reaches)), {size for x in a.arrays.values() for size in x.shape}
        if lost := [name for sort, name in self.words if sort == "size" and name not in known]:
            raise ValueError(f"{a.name}: the size {lost[0]} is unknown: it stands in no array's shape")
        self.text = a.text()
        self.engine, address = machine_code(self.text)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def bind(self, **given):
        """Check buffers and numbers once. Returns the call, which takes no arguments and can be made many times."""
        names = [name for sort, name in self.words if sort != "size"]
        if wrong := set(names) ^ set(given):
            raise TypeError(f"{self.name}: takes {', '.join(names)}; missing or unknown: {', '.join(sorted(wrong))}")
        sizes, memory = {}, {}
        for name, array in self.arrays.items():
            memory[name] = memory_of(self.name, array, given[name], self.dtype, sizes)
        if len(devices := {given[name].device.name for name in memory}) > 1:
            raise ValueError(f"{self.name}: buffers on {' and '.join(sorted(devices))}; copy them to one device first")
        for name, array in self.arrays.items():
            if array.rows_of:
                limit = sizes.get(array.rows_of, array.rows_of)
                memory[name] = check_rows(self.name, array, given[name], memory[name], limit)
        for reached in self.reaches:
            check_reach(self.name, *reached, sizes)
        words = {("array", name): data.ctypes.data for name, data in memory.items()}
        words |= {("size", name): size for name, size in sizes.items()}
        words |= {("number", name): as_word(self, name, given[name]) for name in set(given) - set(memory)}
        block = (ctypes.c_int64 * len(self.words))(*(words[word] for word in self.words))

        def launch():
            for name, data in memory.items():
                if given[name].data is not data:
                    raise ValueError(f"{self.name}: {name} was freed after it was bound; bind again")
            self.run(block)

        return launch

    def __call__(self, **given):
        """Check everything and run."""
        self.bind(**given)()

    def listing(self):
        """This processor's instructions, without the directives and comments of LLVM's printer."""
        target = target_machine()
        return trimmed(target.emit_assembly(optimised(self.text, target)))
