"""Blanks: functions that a reader writes. The course's own functions replace them until they are right.

A cell `#| export ROOM blank KEY` contains one function called KEY, whose body is `...`. The course's own function is in
`solutions/blanks/LEVEL.py`. In the course's notebooks, a cell `#| export ROOM most KEY` contains the course's own
function. At the depth *most*, it too is a blank on the reader's desk (`course.author.setup.depth`), and KEY may be
`Class.method`. `in_place` chooses between the two functions, for the exporter and, right after the cell ran, for the
kernel (`course.reader.exercises.blanks`, which tests the reader's function). Only a function that is right, with
bits equal to those of record, is noted, by a hash of it and of the course's own: if either changes, it is tested again.
"""

import ast
import contextlib
import functools
import hashlib
import re
from pathlib import Path

from course.reader.language import say

ROOT = Path(__file__).resolve().parents[3]
TEXTS = ROOT / "notebooks" / "text"
SOLUTIONS = ROOT / "solutions" / "blanks"
NOTED = ROOT / ".course" / "blanks"  # an empty file for each function that is right, named by its stamp


class Unfit(Exception):
    """Raised if a cell does not contain the one function that it should. The message is for the reader."""


def function_of(source: str, key: str, beside: tuple[str, ...] = ()) -> ast.FunctionDef:
    """Return the function, or the method, called `key` in a cell.

    beside: the cell's other statements, as `names_in` returns them, with or without the function or class itself.
    Raises Unfit if the cell is not valid Python, has no such function, or has other statements beside it.
    """
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        told = say("line {line} of its cell is no Python yet ({what})", line=error.lineno, what=error.msg)
        raise Unfit(told) from None
    top, _, method = key.partition(".")
    names = names_in(body)
    found = next((each for each in body if getattr(each, "name", None) == top), None)
    others = [name for name in names if name != top]
    if others != [name for name in beside if name != top] or names.count(top) != 1 or not is_kind(found, method):
        held = ", ".join(f"`{ast.unparse(each).splitlines()[0]}`" for each in body) or "nothing"
        kind = "class" if method else "function"
        alone = f"`{'`, `'.join(others)}`" if (others := [name for name in beside if name != top]) else "nothing"
        raise Unfit(f"its cell must hold one {kind} called `{top}` and {alone} beside it, and holds {held}")
    if not method:
        return found
    methods = [each for each in found.body if getattr(each, "name", None) == method]
    if len(methods) != 1 or not is_kind(methods[0], ""):
        raise Unfit(f"the class `{top}` in its cell must have one method called `{method}`")
    return methods[0]


def is_kind(statement: ast.stmt | None, method: str) -> bool:
    """Return whether it is a class if `method` is given, otherwise a function, in both cases without decorators."""
    return isinstance(statement, ast.ClassDef if method else ast.FunctionDef) and not statement.decorator_list


def names_in(body: list[ast.stmt]) -> tuple[str, ...]:
    """Return the statements of a cell: the name of a function or class, the source of any other statement."""
    return tuple(getattr(statement, "name", None) or ast.unparse(statement) for statement in body)


def is_stub(function: ast.FunctionDef) -> bool:
    """Return whether the function is not filled in: it ends in `...` or `pass`, or has only a docstring."""
    rest = function.body[ast.get_docstring(function) is not None :]
    return not rest or ast.unparse(rest[-1]) in ("...", "return ...", "pass")


def signature(function: ast.FunctionDef) -> str:
    """Return the function's signature, with names and defaults, but without annotations."""
    arguments = ast.parse(ast.unparse(function)).body[0].args
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return f"{function.name}({ast.unparse(arguments)})"


# The course's own functions.


def solution(notebook: str, key: str) -> str:
    """Return the source of the course's own function or method. Raises LookupError if there is none."""
    path = SOLUTIONS / f"{notebook.split('_', 1)[1]}.py"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for statement in ast.parse(text).body:
        if getattr(statement, "name", None) == key:
            return lines_of(text, statement)
    if cell := course_cell(notebook, key):
        return lines_of(cell, function_of(cell, key, names_in(ast.parse(cell).body)))
    raise LookupError(f"no function called {key} stands in solutions/blanks/{path.name}: it fills the blank {key}")


def course_cell(notebook: str, key: str) -> str:
    """Return the course's cell with this complete function, a blank at the depth *most*, or "" if there is none."""
    path = TEXTS / f"{notebook}.py"
    return cells_marked(path.read_text(encoding="utf-8")).get(key, "") if path.exists() else ""


@functools.cache
def cells_marked(text: str) -> dict[str, str]:
    """Return {key: cell} for the functions in a notebook's text that are blanks at the depth *most*."""
    cells = (cell.strip() for cell in re.split(r"^# %%.*$", text, flags=re.MULTILINE))
    found = ((re.match(r"#\| export \w+ most (\S+)", cell), cell) for cell in cells)
    return {marker[1]: cell for marker, cell in found if marker}


def lines_of(text: str, statement: ast.stmt) -> str:
    return "\n".join(text.split("\n")[statement.lineno - 1 : statement.end_lineno])


def beside(notebook: str, key: str) -> tuple[str, ...]:
    """Return all statements of the course's cell `most KEY`, the function included, as `names_in` does."""
    return names_in(ast.parse(course_cell(notebook, key)).body)


def written(source: str, notebook: str, key: str) -> ast.FunctionDef:
    """Return the function in a reader's cell. Raises Unfit as `function_of` does."""
    return function_of(source, key, beside(notebook, key))


def filled(source: str, notebook: str, key: str) -> str:
    """Return the cell of a blank with the course's own function in it. Raises LookupError as `solution` does."""
    own = solution(notebook, key)
    try:
        function = written(source, notebook, key)
    except Unfit:  # whatever the cell contains, the course's cell replaces it
        return source.split("\n")[0] + "\n" + (course_cell(notebook, key).partition("\n")[2] or own)
    lines = source.split("\n")
    return "\n".join([*lines[: function.lineno - 1], own, *lines[function.end_lineno :]])


def made(source: str, key: str, names: dict, file: str = "<course>"):
    """Execute a cell with `names` as globals. Returns its function, and all that it defines as {name: value}."""
    found = {}
    exec(compile(source, file, "exec"), names, found)
    top, _, method = key.partition(".")
    return getattr(found[top], method) if method else found[top], found


# Choosing between the two functions.


def in_place(source: str, notebook: str, key: str) -> str:
    """Return the cell of a blank to use: the reader's if it was found right, otherwise with the course's function."""
    return source if is_right(source, notebook, key) else filled(source, notebook, key)


def stamp(source: str, notebook: str, key: str) -> str:
    parts = ast.dump(written(source, notebook, key)), solution(notebook, key)
    return f"{notebook[:2]}-{key}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def is_right(source: str, notebook: str, key: str) -> bool:
    """Return whether the reader's function was tested and found right, with bits equal to those of record."""
    try:
        stub = is_stub(written(source, notebook, key))
        return not stub and (NOTED / stamp(source, notebook, key)).exists()
    except Unfit:
        return False


def note(source: str, notebook: str, key: str, right: bool) -> None:
    """Store whether a cell was found right. Raises Unfit as `function_of` does."""
    path = NOTED / stamp(source, notebook, key)
    with contextlib.suppress(OSError):  # on a full or read-only disk, the course's function is used
        if right:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            path.unlink(missing_ok=True)
