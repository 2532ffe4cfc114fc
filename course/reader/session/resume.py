"""`python3 -m course resume`: where the reader stopped, up to three takeaways from before, and what comes next.

It also requests the state: the first cell of that notebook restores it when it runs next (`replay`). A notebook is
finished when its last cell has run and its sections are done (`sections`).
"""

import contextlib
import json
import re
from datetime import datetime
from pathlib import Path

from course.reader.files import replace
from course.reader.language import say
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.names import MINE, ROOT, language_in, language_of, names_in, trail_in
from course.reader.notebooks.stored import read_notebook
from course.reader.session import sections
from course.reader.session.stops import ASKED, Stop, heading, last_stop

STOP = re.compile(r"\*\*(?:A good place to stop\.|可以在这里歇一歇。)\*\*\s+(.+?)(?:\n\s*\n|\Z)", re.DOTALL)


def ideas(root: Path, stop: Stop) -> list[str]:
    """Up to three takeaways: the texts of the last stopping points that the reader has reached, with nothing left out.

    If a question or a blank stands open before a stopping point, the reader does not have yet what its text says.
    """
    found = takeaways(read_notebook(root, stop.name, MINE).cells[: stop.cell + 1], stop.name)
    trail = trail_in(root, language_of(stop.name))
    way = trail if stop.name in trail else names_in(root)
    for name in reversed([each for each in way if each < core_under(root, stop.name)]):
        if len(found) >= 3:
            break
        with contextlib.suppress(BuildError):  # removed, or damaged
            found = takeaways(read_notebook(root, name, MINE).cells, name) + found
    return found[-3:]


def core_under(root: Path, name: str) -> str:
    """A sort key: the name itself in the trail or the five, else one just after the core that it branches off from."""
    if name in trail_in(root, language_of(name)) + names_in(root):
        return name
    return name.split("/")[-1][:2] + "~"


def takeaways(cells: list, name: str) -> list[str]:
    """The texts at a notebook's stopping points, without a question at the end. Other texts need their context.

    A text is left out if a question or a blank is open between the stopping point before it and its own."""
    waiting = sections.still_open(cells, name)
    found = []
    skipped = False
    for number, cell in enumerate(cells):
        skipped = skipped or number in waiting
        for each in STOP.findall(cell.source) if cell.cell_type == "markdown" else ():
            if not skipped:
                found.append(re.sub(r"(?<=[.!]) [^.!]*\?$", "", plain(" ".join(each.split()))))
            skipped = False
    return found


def plain(text: str) -> str:
    """Markdown as a terminal shows it: words without stars, links without addresses."""
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    return re.sub(r"(?<![\w*])(\*\*?)(?=\S)([^*`]+?)(?<=\S)\1(?![\w*])", r"\2", text)


def follows(root: Path, name: str) -> str:
    """The next notebook: first the trail, then the five. For the last of them, and for any other, the name itself."""
    way = trail_in(root, language_of(name)) + names_in(root)
    at = way.index(name) + 1 if name in way else len(way)
    return way[at] if at < len(way) else name


def next_step(root: Path) -> str:
    """The reader's next step, as one line of text."""
    stop = last_stop(root)
    if stop is None:
        where = f"{MINE}/{first(root)}.ipynb"
        return say("Next: {where}, with `python3 -m course lab --trail`.", where=where)
    if is_finished(root, stop):
        name = follows(root, stop.name)
        if name == stop.name:
            where = f"{MINE}/{name}.ipynb"
            return say("You have finished {where}. mine/map.md lists the notebooks that branch off.", where=where)
        return say("Next: {where}, with `python3 -m course resume`.", where=f"{MINE}/{name}.ipynb")
    told = say("Next: continue in {where}, with `python3 -m course resume`.", where=f"{MINE}/{stop.name}.ipynb")
    return f"{told} {sections.told(root, stop.name)}".rstrip()


def at_the_end(root: Path, stop: Stop) -> bool:
    """Whether the cell that ran last is the notebook's last code cell."""
    cells = read_notebook(root, stop.name, MINE).cells
    return stop.cell == [k for k, cell in enumerate(cells) if cell.cell_type == "code"][-1]


def is_finished(root: Path, stop: Stop) -> bool:
    """Whether the reader has come to the end, and no section that asks something is open."""
    cells = read_notebook(root, stop.name, MINE).cells
    return at_the_end(root, stop) and not sections.still_open(cells, stop.name)


def first(root: Path) -> str:
    """The notebook to begin with: the first one of the trail, in the language of the desk."""
    return (trail_in(root, language_in(root)) + names_in(root))[0]


def main(root: Path = ROOT) -> tuple[str, str]:
    """Return the message for the reader and the notebook to open, and request its state unless it is finished."""
    stop = last_stop(root)
    path = root / MINE / ASKED
    path.unlink(missing_ok=True)
    if stop is None:
        return say("You have not run a cell yet, so the first notebook opens."), first(root)
    cells = read_notebook(root, stop.name, MINE).cells
    place = {"where": f"{MINE}/{stop.name}.ipynb", "when": ago(stop.when), "section": heading(cells, stop.cell)}
    at = say("at cell {cell} of {count}.", cell=stop.cell + 1, count=len(cells))
    lines = [
        say("You stopped in {where}, {when}, in the section “{section}”,", **place),
        f"{at} {sections.told(root, stop.name)}".rstrip(),
    ]
    if found := ideas(root, stop):
        lines.append(say("What you have so far:"))
    lines += [f"  - {idea}" for idea in found]
    name = follows(root, stop.name)
    if is_finished(root, stop):
        where = f"{MINE}/{name}.ipynb"
        news = say("You have finished it. Next: {where}", where=where)
        if name == stop.name:
            news = say("You have finished it. That was the last one: {where}", where=where)
        return "\n".join([*lines, news]), name
    if at_the_end(root, stop) and name != stop.name:
        where = f"{MINE}/{name}.ipynb"
        lines.append(say("All its cells have run, so you can also go on with {where}.", where=where))
    replace(root, {path: json.dumps({"name": stop.name})})
    lines.append(
        say("Run its first cell. It runs the cells up to there again, except those that measure time, draw or ask.")
    )
    return "\n".join(lines), stop.name


def ago(when: datetime) -> str:
    """How long ago that was, in words."""
    days = (datetime.now().date() - when.date()).days
    if days > 1:
        return say("{days} days ago", days=days)
    return say("yesterday") if days == 1 else say("today at {time}", time=f"{when:%H:%M}")
