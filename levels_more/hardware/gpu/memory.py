"""The memory of a simulated GPU: every access is checked, and a race is reported with both of its accesses."""

import functools
import operator
import sys
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from levels_more.hardware.gpu.errors import GpuError, OutOfBounds, Race, position, source_line

try:
    from greenlet import getcurrent, greenlet
except ModuleNotFoundError:  # the pool still shows the GPU; the first launch on it raises the error
    getcurrent = greenlet = None


class Dim3(NamedTuple):
    """A place or a size in up to three dimensions; x runs fastest."""

    x: int
    y: int = 1
    z: int = 1


@functools.lru_cache(64)
def every_place(size):
    """All places in a grid or block of that size (a Dim3), as a list of Dim3; x runs fastest."""
    return [Dim3(x, y, z) for z in range(size.z) for y in range(size.y) for x in range(size.x)]


def _spot(at, size):
    """A place without the dimensions that the launch does not use: 5, or (5, 0)."""
    used = max((axis for axis in range(3) if size[axis] > 1), default=0) + 1
    return at[0] if used == 1 else tuple(at[:used])


class Block:
    """One block of threads, and the shared arrays that its kernel asked for: {(code, position): array}."""

    def __init__(self, index):
        self.index = index
        self.arrays = {}


class Thread:
    """One thread: its block, its index there, its warp, and the barrier at which it waits, or None."""

    def __init__(self, block, index, warp):
        self.block = block
        self.index = index
        self.warp = warp
        self.barrier = None

    def __str__(self):
        return f"thread {_spot(self.index, cuda.blockDim)} of block {_spot(self.block.index, cuda.gridDim)}"


READ = "reads"
WRITE = "writes"
ATOMIC = "atomically updates"


UNUSED = None, None


def _clash(verb, other):
    """Whether two such accesses of two threads conflict: all do, except two reads or two atomic updates."""
    return verb is not other or verb is WRITE


class View:
    """An array as a kernel sees it: one element at a time, and every access is checked.

    cells: {address: (kind, owner, …)}, the accesses since the last barrier (see `note`). past: those before it.
    written: the addresses of elements that were written, or None if all have values. origin: the whole array's address.
    """

    __iter__ = None

    def __init__(self, data, name, cells, past, written=None, origin=None):
        self.data = data
        self.name = name
        self.cells = cells
        self.past = past
        self.written = written
        self.address = data.__array_interface__["data"][0]
        self.shape = data.shape
        self.ndim = data.ndim
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
            return _part_of(self, index)
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
        """The address of an element, or None if an index to read selects several. Raises GpuError, OutOfBounds."""
        if type(index) is int and self.ndim == 1 and 0 <= index < self.length:  # fast paths for the usual cases
            return self.address + index * self.down
        if self.ndim == 2 and type(index) is tuple and len(index) == 2:
            i, j = index
            if type(i) is type(j) is int and 0 <= i < self.length and 0 <= j < self.columns:
                return self.address + i * self.down + j * self.across
        return _address_of(self, index, verb)


def _address_of(view, index, verb):
    """The same as View.locate, for an index of any kind."""
    if type(index) is slice and verb is READ:
        return None
    at = index if type(index) is tuple else (index,)
    address = view.address
    if len(at) > view.ndim or not all(hasattr(i, "__index__") and type(i) is not bool for i in at):
        raise GpuError(f"{view.name}[{index}] is no element: it takes {view.ndim} whole number(s)")
    for i, size, stride in zip(at, view.shape, view.data.strides, strict=False):
        if not 0 <= i < size:
            raise OutOfBounds(f"{view.name}[{index_text(at)}] is outside of shape {view.shape}")
        address += int(i) * stride
    if len(at) < view.ndim and verb is not READ:
        raise GpuError(f"{view.name}[{index_text(at)}] is several elements, and a thread changes one at a time")
    return address if len(at) == view.ndim else None


def _part_of(view, index):
    """A view of some rows, x[2:5], or of one, x[2]."""
    if type(index) is slice:
        first = index.start or 0
        last = view.length if index.stop is None else index.stop
        if not 0 <= first <= last <= view.length or index.step not in (None, 1):
            raise OutOfBounds(f"{view.name}[{first}:{last}] is outside of shape {view.shape}, or goes in steps")
        index = slice(first, last)
    name = f"{view.name}[{f'{first}:{last}' if type(index) is slice else index_text(index)}]"
    return type(view)(view.data[index], name, view.cells, view.past, view.written, view.origin)


def index_text(index):
    """An index as text, as it is written between brackets."""
    return ", ".join(map(str, index if type(index) is tuple else (index,)))


def note(view, address, index, verb):
    """Record that the running thread accesses an element. Raises Race if this conflicts with an earlier access.

    An element is free at first. Then it is shared by threads that all read it or all update it atomically, or owned by
    a thread that wrote it: no other may access it. A barrier makes it free again, for this block. A state holds one
    access, (verb, thread, code, instruction), or two, enough to report a race: (kind, owner, access, access).
    """
    frame = sys._getframe(2)
    thread = cuda.thread
    use = verb, thread, frame.f_code, frame.f_lasti
    before = view.past.get(address, UNUSED)
    state = view.cells.get(address, UNUSED)
    if before is not UNUSED and before[1] is not thread.block and _clash(before[0], verb):
        race(view, index, before, use)
    kind, owner = state[:2]
    if state is UNUSED:
        view.cells[address] = use
    elif owner is thread:
        if kind is not verb and kind is not WRITE:
            view.cells[address] = WRITE, thread, state, use
    elif _clash(kind, verb):
        race(view, index, state, use)
    elif owner:
        view.cells[address] = verb, None, state, use
    if view.written is not None:
        if verb is WRITE:
            view.written.add(address)
        elif address not in view.written:  # raised at the end of the turn; until then it may prove to be a race
            cuda.run.unwritten.append((view, index, use))


def used(use):
    """An access as text: the thread, what it does to the element, and in which line."""
    verb, thread, code, at = use
    return f"{thread} {verb} it in {source_line(code, position(code, at)[0])}"


def uses_of(state):
    """The accesses that a state holds."""
    return state[2:] if type(state[2]) is tuple else (state,)


def race(view, index, state, use):
    """Raise Race for an access, `use`, and the earlier one in `state` with which it conflicts."""
    verb, thread, *_ = use
    other = next(earlier for earlier in uses_of(state) if earlier[1] is not thread and _clash(earlier[0], verb))
    between = "with no barrier between" if other[1].block is thread.block else "and no barrier holds between blocks"
    raise Race(f"{view.name}[{index_text(index)}] is used by two threads, {between}\n  {used(other)}\n  {used(use)}")


SHARED = 48 * 1024  # bytes of shared memory that a block may ask for


def _on_chip(name, shape, dtype, cells):
    """Shared or local memory. Its numbers are not set: they are NaN or -1, which are easy to notice."""
    data = np.empty(shape, dtype)
    data.view(np.uint8).fill(255)
    return View(data, name, cells, {}, set())


def shared_array(shape, dtype):
    """The array that this call in the kernel returns to all threads of the block: a View[shape] of that dtype, not set.

    Raises GpuError if a block asks for more than SHARED bytes.
    """
    frame = sys._getframe(1)
    arrays = cuda.block.arrays
    line = frame.f_code, position(frame.f_code, frame.f_lasti)
    if line not in arrays:
        arrays[line] = _on_chip("shared", shape, dtype, cuda.run.shared)
        if (nbytes := sum(array.data.nbytes for array in arrays.values())) > SHARED:
            raise GpuError(f"{nbytes:,} bytes of shared memory are asked for; a block has {SHARED:,}")
    return arrays[line]


def _atomic(update):
    """The atomic operation that replaces an element by update(old, value) and returns the old element."""

    def operation(array, index, value):
        note(array, array.locate(index, ATOMIC), index, ATOMIC)
        old = array.data[index]
        array.data[index] = update(old, value)
        return old

    return operation


class Cuda:
    """What a kernel can read of its launch, with the names of numba.cuda. The simulator sets it while a kernel runs."""

    hash = "cuda"  # lets `described` hash a kernel that reads `cuda`, so that the kernel can be cached
    shared = SimpleNamespace(array=shared_array)
    local = SimpleNamespace(array=lambda shape, dtype: _on_chip("local", shape, dtype, {}))  # for this thread alone
    atomic = SimpleNamespace(add=_atomic(operator.add), max=_atomic(max), min=_atomic(min))

    def grid(self, dimensions):
        """The place of this thread among all threads of the launch: a number, or a tuple of 2 or 3."""
        at = [b * n + t for b, n, t in zip(self.blockIdx, self.blockDim, self.threadIdx, strict=True)]
        return at[0] if dimensions == 1 else tuple(at[:dimensions])

    def gridsize(self, dimensions):
        """How many threads the launch has in each dimension: a number, or a tuple of 2 or 3."""
        sizes = [blocks * threads for blocks, threads in zip(self.gridDim, self.blockDim, strict=True)]
        return sizes[0] if dimensions == 1 else tuple(sizes[:dimensions])

    def syncthreads(self):
        """The barrier: wait until every thread of the block is here."""
        frame = sys._getframe(1)
        self.thread.barrier = frame.f_code, frame.f_lasti
        getcurrent().parent.switch(True)

    def __getattr__(self, name):  # called only for attributes that are not set
        if name in ("threadIdx", "blockIdx", "blockDim", "gridDim", "thread", "block", "run"):
            raise GpuError("cuda: no kernel is running; start one with launch_kernel")
        raise AttributeError(f"cuda has no {name}")


cuda = Cuda()
