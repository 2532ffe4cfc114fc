"""Small launches run programs of level 1's assembler, in place of what numba makes of the same kernels.

A program is there in 10 ms where numba takes 300, and is called in 0.02 µs where numba takes 0.16. It serves all sizes, for
each call tells them. Larger arrays are left to numba's loops, which are as quick, and let other threads run. What Python does
around a launch, such functions do, too: they look whether the result fits, make a tensor for it, and count.
"""

import functools
import math

import numpy as np

from levels.hardware import Assembler, Index
from levels.kernels import ELEMENTWISE, KERNELS, KINDS, UPDATES, Plan, compile_cpu, reduced
from levels.low_level import Node, Tensor
from levels_more.direct import LAUNCHES, RUNS, count, direct, makes_alike, starter
from levels_more.fused_loops import LoopWriter, address, merged_axes
from levels_more.fused_parts import column_program, sum_program
from levels_more.reading import of_levels, watch
from levels_more.wholes import all_lanes, assembler

SMALL = 2**16  # bytes that a launch reads and writes
LITTLE_WORK = 2**14  # products of two numbers
HIGH = 8  # rows of a product that are computed at once

_LOOPS = {}  # (op, dtypes, which input has which axes) -> program


def _loop_of(op, plan, inputs, attrs):
    """As in _MAKERS, of an elementwise op."""
    out = plan.spec
    axes = merged_axes(out.shape, [x.shape for x in inputs])
    key = op, out.dtype, *[x.dtype for x in inputs], *[owners for _, owners in axes]
    if key not in _LOOPS:
        leaves = [Node("input", (), {}, x) for x in inputs]
        node = Node(op, leaves, attrs, out)
        _LOOPS[key] = LoopWriter([node], [node], named=True).a.assemble()
    names = [f"x{n}" for n in (len(inputs), *range(len(inputs)))]  # the result is the last of its arrays
    return _LOOPS[key], names, {f"n{n}": size for n, (size, _) in enumerate(axes)}


def _sum_of(op, plan, inputs, attrs):
    """As in _MAKERS, of a sum or a mean."""
    before, within, after = reduced(op, inputs[0].shape, attrs.get("axis"))[1]
    names = "before", "within", "after" if after > 1 else 1
    in_order = within < 1024  # as its kernel adds
    program = sum_program(*names, op == "reduce_mean", plan.spec.dtype, "before", names[2], in_order)
    return program, ["out", "x"], {"before": before, "within": within, "after": after}


@functools.cache
def product_program(dtype, turned_x, turned_w):
    """out[m, n] = x[m, k] @ w[k, n], some rows at a time, whose sums stay in registers; either may lie the other way round."""
    a = Assembler("product", dtype, all_lanes(dtype))
    out, x = a.array("out", "m", "n"), a.array("x", *("km" if turned_x else "mk"))
    w, _ = a.array("w", *("nk" if turned_w else "kn")), a.array("unused", "tiles")  # a size has to be that of an array
    with a.loop("n", a.lanes) as j, a.loop("tiles") as t:
        first, last = a.write(f"mul i64 {t.register}, {HIGH}"), a.write(f"sub i64 {a.size('m')}, 1")
        rows = [a.write(f"add i64 {first}, {n}") for n in range(HIGH)]  # beyond the last one it is that one again
        rows = [Index(a, a.write(f"call i64 @llvm.smin.i64(i64 {i}, i64 {last})"), "m") for i in rows]
        sums = [a.sum() for _ in rows]
        with a.loop("k") as p:
            y = a.load(w, j, p) if turned_w else a.load(w, p, j)
            for total, i in zip(sums, rows, strict=True):
                total += (a.load(x, p, i) if turned_x else a.load(x, i, p)) * y
        for total, i in zip(sums, rows, strict=True):
            a.store(total.value(), out, i, j)
    return a.assemble()


def _product_of(op, plan, inputs, attrs):
    """As in _MAKERS, of a matrix product; None for a large one."""
    (m, n), dtype, names = plan.spec.shape, plan.spec.dtype, ["out", "x", "w"]
    turned_x, turned_w = (bool(attrs.get(f"transpose_{name}")) for name in "xw")
    k = inputs[0].shape[0 if turned_x else 1]
    if m * k * n > LITTLE_WORK:
        return None
    if n == 1 and dtype == np.float32 and not turned_x:
        return column_program("m", "k", dtype), names, {"m": m, "k": k}
    if n == 1 and turned_x:  # many columns are side by side: the product lies the other way round, too
        return product_program(dtype, False, False), ["out", "w", "x"], {"m": 1, "k": k, "n": m, "tiles": 1}
    return product_program(dtype, turned_x, turned_w), names, {"m": m, "k": k, "n": n, "tiles": math.ceil(m / HIGH)}


@functools.cache
def gather_program(dtype):
    """out[count, width] = x[rows[i]] for each of `count` rows; 1 is where `answer` points if there is no such row, for which row 0 stands."""
    a = assembler("gather", dtype, all_lanes(dtype))
    out, x = a.array("out", "count", "width"), a.array("x", "limit", "width")
    rows, missing = a.array("rows", "count", rows_of="limit"), a.word("answer", "ptr")
    with a.loop("count") as i:
        row = a.load(rows, i)
        there = a.write(f"icmp ult i64 {row.register}, {a.size('limit')}")
        row.register = a.write(f"select i1 {there}, i64 {row.register}, i64 0")
        so_far = a.write(f"load i64, ptr {missing}")
        a.emit(f"store i64 {a.write(f'select i1 {there}, i64 {so_far}, i64 1')}, ptr {missing}")
        with a.loop("width", a.lanes) as j:
            a.store(a.load(x, row, j), out, i, j)
    return a.assemble()


def _gather_of(op, plan, inputs, attrs):
    """As in _MAKERS, of a gather; a word of the program is the answer whether a row is missing."""
    x, rows = inputs
    sizes = {"count": math.prod(rows.shape), "limit": x.shape[0], "width": math.prod(x.shape[1:])}
    return gather_program(plan.spec.dtype), ["out", "x", "rows"], sizes


# op -> what gives (a program, the names in it of the result and of the inputs, the sizes in it) for a plan
_MAKERS = {"matmul": _product_of, "gather": _gather_of, "reduce_sum": _sum_of, "reduce_mean": _sum_of}


def _ours(op):
    """Whether the kernel of this op is the first, and what compiles it is ours, too. (A trial's has its indices checked.)"""
    here = KINDS["cpu"]
    checks = getattr(here.compiler, "keywords", {}) == {"boundscheck": True}
    compiler = here.compiler.func if checks else here.compiler
    return KERNELS.is_first(op, "cpu") and compiler is compile_cpu and all(map(of_levels, (here.nest, *here.loops)))


def finish(plan, op, function, inputs, attrs):
    """Let this plan of a launch of `op` on these Specs run a program, where there is one; watch what the reader's kernels read."""
    if not of_levels(function):
        return watch(plan, function)
    maker = _loop_of if op in ELEMENTWISE else _MAKERS.get(op)
    small = plan.nbytes <= SMALL and all(0 not in x.shape for x in inputs)
    if maker and small and plan.spec.device.kind == "cpu" and _ours(op):
        plan.program = functools.cache(lambda: maker(op, plan, inputs, attrs))
        _let_run(plan, lambda: _functions(plan))


def _functions(plan):
    """(what runs the program of a plan, given the result and the inputs; what makes the result, a tensor, too, or None)"""
    if not plan.program():
        return None
    program, names, sizes = plan.program()
    run = direct(program, [*names, *plan.numbers], **sizes)
    if "answer" in program.words:
        return lambda out, *inputs: _check(run(out, *inputs)), None
    made = makes_alike() and direct(program, [*names[1:], *plan.numbers], (names[0], plan.spec), **sizes)
    return run, made or None


def _check(missing):
    if missing:
        raise IndexError("gather: a row number is out of range")


class _Counted(Plan):
    """A plan whose launches are counted by the functions that do them, in their blocks."""

    @property
    def launches(self):
        return int(self.started[LAUNCHES] + self.made[RUNS])

    @launches.setter
    def launches(self, count):
        self.started[LAUNCHES], self.made[RUNS] = count, 0


def _let_run(plan, functions):
    """Let a program run wherever this plan does: at `run` on arrays, at `start` and `result` on buffers. Else it stays as it is."""
    numbers, spec, lower_first = plan.numbers, plan.spec, plan.lower

    def lower():
        try:
            run, made = functions()
        except Exception:  # what is no program is a kernel, as before
            return lower_first()

        def result(kind, reads, attrs):
            if kind is not Tensor:
                return plan.start(kind(spec), reads, attrs)
            count(spec.device, spec.nbytes)
            try:
                (y,) = made(*reads, *map(attrs.get, numbers)) if numbers else made(*reads)
            except TypeError:  # the way in Python says what is wrong
                return plan.start(kind(spec), reads, attrs)
            return y

        if made:
            plan.result, launches = result, plan.launches
            plan.started, plan.made, plan.__class__ = run.__self__, made.__self__, _Counted
            if not numbers:
                plan.start = starter(run, spec, plan.start, plan.op in UPDATES)
            plan.launches = launches  # those so far
        return run

    plan.lower = lower


def join(plan, steps, inputs):
    """Let a plan run the programs of others, if all have one: `steps` are (a plan, which of the inputs and results it reads).

    What is no result of its own shape lies in memory that all calls share: nobody else runs meanwhile.
    """

    def functions():
        from levels_more.fused import ProgramList  # here, because it is not there yet when the first op is planned

        plan.room = room = plan.spec.device.alloc((max(part.spec.nbytes for part, _ in steps),), np.bool_)
        places, calls = [("input", n) for n, _ in enumerate(inputs)], []
        for part, which in steps:
            program, names, sizes = part.program()
            places.append("out" if part.spec is plan.spec else address(room.data))
            own = dict(zip(names, [places[-1], *map(places.__getitem__, which)], strict=True))
            calls.append((program, {name: own.get(name, sizes.get(name, 0)) for name in program.words}))

        def function(out, first, *results):
            kinds = {"out": out} | {("input", n): ("buffer", n + first) for n, _ in enumerate(inputs)}
            return ProgramList([calls], kinds, np.zeros(1, np.int64), 1, True, results).tell

        return function(("buffer", 0), 1), function(("result", 0), 0, plan.spec)

    if all(hasattr(part, "program") for part, _ in steps):
        _let_run(plan, functions)
