"""The notebook that this kernel runs: its name, what ran in it, and the folder of the levels that it imports.

The first cell of each notebook notes the name, by `build.watch`. In a kernel without one, these are empty.
"""

import sys
from pathlib import Path

from course.reader.notebooks.names import MINE, ROOT

RAN = {}  # cell id -> the source that ran last in this kernel
WRITTEN = {}  # the key of a blank -> its cell, as it ran last in this kernel
WATCHED = []  # the name of the notebook that this kernel runs
HOME = [ROOT]  # the folder of its `levels`: the course's, or `mine`


def find_home() -> None:
    """Let a notebook in the reader's folder import the `levels` that the reader built."""
    here = Path.cwd().resolve()
    if HOME[0] == ROOT and ROOT / MINE in (here, *here.parents):
        HOME[:] = [ROOT / MINE]
        sys.path.insert(0, str(ROOT / MINE))
