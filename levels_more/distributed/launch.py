"""`python -m levels_more.distributed.launch 4 train.py …`: run a script in 4 ranks; print what to do if one fails."""

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

from levels_more.distributed.collectives import INSTALL


def mpiexec():
    """The path of mpiexec, beside this Python or in PATH. Raises FileNotFoundError if there is none."""
    found = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError(f"there is no mpiexec: {INSTALL}")
    return found


def run_ranks(ranks, *command):
    """Run `python *command` in that many ranks and wait. Returns the exit status; if it is not 0, prints what to do."""
    process = subprocess.Popen([mpiexec(), "-n", str(ranks), sys.executable, *command])
    status = None
    while status is None:
        with contextlib.suppress(KeyboardInterrupt):  # mpiexec gets Ctrl-C, too, and ends the ranks
            status = process.wait()
    if status:
        cure = "Start it again, with any number of ranks: a script that loads its last checkpoint goes on from there"
        sys.stderr.write(f"A rank ended with status {status}, and with it all {ranks}. {cure}.\n")
    return status


if __name__ == "__main__":
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        sys.exit(
            "python -m levels_more.distributed.launch RANKS SCRIPT …: for example, "
            "python -m levels_more.distributed.launch 4 train.py"
        )
    try:
        sys.exit(run_ranks(*sys.argv[1:]))
    except FileNotFoundError as error:
        sys.exit(str(error))
