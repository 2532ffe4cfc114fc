"""The parts of a stage of the walk: numbers and lines of code."""

import html
from typing import NamedTuple

from course.inspection.source_index import cell_of

FORWARD = "x", "w", "b", "x·w", "sum", "output", "prediction", "target", "error", "share", "loss"
BACK = "slope", "before", "x·slope", "after", "gradient", "rate", "change", "new w"
MEANS = {
    "x": "x, the input",
    "w": "w, the weight",
    "b": "b, the bias",
    "x·w": "x · w",
    "sum": "sum of the products",
    "output": "output of the unit, with b",
    "prediction": "prediction",
    "target": "target",
    "error": "error",
    "share": "loss of the row",
    "loss": "loss of the batch",
    "slope": "slope at the sum of the products",
    "x·slope": "x · slope, the row's part",
    "gradient": "gradient, of all rows",
    "rate": "learning rate",
    "change": "rate · gradient",
    "new w": "w, the new weight",
    "before": "sum before this turn",
    "after": "sum after this turn",
}


class Number(NamedTuple):
    """A number of the walk at one stage: the quantity, its expression at that stage, and its value."""

    quantity: str
    here: str
    value: float
    words: bool = False  # True if `here` is prose instead of code


class Code(NamedTuple):
    """Lines of code, the indices of the marked ones, and a link to the cell that defines them."""

    title: str
    lines: list
    marked: set
    link: str = ""


class Stage(NamedTuple):
    """A stage of the walk."""

    level: int
    name: str
    told: str
    codes: list
    numbers: list
    way: str = ""  # whether the stage runs op by op or compiled; the two ways part after stage 4

    def value(self, quantity):
        return next(number.value for number in self.numbers if number.quantity == quantity)


def link(place):
    """A link to the cell that defines this. Its address is relative to the running notebook."""
    words = f"{place.name}, written in {place.notebook}"
    return f'<a href="{place.notebook}.ipynb#cell-id={cell_of(place)}">{html.escape(words)}</a>'


def short(number):
    return f"{number:,}" if isinstance(number, int) else f"{number:.6g}"


def excerpt(lines, marked, around=1):
    """(the marked lines with `around` lines on each side, the new indices of the marked ones). "…" fills each gap."""
    shown = []
    marks = set()
    near = sorted({k for at in marked for k in range(at - around, at + around + 1)} & {*range(len(lines))})
    for n, k in enumerate(near):
        if n and k != near[n - 1] + 1:
            shown.append("…")
        if k in marked:
            marks.add(len(shown))
        shown.append(lines[k].strip())
    return shown, marks
