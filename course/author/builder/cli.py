"""The commands `build`, which builds the notebooks that are stale, and `build --check`."""

import shutil
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from course.author.builder import po
from course.author.builder.execute import execute
from course.author.builder.export import LEVELS, File, export
from course.author.builder.files import SUPPORT, copy_project, write_level
from course.author.builder.inputs import inputs_of, stale
from course.reader.notebooks import minutes
from course.reader.notebooks.cells import BuildError, title
from course.reader.notebooks.names import (
    ROOT,
    all_in,
    language_of,
    level_of,
    named,
    names_in,
    notebook_path,
    text_path,
    translated_in,
)
from course.reader.notebooks.stored import essence, from_text, hash_of, read_notebook, write_notebook
from course.terminal.arguments import parser


def set_aside(root: Path, name: str) -> None:
    """Keep a copy of a notebook whose cells have changed since its last build, because it may contain a user's work."""
    path = notebook_path(root, name)
    try:
        notebook = read_notebook(root, name)
        kept = notebook.metadata.get("course", {}).get("cells") != hash_of(essence(notebook))
    except BuildError:
        kept = path.exists()  # damaged, but perhaps repairable
    if kept:
        copy = root / ".course" / "aside" / f"{name}-{datetime.now():%Y%m%d-%H%M%S-%f}.ipynb"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
        print(f"{name:<14} was changed since its last build: a copy is {copy.relative_to(root).as_posix()}")


def build(root: Path, name: str, anew: bool = False) -> None:
    """Update a notebook and its level from the text; `anew`, also if nothing changed. If it fails, both stay."""
    text = from_text(root, name)
    builds = name in names_in(root)
    try:
        notebook = read_notebook(root, name)
        why = stale(root, name, text, notebook) or "it measures anew" * anew
    except BuildError:
        why = "it is missing or damaged"
    if not why:
        changed = builds and write_level(root, name, export(notebook, name))
        print(f"{name:<14} is up to date" + (", its level is written again" if changed else ""))
        return
    print(f"{name:<14} runs, because {why}", flush=True)
    start = time.perf_counter()
    if builds:
        export(text, name)  # finds a cell that cannot be exported before anything runs
    inputs = inputs_of(root, name, text)
    beneath = [level_of(other) for other in names_in(root) if other < name]
    with tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True) as folder:
        copy = copy_project(root, Path(folder).resolve(), beneath)
        write_notebook(copy, name, text)
        execute(text, name, copy)
    text.metadata["course"] = {"cells": hash_of(essence(text)), "inputs": inputs}
    set_aside(root, name)
    write_notebook(root, name, text)
    if builds:
        write_level(root, name, export(text, name))
    print(f"{name:<14} is built ({time.perf_counter() - start:.1f} s)")
    if not language_of(name) and (broken := minutes.broken(minutes.sections(text.cells, root))):
        print(
            f"{name:<14} says other minutes than are counted: {'; '.join(broken)}."
            f" `python3 -m course build --minutes {name}`"
        )


def check(root: Path, names: list[str]) -> list[str]:
    """Return a line, with file and cell, for each difference of text, notebook and level. Only reads files."""
    front = root / "levels" / "__init__.py"
    found = []
    files = {front: LEVELS}
    for name in names:
        folder = root / "levels" / level_of(name)
        try:
            text = from_text(root, name)
            notebook = read_notebook(root, name)
            differing = compare_cells(name, text, notebook)
            why = stale(root, name, text, notebook)
            found += differing or [f"notebooks/{name}.ipynb is stale: {why}"] * bool(why)
            for file, built in export(notebook, name).items() if name in names_in(root) else ():
                files[folder / file] = built.text
                found += compare_file(root, folder / file, built, name, notebook)
        except BuildError as error:
            found.append(str(error))
            files |= dict.fromkeys(folder.glob("*"), "")
    if names[: len(all_in(root))] == all_in(root):
        if not front.exists() or front.read_text(encoding="utf-8") != LEVELS:
            found.append("levels/__init__.py is not the one that `python3 -m course build` writes")
        extra = [path for path in (root / "levels").rglob("*") if path.is_file() and path not in files]
        extra = [path for path in extra if root / SUPPORT not in path.parents]
        extra = [path.relative_to(root).as_posix() for path in extra if "__pycache__" not in path.parts]
        found += [f"{path}: no notebook builds this file" for path in sorted(extra)]
    return found


def compare_cells(name: str, text, notebook) -> list[str]:
    found = []
    ours = essence(text)
    theirs = essence(notebook)
    for number in range(max(len(ours), len(theirs))):
        if ours[number : number + 1] != theirs[number : number + 1]:
            cells = notebook.cells if number < len(theirs) else text.cells
            where = title(number + 1, cells[number].source)
            told = text_path(Path(), name).as_posix()
            found.append(f"notebooks/{name}.ipynb, {where}: differs from {told}")
    return found


def compare_file(root: Path, path: Path, built: File, name: str, notebook) -> list[str]:
    there = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    ours = built.text.split("\n")
    if ours == there:
        return []
    line = next((n for n in range(len(there)) if ours[n : n + 1] != there[n : n + 1]), len(there))
    number = next(filter(None, built.cells[line:]), 0)  # imports, which are in no cell, count with the next cell
    where = f", {title(number, notebook.cells[number - 1].source)}" if number else ""
    return [f"{path.relative_to(root).as_posix()}: line {line + 1} differs from notebooks/{name}.ipynb{where}"]


def main(argv: list[str], root: Path = ROOT) -> int:
    """Run `python3 -m course build`: update notebooks and levels from the texts. Returns the exit status."""
    options = parser("build").parse_args(argv)
    found = []
    try:
        names = sorted({named(root, given) for given in options.names}) or all_in(root) + translated_in(root)
        if options.minutes:
            minutes.write(root, [name for name in names if not language_of(name)])
        elif options.po:
            po.main(root)
        elif options.check:
            found = check(root, names)
            print("\n".join(found) or "text, notebooks and levels agree")
        else:
            for name in names:
                build(root, name)
    except BuildError as error:
        found = [error]
        print(error, file=sys.stderr)
    return 1 if found else 0
