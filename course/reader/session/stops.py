"""Where a reader stopped: for each notebook in `mine`, the cell that ran last is stored."""

import contextlib
import hashlib
import json
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from course.reader.files import replace
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.names import MINE, ROOT
from course.reader.notebooks.stored import read_notebook

STOPPED = ".course/stopped.json"  # in `mine`: the cell of each notebook that ran last
ASKED = ".course/resume.json"  # in `mine`: the notebook whose state is to be restored
HEADINGS = re.compile(r"^##+ (.+)$", re.MULTILINE)


class Stop(NamedTuple):
    """Where a reader stopped: the notebook, the number of the cell that ran last (counted from 0), and the time."""

    name: str
    cell: int
    when: datetime


def note_cell(name: str, cell_id: str | None, source: str, root: Path = ROOT) -> None:
    """Store that this cell ran last. If the disk is full, nothing is stored, and no error is raised."""
    path = root / MINE / STOPPED
    noted = {"cell": cell_id, "source": hash_of(source), "when": datetime.now().isoformat(timespec="seconds")}
    others = {other: each for other, each in read_json(path).items() if other != name}
    with contextlib.suppress(OSError):
        replace(root, {path: json.dumps(others | {name: noted}, indent=1)})  # the newest comes last


def hash_of(source: str) -> str:
    return hashlib.sha256(source.strip().encode()).hexdigest()


def read_json(path: Path) -> dict:
    """The dict in a JSON file; {} if the file is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def last_stop(root: Path = ROOT) -> Stop | None:
    """The last cell that the reader ran, in any notebook, and that still exists; None if there is none."""
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
    return re.sub(r"(?: \(|（)(\d+ (?:min|分钟))?(, )?(optional)?[)）]$", "", found[-1]) if found else ""
