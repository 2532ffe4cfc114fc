"""The map, an overview of the notebooks: the trail, the five, and those in `more/`, each with its title and promise.

`page` is the page that JupyterLab shows first, in the reader's `mine/`. The site has the same three lists.
"""

import re
from pathlib import Path
from typing import NamedTuple

from course.reader.notebooks.cells import read_text
from course.reader.notebooks.minutes import minutes_of, trail_takes
from course.reader.notebooks.names import more_in, names_in, text_path, trail_in

FILE = "map.md"
# The one answer to "where do I begin?"; README and the site give it, too.
BEGIN = "**Begin with the trail.** It goes through all five levels, and you write code on each of them."
AFTER = "After the trail, go on with 1. If you write PyTorch, you can begin with 3, and if you write Keras, with 5."


class Entry(NamedTuple):
    """A notebook on the map."""

    name: str
    title: str
    promise: str  # its first sentence in bold


def entry(root: Path, name: str) -> Entry:
    """Return the title and the promise of a notebook.

    They are read from the text, without parsing it as a notebook: JupyterLab opens on this page and should not wait.
    """
    text = read_text(text_path(root, name))
    first = text.split("\n# %%", 1)[0]
    title = re.search(r"^# # (?:Trail )?(?:\d+ (?:more )?· )?(.+)$", first, re.MULTILINE)
    promise = re.search(r"^# \*\*(.+?)\*\*", first, re.MULTILINE | re.DOTALL)
    told = " ".join(promise[1].replace("\n# ", " ").split()) if promise else ""
    return Entry(name, title[1] if title else name, told)


def hours(taken: int) -> str:
    """Return minutes in words, to the nearest half hour: "two and a half hours"."""
    whole, half = divmod(round(taken / 30), 2)
    number = ("no", "one", "two", "three", "four", "five")[whole]
    if half:
        number = f"{number} and a half" if whole else "half an"
    return f"{number} hour{'s' * (whole > 1 or bool(half and whole))}"


def listed(root: Path, names: list[str], folder: str = "") -> str:
    """Return a numbered Markdown list of notebooks. Each title links to the file; `folder` is its path's prefix."""
    lines = []
    for number, each in enumerate((entry(root, name) for name in names), 1):
        taken = minutes_of(root, each.name)
        lines.append(f"{number}. [{each.title}]({folder}{each.name}.ipynb), {taken} min. {plain(each.promise)}")
    return "\n".join(lines)


def plain(promise: str) -> str:
    """Return a promise without the words with which all of them begin."""
    told = re.sub(r"^In this notebook ", "", promise)
    return told[:1].upper() + told[1:]


def trail(root: Path, folder: str = "") -> str:
    return listed(root, trail_in(root), folder)


def five(root: Path, folder: str = "") -> str:
    return listed(root, names_in(root), folder)


def more(root: Path, folder: str = "") -> str:
    """Return a Markdown list of the notebooks in `more/`, with one item for each level."""
    lines = []
    for core in names_in(root):
        entries = [entry(root, name) for name in more_in(root) if name.startswith(f"more/{core[:2]}")]
        links = " · ".join(f"[{each.title}]({folder}{each.name}.ipynb)" for each in entries)
        lines.append(f"- Level {core[:2].lstrip('0')}, {core[3:].replace('_', ' ')}: {links}")
    return "\n".join(lines)


def page(root: Path) -> str:
    """Return the map as a Markdown page, for the folder that contains the notebooks."""
    parts = ["# The map", BEGIN]
    if trail_in(root):
        parts += [f"## The trail: {hours(trail_takes(root))}", trail(root)]
    parts += ["## The five: an evening each", f"{AFTER} What you wrote on the trail is already in them.", five(root)]
    if more_in(root):
        parts += ["## What branches off: one idea each", more(root)]
    parts.append(
        "`python3 -m course resume` says where you stopped and restores what you had there. "
        "`python3 -m course progress` counts what you have done."
    )
    return "\n\n".join(parts) + "\n"
