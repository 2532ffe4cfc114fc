"""A table of the twelve questions: where the answer is here, and where it is in the other libraries."""

import html
import re
import textwrap
from typing import NamedTuple

from course.reader.inspection.questions import NAMES, QUESTIONS
from course.reader.inspection.source_index import places_of_core

HEADS = "here", "in PyTorch", "in TensorFlow, Keras"


class Table(NamedTuple):
    """Questions with their places, as a notebook shows them."""

    rows: list  # (Question, our Place)

    def __repr__(self):
        lines = []
        for question, place in self.rows:
            lines += [question.asked, f"    {HEADS[0]}: {place.name} in {place.file}"]
            for there in question.theirs:
                lines.append(f"    in {NAMES[there.library]}: {there}{' (not in the wheel)' * (not there.in_wheel)}")
            lines += textwrap.wrap(question.more, 100, initial_indent="    ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self):
        return as_html(self.rows)


def table(level):
    """The questions that the notebook of this level shows. Raises LookupError if a name of ours is no longer there."""
    index = places_of_core()
    return Table([(question, question.place(index)) for question in QUESTIONS if question.level == level])


CELL = 'style="text-align:left;vertical-align:top;overflow-wrap:anywhere;padding:0.2em 0.6em 0.2em 0"'
ASKED = CELL.replace("padding:0.2em", "padding:1.2em")


def as_html(rows, link=None):
    """The table as HTML: each question, below it its three places, and below them the two sentences.

    link(place, text) returns the link to a place of ours. The default link is relative to the running notebook.
    """
    link = link or (lambda place, text: place.link(text))
    heads = "".join(f'<th scope="col" {CELL}>{head}</th>' for head in HEADS)
    parts = [f'<table class="real-ones" style="table-layout:fixed;width:100%"><thead><tr>{heads}</tr></thead>']
    for question, place in rows:
        lead = link(place, place.file).replace(f">{place.file}<", f">{breaking(place.file)}<")
        cells = [f"<code>{breaking(place.name)}</code><br>{lead}"]
        for there in question.theirs:
            lead = f'<a href="{there.address}">{breaking(there.file)}</a>'
            mark = "<br>(not in the wheel)" * (not there.in_wheel)
            cells.append(f"<code>{breaking(there.name)}</code><br>{lead}{mark}")
        cells = "".join(f"<td {CELL}>{cell}</td>" for cell in cells)
        parts.append(
            f'<tbody><tr><th scope="rowgroup" colspan="3" {ASKED}>{coded(question.asked)}</th></tr>'
            f'<tr>{cells}</tr><tr><td colspan="3" {CELL}>{coded(question.more)}</td></tr></tbody>'
        )
    return "".join(parts) + "</table>"


def breaking(name):
    """A name as HTML that allows a line break after each slash, dot or underscore."""
    return re.sub(r"(?<=[a-zA-Z0-9][/._])(?=\w)", "<wbr>", html.escape(name))


def coded(text):
    """Plain text as HTML. Text between backticks becomes code."""
    parts = html.escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))
