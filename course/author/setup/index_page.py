"""The map, an overview of the notebooks: the trail, the five, and those in `more/`, each with its title and promise.

`page` is the page that JupyterLab shows first, in the reader's `mine/`. The site has the same three lists.
"""

from pathlib import Path

from course.reader.language import later, say, spoken
from course.reader.notebooks.minutes import minutes_of, trail_takes
from course.reader.notebooks.names import more_in, names_in, original, trail_in
from course.reader.notebooks.promises import entry, plain

FILE = "map.md"
# The one answer to "where do I begin?"; README and the site give it, too.
BEGIN = later("**Begin with the trail.** It goes through all five levels, and you write code on each of them.")
AFTER = later(
    "After the trail, go on with 1. If you write PyTorch, you can begin with 3, and if you write Keras, with 5."
)


def hours(taken: int) -> str:
    """Return minutes in words, to the nearest half hour: "two and a half hours"."""
    if spoken():
        return say("{hours} hours", hours=f"{round(taken / 30) / 2:g}")
    whole, half = divmod(round(taken / 30), 2)
    number = ("no", "one", "two", "three", "four", "five")[whole]
    if half:
        number = f"{number} and a half" if whole else "half an"
    return f"{number} hour{'s' * (whole > 1 or bool(half and whole))}"


def listed(root: Path, names: list[str], folder: str = "") -> str:
    """Return a numbered Markdown list of notebooks. Each title links to the file; `folder` is its path's prefix."""
    lines = []
    for number, each in enumerate((entry(root, name) for name in names), 1):
        title, promise = each.title, plain(each.promise)
        if each.name == original(each.name):
            title, promise = say(title), say(promise)
        told = {"title": title, "where": f"{folder}{each.name}.ipynb", "promise": promise}
        minutes = minutes_of(root, original(each.name))
        lines.append(
            say("{number}. [{title}]({where}), {minutes} min. {promise}", number=number, minutes=minutes, **told)
        )
    return "\n".join(lines)


def trail(root: Path, folder: str = "") -> str:
    return listed(root, trail_in(root, spoken()), folder)


def five(root: Path, folder: str = "") -> str:
    return listed(root, names_in(root), folder)


def more(root: Path, folder: str = "") -> str:
    """Return a Markdown list of the notebooks in `more/`, with one item for each level."""
    lines = []
    for core in names_in(root):
        entries = [entry(root, name) for name in more_in(root) if name.startswith(f"more/{core[:2]}")]
        links = " · ".join(f"[{say(each.title)}]({folder}{each.name}.ipynb)" for each in entries)
        level = {"number": core[:2].lstrip("0"), "name": core[3:].replace("_", " ")}
        lines.append(say("- Level {number}, {name}: {links}", links=links, **level))
    return "\n".join(lines)


def page(root: Path) -> str:
    """Return the map as a Markdown page, for the folder that contains the notebooks."""
    parts = [say("# The map"), say(BEGIN)]
    if trail_in(root):
        parts += [say("## The trail: {hours}", hours=hours(trail_takes(root))), trail(root)]
    along = say(" What you wrote on the trail is already in them.")
    parts += [say("## The five: an evening each"), say(AFTER) + along, five(root)]
    if more_in(root):
        parts += [say("## What branches off: one idea each"), more(root)]
    parts.append(
        say(
            "`python3 -m course resume` says where you stopped and restores what you had there. "
            "`python3 -m course progress` counts what you have done."
        )
    )
    return "\n\n".join(parts) + "\n"
