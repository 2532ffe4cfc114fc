"""Blanks: functions that a reader writes, and the course's own, which stand in for them until they are right.

A cell `#| export ROOM blank KEY` holds one whole function called KEY, whose body is `...`. The course's own is kept as
text in `solutions/blanks/LEVEL.py`. A cell `#| export ROOM most KEY` of the course's notebook holds the course's own
itself. At the depth *most* it is a blank on the reader's desk, too (`course.setup.depth`), and KEY may be
`Class.method`. `in_place` says which of the two counts: the exporter asks it, and so does the kernel, right after the
cell ran (`course.practice.exercises.blanks`, which tries what the reader wrote). Only what is right, with the record's
bits, is noted here, by its content: another text, or another course, and it has to be tried again.
"""

import ast
import contextlib
import functools
import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "notebooks" / "text"
SOLUTIONS = ROOT / "solutions" / "blanks"
NOTED = ROOT / ".course" / "blanks"  # an empty file for each function that is right, called by its stamp


class Unfit(Exception):
    """A cell does not hold the one function that it should; the text is for the reader."""


def function_of(source: str, key: str, beside: tuple[str, ...] = ()) -> ast.FunctionDef:
    """The function, or the method, that a cell holds.

    beside: what else the cell holds, as `names_in` names it; its own class or function may stand among it or not.
    Raises Unfit where the cell holds no function of this name, or something else beside it.
    """
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise Unfit(f"line {error.lineno} of its cell is no Python yet ({error.msg})") from None
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
    """Whether it is a class where a method is asked for, and else a plain function."""
    return isinstance(statement, ast.ClassDef if method else ast.FunctionDef) and not statement.decorator_list


def names_in(body: list[ast.stmt]) -> tuple[str, ...]:
    """The statements of a cell: a function or a class by its name, any other as it stands."""
    return tuple(getattr(statement, "name", None) or ast.unparse(statement) for statement in body)


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


# The course's own.


def solution(notebook: str, key: str) -> str:
    """The course's own function, or method, as text. Raises LookupError where there is none."""
    path = SOLUTIONS / f"{notebook.split('_', 1)[1]}.py"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for statement in ast.parse(text).body:
        if getattr(statement, "name", None) == key:
            return lines_of(text, statement)
    if cell := course_cell(notebook, key):
        return lines_of(cell, function_of(cell, key, names_in(ast.parse(cell).body)))
    raise LookupError(f"no function called {key} stands in solutions/blanks/{path.name}: it fills the blank {key}")


def course_cell(notebook: str, key: str) -> str:
    """The cell of the course's notebook that holds this function whole, and is a blank at the depth *most*; or ""."""
    path = TEXTS / f"{notebook}.py"
    return cells_marked(path.read_text(encoding="utf-8")).get(key, "") if path.exists() else ""


@functools.cache
def cells_marked(text: str) -> dict[str, str]:
    """{key: the cell} of a notebook's text, of those functions that are blanks at the depth *most*."""
    cells = (cell.strip() for cell in re.split(r"^# %%.*$", text, flags=re.MULTILINE))
    found = ((re.match(r"#\| export \w+ most (\S+)", cell), cell) for cell in cells)
    return {marker[1]: cell for marker, cell in found if marker}


def lines_of(text: str, statement: ast.stmt) -> str:
    return "\n".join(text.split("\n")[statement.lineno - 1 : statement.end_lineno])


def beside(notebook: str, key: str) -> tuple[str, ...]:
    """What the course's cell holds, besides the function or among it: `names_in` it."""
    return names_in(ast.parse(course_cell(notebook, key)).body)


def written(source: str, notebook: str, key: str) -> ast.FunctionDef:
    """The function that a reader's cell holds. Raises Unfit as `function_of` does."""
    return function_of(source, key, beside(notebook, key))


def filled(source: str, notebook: str, key: str) -> str:
    """The cell of a blank with the course's own function in it."""
    own = solution(notebook, key)
    try:
        function = written(source, notebook, key)
    except Unfit:  # whatever stands there: the course's cell takes its place
        return source.split("\n")[0] + "\n" + (course_cell(notebook, key).partition("\n")[2] or own)
    lines = source.split("\n")
    return "\n".join([*lines[: function.lineno - 1], own, *lines[function.end_lineno :]])


def made(source: str, key: str, names: dict, file: str = "<course>"):
    """The function of a cell, made anew among these names, and all that the cell defines: {name: value}."""
    found = {}
    exec(compile(source, file, "exec"), names, found)
    top, _, method = key.partition(".")
    return getattr(found[top], method) if method else found[top], found


# Which of the two counts.


def in_place(source: str, notebook: str, key: str) -> str:
    """The cell of a blank as it counts: the reader's where that is right with the record's bits, else the course's."""
    return source if is_right(source, notebook, key) else filled(source, notebook, key)


def stamp(source: str, notebook: str, key: str) -> str:
    parts = ast.dump(written(source, notebook, key)), solution(notebook, key)
    return f"{notebook[:2]}-{key}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def is_right(source: str, notebook: str, key: str) -> bool:
    """Whether what the reader wrote was tried, and found to be right with the record's bits."""
    try:
        stub = is_stub(written(source, notebook, key))
        return not stub and (NOTED / stamp(source, notebook, key)).exists()
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
