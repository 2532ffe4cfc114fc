"""`python3 -m course grade FOLDER`: test every student's blanks and exercises on numbers drawn for that student.

FOLDER holds a folder for each student, with their notebooks anywhere inside, or notebooks named after students
(anna_02_kernels.ipynb). Each notebook runs in a separate process (`sandbox.worker`), confined as far as the system
can do it (`sandbox.isolation`), on the built levels of this course, in a copy of the project without checks and
solutions. That process answers questions. This one asks, compares, and never runs a student's code. So a student's code
can neither read the right answers nor write its own results. A mistake in an earlier notebook, an endless loop or a
crash fails only its own exercise.
"""

import contextlib
import csv
import hashlib
import json
import multiprocessing
import re
import sys
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from course.reader.cases import Blank, CapturedOutput, Wrong
from course.reader.exercises import EXERCISES
from course.reader.exercises.blanks import answers_of, compare_answers
from course.reader.exercises.judge import judge_answers
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.names import ROOT, level_of, named, names_in
from course.teacher.grading import reports
from course.teacher.grading.own_notebooks import (
    CHECK,
    blanks_in,
    copy_without_solutions,
    keys_of,
    level_under,
    reference_solution,
    stubs,
    texts,
)
from course.teacher.sandbox.isolation import PROTECTIONS
from course.teacher.sandbox.process import START_TIMEOUT, UNASKED, Process, ProcessEnded
from course.terminal.arguments import parser

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


# Submissions.


def submissions(folder: Path, names: list[str]) -> dict[str, dict[str, Path]]:
    """{student: {notebook: file}}. A file that is none of the course's notebooks is listed under its own name."""
    found = {path.name: {} for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] not in "._"}
    paths = [path.relative_to(folder) for path in folder.rglob("*.ipynb") if path.is_file()]
    for path in sorted(paths, key=lambda path: (len(path.parts), path.stem not in names, path)):
        if any(part.startswith(".") for part in path.parts):
            continue  # hidden folders: Jupyter's checkpoints, and what the course keeps
        name = notebook_of(folder / path, names)
        alone = re.sub(r"^[\W_]+|[\W_]+$", "", path.stem.replace(name, "")) or path.stem
        theirs = found.setdefault(path.parts[0] if len(path.parts) > 1 else alone, {})
        if name in theirs:
            first = theirs[name].relative_to(folder)
            print(plain(f"{path.as_posix()} is left out: {first.as_posix()} is there too"))
        theirs.setdefault(name, folder / path)
    return found


def notebook_of(path: Path, names: list[str]) -> str:
    """Which of the course's notebooks a file is, by its name or by its call of `build.watch`; else its own name."""
    for name in names:
        if name in path.stem:
            return name
    with contextlib.suppress(OSError):
        watched = re.search(rb'build\.watch\(\\"(?:more/|trail/)?(\w+)\\"\)', path.read_bytes())
        if watched and watched[1].decode() in names:
            return watched[1].decode()
    return path.name


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


# The whole class.


class Assignment(NamedTuple):
    """What a class is graded on."""

    keys: dict[str, list[str]]  # {notebook: the keys of its functions and exercises}
    named: bool  # it was named: then a notebook that a student did not hand in counts as missing
    counted: set[str]  # the keys that count in the total


def assignment_of(root: Path, names: list[str], keys: list[str], depth: str) -> Assignment:
    """Return what is graded: the notebooks and keys with these names or, if none is named, all of them.

    The functions of the notebooks count in the total, and their optional exercises only if `keys` names them.
    Raises BuildError for an unknown notebook or key.
    """
    chosen = list(dict.fromkeys(Path(named(root, name)).name for name in names)) or list(texts(root))
    held = {name: keys_of(root, name, depth) for name in chosen}
    all_keys = [key for each in held.values() for key in each]
    if unknown := [key for key in keys if key not in all_keys]:
        raise BuildError(f"--only {unknown[0]}: there is no such key here, but {', '.join(all_keys)}")
    if keys:
        held = {name: [key for key in each if key in keys] for name, each in held.items()}
        held = {name: each for name, each in held.items() if each}
    counted = set(keys) or {key for key in all_keys if key not in EXERCISES}
    return Assignment(held, bool(names or keys), counted)


def graded(students: dict, assignment: Assignment, options, root: Path):
    """Yield (student, rows) of each student, as soon as all of the student's notebooks are graded."""
    tasks = []
    for student, theirs in students.items():
        for name, keys in assignment.keys.items():
            if keys and (assignment.named or name in theirs):
                tasks.append((student, name, theirs.get(name), keys, options.seconds, root, options.folder))
    began = time.monotonic()
    with pool_of(options.jobs) as pool:
        found = iter(pool.map(grade, *zip(*tasks, strict=True))) if tasks else iter(())
        done = 0
        for student, theirs in students.items():
            unknown = [f"{name}: no notebook of the course has this name" for name in theirs if name not in texts(root)]
            rows = [Row(student, "", "", "unreadable", text, seed_of(student)) for text in unknown]
            for _ in [task for task in tasks if task[0] == student]:
                rows += next(found)
                done += 1
                show_progress(done, len(tasks), began)
            yield student, rows


def pool_of(jobs: int):
    """An executor of this many processes; of one job, it runs in this process."""
    if jobs == 1:
        return Inline()
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))


class Inline(Executor):
    """An executor that runs each call when its result is asked for."""

    def map(self, function, *arguments):
        return map(function, *arguments)


def show_progress(done: int, count: int, began: float) -> None:
    """On a terminal, say how many notebooks are graded, and about how long the others take."""
    if sys.stderr.isatty():
        minutes = (time.monotonic() - began) / done * (count - done) / 60
        print(f"\r{done} of {count} notebooks, {minutes:.0f} minutes left  ", end="", file=sys.stderr, flush=True)
        if done == count:
            print(file=sys.stderr)


# On the command line.


def main(argv: list[str], root: Path = ROOT) -> int:
    """`python3 -m course grade`: try the functions and exercises of every student in a folder."""
    options = parser("grade").parse_args(argv)
    options.folder = Path(options.folder)
    try:
        assignment = assignment_of(root, options.notebook, options.only, options.write)
        if not options.folder.is_dir():
            raise BuildError(f"there is no folder {options.folder}")
        students = submissions(options.folder, list(texts(root)))
        if not any(students.values()):
            raise BuildError(f"there is no notebook (.ipynb) in {options.folder}")
        pages = reports.new_folder(options.feedback)
        with reports.new(options.csv) as table, reports.new(options.gradebook) as gradebook:
            tell_protections(protections(root, options.folder))
            writer = csv.writer(table)
            writer.writerow(Row._fields)
            class_rows = {}
            for student, rows in graded(students, assignment, options, root):
                class_rows[student] = rows
                writer.writerows(map(cell, row) for row in rows)
                table.flush()
                print(f"{plain(student):<24} {reports.total(rows, assignment.counted)}", flush=True)
                if pages:
                    reports.write_feedback(pages, student, rows)
            print(reports.by_exercise(class_rows))
            csv.writer(gradebook).writerows(reports.gradebook(class_rows, assignment, cell))
    except FileExistsError as error:
        print(f"{error.filename} is there already: move it, or give another name", file=sys.stderr)
        return 1
    except (BuildError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def tell_protections(kept: list[str]) -> None:
    told = ", ".join(kept) or "nothing: use an account that holds nothing of value"
    print(f"Students' code is kept from {told}.")
    if lacking := [each for each in PROTECTIONS if each not in kept]:
        print(f"This system cannot keep it from {', '.join(lacking)}.")


def protections(root: Path, hidden: Path) -> list[str]:
    """The PROTECTIONS against a student's code that this system provides."""
    with tempfile.TemporaryDirectory(prefix="course-grade-") as folder:
        process = Process(level_of(names_in(root)[0]), copy_without_solutions(root, Path(folder).resolve()), hidden)
        process.end()
    return process.protections
