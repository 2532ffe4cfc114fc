"""`python3 -m course grade FOLDER`: the exercises of every student, tried again on numbers drawn for that student.

In FOLDER lies a folder for each student, with their notebooks somewhere inside, or notebooks named after them
(anna_02_kernels.ipynb). Each notebook runs in a process of its own (`course.attempt`), in a copy of the project that is
thrown away, on the built levels of this course: no mistake of an earlier notebook, no endless loop and no crash costs
more than its own exercise. Student code is kept from doing harm by accident, not on purpose: grade in an account, or a
container, that holds nothing of value.
"""

import contextlib
import csv
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from course.arguments import parser
from course.build import ROOT, copy_project, environment, level_of, names_in
from course.rooms import BuildError

START = 180  # for Python to start, and for the notebook's imports: a busy computer is no student's fault


class Row(NamedTuple):
    """One exercise of one student."""

    student: str
    notebook: str
    exercise: str
    state: str  # "right", "not yet", "still blank", "error", "no answer", "missing" or "unreadable"
    text: str
    seed: int


# Who handed in what.


def submissions(folder: Path, names: list[str]) -> dict[str, dict[str, Path]]:
    """{student: {notebook: file}}. A file that no notebook's name fits is listed under its own."""
    found = {path.name: {} for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] not in "._"}
    paths = [path.relative_to(folder) for path in folder.rglob("*.ipynb") if path.is_file()]
    for path in sorted(paths, key=lambda path: (len(path.parts), path.stem not in names, path)):
        if any(part.startswith(".") for part in path.parts):
            continue  # Jupyter's checkpoints, and what the course set aside
        name = notebook_of(folder / path, names)
        alone = re.sub(r"^[\W_]+|[\W_]+$", "", path.stem.replace(name, "")) or path.stem
        theirs = found.setdefault(path.parts[0] if len(path.parts) > 1 else alone, {})
        if name in theirs:
            print(f"{path.as_posix()} is left out: {theirs[name].relative_to(folder).as_posix()} is there too")
        theirs.setdefault(name, folder / path)
    return found


def notebook_of(path: Path, names: list[str]) -> str:
    """Which of the course's notebooks a file is, by its name, or else by its first cell."""
    for name in names:
        if name in path.stem:
            return name
    with contextlib.suppress(OSError):
        watched = re.search(rb'build\.watch\(\\"(\w+)\\"\)', path.read_bytes())
        if watched and watched[1].decode() in names:
            return watched[1].decode()
    return path.name


def seed_of(student: str) -> int:
    """The same on every computer, and another one for each student."""
    return int(hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:8], 16)


# One notebook.


def grade(student: str, name: str, path: Path | None, keys: list[str], seconds: float, root: Path) -> list[Row]:
    """Try these exercises of a student's notebook. Always returns, with a row for each."""
    try:
        found = attempt(name, path, seed_of(student), seconds, root) if path else {}
    except OSError as error:  # a file that may not be read, say
        found = {"all": ("unreadable", str(error))}
    missing = ("missing", "no cell checks it" if path else f"{name}.ipynb was not handed in")
    rows = [found.get(key) or found.get("all") or missing for key in keys]
    told = [(state, plain(text)) for state, text in rows]
    return [Row(student, name, key, *row, seed_of(student)) for key, row in zip(keys, told, strict=True)]


def plain(text: str) -> str:
    """A message on one line, without what no table can show."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:500]


def attempt(name: str, path: Path, seed: int, seconds: float, root: Path) -> dict[str, tuple[str, str]]:
    """{exercise: (state, text)} of a notebook, and under "all" what holds for exercises that were not come to.

    A process that ends or hangs in a cell is started again without that cell.
    """
    with tempfile.TemporaryDirectory(prefix="course-grade-", ignore_cleanup_errors=True) as folder:
        copy = copy_project(root, Path(folder).resolve() / "course", [level_of(each) for each in names_in(root)])
        notebook, results = copy / "notebooks" / f"{name}.ipynb", Path(folder) / "results"
        found, skipped = {}, []
        while True:
            notebook.write_bytes(path.read_bytes())
            why = run(["-m", "course.attempt", notebook, seed, results, *skipped], results, seconds, copy)
            cell, keys, lines = None, [], said(results)
            for line in lines:
                if "key" in line:
                    found[line["key"]] = line["state"], line["text"]  # of two cells, the later counts
                elif "cell" in line:
                    cell, keys = line["cell"], line["keys"]
                elif "unreadable" in line:
                    return {"all": ("unreadable", line["unreadable"])}
            if "end" in (lines or [{}])[-1]:
                return found
            found |= {key: ("no answer", why) for key in keys if key not in found}
            if cell is None or cell in skipped:
                return found | {"all": ("no answer", f"{why}, before the first exercise")}
            skipped.append(cell)


def run(command: list, results: Path, seconds: float, copy: Path) -> str:
    """Run Python until it ends or says nothing new for so many seconds (START, before it has begun): how, in words."""
    results.write_text("")
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    alone = environment(copy) | {"MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1"}
    caches = {"NUMBA_CACHE_DIR": "kernels", "LEVELS_CACHE": "programs"}  # of compiled code: its own, not the teacher's
    alone |= {variable: str(copy / ".course" / part) for variable, part in caches.items()}
    process = subprocess.Popen(
        [sys.executable, *map(str, command)], cwd=copy / "notebooks", env=alone, start_new_session=True, **options
    )
    heard, since = 0, time.monotonic()
    try:
        while process.poll() is None:
            if (size := results.stat().st_size) > heard:
                heard, since = size, time.monotonic()
                if "end" in (said(results) or [{}])[-1]:  # a thread of the student's may still run
                    break
            limit = seconds if heard else START
            if time.monotonic() - since > limit:
                return f"it takes more than {limit:g} s"
            time.sleep(0.05)
        return f"it ends the process (status {process.poll()})"
    finally:
        with contextlib.suppress(OSError):  # what it started goes with it
            os.killpg(process.pid, signal.SIGKILL) if os.name == "posix" else process.kill()
        process.wait()


def said(results: Path) -> list[dict]:
    """The lines that are whole."""
    lines = []
    with contextlib.suppress(OSError, ValueError):
        for line in results.read_text(encoding="utf-8").splitlines():
            lines.append(json.loads(line))
    return lines


# On the command line.


def main(argv: list[str], root: Path = ROOT) -> int:
    """`python3 -m course grade`: try the exercises of every student in a folder."""
    from course.exercises import EXERCISES

    options = parser("grade").parse_args(argv)
    options.folder = Path(options.folder)
    names = names_in(root)
    try:
        if not options.folder.is_dir():
            raise BuildError(f"there is no folder {options.folder}")
        students = submissions(options.folder, names)
        if not any(students.values()):
            raise BuildError(f"no notebook (.ipynb) lies in {options.folder}")
        handed = [name for name in names if any(name in theirs for theirs in students.values())]
        # "x": what somebody wrote into an older table is not lost
        form = {"newline": "", "encoding": "utf-8-sig", "errors": "replace"}
        with open(options.csv or os.devnull, "x" if options.csv else "w", **form) as table:
            writer = csv.writer(table)
            writer.writerow(Row._fields)
            for student, theirs in students.items():
                unknown = [f"{name}: which notebook is it?" for name in theirs if name not in names]
                rows = [Row(student, "", "", "unreadable", text, seed_of(student)) for text in unknown]
                for name in handed:
                    keys = [key for key in EXERCISES if key.startswith(name[:2])]
                    rows += grade(student, name, theirs.get(name), keys, options.seconds, root)
                writer.writerows(rows)
                table.flush()
                right = sum(row.state == "right" for row in rows)
                print(f"{student:<24} {right:>3} right of {sum(bool(row.exercise) for row in rows)}", flush=True)
    except FileExistsError:
        print(f"{options.csv} is there already: move it, or name another file", file=sys.stderr)
        return 1
    except (BuildError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
