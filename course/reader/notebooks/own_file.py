"""Notice that a reader's notebook is no longer called as the course knows it.

A kernel is told no file name. Jupyter's server puts the name that the notebook had when the kernel started into the
variable JPY_SESSION_NAME; other programs may put nothing there.
"""

import os
from pathlib import Path

from course.reader.notebooks.names import MINE


def missing(root: Path, name: str) -> str:
    """Return what to do if the reader's notebook `name` is not in its place, or "" if it is there."""
    if (root / MINE / f"{name}.ipynb").exists():
        return ""
    now = running(root)
    what = f"{MINE}/{name}.ipynb is missing" + f", and this is {now}" * bool(now)
    return f"{what}. Is it renamed or moved? Save it, and rename it back to {name}.ipynb. Then run this cell again"


def another(root: Path, name: str) -> str:
    """Return a warning if the kernel runs another file than the reader's notebook `name`, or ""."""
    now = running(root)
    if not now or now == f"{MINE}/{name}.ipynb":
        return ""
    return (
        f"this file is {now}, and the last cell builds from {MINE}/{name}.ipynb. Is this one your notebook, renamed? "
        f"Then give that file another name, and rename this one back to {name}.ipynb"
    )


def running(root: Path) -> str:
    """Return the path, from `root`, of the notebook that this kernel runs, or "" if it is unknown or has gone."""
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    mine = (root / MINE).resolve()
    if path.suffix != ".ipynb" or not path.is_absolute() or not path.is_file():
        return ""
    path = path.resolve()
    return path.relative_to(mine.parent).as_posix() if mine in path.parents else ""
