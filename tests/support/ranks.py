"""Real processes under `mpiexec`, for the tests of several ranks."""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from course import build
from levels_more.distributed import collectives

MPIEXEC = next(filter(Path.exists, (Path(sys.executable).with_name(name) for name in ("mpiexec", "mpiexec.exe"))), None)
there = pytest.mark.skipif(
    not (MPIEXEC and importlib.util.find_spec("mpi4py")), reason=f"MPI is not here: {collectives.INSTALL}"
)


def started(script, ranks, *arguments, **more):
    """A process that runs this text in so many ranks; for None it is Python alone."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    if ranks:
        command = [str(MPIEXEC), "-n", str(ranks), *command]
    here = build.environment(build.ROOT) | {"NUMBA_NUM_THREADS": "1"} | more
    return subprocess.Popen(command, env=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process, seconds=120):
    """What a process printed, when it has ended: (its exit status, its output, its errors)."""
    try:
        out, errors = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return process.returncode, out, errors


def ran(script, ranks, *arguments):
    """The output of a script that ends well."""
    status, out, errors = told(started(script, ranks, *arguments))
    assert status == 0, errors
    return out
