"""Walks as HTML. It is static: it needs neither a script nor a running kernel."""

import html
import re
from pathlib import Path

from course.figures import HUES, LEVELS
from course.inspection.walk.parts import BACK, FORWARD, MEANS, short
from course.inspection.walk.stages import ASIDE, DOWN, UP

KEYS = 'data-lm-suppress-shortcuts="true"'  # keeps JupyterLab's shortcuts from taking the keys of this element
STYLE = Path(__file__).with_name("walk.css")


class Walks:
    """Walks of several tasks on one page, which shows one at a time."""

    def __init__(self, *walks):
        self.walks = walks

    def __repr__(self):
        return "\n\n".join(map(repr, self.walks))

    def _repr_html_(self):
        parts = [part(walk, f"walk-{k}" if k else "walk", k == 0) for k, walk in enumerate(self.walks)]
        return f'<style>{STYLE.read_text(encoding="utf-8")}</style>\n<div class="walk">{"".join(parts)}</div>'


def part(walk, key, opened):
    """The walk of one task as a `<details>` element."""
    loss = f"Loss of the batch <b>{short(walk.loss)}</b> <code>{walk.loss.hex()}</code>"
    loss += ", the same bits on each stage that shows it"
    rungs = "".join(rung(walk, key, k) for k in range(len(walk.stages)))
    head = f"<summary {KEYS}>{html.escape(walk.task.title)}</summary><p class='loss'>{loss}</p>"
    name = f"The stages of {walk.task.title}, from fit down to the instruction"
    ladder = f'<div class="stages" role="radiogroup" aria-label="{html.escape(name)}">{rungs}</div>'
    return f'<details class="task" name="walk"{" open" * opened}>{head}{ladder}</details>'


def rung(walk, key, k):
    """Stage k: its radio button with a label, and the content that is shown while it is selected."""
    stage = walk.stages[k]
    n = k + 1
    checked = " checked" * (k == 0)
    choice = f'<input type="radio" name="{key}" id="{key}-{n}" aria-label="{n} {stage.name}" {KEYS}{checked}>'
    look = f'style="--hue:{HUES[stage.level - 1]}"'
    aside = " aside" * (k == ASIDE)
    label = f'<label class="rung{aside}" for="{key}-{n}" {look}>{choice} {n} · {stage.name}</label>\n'
    ways = [("up", "up to", UP.get(k)), ("down", "over to" if k == ASIDE else "down to", DOWN.get(k))]
    ways = [
        f'<label class="{sort}" for="{key}-{to + 1}">{words} {walk.stages[to].name}</label>\n'
        for sort, words, to in ways
        if to is not None
    ]
    if k == ASIDE - 1:
        ways.append(f'<label class="side" for="{key}-{n + 1}">or op by op, stage {n + 1}</label>\n')
    where = f"level {stage.level}, {LEVELS[stage.level - 1].replace('_', ' ')}" + f" · {stage.way}" * bool(stage.way)
    title = f"<b>{n} · {stage.name}</b> <small>{where}</small>"
    codes = "".join(map(code, stage.codes))
    tables = table("forward", FORWARD, stage) + table("back and update", BACK, stage)
    head = f'<div class="head"><p>{title}</p><p class="ways">{"".join(ways)}</p></div>'
    body = f'<p>{spelled(stage.told)}</p><div class="both"><div>{codes}</div><div>{tables}</div></div>'
    return f'{label}<div class="stage" {look}>{head}{body}</div>'


def spelled(text):
    """Convert text with `code` and **bold** to HTML."""
    parts = html.escape(text).split("`")
    text = "".join(f"<code>{each}</code>" if k % 2 else each for k, each in enumerate(parts))
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)


def code(shown):
    lines = []
    for k, text in enumerate(shown.lines):
        indent = len(text) - len(text.lstrip())
        inner = f"<b>{html.escape(text)}</b>" if k in shown.marked else html.escape(text)
        lines.append(f'<code style="--indent:{indent}ch">{inner}\n</code>')
    head = ": ".join(filter(None, [html.escape(shown.title), shown.link]))
    return f"<p class='from'>{head}</p><pre>{''.join(lines)}</pre>"


def table(way, quantities, stage):
    """The numbers of a stage that belong to these quantities (FORWARD or BACK), as a table; "" if there are none."""
    rows = [
        f"<tr><th scope='row'>{MEANS.get(number.quantity, number.quantity)}</th>"
        f"<td>{spelled(number.here if number.words else f'`{number.here}`')}</td><td>{short(number.value)}</td></tr>"
        for quantity in quantities
        for number in stage.numbers
        if number.quantity == quantity
    ]
    head = f"<tr><th scope='col'>{way}</th><th scope='col'>here</th><th scope='col'>number</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>" * bool(rows)
