"""A GPU: thousands of threads run one kernel. Where there is none, a simulator runs the same kernel and checks every access."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import ctypes
import functools
import linecache
import math
import operator
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter
from types import CellType, FunctionType, SimpleNamespace
from typing import NamedTuple

import numpy as np
from greenlet import getcurrent, greenlet

from .device import MAKERS, Buffer, Device


class GpuError(ValueError):
    """A mistake in a kernel or in its launch. A real GPU may crash, hang, or give wrong numbers without a word."""


class OutOfBounds(GpuError):
    """An index is negative or past the end."""


class Uninitialised(GpuError):
    """A thread reads shared or local memory that was never written."""


class Race(GpuError):
    """Two threads use one element, one of them changes it, and no barrier is between."""


class BarrierError(GpuError):
    """A thread waits at a barrier that another thread of its block does not reach."""


class Endless(GpuError):
    """A launch takes longer than LIMITS allows."""


class Dim3(NamedTuple):
    """A place or a size in up to three dimensions; x runs fastest."""

    x: int
    y: int = 1
    z: int = 1


@functools.lru_cache(64)
def every_place(size):
    """Every place in a grid or block of that size, in order."""
    return [Dim3(x, y, z) for z in range(size.z) for y in range(size.y) for x in range(size.x)]


def spot(at, size):
    """A place without the dimensions that the launch does not use: 5, or (5, 0)."""
    used = max((axis for axis in range(3) if size[axis] > 1), default=0) + 1
    return at[0] if used == 1 else tuple(at[:used])


class Block:
    """One block of threads, and the shared arrays that its kernel asked for: {line: array}."""

    def __init__(self, index):
        self.index, self.arrays = index, {}


class Thread:
    """One thread: its block, its place there, its warp, and the barrier where it waits, if it does."""

    __slots__ = ("block", "index", "warp", "barrier")

    def __init__(self, block, index, warp):
        self.block, self.index, self.warp, self.barrier = block, index, warp, None

    def __str__(self):
        return f"thread {spot(self.index, cuda.blockDim)} of block {spot(self.block.index, cuda.gridDim)}"


READ, WRITE, ATOMIC = "reads", "writes", "atomically updates"
UNUSED = None, None


def clash(verb, other):
    """Whether two threads may not do this to one element at a time."""
    return verb is not other or verb is WRITE


class View:
    """An array as a kernel sees it: one element at a time, and every access is checked.

    cells: {address: (kind, owner, …)}, who used what since the last barrier (see `note`); past: before it.
    written: the addresses that hold a number, or None where all do. origin: where the whole array begins.
    """

    __slots__ = (
        "data",
        "name",
        "cells",
        "past",
        "written",
        "origin",
        "address",
        "shape",
        "ndim",
        "length",
        "columns",
        "down",
        "across",
    )
    __iter__ = None

    def __init__(self, data, name, cells, past, written=None, origin=None):
        self.data, self.name, self.cells, self.past, self.written = data, name, cells, past, written
        self.address, self.shape, self.ndim = data.__array_interface__["data"][0], data.shape, data.ndim
        self.length, self.columns = (*self.shape, 1, 1)[:2]
        self.down, self.across = (*data.strides, 0, 0)[:2]
        self.origin = self.address if origin is None else origin

    size = property(lambda self: self.data.size)
    dtype = property(lambda self: self.data.dtype)
    itemsize = property(lambda self: self.data.itemsize)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        address = self.locate(index, READ)
        if address is None:
            return part_of(self, index)
        state = self.cells.get(address, UNUSED)
        if (state[0] is not READ or state[1]) and (state[1] is not cuda.thread or state[0] is ATOMIC):
            note(self, address, index, READ)
        return self.data[index]

    def __setitem__(self, index, value):
        address = self.locate(index, WRITE)
        state = self.cells.get(address, UNUSED)
        if state[0] is not WRITE or state[1] is not cuda.thread:
            note(self, address, index, WRITE)
        self.data[index] = value

    def locate(self, index, verb):
        """The address of an element, or None where an index to read names several. Raises OutOfBounds."""
        if type(index) is int and self.ndim == 1 and 0 <= index < self.length:  # the usual cases, quickly
            return self.address + index * self.down
        if self.ndim == 2 and type(index) is tuple and len(index) == 2:
            i, j = index
            if type(i) is type(j) is int and 0 <= i < self.length and 0 <= j < self.columns:
                return self.address + i * self.down + j * self.across
        return address_of(self, index, verb)


def address_of(view, index, verb):
    """What View.locate gives, for an index of any kind."""
    if type(index) is slice and verb is READ:
        return None
    at, address = index if type(index) is tuple else (index,), view.address
    if len(at) > view.ndim or not all(hasattr(i, "__index__") and type(i) is not bool for i in at):
        raise GpuError(f"{view.name}[{index}] is no element: it takes {view.ndim} whole number(s)")
    for i, size, stride in zip(at, view.shape, view.data.strides):
        if not 0 <= i < size:
            raise OutOfBounds(f"{view.name}[{listed(at)}] is outside of shape {view.shape}")
        address += int(i) * stride
    if len(at) < view.ndim and verb is not READ:
        raise GpuError(f"{view.name}[{listed(at)}] is several elements, and a thread changes one at a time")
    return address if len(at) == view.ndim else None


def part_of(view, index):
    """A view of some rows, x[2:5], or of one, x[2]."""
    if type(index) is slice:
        first, last = index.start or 0, view.length if index.stop is None else index.stop
        if not 0 <= first <= last <= view.length or index.step not in (None, 1):
            raise OutOfBounds(f"{view.name}[{first}:{last}] is outside of shape {view.shape}, or goes in steps")
        index = slice(first, last)
    name = f"{view.name}[{f'{first}:{last}' if type(index) is slice else listed(index)}]"
    return type(view)(view.data[index], name, view.cells, view.past, view.written, view.origin)


def listed(index):
    """An index as it stands between brackets."""
    return ", ".join(map(str, index if type(index) is tuple else (index,)))


def note(view, address, index, verb):
    """Remember that the running thread uses an element. Raises Race where that clashes with an earlier use.

    An element that nobody used is free. Then it is shared, by threads that all read it or all update it atomically, or
    owned: what one thread wrote, no other may touch. After a barrier it is free again, for the threads of this block.
    Two uses tell all that matters. One is the state itself: (verb, thread, place); two are (kind, owner, use, use).
    """
    frame, thread = sys._getframe(2), cuda.thread
    use = verb, thread, frame.f_code, frame.f_lasti
    before, state = view.past.get(address, UNUSED), view.cells.get(address, UNUSED)
    if before is not UNUSED and before[1] is not thread.block and clash(before[0], verb):
        race(view, index, before, use)
    kind, owner = state[:2]
    if state is UNUSED:
        view.cells[address] = use
    elif owner is thread:
        if kind is not verb and kind is not WRITE:
            view.cells[address] = WRITE, thread, state, use
    elif clash(kind, verb):
        race(view, index, state, use)
    elif owner:
        view.cells[address] = verb, None, state, use
    if view.written is not None:
        if verb is WRITE:
            view.written.add(address)
        elif address not in view.written:  # an error when the turn ends; until then it may turn out to be a race
            cuda.run.unwritten.append((view, index, use))


@functools.cache
def position(code, instruction):
    """Line and column of an instruction. (Its number alone will not do: it may change as Python speeds the code up.)"""
    line, _, column, _ = list(code.co_positions())[instruction // 2]
    return line, column


def source_line(code, line):
    """What a reader looks for: the number of the line, its function, its text."""
    return f"line {line} of {code.co_name}: {linecache.getline(code.co_filename, line).strip()}"


def used(use):
    """A use of an element, told: who does what to it, and in which line."""
    verb, thread, code, at = use
    return f"{thread} {verb} it in {source_line(code, position(code, at)[0])}"


def uses_of(state):
    """The uses that a state remembers."""
    return state[2:] if type(state[2]) is tuple else (state,)


def race(view, index, state, use):
    """Raise Race for a use and the earlier one that it clashes with."""
    verb, thread, *_ = use
    other = next(earlier for earlier in uses_of(state) if earlier[1] is not thread and clash(earlier[0], verb))
    between = "with no barrier between" if other[1].block is thread.block else "and no barrier holds between blocks"
    raise Race(f"{view.name}[{listed(index)}] is used by two threads, {between}\n  {used(other)}\n  {used(use)}")


SHARED = 48 * 1024  # bytes of shared memory that a block may ask for


def on_chip(name, shape, dtype, cells):
    """Shared or local memory. Nobody set its numbers, so they are what catches the eye: NaN, or -1."""
    data = np.empty(shape, dtype)
    data.view(np.uint8).fill(255)
    return View(data, name, cells, {}, set())


def shared_array(shape, dtype):
    """The array that this line of the kernel gives to all threads of the block."""
    frame, arrays = sys._getframe(1), cuda.block.arrays
    line = frame.f_code, position(frame.f_code, frame.f_lasti)
    if line not in arrays:
        arrays[line] = on_chip("shared", shape, dtype, cuda.run.shared)
        if (nbytes := sum(array.data.nbytes for array in arrays.values())) > SHARED:
            raise GpuError(f"{nbytes:,} bytes of shared memory are asked for; a block has {SHARED:,}")
    return arrays[line]


def local_array(shape, dtype):
    """An array for this thread alone."""
    return on_chip("local", shape, dtype, {})


def atomic(update):
    """The operation that replaces an element by update(old, value), undivided, and gives back the old one."""

    def operation(array, index, value):
        note(array, array.locate(index, ATOMIC), index, ATOMIC)
        old = array.data[index]
        array.data[index] = update(old, value)
        return old

    return operation


class Cuda:
    """What a kernel sees of its launch, spelled as numba.cuda spells it. The simulator fills it in while a kernel runs."""

    shared, local = SimpleNamespace(array=shared_array), SimpleNamespace(array=local_array)
    atomic = SimpleNamespace(add=atomic(operator.add), max=atomic(max), min=atomic(min))

    def grid(self, dimensions):
        """The place of this thread among all threads of the launch: a number, or a tuple of 2 or 3."""
        at = [b * n + t for b, n, t in zip(self.blockIdx, self.blockDim, self.threadIdx)]
        return at[0] if dimensions == 1 else tuple(at[:dimensions])

    def gridsize(self, dimensions):
        """How many threads the launch has in each dimension: a number, or a tuple of 2 or 3."""
        sizes = [blocks * threads for blocks, threads in zip(self.gridDim, self.blockDim)]
        return sizes[0] if dimensions == 1 else tuple(sizes[:dimensions])

    def syncthreads(self):
        """The barrier: wait until every thread of the block is here."""
        frame = sys._getframe(1)
        self.thread.barrier = frame.f_code, frame.f_lasti
        getcurrent().parent.switch(True)

    def __getattr__(self, name):  # asked only for what is not there
        if name in ("threadIdx", "blockIdx", "blockDim", "gridDim", "thread", "block", "run"):
            raise GpuError("cuda: no kernel is running; start one with launch_kernel")
        raise AttributeError(f"cuda has no {name}")


cuda = Cuda()


class Workers(threading.local):
    """The greenlets of a thread of this computer that have nothing to do. (A new one costs more than many turns.)"""

    def __init__(self):
        self.idle = []


WORKERS = Workers()


def worker():
    """A greenlet that runs threads of the block at work as long as there are fresh ones, and returns to who calls here."""
    runner = WORKERS.idle.pop() if WORKERS.idle else greenlet(work)
    runner.parent = getcurrent()
    return runner


def work():
    """What a greenlet does all its life. It hands back True where a thread waits, and False where none is left."""
    with np.errstate(all="ignore"):  # a GPU does not warn
        while True:
            cuda.run.run_fresh()
            getcurrent().parent.switch(False)


WARP = 32  # threads that go in step


class Run:
    """One simulated launch: its kernel, the order of its threads, and what they did to memory."""

    def __init__(self, kernel, order):
        self.kernel, self.dice = kernel, order if order is None else random.Random(order)
        self.cells, self.past, self.shared, self.unwritten, self.log = {}, {}, {}, [], []
        self.os_thread, self.deadline = threading.get_ident(), time.monotonic() + LIMITS["seconds"]

    def arranged(self, items):
        return items if self.dice is None else self.dice.sample(items, len(items))

    def run_fresh(self):
        """Run the threads of the block that have not begun, one after the other."""
        for cuda.thread in self.fresh:
            cuda.threadIdx = cuda.thread.index
            self.kernel(*self.arguments)

    def block(self, index):
        """Run the threads of a block in turns. A turn ends at a barrier, or with the kernel."""
        cuda.block, cuda.blockIdx = Block(index), index
        threads = [Thread(cuda.block, at, rank // WARP) for rank, at in enumerate(every_place(cuda.blockDim))]
        self.fresh, parked, runner = iter(self.arranged(threads)), [], worker()
        try:
            while runner.switch():  # it ran thread after thread, until one had to wait; another one goes on
                parked.append((cuda.thread, runner))
                runner = worker()
            while self.at_barrier(threads):
                for thread, waiting in self.arranged(parked):
                    cuda.thread, cuda.threadIdx, thread.barrier = thread, thread.index, None
                    waiting.switch()
            WORKERS.idle += [runner, *(waiting for _, waiting in parked)]
        except BaseException:
            for _, waiting in parked:
                waiting.throw()
            raise

    def at_barrier(self, threads):
        """Whether all threads wait at a barrier now. Raises BarrierError where only some do, or at different ones."""
        self.check_written()
        first = threads[0]
        for thread in threads:
            if thread.barrier != first.barrier and standing(thread) != standing(first):
                raise BarrierError(f"{first} {standing(first)}\n  but {thread} {standing(thread)}")
        if len(every_place(cuda.gridDim)) > 1:  # later blocks will ask
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
            raise Uninitialised(f"{view.name}[{listed(index)}] was never written\n  {used(use)}")


def standing(thread):
    """Where a thread stands after its turn."""
    if not thread.barrier:
        return "has left the kernel"
    code, at = thread.barrier
    return f"waits at {source_line(code, position(code, at)[0])}"


LIMITS = {"threads": 1024, "seconds": 60}  # of a block; of a launch


def seen_by(kernel, name, value, run, view):
    """An argument as the kernel sees it: an array through a View, a number as it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return view(value, name, run.cells, run.past)
    if isinstance(value, int | float | np.number | np.bool_):
        return value
    what = f"{type(value).__name__}{f' of {value.dtype}' if isinstance(value, np.ndarray) else ''}"
    raise GpuError(f"{kernel.__name__}: {name} is {what}; expected a number, or an array of numbers")


def simulate(kernel, grid, block, arguments, order=None, view=View):
    """Run a kernel on NumPy arrays, one thread after the other, and check what it does. Returns the Run."""
    names = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    if len(names) != len(arguments):
        raise GpuError(f"{kernel.__name__} takes {', '.join(names)}, and was given {len(arguments)} arguments")
    if vars(cuda):
        raise GpuError(f"{kernel.__name__}: {cuda.run.kernel.__name__} is still running; one launch at a time")
    run = Run(kernel, order)
    run.arguments = [seen_by(kernel, name, value, run, view) for name, value in zip(names, arguments)]
    keep_watch()
    try:
        cuda.run, cuda.gridDim, cuda.blockDim = run, grid, block
        for index in run.arranged(every_place(grid)):
            run.block(index)
    except (Race, Uninitialised, BarrierError):
        raise
    except Exception as error:
        run.check_written()  # what nobody wrote may have led here
        ours, what = isinstance(error, GpuError), str(error)
        if isinstance(error, Endless):
            what = f"{kernel.__name__} does not end within {LIMITS['seconds']} seconds"
        what = what if ours else f"{type(error).__name__}: {error}"
        raise (type(error) if ours else GpuError)(f"{what}\n  {cuda.thread} {last_line(error)}") from error
    finally:
        vars(cuda).clear()
    return run


def last_line(error):
    """The line of a kernel, or of a function that it calls, where an error came up; or where the thread waits."""
    ours = {function.__code__.co_filename for function in (View.locate, address_of, part_of, shared_array, Run.block)}
    steps = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    steps = [source_line(*step) for step in steps if step[0].co_filename not in ours]
    return f"in {steps[-1]}" if steps else standing(cuda.thread)


WATCHERS = []  # the one thread that ends launches


def keep_watch():
    """See to it that a launch ends, even one whose threads go round for ever."""
    if not (WATCHERS and WATCHERS[-1].is_alive()):  # none yet, or lost in a fork
        WATCHERS.append(threading.Thread(target=patrol, daemon=True))
        WATCHERS[-1].start()


def patrol():
    """Raise Endless in a launch that is past its deadline."""
    while True:
        time.sleep(0.1)
        run = vars(cuda).get("run")
        if run and time.monotonic() > run.deadline:
            run.deadline = math.inf
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(run.os_thread), ctypes.py_object(Endless))


def launch_kernel(kernel, blocks, threads, *arguments, order=None):
    """Run kernel[blocks, threads](*arguments): so many blocks (a number, or up to three) of so many threads each.

    NumPy arrays are simulated: threads one after the other, or blocks and threads shuffled by the seed `order`. Arrays of
    numba.cuda run on the real GPU. Raises GpuError, or the kind of it that fits.
    """
    grid, block = as_size(kernel, "blocks", blocks), as_size(kernel, "threads a block", threads)
    if math.prod(block) > LIMITS["threads"]:
        raise GpuError(
            f"{kernel.__name__}: {threads} threads a block are {math.prod(block):,}; at most {LIMITS['threads']:,} go"
        )
    kinds = {hasattr(value, "__cuda_ndarray__") for value in arguments if hasattr(value, "shape") and value.shape}
    if kinds == {True, False}:
        raise GpuError(f"{kernel.__name__}: some arrays are on the GPU, others are not; put them all there")
    if True in kinds:
        compiled(kernel)[tuple(grid), tuple(block)](*arguments)
    else:
        simulate(getattr(kernel, "py_func", kernel), grid, block, arguments, order)


def as_size(kernel, what, size):
    """A Dim3 of one number or up to three. Raises GpuError unless they are whole and above zero."""
    numbers = tuple(size) if isinstance(size, tuple | list) else (size,)
    if not 1 <= len(numbers) <= 3 or not all(isinstance(n, int | np.integer) and n > 0 for n in numbers):
        raise GpuError(f"{kernel.__name__}: launched with {size!r} {what}; expected one to three whole numbers above 0")
    return Dim3(*map(int, numbers))


class Counted(View):
    """A View that also writes down every access: its thread, its line, and which 128 bytes of the array it meets."""

    __slots__ = ()

    def locate(self, index, verb):
        address = super().locate(index, verb)
        if address is not None:
            frame = sys._getframe(2)
            entry = self.name.split("[")[0], verb, cuda.thread, frame.f_code, frame.f_lasti
            cuda.run.log.append((*entry, (address - self.origin) // SEGMENT))
        return address


class Traffic(NamedTuple):
    """What one line of a kernel did to one array in device memory."""

    array: str
    verb: str
    line: str
    accesses: int  # of single threads
    transactions: int  # a warp's accesses to the same 128 bytes at one time are one transaction


SEGMENT = 128  # bytes that move together between a GPU and its memory


def count_traffic(kernel, blocks, threads, *arguments):
    """Simulate a launch and count: a Traffic for each line and array, in the order of their first use."""
    run = simulate(
        kernel, as_size(kernel, "blocks", blocks), as_size(kernel, "threads", threads), arguments, view=Counted
    )
    visits, sites = Counter(), {}
    for array, verb, thread, code, at, segment in run.log:
        site = array, verb, source_line(code, position(code, at)[0])
        visits[site, thread] += 1  # the threads of a warp go in step: their first visits are one time, their second ...
        time_of_warp = thread.block, thread.warp, visits[site, thread]
        sites.setdefault(site, {}).setdefault(time_of_warp, []).append(segment)
    return [
        Traffic(*site, sum(map(len, times.values())), sum(len(set(segments)) for segments in times.values()))
        for site, times in sites.items()
    ]


@functools.cache
def real_cuda():
    """numba.cuda where it finds a GPU, else None. Without a driver to load, numba is not imported, which takes a while."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "0":  # numba's own simulator needs no driver
        try:
            ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        except OSError:
            return None
    try:
        from numba import config
        from numba import cuda as numba_cuda
    except ImportError:
        return None
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a small launch is no mistake here
    return numba_cuda if numba_cuda.is_available() else None


@functools.cache
def compiled(kernel):
    """A kernel for the real GPU. What numba compiled already stays as it is."""
    return real_cuda().jit(translated(kernel)) if isinstance(kernel, FunctionType) else kernel


@functools.cache
def translated(function):
    """A copy of a kernel in which `cuda` is numba's, and every function that it calls is compiled for the GPU too."""
    names = {*function.__code__.co_names} & {*function.__globals__}
    scope = function.__globals__ | {name: for_gpu(function.__globals__[name]) for name in names}
    cells = tuple(CellType(for_gpu(cell.cell_contents)) for cell in function.__closure__ or ())
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)


def for_gpu(value):
    """What stands for a global of a kernel on the real GPU."""
    if value is cuda:
        return real_cuda()
    value = getattr(value, "py_func", value)  # out of numba's compiler for CPUs
    return real_cuda().jit(translated(value), device=True) if isinstance(value, FunctionType) else value


class Gpu(Device):
    """A simulated GPU. It has memory and runs kernels, but no speed."""

    def spec(self, shape, dtype):
        """The Spec of a buffer on this device: of float32, float64, int64 or bool."""
        if np.dtype(dtype) not in (np.float32, np.float64, np.int64, np.bool_):
            raise TypeError(f"{self.name}: {np.dtype(dtype)}; expected float32, float64, int64 or bool")
        return super().spec(shape, dtype)

    def launch(self, kernel, blocks, threads, *arguments, order=None):
        """Run a kernel on buffers of this device and numbers; see `launch_kernel`."""
        for value in arguments:
            if isinstance(value, Buffer) and (value.device is not self or value.data is None):
                raise GpuError(
                    f"{self.name}: {kernel.__name__} is given {value}; expected a live buffer of {self.name}"
                )
            if isinstance(value, np.ndarray):
                raise GpuError(f"{self.name}: {kernel.__name__} is given a NumPy array; put it on {self.name} first")
        values = [value.data if isinstance(value, Buffer) else value for value in arguments]
        launch_kernel(kernel, blocks, threads, *values, order=order)

    def measure(self, what):
        """Raises LookupError: the programs of MEASURES run on CPUs."""
        raise LookupError(f"{self.name}: no program measures its {what}" + ", a simulator has none" * self.simulated)

    def facts(self):
        """What the pool's table says of this device."""
        speed = "no speed: simulated" if self.simulated else "not measured"
        return {"lanes": f"{WARP} threads, a warp"} | dict.fromkeys(("peak of one", "bandwidth", "a launch"), speed)


class RealGpu(Gpu):
    """The GPU that numba.cuda finds. Its buffers are numba's device arrays."""

    read = staticmethod(lambda data: data.copy_to_host())
    reshape = staticmethod(lambda data, shape: data.reshape(shape))

    def __init__(self, name):
        super().__init__(name, real_cuda().current_context().get_memory_info().total)
        self.empty = real_cuda().device_array

    def new(self, spec, make=None, kind=Buffer):
        """A new buffer in the GPU's own memory."""
        return super().new(spec, self.empty, kind)

    def write(self, data, array):
        """Numbers of the host into a buffer's memory."""
        data.copy_to_device(np.asarray(array, data.dtype, order="C"))


def make_gpu(name):
    """gpu:0 is real where there is one; all others are simulated, with 1 GiB."""
    return RealGpu(name) if name == "gpu:0" and real_cuda() else Gpu(name, 2**30, simulated=True)


MAKERS["gpu"] = make_gpu
