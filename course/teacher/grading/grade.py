"""Test the blanks and exercises of one student's notebook, on numbers drawn for that student.

Each notebook runs in a separate process (`sandbox.worker`), confined as far as the system
can do it (`sandbox.isolation`), on the built levels of this course, in a copy of the project without checks and
solutions. That process answers questions. This one asks, compares, and never runs a student's code. So a student's code
can neither read the right answers nor write its own results. A mistake in an earlier notebook, an endless loop or a
crash fails only its own exercise.
"""

import contextlib
import hashlib
import json
import re
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from course.reader.cases import Blank, CapturedOutput, Wrong
from course.reader.exercises import EXERCISES
from course.reader.exercises.blanks import answers_of, compare_answers
from course.reader.exercises.judge import judge_answers
from course.teacher.grading.own_notebooks import (
    CHECK,
    blanks_in,
    copy_without_solutions,
    level_under,
    reference_solution,
    stubs,
)
from course.teacher.sandbox.process import START_TIMEOUT, UNASKED, Process, ProcessEnded

LARGEST = 50 << 20  # bytes of a notebook
SECTION = re.compile(r"^(## Exercises|from course\.reader import exercises|exercises\.check\()", re.MULTILINE)


class Row(NamedTuple):
    """One exercise of one student."""

    student: str
    notebook: str
    exercise: str
    state: str  # one of reports.STATES
    text: str
    seed: int


def seed_of(student: str) -> int:
    """A student's seed: the same on every computer, and different for each student."""
    return int(hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:8], 16)


# One notebook.


class Unreadable(Exception):
    """A file cannot be read as a notebook; the text says why."""


def grade(
    student: str, name: str, path: Path | None, keys: list[str], seconds: float, root: Path, hidden: Path
) -> list[Row]:
    """Test these exercises of a student's notebook, in a process that cannot see `hidden`. Returns a row for each."""
    found = {}
    seed = seed_of(student)
    if path:
        try:
            found = run_notebook(name, sources_of(path), keys, seed, seconds, root, hidden)
        except Unreadable as error:
            found = {"all": ("unreadable", f"the notebook cannot be read: {error}")}
    missing = ("missing", "no cell checks it" if path else f"{name}.ipynb was not handed in")
    rows = [found.get(key) or found.get("all") or missing for key in keys]
    return [Row(student, name, key, state, plain(text), seed) for key, (state, text) in zip(keys, rows, strict=True)]


def plain(text: str) -> str:
    """A message or a name as one line of printable text, with at most 500 characters."""
    text = text.encode("utf-8", "backslashreplace").decode()  # a file's name may be no text in UTF-8
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:500]


def cell(value) -> str:
    """A value as a cell that no spreadsheet computes: an apostrophe stands before what would begin a formula.

    Many countries have a semicolon between cells, so a formula may also begin behind one, and in quotes.
    """
    return re.sub(r"""(^|[;|])([\s"']*)(?=[=+\-@＝＋－＠])""", r"\1\2'", plain(str(value)))


def sources_of(path: Path) -> list[tuple[str, str]]:
    """[(type, source)] of the cells. Raises Unreadable if the file is no notebook in Python."""
    try:
        if (size := path.stat().st_size) > LARGEST:
            raise Unreadable(f"it has {size:,} bytes; clear its outputs")
        made = json.loads(path.read_text(encoding="utf-8-sig"))  # nbformat takes 2 s to load
    except OSError as error:
        raise Unreadable(error.strerror) from None
    except (ValueError, RecursionError):
        raise Unreadable("it is no JSON in UTF-8; was it cut off, or saved by another program?") from None
    cells = made.get("cells") if isinstance(made, dict) else None
    if not isinstance(cells, list):
        raise Unreadable("it has no list of cells; expected a notebook of format 4")
    if "python" not in language_of(made).lower():
        raise Unreadable(f"it is a notebook for {language_of(made)}, not for Python")
    return [source_of(number, cell) for number, cell in enumerate(cells, 1)]


def language_of(made: dict) -> str:
    """The language that a notebook's metadata name; if they name none, Python."""
    for part, name in (("kernelspec", "language"), ("language_info", "name")):
        with contextlib.suppress(LookupError, TypeError):
            if isinstance(language := made["metadata"][part][name], str):
                return language
    return "Python"


def source_of(number: int, cell) -> tuple[str, str]:
    """(type, source) of a cell. Raises Unreadable if it is none."""
    source = cell.get("source") or "" if isinstance(cell, dict) else None
    if not isinstance(source, str | list) or not all(isinstance(line, str) for line in source):
        raise Unreadable(f"cell {number} is no cell of a notebook")
    return str(cell.get("cell_type")), "".join(source)


def run_notebook(name: str, cells: list, keys: list[str], seed: int, seconds: float, root: Path, hidden: Path) -> dict:
    """{exercise: (state, text)} of a notebook's cells. The key "all" stands for exercises that were not reached.

    Only blanks and the section Exercises are run, with the names of the built level and the notebook's imports, so that
    a mistake elsewhere fails no exercise. If the process ends or hangs in a cell, it starts again without it.
    """
    begin = next((n for n, (_, source) in enumerate(cells) if SECTION.search(source)), len(cells))
    code = {n: source for n, (kind, source) in enumerate(cells) if kind == "code"}
    imports = [source for n, source in code.items() if n < begin]
    tried = {n: source for n, source in code.items() if n >= begin and "build.level(" not in source}
    found, filled = blanks_in(name, code, keys)
    if not filled and {source.strip() for source in tried.values()} <= stubs(root, name):
        asked = {key for source in tried.values() for key in CHECK.findall(source)} & EXERCISES.keys()
        return found | {
            key: ("still blank", f"a solution takes about {EXERCISES[key].lines} lines") for key in keys if key in asked
        }
    tried = filled | tried
    done = set()
    with tempfile.TemporaryDirectory(prefix="course-grade-", ignore_cleanup_errors=True) as folder:
        copy = copy_without_solutions(root, Path(folder).resolve())
        while True:
            process = Process(level_under(root, name), copy, hidden)
            at = None
            try:
                process.ask(START_TIMEOUT, "imports", imports)
                for at, source in list(tried.items()):
                    match process.ask(seconds, "cell", source):
                        case [list() as handed, None | str() as failed] if at not in done:
                            for key in (key for key in keys if key in handed or key in CHECK.findall(source)):
                                found[key] = state_of(process, seconds, key, key in handed, failed, seed)
                        case _ if at not in done:
                            raise ProcessEnded(UNASKED)
                    done.add(at)  # after a restart, this cell runs only because later cells may need it
                return found
            except ProcessEnded as why:
                if at is None:
                    return found | {"all": ("no answer", f"{why}, before the first exercise")}
                found |= {key: ("no answer", str(why)) for key in CHECK.findall(tried.pop(at)) if key not in found}
            finally:
                process.end()


def state_of(process, seconds: float, key: str, handed: bool, failed: str | None, seed: int) -> tuple[str, str]:
    """(state, text) of an exercise whose cell has just run."""
    if not handed:
        return "error", f"the cell raises {failed}" if failed else "the check is not run"
    until = time.monotonic() + seconds

    def answer(question: str, inputs):
        match process.ask(until - time.monotonic(), "ask", key, question, inputs, limit=seconds):
            case ["answer", packed]:
                return packed
            case ["blank", _]:
                raise Blank
            case ["wrong", str() as text]:
                raise Wrong(text)
        raise ProcessEnded(UNASKED)

    if key not in EXERCISES:
        found = compare_answers(key, answer, answers_of(reference_solution(key), CapturedOutput()), seed)
        return ("right" if found.state == "other bits" else found.state), found.text
    return judge_answers(key, answer, seed)
