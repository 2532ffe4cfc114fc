"""The levels side by side: for each part of a step the code of all levels, as a page, on paper and as text.

It shows one or more compare.Comparison, or a framework_programs.Spellings. The page consists of plain tables, `<pre>`
and `<details>`, so it remains readable without styles and scripts: on GitHub, and in a notebook that JupyterLab does
not trust (see code_lines.py). side_by_side.css decides which columns are beside each other.
`python -m course.author.pages pictures side_by_side` takes the pictures in README.md.
"""

import hashlib
import html
import io
import itertools
import re
from pathlib import Path

from course.reader import files
from course.reader.figures import HUES, LEVELS
from course.reader.figures.training import titled
from course.reader.inspection import code_lines
from course.reader.inspection.code_lines import left
from course.reader.inspection.marks import AROUND, MARKS
from course.reader.language import say

NAMES = {level: f"{name.replace('_level', '-level API')}" for level, name in enumerate(LEVELS, 1)}
COLUMNS = {0: "plain Python", **NAMES, "tf": "TensorFlow", "torch": "PyTorch"}
STOREYS = [(1, 2), (3, 4, 5)]  # the columns of the two tables of a five-level page
WIDTH = 120  # characters in a line of a terminal
STYLE = Path(__file__).with_name("side_by_side.css")
GROUNDS = {"light": "#ffffff", "dark": "#0d1117"}  # the page behind a picture, in each colour scheme
# In a picture nothing can be clicked, so nothing looks as if it could be. The page says why the times differ.
STILL = """<style>
.side-by-side.side-by-side.side-by-side.tabs { padding-top: 0; }
.side-by-side.side-by-side.side-by-side.tabs .task {
  & > summary, & .levels::before { display: none; }
  & > summary + p { position: static; }
}
.side-by-side.side-by-side.side-by-side .levels + p { display: none; }
.side-by-side.side-by-side.side-by-side td summary { list-style: none; &::before { content: "… "; } }
</style>"""


def codes(comparison):
    """{level: {mark: steps}}"""
    return {row.level: row.code for row in comparison.rows}


def lines_called(count):
    """How many lines the lines under the marks call, in words, as a list; [] if they call none."""
    return [say("these lines call {count} more", count=count)] * bool(count)


def shared(code, mark):
    """The marks that share one line with this mark, this one included. The first is the mark that shows the line."""
    if mark == AROUND:
        return [mark]
    first = next((m for m in reversed(MARKS[: MARKS.index(mark) + 1]) if code.get(m)), mark)
    return [first, *itertools.takewhile(lambda m: code.get(m) == [], MARKS[MARKS.index(first) + 1 :])]


class SideBySide:
    """Comparisons of the same levels, one for each task. A notebook shows them as one page."""

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
    """A line of code after its lead, broken to the width of a terminal."""
    return [f"{lead}{' ' * indent}{piece}" for piece, indent in code_lines.broken(line, WIDTH - len(lead))]


# As HTML, without a script and without a kernel.


def as_html(*comparisons, everything=False):
    """The page, with a part for each task. One part is open at a time; with `everything`, all parts and helpers are.

    Beneath stands where and when it was measured; not on paper, where each task has exactly one side.
    """
    group = "-".join(
        ["side-by-side", *(c.title.replace(" ", "-") for c in comparisons), *map(str, codes(comparisons[0]))]
    )
    parts = []
    for k, comparison in enumerate(comparisons):
        opened = " open" * (everything or k == 0)
        name = "" if everything else f' name="{html.escape(group)}"'
        tables = "".join(table(comparison, levels, everything) for levels in storeys(comparison))
        head = f"<summary>{html.escape(titled(comparison))}</summary>{answers(comparison)}"
        end = f"<p>{html.escape(comparison.why())}</p>\n" * bool(comparison.why())
        parts.append(f'<details class="task"{opened}{name}>{head}<div class="levels">{tables}</div>{end}</details>')
    kind = "side-by-side paper" if everything else "side-by-side"
    many = " tabs" if len(comparisons) > 1 else ""
    where = comparisons[-1].where
    measured = say("Measured on {where}", where=f"{html.escape(where)}.")
    measured = f'<p class="measured"><small>{measured}</small></p>' * bool(where and not everything)
    choose = " choose" if len(codes(comparisons[0])) > 3 else ""
    return f'<style>{style()}</style>\n<div class="{kind}{many}{choose}">{"".join(parts)}{measured}</div>'


def storeys(comparison):
    """The levels of each table: two tables without plain Python if all five levels are there, otherwise one table."""
    levels = codes(comparison)
    return STOREYS if levels.keys() >= {1, 2, 3, 4, 5} else [[*levels]]


def style():
    return "\n".join(path.read_text(encoding="utf-8") for path in (code_lines.STYLE, STYLE))


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
            where = f" <code>{bits}</code>{say(', the same 64 bits on every level') if everywhere else where}"
        told.append(f"{say(head)} <b>{html.escape(shown)}</b>{where}")
    return f"<p>{'<br>'.join(told)}</p>\n"


def table(comparison, levels, everything):
    """A table with a column for each of these levels and a row for each mark."""
    code = codes(comparison)
    heads = "".join(head(comparison, level) for level in levels)
    rows = [f"<tr><th></th>{heads}</tr>"]
    most = code_lines.width(len(levels))
    for mark in MARKS:
        cells = "".join(cell(level, code[level], mark, most, everything) for level in levels)
        rows.append(f'<tr><th valign="top" style="vertical-align:top">{left(say(mark))}</th>{cells}</tr>')
    body = "\n".join(rows)
    return f"<table>{body}</table>\n"


def head(comparison, level):
    """A table head: a level's number, name and `facts`. Opened, it also shows `more`, what a step consists of."""
    facts = " · ".join(f'<span style="white-space:nowrap">{fact}</span>' for fact in comparison.facts(level))
    more = "<br>".join(comparison.more(level))
    name = f'<b style="background:{hue(level)};color:black">&nbsp;{level}&nbsp;</b> {COLUMNS[level]}'
    opens = f"<details><summary>{name}</summary>{more}</details>" if more else f"<p>{name}</p>"
    look = f"border-top:4px solid {hue(level)};vertical-align:top"
    return f'<th class="level-{level}" valign="top" style="{look}">{left(f"{opens} <small>{facts}</small>")}</th>'


def cell(level, code, mark, most, everything):
    """The code of a level under a mark, followed by the helpers that it calls, folded unless `everything`.

    most: the letters of a line.
    """
    steps = code.get(mark, ())
    shown = [line for step in steps for line in step.text.splitlines()]
    more = [step for step in steps for steps in step.opens for step in steps]
    if len(steps) == 1 and steps[0].is_call():  # a line that is only a call is followed by the function that it calls
        shown += [line for step in more for line in step.text.splitlines()]
        more = [step for step in more for steps in step.opens for step in steps]
    inner = code_lines.pre(shown, most) if shown else f"<i>{say('the same line')}</i>" if mark in code else "<i>–</i>"
    lines = [line for step in more for _, line in step.lines()]
    if lines:
        opened = " open" * everything
        more = say("{count} more lines", count=len(lines)) if lines[1:] else say("1 more line")
        called = code_lines.pre(lines, most)
        inner += f"<details{opened}><summary>{more}</summary>{called}</details>"
    look = f"border-left:3px solid {hue(level)};vertical-align:top"
    return f'<td class="level-{level}" data-level="{level}" valign="top" style="{look}">{left(inner)}</td>'


# On paper and as a picture.


def on_paper(path, *comparisons):
    """Write a page that prints each comparison on one side of A4, with helpers open, and return its path."""
    titles = html.escape(" and ".join(c.title for c in comparisons))
    page = as_html(*comparisons, everything=True)
    return files.write(path, document(titles, page))


def document(title, page):
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>{page}</html>\n'


def still(page, scheme):
    """The page as a document to be photographed, in a colour scheme: without what invites a click."""
    look = f"margin:0;padding:12px;color-scheme:{scheme};background:{GROUNDS[scheme]};color:CanvasText"
    return document("levels", f'<body style="{look}">{page}{STILL}</body>')


def digest(page, scheme):
    """A hash of what is photographed. The picture holds it, by which a test finds a picture of another page."""
    return hashlib.sha256(still(page, scheme).encode()).hexdigest()


def picture(chromium, page, scheme="light", width=1280):
    """The bytes of a PNG in 64 colours: the first task of a page, in a browser window of this width in pixels.

    scheme: "light" or "dark".
    """
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    tab = chromium.new_page(viewport={"width": width, "height": 800}, device_scale_factor=1.5, color_scheme=scheme)
    tab.set_content(still(page, scheme))
    shot = tab.locator(".side-by-side").screenshot()
    tab.close()
    packed = io.BytesIO()
    made_of = PngInfo()
    made_of.add_text("made-of", digest(page, scheme))
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(64).save(packed, "PNG", optimize=True, pnginfo=made_of)
    return packed.getvalue()
