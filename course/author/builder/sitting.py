"""Build a level at the end of a sitting, when a part of its notebook has run."""

import importlib
import subprocess
from collections import Counter
from pathlib import Path

from course.author.builder.export import export
from course.author.builder.files import write_level
from course.author.builder.session import find_unsaved, place_of, site, started, written_by
from course.reader.notebooks import own_file
from course.reader.notebooks.cells import MARKER, BuildError, code_lines, halves
from course.reader.notebooks.names import MINE, ROOT, level_of
from course.reader.notebooks.running import HOME, RAN
from course.reader.notebooks.stored import read_notebook

STEPS = 25  # most of the time goes into plain Python; the tests compare more
# Runs both tasks by the arithmetic of record, waits for a line of input, and runs them on the level, built by then.
# Prints for each task the first step whose loss differs.
CHECK = f"""
import importlib, sys
from course.reader import reference, tasks
from levels.support.elementary import exp, log

of_record = {{
    "linear_regression": reference.linear_regression,
    "dnn_classifier": lambda *task: reference.dnn_classifier(*task, exp=exp, log=log),
}}
runs = []
for name, train in of_record.items():
    task = tasks.FOR[name]()
    given = task.x, task.y, task.weights, task.batches[:{STEPS}], task.learning_rate
    runs.append((name, given, train(*given)[0]))
input()
importlib.invalidate_caches()
level = importlib.import_module("levels." + sys.argv[1])
for name, given, wanted in runs:
    there = getattr(level, name)(*given).losses.tolist()
    step = next((n for n, pair in enumerate(zip(there, wanted, strict=True)) if pair[0] != pair[1]), None)
    if step is None:
        print(f"{{name}}: {STEPS} steps in a fresh process, and the losses of record")
    else:
        print(f"{{name}}: the loss of step {{step}} is {{there[step]!r}}, and that of record is {{wanted[step]!r}}")
"""


def so_far(name: str) -> None:
    """Build the level of the saved notebook `name` from the cells above this one, and from the course's cells below.

    Prints which rooms are whole, and which have cells of the course. Then a fresh process runs both tasks. Raises
    BuildError if a cell is not saved, if the level cannot be built, or if the process fails.
    """
    if HOME[0] != ROOT and (told := own_file.missing(ROOT, name) or own_file.another(ROOT, name)):
        raise BuildError(told)
    with site() as root, started(root, CHECK, level_of(name)) as check:
        build_so_far(root, name, check)


def build_so_far(root: Path, name: str, check: subprocess.Popen) -> None:
    notebook = read_notebook(ROOT, name, MINE if HOME[0] != ROOT else "notebooks")
    above, _ = halves(notebook.cells, name)
    _, below = halves(read_notebook(ROOT, name).cells, name)
    later = {cell.get("id") for cell in notebook.cells[len(above) :]}
    notebook.cells = above
    find_unsaved(notebook, {cell_id: source for cell_id, source in RAN.items() if cell_id not in later})
    yours = written_by(notebook, name)
    done = Counter(filter(None, map(room_of, above)))
    left = Counter(filter(None, map(room_of, below)))
    notebook.cells = above + below
    files = export(notebook, name)
    write_level(root, name, files)
    importlib.invalidate_caches()
    print(f"{place_of(root, name)}, as far as it stands")
    for room in done:
        if room not in left:
            print(f"  {room + '.py':<20} {code_lines(files[room + '.py'].text):>4} lines of code")
    rest = [f"{count} of {count + done[room]} cells of " * bool(done[room]) + room for room, count in left.items()]
    print(f"the course's, until you go on: {', '.join(rest)}")
    if yours:
        print(yours)
    print(checked(check, level_of(name)))


def room_of(cell) -> str:
    """Return the room to which a cell is exported, or ""."""
    marker = MARKER.fullmatch(cell.source.split("\n")[0]) if cell.cell_type == "code" else None
    return marker[1] if marker else ""


def checked(check: subprocess.Popen, level: str) -> str:
    """Let the process go on, now that the level in its folder is built. Returns a line for each task."""
    told, errors = check.communicate("\n")
    if check.returncode:
        last = "\n".join(errors.strip().split("\n")[-5:])
        raise BuildError(f"levels.{level}, as far as it stands, fails in a fresh process:\n{last}")
    return told.strip()
