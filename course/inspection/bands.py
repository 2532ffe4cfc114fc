"""The levels as bands: for each part of a step the lines of all levels beneath each other, as text, as HTML, on paper.

What is shown is a compare.Comparison, or a spellings.Spellings. Levels are told apart by their numbers, and by their colours
besides; other frameworks by their short names.
"""

import html
import itertools
import textwrap
from pathlib import Path

from course.figures import HUES, LEVELS
from course.inspection.marks import AROUND, MARKS
from course.setup import files

COLUMNS = {0: "plain Python", **dict(enumerate(LEVELS, 1)), "tf": "TensorFlow", "torch": "PyTorch"}
HEADS = {mark: mark.upper() for mark in MARKS} | {AROUND: "AROUND THEM: the rows of a batch, the loop, the answer"}
WIDTH = 120  # of a terminal
STYLE = Path(__file__).with_name("bands.css")
KEYS = 'data-lm-suppress-shortcuts="true"'  # JupyterLab leaves the arrow keys to what bears this


def codes(comparison):
    """{level: {mark: steps}}"""
    return {row.level: row.code for row in comparison.rows}


def shared(code, mark):
    """The marks that one line of this code stands for, this mark among them, from the one that shows the line."""
    if mark == AROUND:
        return [mark]
    first = next((m for m in reversed(MARKS[: MARKS.index(mark) + 1]) if code.get(m)), mark)
    return [first, *itertools.takewhile(lambda m: code.get(m) == [], MARKS[MARKS.index(first) + 1 :])]


# As text.


def as_text(comparison):
    """Helpers are open, no time stands in it, and no line is longer than a terminal's."""
    table = {"": [row.name for row in comparison.rows], **comparison.counts()}
    left = max(len(head) for head in (*table, *(head for head, *_ in comparison.answers())))
    right = [max(map(len, column)) for column in zip(*table.values(), strict=True)]
    lines = [comparison.title]
    for head, texts in table.items():
        lines.append("  ".join([head.ljust(left), *map(str.rjust, texts, right)]).rstrip())
    for head, answer, names in comparison.answers():
        lines.append(f"{head.ljust(left)}  {answer}   {names}")
    for mark, head in HEADS.items():
        widest = max(len(str(level)) for level in codes(comparison))
        every = [(str(level).ljust(widest), code) for level, code in codes(comparison).items()]
        passages = [passage(level, code, mark) for level, code in every if mark in code]
        lines += ["", head, *itertools.chain(*passages)] if passages else []
    return "\n".join(lines)


def passage(level, code, mark):
    """The lines of a level under a mark, each led by the level's number."""
    marks = shared(code, mark)
    edge = "│" if len(marks) == 1 else "┐" if mark == marks[0] else "┘" if mark == marks[-1] else "┤"
    lines = [line for step in code[mark] for line in step.lines()] or [(0, f"(the same line, under {HEADS[marks[0]]})")]
    return [piece for deep, line in lines for piece in folded(line, f"{level} {edge} {'  ┆ ' * deep}")]


def folded(line, lead):
    """A line behind its lead, in pieces that fit a terminal; all but the first stand further in."""
    indent = " " * (len(line) - len(line.lstrip()) + 8)
    wrapper = textwrap.TextWrapper(WIDTH - len(lead), subsequent_indent=indent, break_on_hyphens=False)
    return [lead + piece for piece in wrapper.wrap(line)]


# As HTML, without a script and without a kernel: what shows is decided in bands.css, by `:has(option:checked)`.


def as_html(comparison):
    """For a notebook: helpers are folded. Two levels stand in columns; of more, any two can be chosen to."""
    few = len(codes(comparison)) <= 2
    body = numbers(comparison) + ("" if few else choice(comparison)) + bands(comparison)
    widest = max(len(str(level)) for level in codes(comparison))
    lead = f' style="--lead:{widest + 1}ch"' * (widest > 1)  # so that the code of all begins in one column
    return f'<style>{style()}</style><div class="levels-bands{" columns" * few}"{lead}>{body}</div>'


def on_paper(path, *comparisons):
    """Write a page that prints each comparison on one side of A4, helpers open, and return its path."""
    titles = html.escape(" and ".join(c.title for c in comparisons))
    head = f'<meta charset="utf-8"><title>{titles}</title><style>{style()}</style>'
    pages = (
        f'<section class="levels-bands paper">{numbers(c)}<div>{bands(c, is_open=True)}</div></section>'
        for c in comparisons
    )
    return files.write(path, f'<!doctype html><html lang="en">{head}{"".join(pages)}</html>\n')


def style():
    return STYLE.read_text(encoding="utf-8")


def hue(level):
    return HUES[level - 1] if level in range(1, 6) else "#8A8A8A"  # black numbers can be read on each


def number(level):
    return f'<b style="background:{hue(level)};color:black">&nbsp;{level}&nbsp;</b>'


def numbers(comparison):
    """A column for each version: what is counted and measured. An answer that is the same in all is printed once."""
    rows, levels = comparison.rows, [row.level for row in comparison.rows]
    heads = (
        f'<th colspan="{levels.count(k)}" style="border-bottom:3px solid {hue(k)}">{number(k)} {COLUMNS[k]}</th>'
        for k in codes(comparison)
    )
    lines = [f"<th>{html.escape(comparison.title)}</th>{''.join(heads)}"]
    kinds = [row.name.partition(" ")[2] if row.level else "" for row in rows]
    for head, texts in ({"": kinds} | comparison.counts() | comparison.times()).items():
        cells = zip((str(row.losses.dtype) for row in rows), texts, strict=True)
        cells = (f'<td class="{dtype}">{text}</td>' for dtype, text in cells)
        lines.append(f"{f'<th>{head}</th>' if head else '<td></td>'}{''.join(cells)}")
    for head, answer, names in comparison.answers():
        lines.append(f'<th>{head}</th><td colspan="{len(rows)}"><code>{answer}</code> {names}</td>')
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def choice(comparison):
    """Two menus of levels. While nothing is chosen, all stand beneath each other. Hidden where the style is not let in."""
    options = "".join(f'<option value="{k}">{k} {COLUMNS[k]}</option>' for k in codes(comparison))
    menus = (f'<select aria-label="{which}" {KEYS}><option>–</option>{options}</select>' for which in ("one", "other"))
    return f'<p style="display:none">Any two beside each other: {" and ".join(menus)}</p>'


def bands(comparison, is_open=False):
    """A band for each mark. What is around them comes last, folded; where all is open there is no room for it."""
    parts = []
    for mark, head in HEADS.items():
        band = "".join(cell(level, code, mark, is_open) for level, code in codes(comparison).items())
        if mark in MARKS:
            parts.append(f'<h3>{head}</h3><div class="band">{band}</div>')
        elif not is_open:
            parts.append(f'<details><summary>{head}</summary><div class="band">{band}</div></details>')
    return "".join(parts)


def cell(level, code, mark, is_open):
    """The lines of a level under a mark, led by the level's number."""
    marks = shared(code, mark)
    place = "" if len(marks) == 1 else " begins" if mark == marks[0] else " ends" if mark == marks[-1] else " goes-on"
    lines = code_html(code.get(mark, ()), is_open)
    if mark in code and not lines:
        lines = f"<i>the same line, under {HEADS[marks[0]]}</i>"
    style = f"--hue:{hue(level)};border-left:3px solid {hue(level)};padding-left:0.5em"
    return f'<div class="level-{level}{place}">{number(level)}<div style="{style}">{lines}</div></div>'


def code_html(steps, is_open):
    """Code of which each line can be broken; behind the line that calls them, the functions it opens."""
    parts = []
    for step in steps:
        lines = "".join(
            f'<span style="--indent:{len(line) - len(line.lstrip())}ch">{html.escape(line)}\n</span>'
            for line in step.text.splitlines()
        )
        parts.append(f"<pre>{lines}</pre>")
        if step.opens:
            more = "".join(f"<div>{code_html(steps, is_open)}</div>" for steps in step.opens)
            count = sum(deep > 0 for deep, _ in step.lines())
            opened = " open" * is_open
            parts[-1] = f"<details{opened}><summary>{parts[-1]} <small>{count} lines</small></summary>{more}</details>"
    return "".join(parts)
