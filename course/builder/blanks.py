"""Blanks: functions that a reader writes, and the course's own, which stand in for them until they are right.

A cell `#| export ROOM blank KEY` holds one whole function called KEY, whose body is `...`. The course's own is kept as
text in `solutions/blanks/LEVEL.py`. `in_place` says which of the two counts: the exporter asks it, and so does the
kernel, right after the cell ran (`course.practice.exercises.blanks`, which tries what the reader wrote). Only what is
right, with the record's bits, is noted here, by its content: another text, or another course, and it has to be tried
again.
"""

import ast
import contextlib
import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "solutions" / "blanks"
NOTED = ROOT / ".course" / "blanks"  # an empty file for each function that is right, called by its stamp


class Unfit(Exception):
    """A cell does not hold the one function that it should; the text is for the reader."""


def function_of(source: str, key: str) -> ast.FunctionDef:
    """The function that a cell holds. Raises Unfit where it is not one function of this name, and nothing else."""
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise Unfit(f"line {error.lineno} of its cell is no Python yet ({error.msg})") from None
    names = [getattr(statement, "name", None) for statement in body]
    if names != [key] or not isinstance(body[0], ast.FunctionDef) or body[0].decorator_list:
        held = ", ".join(f"`{ast.unparse(each).splitlines()[0]}`" for each in body) or "nothing"
        raise Unfit(f"its cell must hold one function called `{key}` and nothing beside it, and holds {held}")
    return body[0]


def is_stub(function: ast.FunctionDef) -> bool:
    """Whether nothing is filled in: it ends in `...`, or in its docstring."""
    rest = function.body[ast.get_docstring(function) is not None :]
    return not rest or ast.unparse(rest[-1]) in ("...", "return ...", "pass")


def signature(function: ast.FunctionDef) -> str:
    """How it is called: names and defaults, whatever the annotations."""
    arguments = ast.parse(ast.unparse(function)).body[0].args
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return f"{function.name}({ast.unparse(arguments)})"


def solution(notebook: str, key: str) -> str:
    """The course's own function, as text. Raises LookupError where there is none."""
    path = SOLUTIONS / f"{notebook.split('_', 1)[1]}.py"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for statement in ast.parse(text).body:
        if getattr(statement, "name", None) == key:
            return "\n".join(text.split("\n")[statement.lineno - 1 : statement.end_lineno])
    raise LookupError(f"no function called {key} stands in solutions/blanks/{path.name}: it fills the blank {key}")


def filled(source: str, notebook: str, key: str) -> str:
    """The cell of a blank with the course's own function in it."""
    return source.split("\n")[0] + "\n" + solution(notebook, key)


def in_place(source: str, notebook: str, key: str) -> str:
    """The cell of a blank as it counts: the reader's where that is right with the record's bits, else the course's."""
    return source if is_right(source, notebook, key) else filled(source, notebook, key)


def stamp(source: str, notebook: str, key: str) -> str:
    parts = ast.dump(function_of(source, key)), solution(notebook, key)
    return f"{notebook[:2]}-{key}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def is_right(source: str, notebook: str, key: str) -> bool:
    """Whether what the reader wrote was tried, and found to be right with the record's bits."""
    try:
        return not is_stub(function_of(source, key)) and (NOTED / stamp(source, notebook, key)).exists()
    except Unfit:
        return False


def note(source: str, notebook: str, key: str, right: bool) -> None:
    """Keep what a trial found of a cell. Raises Unfit as `function_of` does."""
    path = NOTED / stamp(source, notebook, key)
    with contextlib.suppress(OSError):  # a full or read-only disk: the course's own goes on
        if right:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            path.unlink(missing_ok=True)
