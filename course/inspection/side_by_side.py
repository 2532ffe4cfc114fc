"""The levels side by side: for each part of a step the code of all levels, as a page, on paper and as text.

It shows one or more compare.Comparison, or a framework_programs.Spellings. The page consists of plain tables, `<pre>`
and `<details>`, so it remains readable without styles and scripts, as on GitHub. side_by_side.css decides which columns
are beside each other. `python -m course.practice.teaching pictures side_by_side` takes the picture in README.md.
"""

import html
import io
import itertools
import re
import textwrap
from pathlib import Path

from course.figures import HUES, LEVELS
from course.inspection.marks import AROUND, MARKS
from course.setup import files

NAMES = {level: f"{name.replace('_level', '-level API')}" for level, name in enumerate(LEVELS, 1)}
COLUMNS = {0: "plain Python", **NAMES, "tf": "TensorFlow", "torch": "PyTorch"}
HOUSE = [(3, 4, 5), (1, 2)]  # the columns of the two tables of a five-level page, the upper levels first
WIDTH = 120  # characters in a line of a terminal
STYLE = Path(__file__).with_name("side_by_side.css")


def codes(comparison):
    """{level: {mark: steps}}"""
    return {row.level: row.code for row in comparison.rows}


def shared(code, mark):
    """The marks that share one line with this mark, this one included. The first is the mark that shows the line."""
    if mark == AROUND:
        return [mark]
    first = next((m for m in reversed(MARKS[: MARKS.index(mark) + 1]) if code.get(m)), mark)
    return [first, *itertools.takewhile(lambda m: code.get(m) == [], MARKS[MARKS.index(first) + 1 :])]


class SideBySide:
    """Comparisons of the same levels, one for each task. A notebook shows them as a page."""

    def __init__(self, *comparisons):
        self.comparisons = comparisons

    def __repr__(self):
        return "\n\n".join(map(as_text, self.comparisons))

    def _repr_html_(self):
        return as_html(*self.comparisons)


# As text.


def as_text(comparison):
    """A comparison as text: helpers are written out, there are no times, and no line is longer than WIDTH."""
    table = {"": [row.name for row in comparison.rows], **comparison.counts()}
    left = max(len(head) for head in (*table, *(head for head, *_ in comparison.answers())))
    right = [max(map(len, column)) for column in zip(*table.values(), strict=True)]
    lines = [comparison.title]
    for head, texts in table.items():
        lines.append("  ".join([head.ljust(left), *map(str.rjust, texts, right)]).rstrip())
    for head, answer, names in comparison.answers():
        lines.append(f"{head.ljust(left)}  {answer}   {names}")
    widest = max(len(str(level)) for level in codes(comparison))
    for mark in (*MARKS, AROUND):
        lines += ["", mark.upper()]
        for level, code in codes(comparison).items():
            if mark in code:
                lines += passage(str(level).ljust(widest), code, mark)
    return "\n".join(lines)


def passage(level, code, mark):
    """The lines of a level under a mark, each preceded by the level's number."""
    marks = shared(code, mark)
    lines = [line for step in code[mark] for line in step.lines()] or [(0, f"(the same line, under {marks[0]})")]
    return [piece for deep, line in lines for piece in folded(line, f"{level} │ {'  ┆ ' * deep}")]


def folded(line, lead):
    """A line after its lead, wrapped to the width of a terminal. Continuation lines are indented further."""
    indent = " " * (len(line) - len(line.lstrip()) + 8)
    wrapper = textwrap.TextWrapper(WIDTH - len(lead), subsequent_indent=indent, break_on_hyphens=False)
    return [lead + piece for piece in wrapper.wrap(line)]


# As HTML, without a script and without a kernel.


def as_html(*comparisons, everything=False):
    """The page, with a part for each task. One part is open at a time; with `everything`, all parts and helpers are."""
    group = "-".join(
        ["side-by-side", *(c.title.replace(" ", "-") for c in comparisons), *map(str, codes(comparisons[0]))]
    )
    parts = []
    for k, comparison in enumerate(comparisons):
        opened = " open" * (everything or k == 0)
        name = "" if everything else f' name="{html.escape(group)}"'
        tables = "".join(table(comparison, levels, everything) for levels in storeys(comparison))
        head = f"<summary>{html.escape(comparison.title)}</summary>{answers(comparison)}"
        parts.append(f'<details class="task"{opened}{name}>{head}<div class="levels">{tables}</div></details>')
    kind = "side-by-side paper" if everything else "side-by-side"
    many = " tabs" if len(comparisons) > 1 else ""
    choose = " choose" if len(codes(comparisons[0])) > 3 else ""
    return f'<style>{style()}</style>\n<div class="{kind}{many}{choose}">{"".join(parts)}</div>'


def storeys(comparison):
    """The levels of each table: two tables without plain Python if all five levels are there, otherwise one table."""
    levels = codes(comparison)
    return HOUSE if levels.keys() >= {1, 2, 3, 4, 5} else [[*levels]]


def style():
    return STYLE.read_text(encoding="utf-8")


def hue(level):
    return HUES[level - 1] if level in range(1, 6) else "#8A8A8A"  # all are light enough for black text


def answers(comparison):
    """The answers of the versions, each once. An answer that all levels share is shown without the versions' names."""
    levels = {row.name: row.level for row in comparison.rows}
    told = []
    for head, answer, names in comparison.shown_answers():
        everywhere = {levels.get(name) for name in names.split(", ")} == {*levels.values()}
        shown, bits = re.fullmatch(r"(.*?)(?: \((0x.*)\))?", answer).groups()
        where = "" if everywhere else f" ({html.escape(names)})"
        if bits:
            where = f" <code>{bits}</code>{', the same 64 bits on every level' if everywhere else where}"
        told.append(f"{head} <b>{html.escape(shown)}</b>{where}")
    return f"<p>{'<br>'.join(told)}</p>\n"


def table(comparison, levels, everything):
    """A table with a column for each of these levels and a row for each mark."""
    code = codes(comparison)
    heads = "".join(head(comparison, level) for level in levels)
    rows = [f"<tr><th></th>{heads}</tr>"]
    for mark in MARKS:
        cells = "".join(cell(level, code[level], mark, everything) for level in levels)
        rows.append(f"<tr><th>{mark}</th>{cells}</tr>")
    body = "\n".join(rows)
    return f"<table>{body}</table>\n"


def head(comparison, level):
    """A table head: a level's number, name and `facts`. Opened, it also shows `more`, what a step consists of."""
    facts = " · ".join(comparison.facts(level))
    more = "<br>".join(comparison.more(level))
    name = f"<b>&nbsp;{level}&nbsp;</b> {COLUMNS[level]}"
    opens = f"<details><summary>{name}</summary>{more}</details>" if more else f"<p>{name}</p>"
    return f'<th class="level-{level}" style="--hue:{hue(level)}">{opens} <small>{facts}</small></th>'


def cell(level, code, mark, everything):
    """The code of a level under a mark, followed by the helpers that it calls, folded unless `everything`."""
    steps = code.get(mark, ())
    shown = [line for step in steps for line in step.text.splitlines()]
    more = [step for step in steps for steps in step.opens for step in steps]
    if len(steps) == 1 and steps[0].is_call():  # a line that is only a call is followed by the function that it calls
        shown += [line for step in more for line in step.text.splitlines()]
        more = [step for step in more for steps in step.opens for step in steps]
    inner = pre(shown) if shown else "<i>the same line</i>" if mark in code else "<i>–</i>"
    lines = [line for step in more for _, line in step.lines()]
    if lines:
        opened = " open" * everything
        plural = "s" * (len(lines) > 1)
        inner += f"<details{opened}><summary>{len(lines)} more line{plural}</summary>{pre(lines)}</details>"
    return f'<td class="level-{level}" data-level="{level}" style="--hue:{hue(level)}">{inner}</td>'


def pre(lines):
    """Lines of code as `<pre>`, with real line ends. A wrapped line continues with more indentation."""
    parts = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        parts.append(f'<code style="--indent:{indent}ch">{html.escape(line)}\n</code>')
    return f"<pre>{''.join(parts)}</pre>"


# On paper and as a picture.


def on_paper(path, *comparisons):
    """Write a page that prints each comparison on one side of A4, with helpers open, and return its path."""
    titles = html.escape(" and ".join(c.title for c in comparisons))
    page = as_html(*comparisons, everything=True)
    return files.write(path, document(titles, page))


def document(title, page):
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>{page}</html>\n'


def picture(chromium, page, width=1280):
    """The bytes of a PNG in 64 colours: the first task of a page, in a browser window of this width in pixels."""
    from PIL import Image

    tab = chromium.new_page(viewport={"width": width, "height": 800}, device_scale_factor=1.5)
    tab.set_content(document("levels", f'<body style="margin:0;padding:12px;background:white">{page}</body>'))
    shot = tab.locator(".side-by-side").screenshot()
    tab.close()
    packed = io.BytesIO()
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(64).save(packed, "PNG", optimize=True)
    return packed.getvalue()
