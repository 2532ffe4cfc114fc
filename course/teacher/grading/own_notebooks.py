"""What grading needs of the course's own notebooks. The right answer for a blank is the course's own function."""

import importlib
import re
import shutil
from pathlib import Path

from course.reader.cases import CASES
from course.reader.exercises import EXERCISES
from course.reader.notebooks import blanks
from course.reader.notebooks.cells import MARKER, blank_in, most_in
from course.reader.notebooks.names import ROOT, all_in, level_of, names_in, text_path

SEEN = "course", "data", "levels", "levels_more", "notebooks/text", "notebooks/more/text"  # what a student's code sees
CHECK = re.compile(r"""^exercises\.check\(\s*["'](\d\d-[\w.]+)["']""", re.MULTILINE)
CHECKED = """\
import {room} as _room
globals().update({{name: value for name, value in vars(_room).items() if not name.startswith("__")}})
{source}

exercises.check("{key}", {function})
"""


def blanks_in(name: str, code: dict[int, str], keys: list[str]) -> tuple[dict, dict[int, str]]:
    """{key: (state, text)} of the blanks that need not run, and {cell number: source with check} of those to run."""
    found = {}
    filled = {}
    for n, source in code.items():
        key = f"{two_digits(name)[:2]}-{blank_in(source)}"
        if key not in keys or key in EXERCISES:
            continue
        try:
            function = blanks.written(source, name, key[3:])
            own = blanks.filled(source, name, key[3:])
            expected = blanks.signature(blanks.written(own, name, key[3:]))
            given = blanks.signature(function)
            stub = blanks.is_stub(function)
        except (blanks.Unfit, RecursionError, MemoryError, ValueError) as error:
            found[key] = "not yet", str(error)
            continue
        if stub:
            found[key] = "still blank", "not filled in"
        elif given != expected:
            found[key] = "not yet", f"it is {given}, and is called as {expected}"
        else:
            filled[n] = CHECKED.format(room=room_of(key), source=source, key=key, function=key[3:])
    return found, filled


def room_of(key: str) -> str:
    """The room (module) of the built level that holds a blank's function. Raises LookupError for an unknown key."""
    name = next(name for name in names_in(ROOT) if name.startswith(key[:2]))
    for source in stubs(ROOT, name):
        if key[3:] in (blank_in(source), most_in(source)):
            return f"levels.{level_of(name)}.{MARKER.match(source)[1]}"
    raise LookupError(f"no blank is called {key}")


def reference_solution(key: str):
    """The course's own function for a blank, with all names of its level as globals."""
    room = room_of(key)
    names = vars(importlib.import_module(room.rpartition(".")[0])) | vars(importlib.import_module(room))
    notebook = next(name for name in names_in(ROOT) if name.startswith(key[:2]))
    source = blanks.course_cell(notebook, key[3:]) or blanks.solution(notebook, key[3:])
    return blanks.made(source, key[3:], names)[0]


def two_digits(name: str) -> str:
    """A notebook's name with two digits for its level, as in the five: 01_hardware for the trail's 1_hardware."""
    return re.sub(r"^(\d)_", r"0\1_", name)


def level_under(root: Path, name: str) -> str:
    """The level whose names a notebook's exercises use: for 01_gpu, in `more`, it is the first."""
    return level_of(next(each for each in names_in(root) if each[:2] == two_digits(name)[:2]))


def texts(root: Path) -> dict[str, str]:
    """{name of the file: text} of all the course's notebooks, including the trail and `more`."""
    return {Path(name).name: text_path(root, name).read_text(encoding="utf-8") for name in all_in(root)}


def keys_of(root: Path, name: str, depth: str = "some") -> list[str]:
    """The keys of a notebook's blanks at this depth, and of its exercises."""
    asked = CHECK.findall(texts(root)[name])
    keys = (blank_in(cell) or most_in(cell) * (depth == "most") for cell in stubs(root, name))
    held = {f"{two_digits(name)[:2]}-{key}" for key in keys}
    return [key for key in CASES if key in held] + [key for key in EXERCISES if key in asked]


def stubs(root: Path, name: str) -> set[str]:
    """The sources of the cells in the course's own notebook."""
    return {cell.strip() for cell in re.split(r"^# %%.*$", texts(root)[name], flags=re.MULTILINE)}


def copy_without_solutions(root: Path, folder: Path) -> Path:
    """Copy what students' code may see of the project, without checks and solutions. Return the copy's path."""
    copy = folder / "course"
    unseen = shutil.ignore_patterns("__pycache__", "exercises", ".*")
    for part in SEEN:
        shutil.copytree(root / part, copy / part, ignore=unseen)
    return copy
