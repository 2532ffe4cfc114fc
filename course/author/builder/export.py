"""Export a notebook as a level: its code cells become the modules, called rooms, of a package.

A code cell whose first line is `#| export ROOM` belongs to `levels/LEVEL/ROOM.py`. Its lines, with comments, are kept
unchanged; only its imports move to the top. Imports between rooms are generated: a name that a room uses but does not
define comes from the room that defines it, from an import in any cell, or from Python's builtins. This is correct only
if each name has one meaning in the whole notebook, so defining or importing it again differently is an error.
"""

import keyword
import re
import sys
import textwrap
from typing import NamedTuple

from course.author.builder.namespace import Import, Namespace
from course.reader.notebooks.cells import BuildError, Cell, is_import, is_text, read

WIDTH = 120
# The text of `levels/__init__.py`. Except it and `levels/support`, all files in `levels` are built from notebooks.
LEVELS = '''"""Five levels, one answer: a small deep-learning framework, from machine instructions up to `model.fit`.

This is what the five notebooks build, and it is whole. `levels_more` is built on it, in rooms of the same names.
"""
'''
ABSENT = "__all__ = public(globals())\n__getattr__ = absent(__name__)  # says where there is more"
# What a level also offers of `levels.support`: the names that its exported cells import from these files.
HANDED_ON = {"01_hardware": "levels.support.elementary"}
OF_FRONTS = {Import("levels.support.fronts", name, "") for name in ("absent", "public")}


class File(NamedTuple):
    """A file of a level: its text, and for each line the number of the cell that it comes from (0: generated)."""

    text: str
    cells: list[int]


def export(notebook, name: str) -> dict[str, File]:
    """Return the files of the level that the notebook `name` builds: {"__init__.py": File, "tensors.py": File, …}.

    Raises BuildError, with the cell and the name, if a name is undefined, defined twice, rebound, or used from a room
    that starts later, and if a cell contains a statement that is not valid in a module.
    """
    cells = [read(cell.source, name, n) for n, cell in enumerate(notebook.cells, 1) if cell.cell_type == "code"]
    exported = [cell for cell in cells if cell.room]
    if not exported:
        raise BuildError(f"{name}.ipynb: no cell begins with `#| export ROOM`, so there is nothing to build")
    namespace = Namespace(cells)
    needs = {cell.room: set() for cell in exported}
    for cell in exported:
        if cell.room in namespace.public or keyword.iskeyword(cell.room) or cell.room.startswith("__"):
            raise cell.error(f"no room can be called {cell.room}: that name has a meaning, and would hide the room")
        for statement in cell.body:
            if not is_import(statement):
                needs[cell.room] |= namespace.imports_for(statement, cell)
    note = f"# Built from {name}.ipynb: edit there, then run its last cell."
    homes = {n: f".{namespace.homes[n].room}" for n in namespace.public} | handed_on(namespace, name)
    files = {"__init__.py": front(notebook, note, homes)}
    for room in needs:
        files[f"{room}.py"] = module([cell for cell in exported if cell.room == room], note, needs[room])
    return files


# Writing files, formatted so that `ruff format` and `ruff check --select I` find nothing to change.


def module(cells: list[Cell], note: str, needs: set[Import]) -> File:
    """Return one room: its docstring, the note, its imports, then the rest of its cells, unchanged."""
    text = []
    blocks = []
    for cell in cells:
        lines = [(line, cell.number) for line in cell.source.split("\n")]
        moved = {1}
        for statement in cell.body:
            span = range(statement.lineno, statement.end_lineno + 1)
            if is_text(statement) and cell is not cells[0]:
                raise cell.error("only the first cell of a room may begin with a docstring; make this one a comment")
            if is_text(statement):
                text = [*(lines[n - 1] for n in span), ("", 0)]
            if is_import(statement) or is_text(statement):
                moved |= set(span)
        blocks.append([])
        for n, line in enumerate(lines, 1):
            if n in moved:
                blocks.append([])
            elif line[0].strip() or blocks[-1]:
                blocks[-1].append(line)
    text += [(line, 0) for line in [note, *import_lines(needs, bracket)]]
    gap = 1
    for block in filter(None, blocks):
        while not block[-1][0].strip():
            block.pop()
        code = next((line for line, _ in block if line[:1].strip("# ")), "")
        # two blank lines around a definition, but only one between the imports and other code
        text += [("", 0)] * max(gap, 2 if re.match(r"@|(def|class|async)\b", code) else 1) + block
        gap = 2
    return File("".join(f"{line}\n" for line, _ in text), [number for _, number in text])


def handed_on(namespace: Namespace, name: str) -> dict[str, str]:
    """Return {name: file of `levels.support`} for the names that the level of this notebook hands on."""
    imports = [entry for entries in namespace.imports.values() for entry, cell in entries.items() if cell.room]
    return {entry.name: entry.module for entry in imports if entry.module == HANDED_ON.get(name)}


def front(notebook, note: str, public: dict[str, str]) -> File:
    """Return the level's `__init__.py`, which imports the public names of all rooms, and of support what it hands on.

    public: {name: module that defines it}. Its docstring is the notebook's title, the first line of its first cell.
    """
    prose = "".join([cell.source.strip() for cell in notebook.cells if cell.cell_type == "markdown"][:1])
    doc = re.sub(r"^#+\s*|[*`\\\"]", "", prose.split("\n")[0]).strip() or "A level"
    needs = {Import(module, name, "") for name, module in public.items()} | OF_FRONTS
    lines = [f'"""{doc}"""' if doc[-1] in ".!?" else f'"""{doc}."""', "", note]
    lines += [*import_lines(needs, paragraph), "", ABSENT]
    return File("".join(f"{line}\n" for line in lines), [0] * len(lines))


def import_lines(needs: set[Import], laid_out) -> list[str]:
    """Return import statements in ruff's order, a blank line before each section: Python, libraries, levels, rooms.

    `laid_out`: `bracket` or `paragraph`, which wraps long statements.
    """
    statements = set()
    merged = {}
    for module, name, alias in needs:
        section = 3 if module.startswith(".") else section_of((module or name).split(".")[0])
        tail = f" as {alias}" if alias else ""
        if not module:
            statements.add((section, 0, natural(name), (), (f"import {name}{tail}",)))
        elif alias:
            statements.add((section, 1, natural(module), (member(name), True), (f"from {module} import {name}{tail}",)))
        else:
            merged.setdefault((section, module), []).append(name)
    for (section, module), names in merged.items():
        names.sort(key=member)
        lines = laid_out(f"from {module} import ", names)
        statements.add((section, 1, natural(module), (member(names[0]), False), tuple(lines)))
    lines = []
    last = None
    for section, _, _, _, statement in sorted(statements):
        lines += [""] * (section != last) + list(statement)
        last = section
    return lines


def section_of(library: str) -> int:
    return 2 if library == "levels" else 0 if library in sys.stdlib_module_names else 1


def bracket(start: str, items: list[str]) -> list[str]:
    """Return `start` and the items on one line if they fit, otherwise one item per line."""
    line = start + ", ".join(items)
    return [line] if len(line) <= WIDTH else [start + "(", *(f"    {item}," for item in items), ")"]


def paragraph(start: str, items: list[str]) -> list[str]:
    """Return `start` and the items on one line if they fit, otherwise wrapped like a paragraph."""
    lines = textwrap.wrap(", ".join(items), WIDTH - 5, break_long_words=False, break_on_hyphens=False)
    line = start + ", ".join(items)
    return [line] if len(line) <= WIDTH else [start + "(", *(f"    {line}" for line in lines), ")"]


def natural(name: str) -> tuple:
    """Return a sort key that puts float8 before float16, and ignores case except for ties."""
    return tuple((48, int(p)) if p.isdigit() else (ord(p), 0) for p in re.findall(r"\d+|\D", name.lower())), name


def member(name: str) -> tuple:
    """Return a sort key that puts constants before classes, and classes before functions."""
    return 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2, natural(name)
