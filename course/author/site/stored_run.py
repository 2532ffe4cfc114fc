"""The one run whose numbers README, the site and the pictures show: the outputs of notebook 05, as they are stored.

`python -m course.author.pages measure` runs that notebook anew, and makes all pictures of it. Nothing else is
measured for them.
"""

import base64
import html
import json
import re
from typing import NamedTuple

from course.reader.language import say
from course.reader.notebooks.names import notebook_path

NAME = "05_high_level"  # the notebook that compares all five levels
HOUSE = 'class="side-by-side tabs choose"'  # the five levels side by side
TITLES = {"linear_regression": "The line", "dnn_classifier": "Two rings"}  # as the notebook calls its comparisons
COMPARED = "A step, predicted and measured: "  # in the description of the figure of all levels
MEASURED = re.compile(r"Measured on ([^<]*)")  # where and when, beneath the levels side by side


class Version(NamedTuple):
    """A row of the comparison, as the notebook shows it."""

    name: str  # "1 float64"
    lines: int
    launches: str  # per step: "14", "1 in 8,000"
    nbytes: str  # per step
    predicted: str  # the time of a step: "0.13 µs"
    measured: str
    loss: str  # the last loss: "9.209 (0x1.26b37bd4bf3c0p+3)"


def outputs(notebook):
    """Yield {kind: content} of each output of a notebook's cells."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            yield {kind: "".join(text) for kind, text in output.get("data", {}).items()}


def read(root):
    """All outputs of the notebook."""
    return list(outputs(json.loads(notebook_path(root, NAME).read_text(encoding="utf-8"))))


def side_by_side(root):
    """The five levels side by side, as (HTML, text)."""
    return next((one["text/html"], one["text/plain"]) for one in read(root) if HOUSE in one.get("text/html", ""))


def figure(root, task):
    """The figure of all levels that train a task, as (PNG, its description)."""
    pictures = [(one["image/png"], " ".join(one["text/plain"].split())) for one in read(root) if "image/png" in one]
    start = f"{TITLES[task]}: "
    return next((base64.b64decode(png), text) for png, text in pictures if text.startswith(start) and COMPARED in text)


def where(root):
    """The computer and the day of the run, as HTML; "" if the notebook does not say it."""
    found = MEASURED.search(side_by_side(root)[0])
    return say("Measured on {where}", where=found[1]) if found else ""


def versions(root, task):
    """The rows of the comparison of a task, plain Python first."""
    text = side_by_side(root)[1]
    part = text[text.index(f"{TITLES[task]}\n") :].split("\n\n")[0].splitlines()
    rows = [re.split(r" {2,}", line.strip()) for line in part[1:]]
    names = rows[0]
    counts = {head: values for head, *values in rows[1:] if len(values) == len(names)}
    losses = {name: loss for head, loss, *those in rows[1:] if head == "last loss" for name in those[0].split(", ")}
    _, told = figure(root, task)
    times = dict(re.findall(r"(?:; |: )([^:;]+?) ([\d.]+ µs and [\d.]+ µs)", told[told.index(COMPARED) :]))
    found = []
    for k, name in enumerate(names):
        given = counts["lines"][k], counts["launches per step"][k], counts["bytes per step"][k]
        found.append(Version(name, int(given[0]), *given[1:], *times[name].split(" and "), losses[name]))
    return found


def times(root, task):
    """{level: the time of a step}. Of the versions of level 1 it is the one in float64, of level 3 the compiled one."""
    measured = {version.name: version.measured for version in versions(root, task)}
    return {int(name[0]): time for name, time in measured.items() if name not in ("1 float32", "3 eager")}


def table(root, task):
    """What a step costs on each level, as an HTML table."""
    heads = "", say("lines"), say("launches per step"), say("bytes per step"), say("predicted"), say("measured")
    heads = *heads, say("last loss")
    rows = ["<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>"]
    for version in versions(root, task):
        name, *cells = map(html.escape, map(str, version))
        shown = [cell.replace(" µs", "&nbsp;µs") for cell in cells[:-1]]
        loss = re.sub(r" \((0x.*)\)", r" <code>\1</code>", cells[-1])
        cells = "".join(f"<td>{cell}</td>" for cell in (*shown, loss))
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    return f'<table class="costs">{"".join(rows)}</table>'
