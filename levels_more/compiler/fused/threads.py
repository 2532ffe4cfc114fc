"""A list of programs on several threads: large programs are cut into parts, and each thread takes the next free one.

A part may begin when all parts of the programs before its own are done. Machine code hands out the parts. It waits only
for parts that have begun, never for a thread to start: a thread that starts late, or never, holds no part. No sum is
cut, so any number of threads gives the same bits in float64. (In float32 LLVM may fuse a product and a sum in one part
and not in another.)

Row "784-512-512-10, batch 256, Adam, 2 threads: epoch" of the bench takes 2.2 times as long on one thread.
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

WORTH_SHARING = 2**14  # numbers in the largest array of a program; a program with fewer is a single part


def most_threads(graph):
    """How many threads pay off: one per WORTH_PACKING multiplications. A start takes up to 50 µs."""
    products = [(x, math.prod(x.spec.shape)) for x in graph.ops if x.op == "matmul"]
    work = sum(size * x.inputs[0].spec.shape[-2 if x.attrs.get("transpose_x") else -1] for x, size in products)
    return max(1, work // WORTH_PACKING)


def threads_for(most):
    """The number of threads to use: numba's setting, or `most` if that is less."""
    if most == 1:
        return 1
    import numba

    return min(numba.get_num_threads(), most)


def shares(count, parts, step=1):
    """[(begin, size), …] of the parts of `count`. They begin at multiples of `step`; there are fewer if it is small."""
    steps = -(-count // step)
    ends = [min(count, steps * t // parts * step) for t in range(parts + 1)]
    return [(begin, end - begin) for begin, end in itertools.pairwise(ends) if begin < end]


def grid(high, wide, parts):
    """(parts down, parts across) for high × wide tiles: first the largest part is kept small, then near to a square."""

    def largest(down):
        height = math.ceil(high / down)
        width = math.ceil(wide / (parts // down))
        return height * width, height + width, down

    down = min((n for n in range(1, parts + 1) if parts % n == 0), key=largest)
    return down, parts // down


@functools.cache
def let_others_run():
    """The address of the system's function with which a thread yields the processor."""
    system = ctypes.WinDLL("kernel32") if sys.platform == "win32" else ctypes.CDLL(None)
    function = system.SwitchToThread if sys.platform == "win32" else system.sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value


@once
def team_program():
    """The program of each thread: take the next part and run it, until the parts of all steps are done.

    `table` is as in `program_list.list_program`. `before` is, for each part, how many parts of the step must be done
    before it begins. `free` is the number of the next part, `done` how many are done; both go on over all steps.
    """
    a = Assembler("team", np.float64)
    table, before = (
        a.array(name, "parts", *size, rows_of=2**31 - 1) for name, size in (("table", [2]), ("before", []))
    )
    a.array("now", "steps", rows_of=2**31 - 1)  # only its first element is used; every size must be in a shape
    names = "free", "done", "others", "now"
    free, done, others, now = (a.word(name, "ptr") for name in names)
    parts, total = a.size("parts"), a.write(f"mul i64 {a.size('steps')}, {a.size('parts')}")
    a.lines += ["br label %look", "look:"]
    ready = a.write(f"load atomic i64, ptr {done} seq_cst, align 8")
    a.lines += [f"%end = icmp sge i64 {ready}, {total}", "br i1 %end, label %leave, label %more", "more:"]
    part = a.write(f"load atomic i64, ptr {free} seq_cst, align 8")
    a.lines += [f"%is_part = icmp slt i64 {part}, {total}", "br i1 %is_part, label %find, label %wait", "find:"]
    place, step = (a.write(f"{what} i64 {part}, {parts}") for what in ("urem", "udiv"))
    index, begun = Index(a, place, "parts"), a.write(f"sub i64 {part}, {place}")
    needed = a.write(f"add i64 {begun}, {a.load(before, index).register}")
    a.lines += [f"%open = icmp sge i64 {ready}, {needed}", "br i1 %open, label %take, label %wait", "take:"]
    following = a.write(f"add i64 {part}, 1")
    taken = a.write(f"cmpxchg ptr {free}, i64 {part}, i64 {following} seq_cst seq_cst")
    a.lines += [f"%mine = extractvalue {{i64, i1}} {taken}, 1", "br i1 %mine, label %work, label %look", "work:"]
    a.lines.append(f"store i64 {step}, ptr {now}")
    program, block = (a.write(f"inttoptr i64 {a.load(table, index, k).register} to ptr") for k in (0, 1))
    a.lines.append(f"call void {program}(ptr {block})")
    a.write(f"atomicrmw add ptr {done}, i64 1 seq_cst")
    a.lines += ["br label %look", "wait:", f"call i32 {others}()", "br label %look", "leave:"]
    return a.assemble()


def _take_part(program, words, kept):
    """What another thread runs. `kept` stays alive until the program ends, even if the caller has returned by then."""
    program.run(words)


def run_together(program, words, threads, kept):
    """Run a `team_program` on this many threads, including this one. When it returns, all is done.

    If the others cannot start, because of Ctrl-C or because the system has no threads left, this one does all the work.
    (A `threading.Thread` would wait until it runs: 0.15 ms in each call, while this takes 0.05.)
    """
    try:
        with contextlib.suppress(RuntimeError):
            for _ in range(threads - 1):
                _thread.start_new_thread(_take_part, (program, words, kept))
    finally:
        program.run(words)
