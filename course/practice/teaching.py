"""What README.md, TEACHING.md and the site take from the course: timetables, three pictures and their descriptions.

`python -m course.practice.teaching` writes the timetable and the map anew from the notebooks and their minutes. With
the word `pictures` it makes the pictures anew, too, or those that are named behind it: `five_levels` measures on this
machine; `side_by_side`, which README.md shows, and `sliders` need this system's browser.
"""

import importlib
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HEADING = re.compile(r"^# ## (.+?)(?: \((?:(\d+) min)?(?:, )?(optional)?\))?$", re.MULTILINE)
START = 9 * 60  # of the one day, in minutes
LESSON = 90  # minutes
TOOK = {  # minutes: what three readers took for these notebooks, all cells and predictions, without exercises
    "01_hardware": 115,
    "02_kernels": 107,
    "03_low_level": 129,
    "04_mid_level": 108,
    "05_high_level": 109,
}
TOOK_TRAIL = 142
DAY = [  # a notebook and the sections of its body that the day leaves out, or a pause and its minutes
    ("01_hardware", ("Buffers that know their end", "A net", "What a step costs", "Side by side with plain Python")),
    ("Pause", 10),
    (
        "02_kernels",
        (
            "A plan, made once",
            "Plans are kept",
            "One scalar function, one loop",
            "An op in one line",
            "Many numbers become one",
            "The product, and the order of its loops",
            "Rows by number",
        ),
    ),
    ("One exercise of notebook 01 or 02, each at their own", 30),
    ("Lunch", 60),
    (
        "03_low_level",
        (
            "Variables",
            "The chain rule, drawn",
            "Ten rows",
            "Checking a rule with a nudge",
            "Dead code",
            "Replay",
            "The program by rows",
            "`function`",
            "What compiling buys",
        ),
    ),
    ("Pause", 10),
    (
        "04_mid_level",
        (
            "A surprise to begin with",
            "The race",
            "Data that arrives in batches",
            "Two rings in batches",
            "The surprise, explained",
            "The same in TensorFlow and PyTorch",
        ),
    ),
    ("Pause", 10),
    ("05_high_level", ("A surprise to begin with", "A model", "A callback", "The same in two frameworks")),
    ("Questions, and the cards of all machines side by side", 15),
]


def in_a_table(text):
    """A text as it stands in a cell of a table, where a bar would begin another cell."""
    return text.replace("|", r"\|")


class Section(NamedTuple):
    title: str
    minutes: int  # 0: none are given
    optional: bool

    def __str__(self):
        return in_a_table(f"{self.title} {self.minutes}" if self.minutes else self.title)


def sections(name):
    """The sections of a notebook, as its headings tell them."""
    text = (ROOT / "notebooks" / "text" / f"{name}.py").read_text(encoding="utf-8")
    return [Section(title, int(minutes or 0), bool(optional)) for title, minutes, optional in HEADING.findall(text)]


def in_class(section):
    return not section.optional and section.title not in ("Exercises", "Build")


def taken(name):
    """The sections for the class, with the minutes that readers took: the headings', stretched to what was measured."""
    told = [section for section in sections(name) if in_class(section)]
    factor, so_far, found = TOOK[name] / sum(section.minutes for section in told), 0, []
    for section in told:
        begin, so_far = round(factor * so_far), so_far + section.minutes
        found.append(section._replace(minutes=round(factor * so_far) - begin))
    return found


def how_long():
    """A table: of the trail and of each of the five, the minutes by the rule, and those that readers took."""
    from course.builder.names import trail_in

    lines = ["| notebooks | by the headings | by the readers |", "|---|--:|--:|"]
    lines.append(f"| the trail, all five | {sum(map(minutes, trail_in(ROOT)))} | {TOOK_TRAIL} |")
    return "\n".join([*lines, *(f"| `{name}` | {minutes(name)} | {took} |" for name, took in TOOK.items())])


def minutes(name):
    """What a notebook takes by the rule, rounded once: what stands before its first heading, too; nothing optional."""
    from course.setup import index_page

    return index_page.counted(ROOT, name)


def five_weeks():
    """A table: for each week its notebook, the sections that fill a lesson, and those that are left for home."""
    lines = ["| week | in class | minutes | at home | minutes |", "|---|---|--:|---|--:|"]
    for week, path in enumerate(sorted(ROOT.glob("notebooks/text/*.py")), 1):
        told, here = taken(path.stem), 0
        while sum(section.minutes for section in told[: here + 1]) <= LESSON:
            here += 1
        row = [f"**{week}** `{path.stem}`"]
        for part in (told[:here], told[here:]):
            row += [" · ".join(map(str, part)), str(sum(section.minutes for section in part))]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def one_day():
    """A table: when each part of the day begins. Raises ValueError where it leaves out what no notebook holds."""
    lines, now = ["| at | what | minutes | left out |", "|---|---|---|---|"], START
    for name, rest in DAY:
        if isinstance(rest, int):
            what, length, out = name, rest, ""
        else:
            told = taken(name)
            if unknown := set(rest) - {section.title for section in told}:
                raise ValueError(
                    f"the day leaves out {sorted(unknown)}, and {name} has {[each.title for each in told]}"
                )
            kept = [section for section in told if section.title not in rest]
            length = 5 * round(sum(section.minutes for section in kept) / 5)
            what, out = f"`{name}`: " + " · ".join(map(str, kept)), in_a_table(" · ".join(rest))
        lines.append(f"| {now // 60}:{now % 60:02} | {what} | {length} | {out} |")
        now += length
    return "\n".join([*lines, f"| {now // 60}:{now % 60:02} | The end | | |"])


def from_the_map(table, up=""):
    """One of the tables of the map, with links to the project's folder, which lies `up` from the page."""

    def drawn():
        from course.setup import index_page

        return getattr(index_page, table)(ROOT, f"{up}notebooks/")

    return drawn


CONTENTS = "course/reading/prose/contents.md"
TABLES = {  # on each page
    "TEACHING.md": {"how long": how_long, "five weeks": five_weeks, "one day": one_day},
    "README.md": {},  # its pictures are described alone
    CONTENTS: {"what branches off": from_the_map("more", "../../../")},
}


def with_tables(text, tables):
    """The text of a page with each of these tables as it is now. Raises ValueError where a table has no place."""
    for name, table in tables.items():
        begin, end = f"<!-- {name}: written by course/practice/teaching.py -->\n", f"<!-- end of {name} -->\n"
        parts = re.split(f"(?<={re.escape(begin)})[^<]*(?={re.escape(end)})", text)
        if len(parts) != 2:
            raise ValueError(f"expected the lines {begin}{end}once, with nothing but the table between them")
        text = f"{parts[0]}{table()}\n{parts[1]}"
    return text


def five_levels():
    """The great figure, measured now: its PNG, and what it says in words."""
    from course import figures, reference, tasks
    from course.figures import tour
    from course.inspection import compare

    levels = [importlib.import_module(f"levels.{level}").tasks for level in figures.LEVELS]
    on_all = [reference.linear_regression, *(level.linear_regression for level in levels)]
    picture = tour.five_levels(compare.measure(tasks.linear(), *on_all))
    return picture.png, picture.text


MOVED = """from course import figures
from course.figures import widgets

start = {"order": "ijk", "step": 303}
widgets.explore(figures.loop_order, "", start, order=figures.ORDERS, step=range(513))
"""


def sliders():
    """A figure with its sliders, as JupyterLab shows it: its PNG, and what it says in words."""
    import nbformat
    from PIL import Image

    from course.builder.files import copy_project
    from course.builder.notebooks import METADATA, write_notebook
    from course.setup import browser

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scratch = Path(folder).resolve()
        root = copy_project(ROOT, scratch / "copy", [])
        cells = [nbformat.v4.new_code_cell(MOVED)]
        write_notebook(root, "one", nbformat.v4.new_notebook(cells=cells, metadata=METADATA))
        with browser.jupyterlab(root, scratch) as address, browser.launched() as running:
            tab = running.new_page(viewport={"width": 1200, "height": 1000})
            tab.goto(address("one"))
            if errors := browser.run_all(tab):
                raise RuntimeError("\n".join(errors))
            figure = tab.locator(".jp-OutputArea-output", has=tab.locator("img.widget-image"))
            text = figure.get_by_role("status").inner_text()
            shot = Image.open(io.BytesIO(figure.screenshot())).convert("RGB")
    small = io.BytesIO()
    shot.quantize(256, dither=Image.Dither.NONE).save(small, "png")
    return small.getvalue(), f"A figure with two sliders, order and step. {text}"


def five_side_by_side():
    """The five levels side by side, as notebook 05 shows them: their PNG, and what they say in words."""
    import json

    from course import reading
    from course.inspection import side_by_side
    from course.setup import browser

    notebook = json.loads((ROOT / "notebooks" / "05_high_level.ipynb").read_text(encoding="utf-8"))
    page = next(page for page, _ in reading.outputs(notebook) if reading.HOUSE in page)
    loss = re.search("<b>([^<]+)</b> <code>0x", page)[1]
    words = "One training step of the linear regression, written on each of the five levels. "
    with browser.launched() as running:
        return side_by_side.picture(running, page), f"{words}All five end on the same loss, {loss}."


PICTURES = {"five_levels": five_levels, "side_by_side": five_side_by_side, "sliders": sliders}


def with_description(page, name, text):
    """A page in which the image `pictures/NAME.png` is described by this text."""
    return re.sub(rf"!\[[^\]]*\](\([./]*pictures/{name}\.png\))", lambda found: f"![{text}]{found[1]}", page)


def main(arguments):
    for name, tables in TABLES.items():
        write(ROOT / name, with_tables((ROOT / name).read_text(encoding="utf-8"), tables))
    for name in (arguments[1:] or PICTURES) if arguments[:1] == ["pictures"] else ():
        png, text = PICTURES[name]()
        (ROOT / "pictures" / f"{name}.png").write_bytes(png)
        for page in TABLES:
            write(ROOT / page, with_description((ROOT / page).read_text(encoding="utf-8"), name, text))


def write(path, text):
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
