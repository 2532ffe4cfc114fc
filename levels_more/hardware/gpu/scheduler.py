"""A simulated launch: blocks run one after the other, and the threads of each take turns, from barrier to barrier."""

import ctypes
import math
import random
import sys
import threading
import time
import traceback
from collections import Counter
from typing import NamedTuple

import numpy as np

from levels_more import not_installed
from levels_more.checks import expect
from levels_more.hardware.gpu.errors import BarrierError, Endless, GpuError, Race, Uninitialised, position, source_line
from levels_more.hardware.gpu.memory import (
    UNUSED,
    WRITE,
    Block,
    Dim3,
    Thread,
    View,
    cuda,
    every_place,
    getcurrent,
    greenlet,
    index_text,
    used,
    uses_of,
)


class _Workers(threading.local):
    """The idle greenlets of an operating system thread, for reuse. (A new one costs more than many turns.)"""

    def __init__(self):
        self.idle = []


_WORKERS = _Workers()


def _worker():
    """A greenlet that runs threads of the current block that have not begun, and switches back to its caller."""
    runner = _WORKERS.idle.pop() if _WORKERS.idle else greenlet(_work)
    runner.parent = getcurrent()
    return runner


def _work():
    """The loop of a greenlet. It switches back with True if a thread waits at a barrier, with False if none is left."""
    with np.errstate(all="ignore"):  # a GPU gives no warnings of overflow or NaN
        while True:
            cuda.run.run_fresh()
            getcurrent().parent.switch(False)


WARP = 32  # threads that run in lockstep


class SimulatedLaunch:
    """One simulated launch: its kernel, the order of its threads, and their accesses to memory."""

    def __init__(self, kernel, order):
        self.kernel, self.dice = kernel, order if order is None else random.Random(order)
        # accesses; see View
        self.cells = {}
        self.past = {}
        self.shared = {}
        self.unwritten = []
        self.log = []
        self.os_thread, self.deadline = threading.get_ident(), time.monotonic() + LAUNCH_LIMITS["seconds"]

    def arranged(self, items):
        return items if self.dice is None else self.dice.sample(items, len(items))

    def run_fresh(self):
        """Run the threads of the block that have not begun, one after the other."""
        for cuda.thread in self.fresh:
            cuda.threadIdx = cuda.thread.index
            self.kernel(*self.arguments)

    def block(self, index):
        """Run the threads of a block in turns. A turn ends at a barrier, or at the end of the kernel."""
        cuda.block = Block(index)
        cuda.blockIdx = index
        threads = [Thread(cuda.block, at, rank // WARP) for rank, at in enumerate(every_place(cuda.blockDim))]
        self.fresh, parked, runner = iter(self.arranged(threads)), [], _worker()
        try:
            while runner.switch():  # it ran threads until one had to wait; another greenlet runs the rest
                parked.append((cuda.thread, runner))
                runner = _worker()
            while self.at_barrier(threads):
                for thread, waiting in self.arranged(parked):
                    cuda.thread = thread
                    cuda.threadIdx = thread.index
                    thread.barrier = None
                    waiting.switch()
            _WORKERS.idle += [runner, *(waiting for _, waiting in parked)]
        except BaseException:
            for _, waiting in parked:
                waiting.throw()
            raise

    def at_barrier(self, threads):
        """End a turn. Returns the barrier at which all threads wait, or None. Raises BarrierError if threads differ."""
        self.check_written()
        first = threads[0]
        for thread in threads:
            if thread.barrier != first.barrier and _standing(thread) != _standing(first):
                raise BarrierError(f"{first} {_standing(first)}\n  but {thread} {_standing(thread)}")
        if len(every_place(cuda.gridDim)) > 1:  # for the race checks of later blocks
            for address, state in self.cells.items():
                before = self.past.get(address, UNUSED)
                if before is UNUSED:
                    self.past[address] = state[0], cuda.block, *uses_of(state)
                elif before[0] is not state[0] and before[0] is not WRITE:
                    self.past[address] = WRITE, before[1], *before[2:], *uses_of(state)
        self.cells.clear()
        self.shared.clear()
        return first.barrier

    def check_written(self):
        """Raise Uninitialised for the first element that was read before it was written."""
        for view, index, use in self.unwritten:
            raise Uninitialised(f"{view.name}[{index_text(index)}] was never written\n  {used(use)}")


def _standing(thread):
    """Where a thread is after its turn, as text."""
    if not thread.barrier:
        return "has left the kernel"
    code, at = thread.barrier
    return f"waits at {source_line(code, position(code, at)[0])}"


LAUNCH_LIMITS = {"threads": 1024, "seconds": 60}  # per block; per launch


def _seen_by(kernel, name, value, run, view):
    """An argument as the kernel sees it: an array through a View, a number as it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return view(value, name, run.cells, run.past)
    if isinstance(value, int | float | np.number | np.bool_):
        return value
    what = f"{type(value).__name__}{f' of {value.dtype}' if isinstance(value, np.ndarray) else ''}"
    raise GpuError(f"{kernel.__name__}: {name} is {what}; expected a number, or an array of numbers")


def simulate(kernel, grid, block, arguments, order=None, view=View):
    """Run a kernel on NumPy arrays and numbers, one thread after the other, and check every access.

    Returns the SimulatedLaunch. grid, block: Dim3. order: None, or a seed that shuffles blocks and threads. view: the
    class of the Views that the kernel is given. Raises GpuError or a subclass of it, with the thread and the line; also
    for any other error in the kernel.
    """
    expect(hasattr(kernel, "__code__"), "simulate: the kernel", kernel, "a function")
    if greenlet is None:
        raise not_installed("greenlet")
    names = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    if len(names) != len(arguments):
        raise GpuError(f"{kernel.__name__} takes {', '.join(names)}, and was given {len(arguments)} arguments")
    if vars(cuda):
        raise GpuError(f"{kernel.__name__}: {cuda.run.kernel.__name__} is still running; one launch at a time")
    run = SimulatedLaunch(kernel, order)
    run.arguments = [_seen_by(kernel, name, value, run, view) for name, value in zip(names, arguments, strict=True)]
    _keep_watch()
    try:
        cuda.run = run
        cuda.gridDim = grid
        cuda.blockDim = block
        for index in run.arranged(every_place(grid)):
            run.block(index)
    except (Race, Uninitialised, BarrierError):
        raise
    except Exception as error:
        run.check_written()  # an element that was never written may be the cause
        ours = isinstance(error, GpuError)
        what = str(error)
        if isinstance(error, Endless):
            what = f"{kernel.__name__} does not end within {LAUNCH_LIMITS['seconds']} seconds"
        what = what if ours else f"{type(error).__name__}: {error}"
        raise (type(error) if ours else GpuError)(f"{what}\n  {cuda.thread} {_last_line(error)}") from error
    finally:
        vars(cuda).clear()
    return run


def _last_line(error):
    """The line, in a kernel or a function that it calls, at which an error was raised; or where the thread waits."""
    ours = {function.__code__.co_filename for function in (View.locate, SimulatedLaunch.block, source_line)}
    steps = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    steps = [source_line(*step) for step in steps if step[0].co_filename not in ours]
    return f"in {steps[-1]}" if steps else _standing(cuda.thread)


_WATCHERS = []  # the one thread that ends launches


def _keep_watch():
    """Start the thread that ends launches that take too long, such as endless loops, unless it is running."""
    if not (_WATCHERS and _WATCHERS[-1].is_alive()):  # none yet, or lost in a fork
        _WATCHERS.append(threading.Thread(target=_patrol, daemon=True))
        _WATCHERS[-1].start()


def _patrol():
    """Raise Endless in a launch that is past its deadline."""
    while True:
        time.sleep(0.1)
        run = vars(cuda).get("run")
        if run and time.monotonic() > run.deadline:
            run.deadline = math.inf
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(run.os_thread), ctypes.py_object(Endless))


def as_size(kernel, what, size):
    """A Dim3 of one number or up to three. Raises GpuError unless they are whole numbers from 1 to 2³¹ - 1."""
    numbers = tuple(size) if isinstance(size, tuple | list) else (size,)
    if not 1 <= len(numbers) <= 3 or not all(
        isinstance(n, int | np.integer) and 0 < n < 2**31 and n is not True for n in numbers
    ):
        name = getattr(kernel, "__name__", repr(kernel))
        raise GpuError(f"{name}: launched with {size!r} {what}; expected one to three whole numbers from 1 to 2³¹ - 1")
    return Dim3(*map(int, numbers))


class _Counted(View):
    """A View that also logs every access: its thread, its line, and in which 128 bytes of the array it falls."""

    def locate(self, index, verb):
        address = super().locate(index, verb)
        if address is not None:
            frame = sys._getframe(2)
            entry = self.name.split("[")[0], verb, cuda.thread, frame.f_code, frame.f_lasti
            cuda.run.log.append((*entry, (address - self.origin) // SEGMENT))
        return address


class Traffic(NamedTuple):
    """The reads, writes or atomic updates of one array in device memory by one line of a kernel."""

    array: str
    verb: str
    line: str
    accesses: int  # of single threads
    transactions: int  # a warp's accesses to the same 128 bytes at one time are one transaction


SEGMENT = 128  # bytes that move together between a GPU and its memory


def count_traffic(kernel, blocks, threads, *arguments):
    """Simulate a launch on NumPy arrays and numbers, and count. Raises what `simulate` raises.

    Returns a Traffic for each line, array and verb, in the order of their first use.
    """
    run = simulate(
        kernel, as_size(kernel, "blocks", blocks), as_size(kernel, "threads", threads), arguments, view=_Counted
    )
    visits = Counter()
    sites = {}
    for array, verb, thread, code, at, segment in run.log:
        site = array, verb, source_line(code, position(code, at)[0])
        visits[site, thread] += 1  # threads of a warp run in lockstep: their n-th visits are at the same time
        time_of_warp = thread.block, thread.warp, visits[site, thread]
        sites.setdefault(site, {}).setdefault(time_of_warp, []).append(segment)
    return [
        Traffic(*site, sum(map(len, times.values())), sum(len(set(segments)) for segments in times.values()))
        for site, times in sites.items()
    ]
