"""A table of questions that libraries answer differently: who gives which answer, where that is decided, and `levels`.

The rows are those that `python3 -m course programs --differences` has stored. See course/reader/programs/lines.py.
"""

import html
import textwrap
from typing import NamedTuple

from course.reader.inspection.real_ones import ASKED, CELL, breaking, coded
from course.reader.programs import lines

ABOUT = {
    "slopes": "Slopes at corners",
    "losses": "Losses and activations",
    "optimizers": "Optimizers",
    "schedules": "Schedules and patience",
    "training": "Training and layers",
    "order": "NaN, order and indices",
    "dtypes": "Dtypes and whole numbers",
    "sums": "Sums and rounding",
    "compiled": "Compiled functions",
    "random": "Random numbers",
    "scores": "Scores and estimators",
}
NAMES = {
    "numpy": "NumPy",
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "keras": "Keras",
    "onnxruntime": "onnxruntime",
    "sklearn": "scikit-learn",
    lines.OURS: "levels",
}
HEADS = "the answer", "who gives it"


class Table(NamedTuple):
    """Rows of differences.toml, as a notebook shows them."""

    rows: list

    def __repr__(self):
        return "\n".join(line for row in self.rows for line in _as_text(row))

    def _repr_html_(self):
        return as_html(self.rows)


class Tables(NamedTuple):
    """Groups of rows, {what they are about: a list of Rows}. In a notebook each group can be opened."""

    groups: dict

    def __repr__(self):
        return "\n".join(f"{about}: {len(rows)} questions" for about, rows in self.groups.items())

    def _repr_html_(self):
        return "".join(
            f"<details><summary>{html.escape(about)} ({len(rows)})</summary>{as_html(rows)}</details>"
            for about, rows in self.groups.items()
        )


def table(*keys):
    """Return the Table of the rows with these keys, in this order. Raises LookupError if there is no such row."""
    known = {row.key: row for row in lines.rows()}
    if missing := [key for key in keys if key not in known]:
        raise LookupError(f"differences.toml has no row {missing[0]}; its rows are {', '.join(known)}")
    return Table([known[key] for key in keys])


def tables():
    """Return the Tables of all rows whose answers differ, by what they are about."""
    return Tables(grouped(row for row in lines.rows() if differs(row)))


def grouped(rows):
    """Return {what rows are about, in words: these rows}, in the order of ABOUT. Groups without a row are left out."""
    rows = list(rows)
    groups = {title: [row for row in rows if row.about == about] for about, title in ABOUT.items()}
    return {title: those for title, those in groups.items() if those}


def differs(row):
    """Whether two stored answers to a row differ: those of two libraries, or of two versions of one."""
    told = [answer for versions in row.answers.values() for answer in versions.values()]
    return any(not lines.agree(answer, told[0]) for answer in told)


def who(row):
    """Return {answer: the libraries that give it, with their versions, in words}, in the order of the libraries.

    The answers of `levels` have no version: they are those of this course.
    """
    found = {}
    for library, versions in row.answers.items():
        for version, answer in versions.items():
            found.setdefault(answer, {}).setdefault(library, []).append(version)
    return {answer: [_named(*each) for each in those.items()] for answer, those in found.items()}


def _named(library, versions):
    first, _, beneath = library.partition(" on ")
    if beneath:
        pairs = [version.split(" on ") for version in versions]
        return " and ".join(f"{NAMES[first]} {one} on {NAMES[beneath]} {other}" for one, other in pairs)
    return f"{NAMES[first]} {' and '.join(versions)}".strip()


def places(row):
    """Return the places where a row is decided, in words: "PyTorch: file, name"."""
    return [f"{NAMES[library.partition(' on ')[0]]}: {place}" for library, place in row.decided.items()]


def _as_text(row):
    found = [row.asked]
    for answer, those in who(row).items():
        found += textwrap.wrap(
            f"{answer}: {', '.join(those)}", 100, initial_indent="    ", subsequent_indent="        "
        )
    for place in places(row):
        found += textwrap.wrap(
            f"decided in {place}", 100, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False
        )
    return found + textwrap.wrap(f"levels: {row.ours}", 100, initial_indent="    ", subsequent_indent="        ")


def as_html(rows, anchored=False):
    """The rows as HTML: each question, its answers, its places, and `levels`.

    anchored: whether a link can lead to a row, by its key. No row may stand twice on a page with anchors.
    """
    heads = "".join(f'<th scope="col" {CELL}>{head}</th>' for head in HEADS)
    parts = [f'<table class="differences" style="table-layout:fixed;width:100%"><thead><tr>{heads}</tr></thead>']
    for row in rows:
        anchor = f' id="{row.key}"' * anchored
        parts.append(f'<tbody{anchor}><tr><th scope="rowgroup" colspan="2" {ASKED}>{coded(row.asked)}</th></tr>')
        for answer, those in who(row).items():
            named = "<br>".join(map(html.escape, those))
            parts.append(f"<tr><td {CELL}><code>{html.escape(answer)}</code></td><td {CELL}>{named}</td></tr>")
        told = [f"Decided in {breaking(place)}" for place in places(row)]
        told += ["The digits depend on the processor."] * row.by_processor
        told.append(f"<b>levels</b>: {coded(row.ours)}")
        parts.append(f'<tr><td colspan="2" {CELL}>{"<br>".join(told)}</td></tr></tbody>')
    return "".join(parts) + "</table>"
