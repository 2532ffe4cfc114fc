"""How far the reader is in a notebook: a section is done when its questions are answered and its blanks are tried.

`course resume` and `course progress` both say it. Sections that are optional do not count, nor those that ask nothing.
"""

import ast
import contextlib
import re
from pathlib import Path

from course.reader import progress
from course.reader.language import say
from course.reader.notebooks import blanks
from course.reader.notebooks.cells import blank_in
from course.reader.notebooks.minutes import HEADING, UNTIMED
from course.reader.notebooks.names import MINE, core_of
from course.reader.notebooks.stored import read_notebook


def asking(cells: list) -> dict[int, str]:
    """Return {number of a cell with a question or a blank: the title of its section}, for all sections that count."""
    title = ""
    counts = False
    found = {}
    for number, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            for line in re.findall(r"^## .+$", cell.source, re.MULTILINE):
                title, _, optional = HEADING.fullmatch(line).groups()
                counts = not optional and not UNTIMED.fullmatch(title)
        elif counts and (blank_in(cell.source) or "checks.predict(" in cell.source):
            found[number] = title
    return found


def still_open(cells: list, name: str) -> dict[int, str]:
    """Return those of the asking cells of a notebook that the reader has not answered or tried."""
    noted = progress.load()
    return {number: title for number, title in asking(cells).items() if not tried(cells[number].source, name, noted)}


def tried(source: str, name: str, noted: dict) -> bool:
    """Whether the reader has committed an answer to each question in a cell, or has written something in its blank."""
    if key := blank_in(source):
        return f"{core_of(name)[:2]}-{key}" in noted["exercises"] or not is_empty(source, key)
    with contextlib.suppress(SyntaxError):  # in a cell that the reader has changed
        return all(key in noted["predictions"] for key in progress.keys_in(source, "checks.predict"))
    return True


def is_empty(source: str, key: str) -> bool:
    """Whether a blank is as the course left it."""
    try:
        beside = blanks.names_in(ast.parse(source).body)
        return blanks.is_stub(blanks.function_of(source, key, beside))
    except (SyntaxError, blanks.Unfit):
        return False


def told(root: Path, name: str) -> str:
    """Return how many sections of a notebook on the desk are done, and which one is the first that is not."""
    cells = read_notebook(root, name, MINE).cells
    every = dict.fromkeys(asking(cells).values())
    waiting = dict.fromkeys(still_open(cells, name).values())
    if not every:
        return ""
    counts = {"done": len(every) - len(waiting), "count": len(every)}
    done = say("{done} of its {count} sections with a question or a blank are done.", **counts)
    return done + (say(" The first open one is “{title}”.", title=next(iter(waiting))) if waiting else "")
