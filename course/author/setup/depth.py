"""How much a reader writes: at the depth *some*, the blanks of the notebooks; at *most*, 42 functions. For a class,
the solutions beneath them can be hidden.

In the course's notebooks, each of those functions is complete, in a cell `#| export ROOM most KEY`. On the desk, at the
depth *most*, that cell becomes a blank, followed by two hints and the solution. They are generated here, from the cell
and from the table KEY in `solutions/at_most/LEVEL.toml`:

    hints = ["…", "…"]    two hints; `code` is written between backticks
    contract = "…"        text to append to the function's docstring in the stub: shapes, dtypes, what is raised
    stub = "…"            the comment after `...` in the stub (default: the number of lines of a solution)
    given = 1             the number of statements after the docstring that the stub keeps (default: 0)
"""

import ast
import html
import re
import textwrap
import tomllib
from pathlib import Path

from course.reader.files import replace
from course.reader.language import CATALOGS
from course.reader.notebooks import blanks
from course.reader.notebooks.cells import BuildError, code_lines, most_in
from course.reader.notebooks.names import DESK, MINE, depth_in, desk_words, level_of, names_in
from course.reader.notebooks.stored import hash_of
from course.terminal.arguments import DEPTHS, LANGUAGES

HINTS = Path("solutions") / "at_most"
STUB = {"contract", "given", "stub"}
DETAILS = "<details><summary>{title}</summary>{text}</details>"
SOLUTION = re.compile(r"<details><summary>(?:Solution|解答)</summary>.*?</details>\n?", re.DOTALL)


def choose(root: Path, depth: str = "", hidden: bool | None = None, language: str = "") -> None:
    """Store how much the reader writes, whether solutions are hidden, and the language: "en" or one of CATALOGS.

    Values that are not given stay unchanged. Raises BuildError if there is no such depth or language.
    """
    words = desk_words(root)
    if depth:
        if depth not in DEPTHS:
            raise BuildError(f"there is no depth {depth!r}: there are {' and '.join(DEPTHS)}")
        words = (words - {*DEPTHS}) | {depth}
    if hidden is not None:
        words = (words - {"class"}) | ({"class"} if hidden else set())
    if language:
        if language not in LANGUAGES:
            raise BuildError(f"there is no language {language!r}: there are {' and '.join(LANGUAGES)}")
        words = (words - {*LANGUAGES}) | ({language} & {*CATALOGS})
    if words != desk_words(root):
        replace(root, {root / MINE / DESK: " ".join(sorted(words)) + "\n"})


def on_the_desk(root: Path, name: str, cells: list) -> list:
    """Return the cells of a notebook for the desk: with the blanks of its depth, and with or without solutions."""
    if depth_in(root) == "most":
        cells = open_blanks(root, name, cells)
    if "class" in desk_words(root):
        for cell in cells:
            if cell.cell_type == "markdown":
                cell.source = SOLUTION.sub("", cell.source).rstrip()
    return cells


def decided_by(root: Path, name: str) -> str:
    """Return what decides a notebook's cells on the desk besides its text: the depth, the hints, hidden solutions."""
    beside = "most" + hints_text(root, name) if depth_in(root) == "most" else ""
    return beside + "class" * ("class" in desk_words(root))


def hints_text(root: Path, name: str) -> str:
    """Return the TOML text with the hints for a notebook's blanks at the depth *most*, or "" if there is none."""
    path = root / HINTS / f"{level_of(name)}.toml"
    return path.read_text(encoding="utf-8") if name in names_in(root) and path.exists() else ""


def open_blanks(root: Path, name: str, cells: list) -> list:
    """Return the cells of a notebook at the depth *most*: a stub in place of each function, followed by its hints.

    Raises BuildError if the TOML file has no entry for one of the functions.
    """
    said = tomllib.loads(hints_text(root, name))
    made = []
    for cell in cells:
        key = most_in(cell.source) if cell.cell_type == "code" else ""
        if key and key not in said:
            raise BuildError(f"{HINTS.as_posix()}/{level_of(name)}.toml says nothing of {key}: it needs two hints")
        made.append(cell)
        if key:
            cell.metadata = {}  # it is shown, even if the course's cell is collapsed
            made.append(hints(cell.source, key, said[key]["hints"]))
            cell.source = stub(cell.source, key, **{k: said[key][k] for k in STUB & said[key].keys()})
    return made


def stub(source: str, key: str, contract: str = "", given: int = 0, stub: str = "") -> str:
    """Return the cell of a function as a blank: its signature, its docstring, the given statements, and `...`."""
    function = blanks.function_of(source, key, blanks.names_in(ast.parse(source).body))
    lines = source.split("\n")
    indent = " " * function.body[0].col_offset
    said = ast.get_docstring(function)
    first = function.body[0].lineno - 1  # index of the first line of the body, including its docstring
    begin = function.body[0].end_lineno if said else first
    head = [*lines[first:begin]]
    if contract:
        head = textwrap.indent(docstring(said, contract), indent).split("\n")
    body = function.body[said is not None :]
    end = body[given - 1].end_lineno if given else begin
    if not stub:
        count = code_lines(textwrap.dedent("\n".join(lines[end : function.end_lineno])))
        stub = f"about {count} lines" if count > 1 else "1 line"
    marker = re.sub(r"\bmost\b", "blank", lines[0])
    kept = [marker, *lines[1:first], *head, *lines[begin:end]]
    return "\n".join([*kept, f"{indent}...  # {stub}", *lines[function.end_lineno :]])


def docstring(said: str | None, contract: str) -> str:
    """Return a docstring, in quotes, with the text of the function's own and its contract."""
    paragraphs = contract.strip().split("\n\n")
    wrapped = [textwrap.fill(each, 110, break_long_words=False) if "\n" not in each else each for each in paragraphs]
    text = "\n\n".join(filter(None, [said, *wrapped]))
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def hints(source: str, key: str, texts: list[str]):
    """Return the Markdown cell beneath a blank: two hints and the solution, each collapsed."""
    import nbformat

    function = blanks.function_of(source, key, blanks.names_in(ast.parse(source).body))
    own = textwrap.dedent("\n".join(source.split("\n")[function.lineno - 1 : function.end_lineno]))
    first, second = (re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False)) for text in texts)
    folded = {"Hint": first, "Second hint": second, "Solution": f"\n\n```python\n{own}\n```\n"}
    text = "\n".join(DETAILS.format(title=title, text=text) for title, text in folded.items())
    cell = nbformat.v4.new_markdown_cell(text)
    cell.id = hash_of("hints", key)[:8]
    return cell
