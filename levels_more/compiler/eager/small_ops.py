"""Small launches run programs of level 1's assembler, instead of what numba compiles from the same kernels.

A program is compiled in 10 ms, where numba takes 300, and numba need not be imported. It serves all sizes, because each
call passes them. Larger arrays are left to numba's loops, which are as fast.

What needs it is the row "levels 3 eager" of the start, on the bench. There a first epoch takes 0.7 s of the processor,
and 8.6 without it, which is behind PyTorch. If a single one of its ops were left to numba, it would take 2.5 or more.
"""

import ctypes
import math
import operator
import struct
from ctypes import addressof
from types import SimpleNamespace

import numpy as np

from levels.hardware import Index
from levels.kernels import BACKENDS, ELEMENTWISE, KERNELS, PLAN_FINISHERS, UPDATES, Plan, reduced
from levels.low_level import Node, NoProgram
from levels.support.compiled import compile_cpu
from levels_more.compiler.functions import watch
from levels_more.compiler.fused.gather import gather_program
from levels_more.compiler.fused.loops import LoopWriter, address, address_of, loop_of, merged_axes
from levels_more.compiler.fused.programs import column_program, sum_program, write_sums
from levels_more.compiler.reads import of_levels
from levels_more.compiler.typed_assembler import KIND, all_lanes, assembler
from levels_more.hardware.locks import once
from levels_more.kernels.batched_matmul import products_of

SMALL = 2**16  # bytes that a launch may read and write
LITTLE_WORK = 2**14  # multiplications of a matrix product
HIGH = 8  # rows of a product that are computed at once

# type of a word -> its format in `struct`; and the function that converts a number to it
_PACKED = {"ptr": "q", "i64": "q", "double": "d", "float": "f4x"}
_NUMBER = {
    "i64": operator.index,
    "double": lambda x: ctypes.c_double(x).value,
    "float": lambda x: ctypes.c_float(x).value,
}
_bytes_of = (ctypes.c_char * 0).from_buffer
# A program that is called in this way keeps the GIL: it ends sooner than another thread could start.
_SHORT = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


def caller(program, arguments, **sizes):
    """Return run(*arrays, *numbers) for a program of level 1. It is thread-safe: each call packs its own words.

    `arguments` names the words of the arrays and then of the numbers, in order. `sizes` gives the values of the other
    words. The sizes of arrays are not checked. `run` raises TypeError for what is not an array or a number, ValueError
    for a wrong number of arguments.
    """
    words, places, pack = block_of(program, arguments, sizes)
    numbers = [_NUMBER[kind] for kind in map(program.words.get, arguments) if kind != "ptr"]
    count = len(arguments) - len(numbers)

    def run(*arrays):
        block = [*words]
        for place, array in zip(places, arrays, strict=True):
            block[place] = addressof(_bytes_of(array))
        program.run(pack(*block))

    def run_with_numbers(*given):
        block = [*words]
        converted = [number(x) for number, x in zip(numbers, given[count:], strict=True)]
        for place, x in zip(places, [*map(address, given[:count]), *converted], strict=True):
            block[place] = x
        program.run(pack(*block))

    return run_with_numbers if numbers else run


def block_of(program, arguments, sizes):
    """(The words of a program with these sizes filled in, the places of the arguments, a function that packs words)."""
    names = [*program.words]
    pack = struct.Struct("=" + "".join(map(_PACKED.get, program.words.values()))).pack
    return [sizes.get(name, 0) for name in names], [*map(names.index, arguments)], pack


# (op, dtypes, which input has which axes) -> program. (No lock: only one thread at a time lowers a plan.)
_LOOPS = {}


def _loop_of(op, plan, inputs, attrs):
    """As in _MAKERS, for an elementwise op. None for an op on masks alone."""
    out = plan.spec
    axes = merged_axes(out.shape, [x.shape for x in inputs])
    key = op, out.dtype, *[x.dtype for x in inputs], *[owners for _, owners in axes]
    if key not in _LOOPS:
        leaves = [Node("input", (), {}, x) for x in inputs]
        node = Node(op, leaves, attrs, out)
        if loop_of(node) is None:  # masks alone, which no loop takes
            return None
        _LOOPS[key] = LoopWriter([node], [node], named=True).a.assemble()
    names = [f"x{n}" for n in (len(inputs), *range(len(inputs)))]  # the result is the last of its arrays
    return _LOOPS[key], names, {f"n{n}": size for n, (size, _) in enumerate(axes)}


def _spread_of(op, plan, inputs, attrs):
    """As in _MAKERS, for the way back through a sum: the loop over x[before, within, after], dy[before, 1, after]."""
    dy, x = inputs
    before, within, after = reduced(op, x.shape, attrs.get("axis"))[1]
    seen = [x.device.spec((before, each, after), x.dtype) for each in (1, within)]
    return _loop_of(op, SimpleNamespace(spec=seen[1]), seen, {"axis": 1})


def _sum_of(op, plan, inputs, attrs):
    """As in _MAKERS, for a sum or a mean."""
    before, within, after = reduced(op, inputs[0].shape, attrs.get("axis"))[1]
    names = "before", "within", "after" if after > 1 else 1
    in_order = within < 1024  # like its kernel
    program = sum_program(*names, op == "reduce_mean", plan.spec.dtype, "before", names[2], in_order)
    return program, ["out", "x"], {"before": before, "within": within, "after": after}


@once
def product_program(dtype, turned_x, turned_w):
    """out[m, n] = x[m, k] @ w[k, n], HIGH rows at a time, with their sums in registers. x or w may be transposed."""
    a = assembler("product", dtype, all_lanes(dtype))
    out = a.array("out", "m", "n")
    x = a.array("x", *("km" if turned_x else "mk"))
    # every size must be in a shape
    w = a.array("w", *("nk" if turned_w else "kn"))
    _ = a.array("unused", "tiles")
    with a.loop("n", a.lanes) as j, a.loop("tiles") as t:
        first = a.write(f"mul i64 {t.register}, {HIGH}")
        last = a.write(f"sub i64 {a.size('m')}, 1")
        rows = [a.write(f"add i64 {first}, {n}") for n in range(HIGH)]  # past the last row, that row again
        rows = [Index(a, a.write(f"call i64 @llvm.smin.i64(i64 {i}, i64 {last})"), "m") for i in rows]
        write_sums(a, out, x, w, "k", rows, j, j, turned_x, turned_w)
    return a.assemble()


def _product_of(op, plan, inputs, attrs):
    """As in _MAKERS, for a matrix product. None for a large one, for several, and for integers."""
    dtype = plan.spec.dtype
    names = ["out", "x", "w"]
    turned_x, turned_w = (bool(attrs.get(f"transpose_{name}")) for name in "xw")
    _, count, m, k, n, *_ = products_of(op, *(x.shape for x in inputs), turned_x, turned_w)
    if count > 1 or m * k * n > LITTLE_WORK or dtype.kind != "f":
        return None
    if n == 1 and dtype == np.float32 and not turned_x:
        return column_program("m", "k", dtype), names, {"m": m, "k": k}
    if n == 1 and turned_x:  # compute the transposed product, a row: its lanes are contiguous in x
        return product_program(dtype, False, False), ["out", "w", "x"], {"m": 1, "k": k, "n": m, "tiles": 1}
    return product_program(dtype, turned_x, turned_w), names, {"m": m, "k": k, "n": n, "tiles": math.ceil(m / HIGH)}


def _gather_of(op, plan, inputs, attrs):
    """As in _MAKERS, for a gather. The word `answer` is the address where the program reports a missing row."""
    x, rows = inputs
    sizes = {"count": math.prod(rows.shape), "limit": x.shape[0], "width": math.prod(x.shape[1:])}
    return gather_program("count", "limit", "width", plan.spec.dtype, True), ["out", "x", "rows"], sizes


# op -> function(op, plan, inputs, attrs) -> (a program, its names of the result and the inputs, its sizes) or None
_MAKERS = {
    "matmul": _product_of,
    "gather": _gather_of,
    "reduce_sum": _sum_of,
    "reduce_mean": _sum_of,
    "spread": _spread_of,
}


def _ours(op):
    """Whether this op has its original kernel, compiler and loops."""
    here = BACKENDS["cpu"]
    own = here.compiler is compile_cpu and all(map(of_levels, (here.nest, here.reduction)))
    return own and KERNELS.is_first(op, "cpu")


def finish(plan, op, function, inputs, attrs):
    """Return `plan`, or one that runs a program. For a reader's kernel, `plan` checks what the kernel reads."""
    if not of_levels(function):
        return watch(plan, function)
    maker = _MAKERS.get(op) or (_loop_of if op in ELEMENTWISE else None)
    small = plan.nbytes <= SMALL and all(0 not in x.shape for x in inputs)
    small = small and all(x.dtype in KIND for x in (plan.spec, *inputs))  # no programs for others
    if maker and small and plan.spec.device.kind == "cpu" and _ours(op):
        return ProgramPlan(plan, inputs, lambda: maker(op, plan, inputs, attrs))
    return plan


class ProgramPlan(Plan):
    """A plan that runs the program of level 1 that `maker` returns, or, if it returns none, the kernel of `plan`.

    Each launch packs its own block of words, so several threads may launch at once.
    """

    def __init__(self, plan, inputs, maker):
        super().__init__(plan.op, plan.spec.shape, plan.spec.dtype, inputs, self.program_or_kernel, None, plan.numbers)
        self.nbytes = plan.nbytes
        self.maker = maker
        self.kernel = plan.lower
        self.pack = None

    def program_or_kernel(self):
        """Return what `run` calls."""
        try:
            made = self.maker()
        except NoProgram:  # the assembler has no instruction for this op, such as `power`
            made = None
        if made is None:
            return self.kernel()
        self.program, names, sizes = made
        self.answer = [*self.program.words].index("answer") if "answer" in self.program.words else None
        if not self.numbers and self.op not in UPDATES:
            self.short = _SHORT(ctypes.cast(self.program.run, ctypes.c_void_p).value)
            self.words, places, self.pack = block_of(self.program, names, sizes)
            self.place, *self.places = places
        run = caller(self.program, [*names, *["answer"] * (self.answer is not None), *self.numbers], **sizes)
        return run if self.answer is None else _checked(run)

    def run(self, out, reads, attrs):
        """Run on these buffers, which have the planned Specs, and count it. Returns `out`.

        (By the method of `Plan`, "rings, batch 10, Adam: levels 3 eager" of the bench takes 1.4 times as long.)
        """
        if self.pack is None:
            return super().run(out, reads, attrs)
        block = self.words.copy()
        places = self.places
        block[self.place] = out.address or address_of(out)
        for k, x in enumerate(reads):  # `zip` with `strict` takes half a microsecond
            block[places[k]] = x.address or address_of(x)
        if self.answer is None:
            self.short(self.pack(*block))
        else:
            missing = ctypes.c_int64()
            block[self.answer] = addressof(missing)
            self.short(self.pack(*block))
            _check(missing.value)
        self.launches += 1
        return out


def _check(missing):
    """Raise IndexError if a program has reported a missing row."""
    if missing:
        raise IndexError("gather: a row number is out of range")


def _checked(run):
    """Return a gather on arrays that raises IndexError for missing rows."""

    def gather(out, x, rows):
        missing = np.zeros(1, np.int64)
        run(out, x, rows, missing)
        _check(missing[0])

    return gather


PLAN_FINISHERS.append(finish)
