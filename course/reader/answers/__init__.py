"""The answers to the predictions, and their reasons, by key. They stand here so that no question's cell shows them.

The file of a notebook has its name, such as `more/01_gpu.toml`. It holds a table for each question that the notebook
asks, and the table's name is the question's key:

    answer = "…"     one of the choices, or a number; `[low, high]` if readers measure it on their own machines
    because = "…"    the reason: `code`, **bold** and paragraphs
    unit = "…"       shown after numbers (default: none)

`checks.predict(KEY, …)` asks the question. `checks.answer_to(KEY)`, after the result, shows its table.
"""

import difflib
from pathlib import Path
from typing import NamedTuple

from course.reader.notebooks.answers import kept

FOLDER = Path(__file__).resolve().parent


class Answer(NamedTuple):
    """What is right, a text, a number or a range (low, high); why; and the unit of the numbers."""

    right: object
    because: str
    unit: str = ""


def of(key: str) -> Answer:
    """Return the answer to the question with this key. Raises ValueError, with the nearest keys, if there is none."""
    tables = kept(FOLDER)
    if key not in tables:
        near = difflib.get_close_matches(str(key), tables, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the answers stand in {FOLDER}"
        raise ValueError(f"no question has the key {key!r}: {hint}")
    found = tables[key]
    right = tuple(found["answer"]) if isinstance(found["answer"], list) else found["answer"]
    return Answer(right, found["because"], found.get("unit", ""))
