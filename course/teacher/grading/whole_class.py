"""`python3 -m course grade FOLDER`: who handed in what, what is asked of whom, and the tables of a whole class.

FOLDER holds a folder for each student, with their notebooks anywhere inside, or notebooks named after students
(anna_02_kernels.ipynb). `grade` tests each of them.
"""

import contextlib
import csv
import multiprocessing
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from course.reader.exercises import EXERCISES
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.names import ROOT, level_of, named, names_in
from course.teacher.grading import reports
from course.teacher.grading.grade import Row, cell, grade, plain, seed_of
from course.teacher.grading.own_notebooks import copy_without_solutions, keys_of, texts
from course.teacher.sandbox.isolation import PROTECTIONS
from course.teacher.sandbox.process import Process
from course.terminal.arguments import parser

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
    several = ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) if options.jobs > 1 else None
    with several or contextlib.nullcontext():
        run = several.map if several else map
        rows_of = run(grade, *zip(*tasks, strict=True)) if tasks else ()
        found = iter(tqdm(rows_of, total=len(tasks), unit=" notebooks", disable=None))
        for student, theirs in students.items():
            unknown = [f"{name}: no notebook of the course has this name" for name in theirs if name not in texts(root)]
            rows = [Row(student, "", "", "unreadable", text, seed_of(student)) for text in unknown]
            for _ in [task for task in tasks if task[0] == student]:
                rows += next(found)
            yield student, rows


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
                tqdm.write(f"{plain(student):<24} {reports.total(rows, assignment.counted)}")
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
