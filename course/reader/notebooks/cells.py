"""The code cells of a notebook, parsed for the exporter and the blanks. Errors in them are raised as BuildError."""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from course.reader.notebooks import blanks

KEY = r"[A-Za-z_]\w*(?:\.\w+)?"  # a function's name, or Class.method
# The room, and the key of a function that the reader writes: always (`blank`), or only at the depth `most`.
MARKER = re.compile(rf"#\|\s*export\s+(\w+)(?:\s+blank\s+({KEY})|\s+most\s+({KEY}))?\s*")
OF_THE_CORE = re.compile(rf"#\|\s*blank\s+({KEY})\s*")  # on the trail: a blank that is also in the core notebook


class BuildError(Exception):
    """An error whose message says what is wrong, where, and what to do. Notebooks show it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"BuildError: {self}"]


def blank_in(source: str) -> str:
    """Return the key of the blank in a cell, or ""."""
    first = source.split("\n")[0]
    if marker := MARKER.fullmatch(first):
        return marker[2] or ""
    marker = OF_THE_CORE.fullmatch(first)
    return marker[1] if marker else ""


def most_in(source: str) -> str:
    """Return the key of the function in a cell that becomes a blank at the depth `most`, or ""."""
    marker = MARKER.fullmatch(source.split("\n")[0])
    return marker[3] or "" if marker else ""


def read_text(path: Path) -> str:
    """Return a notebook's text. Raises BuildError if it has a merge conflict, whose markers would pass for code."""
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"(<{7}|>{7}|[|]{7})( |$)", line):
            raise BuildError(
                f"{'/'.join(path.parts[-3:])}, line {number}: holds a merge conflict: resolve it, then try again"
            )
    return text


@dataclass
class Cell:
    """A code cell, numbered from 1 among all cells of its notebook, with its top-level statements."""

    notebook: str
    number: int
    source: str
    room: str = ""
    blank: str = ""  # the key of the function that a reader may fill in
    body: list[ast.stmt] = field(default_factory=list)

    def __str__(self) -> str:
        return title(self.number, self.source)

    def error(self, message: str) -> BuildError:
        return BuildError(f"{self.notebook}.ipynb, {self}: {message}")


def title(number: int, source: str) -> str:
    """Return a cell's name for messages: its number, and its first line of code, as JupyterLab shows no numbers."""
    lines = [line.strip() for line in source.split("\n") if line.strip()] or [""]
    first = next((line for line in lines if not line.startswith("#")), lines[0])
    return f"{f'cell {number}' if number else 'a new cell'} (`{first if len(first) <= 60 else first[:57] + '...'}`)"


def read(source: str, notebook: str, number: int) -> Cell:
    """Parse a cell; without export it may be no valid Python. Raises BuildError if an export or its marker is wrong."""
    cell = Cell(notebook, number, source.replace("\r\n", "\n"))
    if marker := MARKER.fullmatch(cell.source.split("\n")[0]):
        cell.room = marker[1]
        cell.blank = marker[2] or ""
        if cell.blank:
            try:
                cell.source = blanks.in_place(cell.source, notebook, cell.blank)
            except LookupError as error:
                raise cell.error(str(error)) from None
    elif re.search(r"^#\|\s*export\b", cell.source, re.MULTILINE):
        raise cell.error(
            "`#| export ROOM` stands alone on the first line of a cell "
            "(perhaps with `blank KEY` or `most KEY` at its end)"
        )
    try:
        cell.body = ast.parse(cell.source).body
        if cell.room:  # finds errors that the parser does not, such as `return` outside a function
            compile(cell.source, str(cell), "exec", dont_inherit=True)
    except SyntaxError as error:
        if cell.room:
            what = f"line {error.lineno}: {error.msg}. An exported cell holds plain Python (no % or ! commands)"
            raise cell.error(what) from None
        try:  # its imports count, even if it has IPython commands between them
            cell.body = ast.parse(re.sub(r"^(\s*)[%!].*", r"\1pass", cell.source, flags=re.MULTILINE)).body
        except SyntaxError:
            return cell
    if cell.room:
        for position, statement in enumerate(cell.body):
            fit_for_module(statement, cell, position)
    return cell


def fit_for_module(statement: ast.stmt, cell: Cell, position: int) -> None:
    """Raise BuildError for a statement that is valid in a notebook but not in a module."""
    line = f"line {statement.lineno}"
    if position and cell.body[position - 1].end_lineno == statement.lineno:
        raise cell.error(f"{line}: two statements on one line; write one a line")
    member = statement if isinstance(statement, ast.ImportFrom) else None
    if member and (member.level or member.module == "__future__" or member.names[0].name == "*"):
        raise cell.error(f"{line}: import libraries and lower levels, name by name (rooms are found by themselves)")
    if isinstance(statement, ast.Expr) and not (position == 0 and is_text(statement)):
        called = getattr(getattr(statement.value, "func", None), "id", "")  # other calls may register something
        if not isinstance(statement.value, ast.Call) or called in ("print", "display"):
            raise cell.error(f"{line} only shows something: move it to a cell that is not exported")


def first_line(statement: ast.stmt) -> int:
    """Return the number of a statement's first line. A decorator belongs to its function."""
    return min(part.lineno for part in (statement, *getattr(statement, "decorator_list", ())))


def is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def code_of(text: str) -> dict[int, str]:
    """Return {line number: line} of the lines of code in a file, without blank lines, comments and docstrings."""
    texts = [node for node in ast.walk(ast.parse(text)) if is_text(node)]
    prose = {line for node in texts for line in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(text.split("\n"), 1)
    return {n: line for n, line in lines if n not in prose and line.strip()[:1] not in ("", "#")}


def code_lines(text: str) -> int:
    return len(code_of(text))


CALL = "build.so_far("  # what the cell at the end of a sitting begins with


def halves(cells: list, name: str) -> tuple[list, list]:
    """Return the cells above and below the one that builds at the end of a sitting."""
    for number, cell in enumerate(cells):
        if cell.cell_type == "code" and CALL in cell.source:
            return cells[:number], cells[number + 1 :]
    raise BuildError(f"{name}.ipynb: no cell calls `{CALL}…)`: save the notebook (Ctrl+S), then run this cell again")
