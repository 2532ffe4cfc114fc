"""Where a reader stopped: on the reader's desk every cell that runs is noted, the last one of each notebook."""

import contextlib
import hashlib
import json
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from course.builder.cells import BuildError
from course.builder.files import replace
from course.builder.names import MINE, ROOT
from course.builder.notebooks import read_notebook

STOPPED = ".course/stopped.json"  # in `mine`: the last cell of each notebook
ASKED = ".course/resume.json"  # in `mine`: what to bring back
HEADINGS = re.compile(r"^##+ (.+)$", re.MULTILINE)


class Stop(NamedTuple):
    """Where a reader stopped: in a notebook, after the cell of that number, counted from 0."""

    name: str
    cell: int
    when: datetime


def note_cell(name: str, cell_id: str | None, source: str, root: Path = ROOT) -> None:
    """This cell ran last. A full disk only costs the place."""
    path = root / MINE / STOPPED
    noted = {"cell": cell_id, "source": hash_of(source), "when": datetime.now().isoformat(timespec="seconds")}
    others = {other: each for other, each in read_json(path).items() if other != name}
    with contextlib.suppress(OSError):
        replace(root, {path: json.dumps(others | {name: noted}, indent=1)})  # the newest stands last


def hash_of(source: str) -> str:
    return hashlib.sha256(source.strip().encode()).hexdigest()


def read_json(path: Path) -> dict:
    """What a file of ours holds; nothing where it is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def last_stop(root: Path = ROOT) -> Stop | None:
    """Where the reader ran a cell last, of all notebooks; None where that is not known, or not there any more."""
    for name, each in reversed(read_json(root / MINE / STOPPED).items()):
        with contextlib.suppress(BuildError, LookupError, ValueError, TypeError):
            cells = read_notebook(root, name, MINE).cells
            same = [k for k, cell in enumerate(cells) if cell.get("id") == each["cell"]]
            same += [k for k, cell in enumerate(cells) if hash_of(cell.source) == each["source"]]
            if same:
                return Stop(name, same[0], datetime.fromisoformat(each["when"]))
    return None


def heading(cells: list, number: int) -> str:
    """The title of the section in which a cell stands."""
    found = [m for cell in cells[: number + 1] if cell.cell_type == "markdown" for m in HEADINGS.findall(cell.source)]
    return re.sub(r" \((\d+ min)?(, )?(optional)?\)$", "", found[-1]) if found else ""
