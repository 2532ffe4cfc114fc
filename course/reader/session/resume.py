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
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.names import MINE, ROOT, names_in, trail_in
from course.reader.notebooks.stored import read_notebook
from course.reader.session import sections
from course.reader.session.stops import ASKED, Stop, heading, last_stop

STOP = re.compile(r"\*\*A good place to stop\.\*\*\s+(.+?)(?:\n\s*\n|\Z)", re.DOTALL)


def ideas(root: Path, stop: Stop) -> list[str]:
    """Up to three takeaways: the texts of the last stopping points that the reader has reached, with nothing left out.

    If a question or a blank stands open before a stopping point, the reader does not have yet what its text says.
    """
    found = takeaways(read_notebook(root, stop.name, MINE).cells[: stop.cell + 1], stop.name)
    way = trail_in(root) if stop.name in trail_in(root) else names_in(root)
    for name in reversed([each for each in way if each < core_under(root, stop.name)]):
        if len(found) >= 3:
            break
        with contextlib.suppress(BuildError):  # removed, or damaged
            found = takeaways(read_notebook(root, name, MINE).cells, name) + found
    return found[-3:]


def core_under(root: Path, name: str) -> str:
    """A sort key: the name itself in the trail or the five, else one just after the core that it branches off from."""
    if name in trail_in(root) + names_in(root):
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
    way = trail_in(root) + names_in(root)
    at = way.index(name) + 1 if name in way else len(way)
    return way[at] if at < len(way) else name


def next_step(root: Path) -> str:
    """The reader's next step, as one line of text."""
    stop = last_stop(root)
    if stop is None:
        return f"Next: {MINE}/{(trail_in(root) + names_in(root))[0]}.ipynb, with `python3 -m course lab --trail`."
    if is_finished(root, stop):
        name = follows(root, stop.name)
        if name == stop.name:
            return f"You have finished {MINE}/{name}.ipynb. {MINE}/map.md lists the notebooks that branch off."
        return f"Next: {MINE}/{name}.ipynb, with `python3 -m course resume`."
    told = f"Next: continue in {MINE}/{stop.name}.ipynb, with `python3 -m course resume`."
    return f"{told} {sections.told(root, stop.name)}".rstrip()


def at_the_end(root: Path, stop: Stop) -> bool:
    """Whether the cell that ran last is the notebook's last code cell."""
    cells = read_notebook(root, stop.name, MINE).cells
    return stop.cell == [k for k, cell in enumerate(cells) if cell.cell_type == "code"][-1]


def is_finished(root: Path, stop: Stop) -> bool:
    """Whether the reader has come to the end, and no section that asks something is open."""
    cells = read_notebook(root, stop.name, MINE).cells
    return at_the_end(root, stop) and not sections.still_open(cells, stop.name)


def main(root: Path = ROOT) -> tuple[str, str]:
    """Return the message for the reader and the notebook to open, and request its state unless it is finished."""
    stop = last_stop(root)
    path = root / MINE / ASKED
    path.unlink(missing_ok=True)
    if stop is None:
        name = (trail_in(root) + names_in(root))[0]
        return "You have not run a cell yet, so the first notebook opens.", name
    cells = read_notebook(root, stop.name, MINE).cells
    lines = [
        f"You stopped in {MINE}/{stop.name}.ipynb, {ago(stop.when)}, in the section “{heading(cells, stop.cell)}”,",
        f"at cell {stop.cell + 1} of {len(cells)}. {sections.told(root, stop.name)}".rstrip(),
    ]
    if found := ideas(root, stop):
        lines.append("What you have so far:")
    lines += [f"  - {idea}" for idea in found]
    name = follows(root, stop.name)
    if is_finished(root, stop):
        news = "Next" if name != stop.name else "That was the last one"
        return "\n".join([*lines, f"You have finished it. {news}: {MINE}/{name}.ipynb"]), name
    if at_the_end(root, stop) and name != stop.name:
        lines.append(f"All its cells have run, so you can also go on with {MINE}/{name}.ipynb.")
    replace(root, {path: json.dumps({"name": stop.name})})
    lines.append(
        "Run its first cell. It runs the cells up to there again, except those that measure time, draw or ask."
    )
    return "\n".join(lines), stop.name


def ago(when: datetime) -> str:
    """How long ago that was, in words."""
    days = (datetime.now().date() - when.date()).days
    return f"{days} days ago" if days > 1 else "yesterday" if days == 1 else f"today at {when:%H:%M}"
