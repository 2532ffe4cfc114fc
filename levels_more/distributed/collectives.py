"""Collectives: ops on the numbers of several processes, on one machine or many. They use MPI.

`mpiexec -n 4 python train.py` starts four processes, the ranks 0 to 3. Each runs the same program. A collective is an
op that all ranks have to call: a rank waits in it for the others.
"""

import functools
import os
import sys
import threading
import time
from typing import NamedTuple

import numpy as np

from levels.kernels import Plan, kernel
from levels.low_level import VJPS, apply, as_tensor
from levels.support.shapes import same_dtype
from levels_more.checks import expect, number, sizes
from levels_more.hardware.locks import once
from levels_more.kernels.verify import TEST_CASES

INSTALL = "pip install mpi4py mpich (on Windows impi-rt, in place of mpich)"
STARTED = "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"  # one of these is in the environment of a rank
LOCAL = "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"  # one of these: how many ranks are on this machine
PATIENT = "MPIR_CVAR_ENABLE_HEAVY_YIELD", "MPIR_CVAR_POLLS_BEFORE_YIELD"  # 1: a waiting rank yields its core to others


class World(NamedTuple):
    """This process is number `rank` of `size`. `comm` is MPI's communicator, or None if MPI is not used."""

    rank: int
    size: int
    comm: object = None


@once
def world():
    """The World of this process. A process that `mpiexec` did not start is alone in it, with MPI or without.

    Raises ImportError if the process was started as a rank and mpi4py is missing.
    """
    if "mpi4py.MPI" not in sys.modules and not any(name in os.environ for name in STARTED):
        return World(0, 1)
    here = next((int(os.environ[name]) for name in LOCAL if name in os.environ), 1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if here > cores:  # MPI reads these when it is imported
        os.environ.update({name: os.environ.get(name, "1") for name in PATIENT})
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(f"this is one of several ranks, and mpi4py cannot be imported ({error}): {INSTALL}") from None
    import numba

    comm = MPI.COMM_WORLD
    numba.set_num_threads(min(numba.get_num_threads(), max(1, cores // here)))
    if comm.size > 1:
        threading.Thread(target=_watch, args=(comm.rank,), daemon=True).start()
        sys.excepthook = functools.partial(_end_all, sys.excepthook)
    return World(comm.rank, comm.size, comm)


def _end_all(report, kind, error, traceback):
    """Handle an uncaught error: print it and end all ranks. (Otherwise the other ranks would wait for this one.)"""
    report(kind, error, traceback)
    sys.stderr.write(f"rank {world().rank} has ended by this error, and with it all ranks\n")
    sys.stderr.flush()
    time.sleep(0.5)  # for mpiexec to forward the output: Abort ends it at once
    world().comm.Abort(1)


class _Wait:
    """`since`: when this process began to wait for the others, or None; `op`: in which op; `limit`: seconds allowed."""

    since = None
    op = ""
    limit = 300.0


def time_limit(seconds):
    """Let a rank wait `seconds` (at first 300) for the others, then print an error and end. Then `mpiexec` ends all."""
    _Wait.limit = number("time_limit: seconds", seconds, 0.1)


def _watch(rank):
    """End this process if it waits too long. Runs in its own thread: a rank that waits in MPI runs no Python code."""
    while True:
        time.sleep(min(1.0, _Wait.limit / 4))
        since = _Wait.since
        if since is not None and time.monotonic() - since > _Wait.limit:
            cure = "one of them hangs, has ended, or calls other ops; start again, from the last checkpoint"
            told = f"rank {rank} has waited {_Wait.limit:g} s for the others in {_Wait.op}: {cure}\n"
            os.write(2, told.encode())
            os._exit(1)


def call_together(op, call, *args):
    """Return call(*args), a call that waits for all ranks in this op, under the time limit."""
    _Wait.op, _Wait.since = op, time.monotonic()
    try:
        return call(*args)
    finally:
        _Wait.since = None


# Three collectives, with a kernel and a gradient rule each. The rules hold if all ranks do parts of one computation
# with one loss.


def all_gather_kernel(out, x, rows):
    """out[all rows, …] = the rows x of rank 0, of rank 1, …; rank r has rows[r] of them.

    Raises ValueError if `rows` does not fit the ranks or x.
    """
    here = world()
    if len(rows) != here.size or rows[here.rank] != len(x):
        raise ValueError(f"all_gather: x is {x.shape} and rows are {rows}; here is rank {here.rank} of {here.size}")
    if here.comm is None:
        out[...] = x
    else:
        width = out.size // max(1, len(out))
        call_together("all_gather", here.comm.Allgatherv, x, [out, [count * width for count in rows]])


def all_reduce_kernel(out, x):
    """out = the elementwise sum of all ranks' x. float64 is added from rank 0 up, other dtypes in MPI's order."""
    comm = world().comm
    if comm is None:
        out[...] = x
    elif x.dtype != np.float64:
        call_together("all_reduce", comm.Allreduce, x, out)
    else:
        every = np.empty((comm.size, *x.shape), x.dtype)
        call_together("all_reduce", comm.Allgather, x, every)
        out[...] = 0.0
        for part in every:
            np.add(out, part, out=out)


def broadcast_kernel(out, x, root):
    """out = the array x of the rank `root`."""
    out[...] = x
    if world().comm is not None:
        call_together("broadcast", world().comm.Bcast, out, root)


def _plan_all_gather(op, function, x, rows=()):
    """Rows of all ranks in one array. `rows`: a tuple of how many each rank has; () if all have as many as x."""
    same_dtype(op, x, kinds="fib")
    rows = sizes(f"{op}: rows", rows) or x.shape[:1] * world().size
    if x.shape[:1] not in [(count,) for count in rows]:
        raise ValueError(f"{op}: x is {x.shape} and rows are {rows}; expected the rows of each rank, among them x's")
    return Plan(op, (sum(rows), *x.shape[1:]), x.dtype, [x], lambda: lambda out, x: function(out, x, rows))


def _plan_all_reduce(op, function, x):
    """The result has the shape and dtype of x."""
    return Plan(op, x.shape, same_dtype(op, x, kinds="fi"), [x], lambda: function)


def _plan_broadcast(op, function, x, root=0):
    """The result has the shape and dtype of x. Raises ValueError if `root` is not a rank."""
    same_dtype(op, x, kinds="fib")
    if root not in range(world().size):
        raise ValueError(f"{op}: root is {root!r}; there are the ranks 0 to {world().size - 1}")
    return Plan(op, x.shape, x.dtype, [x], lambda: lambda out, x: function(out, x, root))


COLLECTIVES = "all_gather", "all_reduce", "broadcast"
kernel("all_gather", "cpu", planner=_plan_all_gather)(all_gather_kernel)
kernel("all_reduce", "cpu", planner=_plan_all_reduce)(all_reduce_kernel)
kernel("broadcast", "cpu", planner=_plan_broadcast)(broadcast_kernel)
TEST_CASES.update({op: [([shape], {}) for shape in ((3,), (2, 3), (0, 4))] for op in COLLECTIVES})


def _rows_back(dy, y, x, rows=()):
    """The gradient rule of all_gather: of the tensor dy, the rows that belong to this rank's x."""
    count = x.spec.shape[0]
    first = sum(rows[: world().rank]) if rows else count * world().rank
    return dy[first : first + count]


VJPS["all_gather"] = (_rows_back,)
VJPS["all_reduce"] = (lambda dy, y, x: dy,)
VJPS["broadcast"] = (lambda dy, y, x, root=0: dy * (1.0 if world().rank == root else 0.0),)


def all_gather(x):
    """The rows x[n, …] of rank 0, rank 1, …, on every rank: [sum of all n, …]. Raises TypeError for a single number."""
    x = as_tensor(x)
    expect(x.spec.shape, "all_gather: x", x, "an array with rows")
    here = world()
    rows = call_together("all_gather", here.comm.allgather, x.spec.shape[0]) if here.comm else (x.spec.shape[0],)
    return apply("all_gather", x, rows=tuple(rows))


def all_reduce(x):
    """The elementwise sum of all ranks' x, on every rank: float64 from rank 0 up, other dtypes in MPI's order."""
    return apply("all_reduce", x)


def broadcast(x, root=0):
    """The x of rank `root`, on every rank; x has one shape and dtype on all. Raises ValueError for an unknown rank."""
    return apply("broadcast", x, root=root)
