"""Lines of code as HTML that can be read everywhere: with styles, without them, and where JupyterLab does not trust it.

GitHub shows a page without its styles. JupyterLab does so with a notebook that it does not trust; there `style=`
remains, but JupyterLab's own rules align cells to the right and break code within names. So the lines are broken here,
after a comma or at a bracket, with real line ends. Where code_lines.css holds, these line ends are only places to break
at, and the browser uses those that it needs.
"""

import html
import re
from pathlib import Path

STYLE = Path(__file__).with_name("code_lines.css")
ACROSS = 84  # letters: in 12 px, so many fit beside each other in 760 px, and in what GitHub gives a notebook
MOST = 42  # letters of a line, so that it fits a phone
DEEPER = 2  # letters: the indentation of the rest of a line, for each bracket that is open
AWKWARD = 300  # the cost of a break before an index or at a space; at a dot or between two targets it is twice as high
TOO_LONG = 10_000  # the cost of a letter beyond the width
TARGETS = re.compile(r"^[\w., *]+ =(?!=)|\bfor .*? in\b")  # what a statement or a loop assigns to
UNBROKEN = '<pre style="background:none;white-space:pre">'


def width(columns):
    """The letters of a line in a table with this number of columns."""
    return min(MOST, ACROSS // columns)


def places(line):
    """{where a line may break: (the brackets open there, the cost of a break)}"""
    targets = {k for found in TARGETS.finditer(line) for k in range(*found.span())}
    found = {}
    depth = 0
    quote = ""
    for k, letter in enumerate(line, 1):
        before = line[k - 2 : k - 1]
        after = line[k : k + 1]
        if letter == quote:
            quote = ""
        elif letter in "\"'" and not quote:
            quote = letter
        elif letter == " " and k not in found:
            found[k] = depth, AWKWARD + (after == "=")
        elif quote:
            continue
        elif letter == "." and after.isidentifier():
            found[k] = depth, 2 * AWKWARD
        elif letter in "([{":
            depth += 1
            if after and after not in ")]}":
                index = letter == "[" and re.match(r"[\w)\]]", before)
                found[k] = depth, AWKWARD if index else cost(depth)
        elif letter in ")]}":
            depth -= 1
            if after == " ":
                found[k + 1] = depth, cost(depth) + 1
        elif letter == "," and after == " ":
            found[k + 1] = depth, 2 * AWKWARD if k in targets else cost(depth)
    return found


def cost(depth):
    """The cost of a break in that many brackets: two breaks further out are better than one that is deeper."""
    return 3 + 4**depth


def broken(line, most):
    """[(a piece of a line of code, its indentation)], none longer than `most` if that is possible.

    A line breaks after a comma or at a bracket, where few brackets are open; if there is none, at a space or a dot. It
    never breaks within a name.
    """
    begins = len(line) - len(line.lstrip())
    ends = places(line)
    ways = {begins: (0, ())}  # {where a piece may end: (the cost of the best way to break so far, its places)}
    for end in [*sorted(place for place in ends if place > begins), len(line)]:
        options = []
        for begin, (cost, breaks) in ways.items():
            size = indented(begin, begins, ends) + len(line[begin:end].rstrip())
            too_long = max(0, size - most) * TOO_LONG
            own = 0 if begin == begins else ends[begin][1]
            options.append((cost + own + too_long, (*breaks, begin)))
        ways[end] = min(options)
    breaks = ways[len(line)][1]
    bounds = zip(breaks, (*breaks[1:], len(line)), strict=True)
    return [(line[begin:end].rstrip(), indented(begin, begins, ends)) for begin, end in bounds]


def indented(begin, begins, ends):
    """The indentation of a piece that begins here."""
    return begins if begin == begins else begins + DEEPER * max(1, ends[begin][0])


def pre(lines, most, marked=()):
    """Lines of code as `<pre>`, each broken into pieces of at most `most` letters. The lines `marked` are bold."""
    parts = []
    for number, line in enumerate(lines):
        (first, indent), *others = broken(line, most)
        text = " " * indent + html.escape(first)
        at = len(line) - len(line.lstrip()) + len(first)
        for piece, deep in others:
            spaces = len(line) - at - len(line[at:].lstrip())
            kind = "" if spaces else ' class="tight"'
            text += f"<span{kind}>\n{' ' * deep}</span>{html.escape(piece)}"
            at += spaces + len(piece)
        text = f"<b>{text}</b>" if number in marked else text
        parts.append(f'<span style="--indent:{indent}ch">{text}\n</span>')
    return f"{UNBROKEN}{''.join(parts)}</pre>"


def inline(text):
    """A piece of code within a sentence, as `<code>`. It may also break after a bracket, a comma or a dot."""
    ends = [place for place in places(text) if text[place - 1] != " "]
    bounds = zip([0, *ends], [*ends, len(text)], strict=True)
    return f"<code>{'<wbr>'.join(html.escape(text[begin:end]) for begin, end in bounds)}</code>"


def left(content):
    """The content of a table's cell, aligned to the left whatever the page's own rules for tables are."""
    return f'<div align="left">{content}</div>'
