"""The parts of a stage of the walk: numbers and lines of code."""

import html
from typing import NamedTuple

from course.reader.inspection.source_index import cell_of
from course.reader.language import later, say
from course.reader.notebooks.running import WATCHED

FORWARD = "x", "w", "b", "x·w", "sum", "output", "prediction", "target", "error", "share", "loss"
BACK = "slope", "before", "x·slope", "after", "gradient", "rate", "change", "new w"
MEANS = {
    "x": later("x, the input"),
    "w": later("w, the weight"),
    "b": later("b, the bias"),
    "x·w": later("x · w"),
    "sum": later("sum of the products"),
    "output": later("output of the unit, with b"),
    "prediction": later("prediction"),
    "target": later("target"),
    "error": later("error"),
    "share": later("loss of the row"),
    "loss": later("loss of the batch"),
    "slope": later("slope at the sum of the products"),
    "x·slope": later("x · slope, the row's part"),
    "gradient": later("gradient, of all rows"),
    "rate": later("learning rate"),
    "change": later("rate · gradient"),
    "new w": later("w, the new weight"),
    "before": later("sum before this turn"),
    "after": later("sum after this turn"),
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
    """A stage of the walk. Its mark is its level, with a letter where a level has several stages: "3a"."""

    mark: str
    name: str
    told: str
    codes: list
    numbers: list
    way: str = ""  # whether the stage runs op by op or compiled; the two ways part after stage 3a

    @property
    def level(self):
        return int(self.mark[0])

    @property
    def head(self):
        return f"{self.mark} · {self.name}"

    def value(self, quantity):
        return next(number.value for number in self.numbers if number.quantity == quantity)


def link(place):
    """A link to the cell that defines this. Its address is relative to the running notebook."""
    words = say("{name}, written in {notebook}", name=place.name, notebook=place.notebook)
    up = "../" * sum(name.count("/") for name in WATCHED)
    return f'<a href="{up}{place.notebook}.ipynb#cell-id={cell_of(place)}">{html.escape(words)}</a>'


def short(number):
    return f"{number:,}" if isinstance(number, int) else f"{number:.6g}"


def excerpt(lines, marked):
    """(the marked lines and one line on each side of them, the new indices of the marked ones), for flat text."""
    near = {k for at in marked for k in range(at - 1, at + 2)} & {*range(len(lines))}
    return chosen([line.strip() for line in lines], near, marked, ends=False)


def path(lines, marked):
    """(the marked lines of a function, its head and those of the blocks around them, the new indices of the marked)."""
    depths = [len(line) - len(line.lstrip()) for line in lines]
    near = {0, *marked}
    for at in marked:
        depth = depths[at]
        for k in range(at, 0, -1):
            if depths[k] < depth:
                depth = depths[k]
                near.add(k)
    near |= {k for k in range(len(lines)) if {k - 1, k + 1} <= near | {len(lines)}}  # a gap of one line is no gap
    return chosen(lines, near, marked)


def chosen(lines, near, marked, ends=True):
    """(the lines `near`, the new indices of the marked ones). "…" fills each gap and, with `ends`, is for the end."""
    shown = []
    marks = set()
    last = min(near) - 1
    for k in [*sorted(near), *[len(lines)] * ends]:
        if k > last + 1:
            gap = lines[last + 1]
            shown.append(" " * (len(gap) - len(gap.lstrip())) + "…")
        if k in marked:
            marks.add(len(shown))
        shown += lines[k : k + 1]
        last = k
    return shown, marks
