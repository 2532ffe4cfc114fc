"""A list of programs on several threads: large programs are cut into parts; each thread takes the next that is free.

A part may begin when all parts of the programs before its own are done. Machine code hands them out, and nobody waits
for a thread, only for a part that has begun: a thread that comes late, or never, has taken nothing. No sum is cut, so
any number of threads gives the same bits in float64. (In float32 LLVM may fuse a product and a sum in one part and not
in another.)
"""

import _thread
import contextlib
import ctypes
import functools
import itertools
import math
import sys

import numpy as np

from levels.hardware import Assembler, Index
from levels_more.hardware.locks import once
from levels_more.kernels.matmul import WORTH_PACKING

WORTH_SHARING = 2**14  # numbers in the largest array of a program; one with fewer is a single part


def most_threads(graph):
    """How many threads are worth it: each has WORTH_PACKING products, 0.1 ms of work; a start takes half of that."""
    products = [(x, math.prod(x.spec.shape)) for x in graph.ops if x.op == "matmul"]
    work = sum(size * x.inputs[0].spec.shape[-2 if x.attrs.get("transpose_x") else -1] for x, size in products)
    return max(1, work // WORTH_PACKING)


def threads_for(most):
    """As many threads as numba is told to use, and as are worth it."""
    if most == 1:
        return 1
    import numba

    return min(numba.get_num_threads(), most)


def shares(count, parts, step=1):
    """[(where it begins, its size)] of each part: `count` in whole steps. There are fewer if it is small."""
    steps = -(-count // step)
    ends = [min(count, steps * t // parts * step) for t in range(parts + 1)]
    return [(begin, end - begin) for begin, end in itertools.pairwise(ends) if begin < end]


def grid(high, wide, parts):
    """How many parts down and across so many tiles are cut into: the largest shall be small, then near to a square."""

    def largest(down):
        height, width = math.ceil(high / down), math.ceil(wide / (parts // down))
        return height * width, height + width, down

    down = min((n for n in range(1, parts + 1) if parts % n == 0), key=largest)
    return down, parts // down


@functools.cache
def let_others_run():
    """The address of the system's function by which a thread lets others run."""
    system = ctypes.WinDLL("kernel32") if sys.platform == "win32" else ctypes.CDLL(None)
    function = system.SwitchToThread if sys.platform == "win32" else system.sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value


@once
def team_program():
    """What each thread runs: take the next part and do it, until the parts of all steps are done.

    `table` is as in `program_list.list_program`; `before` says for each part how many of the step must be done before
    it begins. `free` is the number of the next part, `done` how many are; they grow from step to step.
    """
    a = Assembler("team", np.float64)
    table, before = (
        a.array(name, "parts", *size, rows_of=2**31 - 1) for name, size in (("table", [2]), ("before", []))
    )
    a.array("now", "steps", rows_of=2**31 - 1)  # only its first place is used; a size has to be that of an array
    names = "free", "done", "others", "now"
    free, done, others, now = (a.word(name, "ptr") for name in names)
    parts, total = a.size("parts"), a.write(f"mul i64 {a.size('steps')}, {a.size('parts')}")
    a.emit("br label %look", "look:")
    ready = a.write(f"load atomic i64, ptr {done} seq_cst, align 8")
    a.emit(f"%end = icmp sge i64 {ready}, {total}", "br i1 %end, label %leave, label %more", "more:")
    part = a.write(f"load atomic i64, ptr {free} seq_cst, align 8")
    a.emit(f"%is_part = icmp slt i64 {part}, {total}", "br i1 %is_part, label %find, label %wait", "find:")
    place, step = (a.write(f"{what} i64 {part}, {parts}") for what in ("urem", "udiv"))
    index, begun = Index(a, place, "parts"), a.write(f"sub i64 {part}, {place}")
    needed = a.write(f"add i64 {begun}, {a.load(before, index).register}")
    a.emit(f"%open = icmp sge i64 {ready}, {needed}", "br i1 %open, label %take, label %wait", "take:")
    following = a.write(f"add i64 {part}, 1")
    taken = a.write(f"cmpxchg ptr {free}, i64 {part}, i64 {following} seq_cst seq_cst")
    a.emit(f"%mine = extractvalue {{i64, i1}} {taken}, 1", "br i1 %mine, label %work, label %look", "work:")
    a.emit(f"store i64 {step}, ptr {now}")
    program, block = (a.write(f"inttoptr i64 {a.load(table, index, k).register} to ptr") for k in (0, 1))
    a.emit(f"call void {program}(ptr {block})")
    a.write(f"atomicrmw add ptr {done}, i64 1 seq_cst")
    a.emit("br label %look", "wait:", f"call i32 {others}()", "br label %look", "leave:")
    return a.assemble()


def _take_part(program, words, kept):
    """What another thread does. `kept` lives until it has left, though the caller may be gone by then."""
    program.run(words)


def run_together(program, words, threads, kept):
    """Run a `team_program` on so many threads, this one among them; when it returns, all is done.

    Whatever keeps the others from coming, Ctrl-C or a system that has no threads left, this one does what there is to
    do. (A `threading.Thread` would wait until it runs: 0.15 ms in each call, where this takes 0.05.)
    """
    try:
        with contextlib.suppress(RuntimeError):
            for _ in range(threads - 1):
                _thread.start_new_thread(_take_part, (program, words, kept))
    finally:
        program.run(words)
