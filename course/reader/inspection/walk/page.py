"""Walks as HTML. It is static: it needs neither a script nor a running kernel."""

import html
import re
from pathlib import Path

from course.reader.figures import HUES, LEVELS
from course.reader.figures.training import titled
from course.reader.inspection import code_lines
from course.reader.inspection.code_lines import left
from course.reader.inspection.walk.parts import BACK, FORWARD, MEANS, short
from course.reader.inspection.walk.stages import ASIDE, DOWN, UP
from course.reader.language import later, say

KEYS = 'data-lm-suppress-shortcuts="true"'  # keeps JupyterLab's shortcuts from taking the keys of this element
STYLE = Path(__file__).with_name("walk.css")
# What walk.css hides: it is for readers whose page has no styles.
BARE = later(
    "All stages stand below each other here. In JupyterLab (run this cell) and on the site, a click chooses a stage."
)


class Walks:
    """Walks of several tasks on one page, which shows one at a time."""

    def __init__(self, *walks):
        self.walks = walks

    def __repr__(self):
        return "\n\n".join(map(repr, self.walks))

    def _repr_html_(self):
        parts = [part(walk, f"walk-{k}" if k else "walk", k == 0) for k, walk in enumerate(self.walks)]
        style = "\n".join(path.read_text(encoding="utf-8") for path in (code_lines.STYLE, STYLE))
        return f'<style>{style}</style>\n<div class="walk"><p class="bare">{say(BARE)}</p>{"".join(parts)}</div>'


def part(walk, key, opened):
    """The walk of one task as a `<details>` element."""
    loss = say(
        "Loss of the batch {loss}, the same bits on each stage that shows it",
        loss=f"<b>{short(walk.loss)}</b> <code>{walk.loss.hex()}</code>",
    )
    rungs = "".join(rung(walk, key, k) for k in range(len(walk.stages)))
    head = f"<summary {KEYS}>{html.escape(titled(walk.task))}</summary><p class='loss'>{loss}</p>"
    name = say("The stages of {title}, from fit down to the instruction", title=titled(walk.task))
    ladder = f'<div class="stages" role="radiogroup" aria-label="{html.escape(name)}">{rungs}</div>'
    return f'<details class="task" name="walk"{" open" * opened}>{head}{ladder}</details>'


def label(kind, to, words, inside="", look=""):
    """A label of the radio button with the id `to`. Only walk.css shows its words: without it a click does nothing."""
    return f'<label class="{kind}" for="{to}" data-words="{html.escape(words)}" style="{look}">{inside}</label>\n'


def rung(walk, key, k):
    """Stage k: its radio button with a label, and the content that is shown while it is selected."""
    stage = walk.stages[k]
    ids = [f"{key}-{each.mark}" for each in walk.stages]
    names = [each.name for each in walk.stages]
    checked = " checked" * (k == 0)
    called = f"{stage.mark} {stage.name}"
    choice = f'<input type="radio" name="{key}" id="{ids[k]}" aria-label="{called}" hidden {KEYS}{checked}>'
    hue = HUES[stage.level - 1]
    look = f"--hue:{hue}"
    ways = []
    if k in UP:
        ways.append(label("up", ids[UP[k]], say("up to {stage}", stage=names[UP[k]])))
    if k in DOWN:
        to = (
            say("over to {stage}", stage=names[DOWN[k]]) if k == ASIDE else say("down to {stage}", stage=names[DOWN[k]])
        )
        ways.append(label("down", ids[DOWN[k]], to))
    if k == ASIDE - 1:
        ways.append(label("side", ids[ASIDE], say("or op by op, stage {mark}", mark=walk.stages[ASIDE].mark)))
    where = say("level {number}, {name}", number=stage.level, name=LEVELS[stage.level - 1].replace("_", " "))
    where += f" · {stage.way}" * bool(stage.way)
    title = f"<b>{stage.head}</b> <small>{where}</small>"
    codes = "".join(map(code, stage.codes))
    tables = table(say("forward"), FORWARD, stage) + table(say("back and update"), BACK, stage)
    head = f'<div class="head"><p>{title}</p><p class="ways">{"".join(ways)}</p></div>'
    body = f'<p>{spelled(stage.told)}</p><div class="both"><div>{codes}</div><div>{tables}</div></div>'
    chooser = label("rung aside" if k == ASIDE else "rung", ids[k], stage.head, choice, look)
    return f'{chooser}<div class="stage" style="{look};border-top:4px solid {hue}">{head}{body}</div>'


def spelled(text):
    """Convert text with `code` and **bold** to HTML."""
    parts = text.split("`")
    text = "".join(code_lines.inline(each) if k % 2 else html.escape(each) for k, each in enumerate(parts))
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)


def code(shown):
    head = ": ".join(filter(None, [html.escape(shown.title), shown.link]))
    return f"<p class='from'>{head}</p>{code_lines.pre(shown.lines, code_lines.MOST, shown.marked)}"


def table(way, quantities, stage):
    """The numbers of a stage that belong to these quantities (FORWARD or BACK), as a table; "" if there are none."""
    rows = []
    for quantity in quantities:
        for number in stage.numbers:
            if number.quantity == quantity:
                here = spelled(number.here if number.words else f"`{number.here}`")
                means = say(MEANS.get(quantity, quantity))
                cells = f"<td>{left(here)}</td><td>{left(short(number.value))}</td>"
                rows.append(f"<tr><th scope='row'>{left(means)}</th>{cells}</tr>")
    heads = "".join(f"<th scope='col'>{left(head)}</th>" for head in (way, say("here"), say("number")))
    return f"<table><tr>{heads}</tr>{''.join(rows)}</table>" * bool(rows)
