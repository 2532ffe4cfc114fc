"""A program is loads, arithmetic and stores: an assembler that writes one, instruction by instruction."""

# Built from notebooks/01_hardware.ipynb: edit there, then run its last cell.

import ctypes
from contextlib import contextmanager

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir

from .device import Buffer


class Value:
    """What a register will hold: one number, or one number in each lane. Its operators write instructions."""

    def __init__(self, a, register, lanes=1):
        self.a, self.register, self.lanes = a, register, lanes

    def __add__(self, other):
        return self.a.arithmetic("fadd", self, other)

    def __radd__(self, other):
        return self.a.arithmetic("fadd", other, self)

    def __sub__(self, other):
        return self.a.arithmetic("fsub", self, other)

    def __rsub__(self, other):
        return self.a.arithmetic("fsub", other, self)

    def __mul__(self, other):
        return self.a.arithmetic("fmul", self, other)

    def __rmul__(self, other):
        return self.a.arithmetic("fmul", other, self)

    def __truediv__(self, other):
        return self.a.arithmetic("fdiv", self, other)

    def __rtruediv__(self, other):
        return self.a.arithmetic("fdiv", other, self)

    def __gt__(self, other):
        return self.a.comparison(">", self, other)

    def __lt__(self, other):
        return self.a.comparison("<", self, other)


class Array:
    """Memory that a program reads or writes. A size is a number, or a name that the call will fill in."""

    def __init__(self, name, shape, rows_of=None):
        self.name, self.shape, self.rows_of = name, shape, rows_of  # rows_of: its integers index arrays of that size

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


class Condition(Value):
    """Yes or no, in each lane: what a comparison gives, and `select` takes."""

    def __bool__(self):
        raise TypeError(f"{self.a.name}: a comparison is not known while the program is written; use select(c, x, y)")


class Counter(Value):
    """An integer known to lie in [0, extent): a loop's counter, or a row number loaded from memory."""

    def __init__(self, a, register, lanes, extent, first=None):
        super().__init__(a, register, lanes)
        self.extent, self.first = extent, first  # first: of consecutive lanes, the counter of lane 0


I1, I32, I64, POINTER = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.PointerType()
REAL = {np.dtype("f4"): ir.FloatType(), np.dtype("f8"): ir.DoubleType()}
FAST = ("contract", "nsz", "arcp")  # float32 may fuse a·b + c into one instruction, and turn x/n into x·(1/n)


def float32_lanes():
    """How many float32 one instruction of this processor works on."""
    features = llvm.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


def laned(kind, lanes):
    """The type of a register with that many lanes."""
    return ir.VectorType(kind, lanes) if lanes > 1 else kind


def numeric(a, operand):
    """The register of a value, or a Python number as a constant."""
    if isinstance(operand, (Counter, Condition)) or (isinstance(operand, Value) and operand.a is not a):
        raise TypeError(
            f"{a.name}: arithmetic takes this program's numbers, not counters, comparisons or another program's"
        )
    return operand.register if isinstance(operand, Value) else ir.Constant(a.real, float(operand))


def spread(a, register, lanes):
    """A register as it is, or its one number repeated over `lanes` lanes."""
    if lanes == 1 or isinstance(register.type, ir.VectorType):
        return register
    vector = ir.Constant(ir.VectorType(register.type, lanes), ir.Undefined)
    vector = a.builder.insert_element(vector, register, I32(0))
    return a.builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def together(a, *operands):
    """The registers of numbers that meet in one instruction, all with as many lanes as the widest, and the lanes."""
    lanes = max((o.lanes for o in operands if isinstance(o, Value)), default=1)
    return [spread(a, numeric(a, o), lanes) for o in operands], lanes


def arithmetic(a, instruction, *operands):
    """Write one instruction: fadd, fsub, fmul, fdiv."""
    registers, lanes = together(a, *operands)
    return Value(a, getattr(a.builder, instruction)(*registers, flags=a.flags), lanes)


def comparison(a, how, *operands):
    """Write one comparison. With a NaN it is false."""
    registers, lanes = together(a, *operands)
    return Condition(a, a.builder.fcmp_ordered(how, *registers), lanes)


def place(a, array, index):
    """The position of array[index], counted in elements: an integer register, and its lanes."""
    if len(index) != len(array.shape):
        raise IndexError(f"{a.name}: {array} needs {len(array.shape)} indices, got {len(index)}")
    for i, size in zip(index, array.shape):
        known = isinstance(i, int) and isinstance(size, int) and 0 <= i < size
        if not known and not (isinstance(i, Counter) and i.extent == size):
            raise IndexError(f"{a.name}: index {getattr(i, 'extent', i)} may leave {array}, whose size is {size} there")
    wide = [i for i in index if isinstance(i, Counter) and i.lanes > 1]
    if wide and a.mask is None:
        raise IndexError(f"{a.name}: {array} is indexed by the counter of a loop that has ended")
    consecutive = wide == [index[-1]] and wide[0].first is not None  # lanes side by side: the first one's place will do
    position = ir.Constant(I64, 0)
    for i, size in zip(index, array.shape):
        register = I64(i) if isinstance(i, int) else i.first if consecutive and i is wide[0] else i.register
        position = a.integer("add", a.integer("mul", position, a.size(size)), register)
    return position, wide[0].lanes if wide else 1


def integer(a, instruction, *registers):
    """Integer arithmetic for addresses; a single integer beside a vector is repeated."""
    width = max((r.type.count for r in registers if isinstance(r.type, ir.VectorType)), default=1)
    return getattr(a.builder, instruction)(*(spread(a, r, width) for r in registers))


def intrinsic(a, name, returns, *arguments, flags=()):
    """Call one of LLVM's intrinsic functions, which stand for an instruction or two."""
    kind = ir.FunctionType(returns, [v.type for v in arguments])
    function = a.module.globals.get(name) or ir.Function(a.module, kind, name)
    return a.builder.call(function, arguments, fastmath=flags)


def load(a, array, *index):
    """Load array[index] into a register. A row number loads as a counter of the arrays it indexes."""
    element = I64 if array.rows_of else a.real
    position, lanes = place(a, array, index)
    vector, pointer = laned(element, lanes), a.pointer(array)
    if lanes == 1:
        register = a.builder.load(a.builder.gep(pointer, [position], source_etype=element), typ=element)
    elif not isinstance(position.type, ir.VectorType):
        address = a.builder.gep(pointer, [position], source_etype=element)
        name = f"llvm.masked.load.v{lanes}{'i64' if array.rows_of else 'f32'}.p0"
        register = intrinsic(
            a, name, vector, address, I32(8 if array.rows_of else 4), a.mask, ir.Constant(vector, None)
        )
    else:  # lane by lane, which beats the gather instruction of many processors
        register = ir.Constant(vector, ir.Undefined)
        position = a.builder.select(a.mask, position, ir.Constant(position.type, None))  # a masked lane reads element 0
        for lane in map(I32, range(lanes)):
            address = a.builder.gep(pointer, [a.builder.extract_element(position, lane)], source_etype=element)
            register = a.builder.insert_element(register, a.builder.load(address, typ=element), lane)
    return Counter(a, register, lanes, array.rows_of) if array.rows_of else Value(a, register, lanes)


def store(a, value, array, *index):
    """Store a value into array[index]."""
    if array.rows_of:
        raise TypeError(f"{a.name}: {array} holds row numbers, which a program only reads")
    position, lanes = place(a, array, index)
    if getattr(value, "lanes", 1) > lanes:
        raise TypeError(f"{a.name}: a value of {value.lanes} lanes does not fit one place of {array}; take its total")
    register = spread(a, numeric(a, value), lanes)
    address = a.builder.gep(a.pointer(array), [position], source_etype=a.real)
    if lanes == 1:
        a.builder.store(register, address)
    elif isinstance(position.type, ir.VectorType):
        address.type = ir.VectorType(POINTER, lanes)
        intrinsic(a, f"llvm.masked.scatter.v{lanes}f32.v{lanes}p0", ir.VoidType(), register, address, I32(4), a.mask)
    else:
        intrinsic(a, f"llvm.masked.store.v{lanes}f32.p0", ir.VoidType(), register, address, I32(4), a.mask)


class Sum:
    """A running sum: starts at 0.0, grows with `+=`, one partial sum a lane. `total()` adds the lanes."""

    def __init__(self, a):
        self.a, self.type = a, laned(a.real, a.lanes)
        self.slot = a.entry.alloca(self.type)
        a.builder.store(ir.Constant(self.type, None if a.lanes > 1 else 0.0), self.slot)

    def value(self):
        return Value(self.a, self.a.builder.load(self.slot, typ=self.type), self.a.lanes)

    def __iadd__(self, term):
        grown = (self.value() + term).register
        if self.a.mask is not None:  # masked lanes keep their sum
            grown = self.a.builder.select(self.a.mask, grown, self.value().register)
        self.a.builder.store(grown, self.slot)
        return self

    def total(self):
        a, value = self.a, self.value()
        if value.lanes == 1:
            return value
        name = f"llvm.vector.reduce.fadd.v{value.lanes}f32"
        return Value(a, intrinsic(a, name, a.real, a.real(0.0), value.register, flags=("reassoc",)))


@contextmanager
def loop(a, extent, lanes=1):
    """Write a loop over [0, extent); with lanes, each turn takes that many counters at once."""
    if lanes > 1 and a.mask is not None:
        raise ValueError(f"{a.name}: a loop with lanes stands inside another one")
    before, builder, end = a.builder.block, a.builder, a.size(extent)
    test, body, after = (a.function.append_basic_block(name) for name in ("test", "body", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    i = builder.phi(I64)
    i.add_incoming(I64(0), before)
    builder.cbranch(builder.icmp_signed("<", i, end), body, after)
    builder.position_at_end(body)
    if lanes == 1:
        yield Counter(a, i, 1, extent)
    else:
        each = integer(a, "add", i, ir.Constant(ir.VectorType(I64, lanes), list(range(lanes))))
        a.mask = builder.icmp_signed("<", each, spread(a, end, lanes))
        yield Counter(a, each, lanes, extent, first=i)
        a.mask = None
    i.add_incoming(builder.add(i, I64(lanes)), builder.block)
    builder.branch(test)
    builder.position_at_end(after)


class Assembler:
    """Writes one program. float64: one number at a time, nothing reordered. float32: lanes, and sums in lanes."""

    def __init__(self, name, dtype):
        if np.dtype(dtype) not in REAL:
            raise TypeError(f"{name}: dtype is {np.dtype(dtype)}; a program computes in float32 or float64")
        self.name, self.dtype = name, np.dtype(dtype)
        self.real, single = REAL[self.dtype], self.dtype == np.float32
        self.lanes, self.flags = (float32_lanes(), FAST) if single else (1, ())
        self.module, self.mask, self.arrays, self.words = ir.Module(name), None, {}, {}
        self.function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [POINTER]), "program")
        if self.lanes > 1:  # a vector put aside on the stack must not straddle two cache lines
            self.function.attributes.add("nounwind")  # llvmlite writes the next one only beside a named attribute
            self.function.attributes.alignstack = 64
        self.entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(self.function.append_basic_block("start"))

    def word(self, name, kind):
        """One 64-bit word of the block of arguments that a call hands over: an address, a size or a number."""
        if name not in self.words:
            address = self.entry.gep(self.function.args[0], [I64(len(self.words))], source_etype=I64)
            self.words[name] = self.entry.load(address, typ=kind)
        return self.words[name]

    def array(self, name, *shape, rows_of=None):
        if name in self.arrays or not shape:
            raise ValueError(f"{self.name}: array {name!r} needs a shape, and a name of its own")
        self.arrays[name] = Array(name, shape, rows_of)
        self.word(name, POINTER)
        return self.arrays[name]

    def pointer(self, array):
        if self.arrays.get(array.name) is not array:
            raise ValueError(f"{self.name}: {array} belongs to another program")
        return self.words[array.name]

    def size(self, extent):
        return ir.Constant(I64, extent) if isinstance(extent, int) else self.word(f"size of {extent}", I64)

    def count(self, extent):
        """A size as a number to compute with."""
        return Value(self, self.builder.sitofp(self.size(extent), self.real))

    def number(self, name):
        """A number that each call hands over, such as a learning rate."""
        return Value(self, self.word(f"number {name}", self.real))

    def sum(self):
        return Sum(self)

    def assemble(self):
        """End the program and turn it into machine code."""
        return Program(self)

    arithmetic, comparison, integer, load, store, loop = arithmetic, comparison, integer, load, store, loop


CODE = {}  # the text of a program -> its machine code


def machine_code(text):
    """Compile LLVM's text for this processor: (engine, address, listing)."""
    if text not in CODE:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
        )
        module = llvm.parse_assembly(text)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.loop_unrolling = False  # the loops run as they were written
        passes = llvm.create_pass_builder(target, options)
        passes.getModulePassManager().run(module, passes)
        listing = target.emit_assembly(module)
        engine = llvm.create_mcjit_compiler(module, target)
        engine.finalize_object()
        CODE[text] = engine, engine.get_function_address("program"), listing
    return CODE[text]


class Program:
    """Machine code with the names and shapes of what it works on. Call it with buffers and numbers by name."""

    def __init__(self, a):
        a.entry.branch(a.function.blocks[1])
        a.builder.ret_void()
        self.name, self.dtype, self.arrays, self.words = a.name, a.dtype, a.arrays, list(a.words)
        known = {f"size of {size}" for array in a.arrays.values() for size in array.shape}
        if lost := [word for word in self.words if word.startswith("size of ") and word not in known]:
            raise ValueError(f"{a.name}: the {lost[0]} is unknown: it stands in no array's shape")
        self.engine, address, self.code = machine_code(str(a.module))
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def __call__(self, **given):
        words = self.bind(given)
        block = (ctypes.c_int64 * len(self.words))(*(words[name] for name in self.words))
        self.run(ctypes.addressof(block))

    def listing(self):
        """This processor's instructions, without the assembler's own directives."""
        lines = (line.split("#")[0].rstrip() for line in self.code.splitlines())
        return "\n".join(line for line in lines if line and not line.startswith(("\t.", "//", ".Lfunc")))

    def bind(self, given):
        """The word that stands for each operand: addresses, sizes and numbers, all checked."""
        names = [name.removeprefix("number ") for name in self.words if not name.startswith("size of ")]
        if wrong := set(names) ^ set(given):
            raise TypeError(f"{self.name}: takes {', '.join(names)}; missing or unknown: {', '.join(sorted(wrong))}")
        words, sizes = {}, {}
        for name, array in self.arrays.items():
            buffer, dtype = given[name], np.dtype(np.int64) if array.rows_of else self.dtype
            if not isinstance(buffer, Buffer) or buffer.data is None or buffer.device.kind != "cpu":
                raise TypeError(f"{self.name}: {name} is {buffer!r}; expected a live buffer on a CPU")
            fits = buffer.dtype == dtype and len(buffer.shape) == len(array.shape)
            for size, found in zip(array.shape, buffer.shape):
                fits = fits and found == (size if isinstance(size, int) else sizes.setdefault(size, found))
            if not fits:
                found = f"{name} is {buffer.shape} {buffer.dtype}"
                raise ValueError(
                    f"{self.name}: {found}; expected {array} {dtype}" + (f" with {sizes}" if sizes else "")
                )
            if buffer.data.size >= 2**31:
                raise ValueError(
                    f"{self.name}: {name} has {buffer.data.size:,} elements; a program reaches 2,147,483,647"
                )
            words[name] = buffer.data.ctypes.data
        for name, array in self.arrays.items():
            rows = given[name].data
            if array.rows_of and rows.size and not 0 <= rows.min() <= rows.max() < sizes[array.rows_of]:
                worst = rows.max() if rows.max() >= sizes[array.rows_of] else rows.min()
                raise IndexError(f"{self.name}: {name} holds row {worst}; there are {sizes[array.rows_of]} rows")
        words.update((f"size of {size}", found) for size, found in sizes.items())
        bits = np.int32 if self.dtype == np.float32 else np.int64
        for name in set(given) - set(self.arrays):
            words[f"number {name}"] = int(np.array(given[name], self.dtype).view(bits))
        return words
