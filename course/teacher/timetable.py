"""The timetables in TEACHING.md: five weeks, eight weeks and one day.

`python -m course.teacher.timetable` writes them again.
"""

import math
from pathlib import Path

from course.reader import files
from course.reader.notebooks import minutes
from course.reader.notebooks.cells import halves
from course.reader.notebooks.names import names_in, trail_in
from course.reader.notebooks.stored import from_text

ROOT = Path(__file__).resolve().parents[2]
START = 9 * 60  # when the one-day course begins, in minutes after midnight
# Each row is a notebook, the minutes that it may take, and the sections that the day may leave out: they are dropped in
# this order until the rest fits. Or it is a pause and its minutes.
DAY = [
    (
        "01_hardware",
        75,
        (
            "Arrays that know their end",
            "Memory",
            "The assembler",
            "What this level cost",
            "A loop",
            "The line as a program",
            "Side by side",
        ),
    ),
    ("Pause", 10),
    (
        "02_kernels",
        55,
        (
            "A plan, made once",
            "Each op has a planner",
            "Plans are kept",
            "One scalar function, one loop",
            "One planner for all of them",
            "An op in one line",
            "Rows by number",
            "Many numbers become one",
            "The product, and the order of its loops",
            "Your own kernel",
        ),
    ),
    ("One exercise of notebook 01 or 02, each student alone", 20),
    ("Lunch", 60),
    (
        "03_low_level",
        75,
        (
            "The row program",
            "A module finds its variables",
            "An op, one row at a time",
            "Which ops have rows",
            "Replay",
            "Written down, not run",
            "Dead code",
            "Tensors",
            "The whole walk",
            "The other rules",
            "A function, compiled once",
            "Ten rows",
            "Checking a rule with a nudge",
        ),
    ),
    ("Pause", 10),
    (
        "04_mid_level",
        80,
        (
            "Data that arrives in batches",
            "The same in TensorFlow and PyTorch",
            "The race",
            "The surprise, explained",
            "A surprise to begin with",
            "What you do differently now",
        ),
    ),
    ("Pause", 10),
    (
        "05_high_level",
        60,
        ("A callback", "The same in TensorFlow and PyTorch", "A model", "A surprise to begin with"),
    ),
    ("Questions, and the great figures of all machines side by side", 10),
]


def for_the_class(name):
    """What a timetable covers: a notebook's introduction (without a title) and all sections that are timed."""
    return [section for section in minutes.sections(from_text(ROOT, name).cells, ROOT) if section.timed]


def first_sitting(name):
    """The sections of a notebook up to the end of its first sitting."""
    cells, _ = halves(from_text(ROOT, name).cells, name)
    return [section for section in minutes.sections(cells, ROOT) if section.timed]


def in_all(sections):
    """The total minutes of the sections, rounded once: the rounded minutes of the headings may have another sum."""
    return round(sum(section.minutes for section in sections))


def how_long():
    """A table: the minutes and the functions to write, for the trail and for each of the five, at both depths."""
    lines = ["| notebooks | minutes | functions to write | minutes at *most* | functions |", "|---|--:|--:|--:|--:|"]
    lines.append(f"| the trail, all five | {minutes.trail_takes(ROOT)} | {blanks_in(trail_in(ROOT))} | | |")
    for name in names_in(ROOT):
        found = for_writers(name)
        at_most = round(sum(section.at_most for section in found))
        writes = sum(len(section.writes) for section in found)
        lines.append(f"| `{name}` | {minutes.minutes_of(ROOT, name)} | {blanks_in([name])} | {at_most} | {writes} |")
    return "\n".join(lines)


def for_writers(name):
    """The sections at the depth *most*: those that are timed, and any other in which there is a function to write."""
    found = minutes.sections(from_text(ROOT, name).cells, ROOT)
    return [section for section in found if section.timed or section.writes]


def blanks_in(names):
    """How many functions one writes in these notebooks."""
    return sum(section.blanks for name in names for section in for_the_class(name))


def eight_weeks():
    """A table: the five notebooks at the depth *most*, in eight parts."""
    parts = [(name, section) for name in names_in(ROOT) for section in for_writers(name)]
    lines = ["| week | from, to | minutes | functions to write |", "|---|---|--:|---|"]
    for week, part in enumerate(divided(parts, 8, lambda each: each[1].at_most), 1):
        told = []
        for name in dict.fromkeys(name for name, _ in part):
            sections = [section for other, section in part if other == name]
            titles = [f"*{section.title}*" if section.title else "the beginning" for section in sections]
            told.append(f"`{name}`: {titles[0]} to {titles[-1]}" if titles[1:] else f"`{name}`: {titles[0]}")
        writes = ", ".join(f"`{key}`" for _, section in part for key in section.writes)
        taken = round(sum(section.at_most for _, section in part))
        lines.append(f"| {week} | {' · '.join(told)} | {taken} | {writes} |")
    return "\n".join(lines)


def divided(parts, count, weight):
    """Split the parts, in order, into at most `count` runs. The heaviest run is as light as possible, to within 1."""
    limit = max(map(weight, parts))
    while True:
        runs = [[]]
        for part in parts:
            if runs[-1] and sum(map(weight, runs[-1])) + weight(part) > limit:
                runs.append([])
            runs[-1].append(part)
        if len(runs) <= count:
            return runs
        limit += 1


def five_weeks():
    """A table: for each week its notebook, the first sitting, in class, and the second, for homework."""
    lines = [
        "| week | in class, the first sitting | minutes | at home, the second | minutes |",
        "|---|---|--:|---|--:|",
    ]
    for week, name in enumerate(names_in(ROOT), 1):
        found = for_the_class(name)
        here = len(first_sitting(name))
        lesson = in_all(found[:here])
        last = found[here - 1].title
        first = found[here].title
        row = f"**{week}** `{name}` | to *{last}* | {lesson} | from *{first}* on | {in_all(found) - lesson}"
        lines.append(f"| {row} |")
    return "\n".join(lines)


def in_a_day(name, limit, rest):
    """The sections of a notebook that the day keeps. Raises ValueError for unknown titles in `rest`."""
    kept = for_the_class(name)
    titles = [section.title for section in kept]
    if unknown := set(rest) - {*titles}:
        raise ValueError(f"the day leaves out {sorted(unknown)}, and {name} has {titles}")
    for title in rest:
        if in_all(kept) > limit:
            kept = [section for section in kept if section.title != title]
    return kept


def one_day():
    """A table: when each part of the day begins. Raises ValueError if DAY leaves out a section that does not exist."""
    lines = ["| at | what | minutes |", "|---|---|--:|"]
    now = START
    for name, length, *rest in DAY:
        what = name
        if rest:
            kept = in_a_day(name, length, *rest)
            length = 5 * math.ceil(in_all(kept) / 5)
            what = f"`{name}`: " + " · ".join(section.title for section in kept if section.title)
        lines.append(f"| {now // 60}:{now % 60:02} | {what} | {length} |")
        now += length
    return "\n".join([*lines, f"| {now // 60}:{now % 60:02} | The end | |"])


TABLES = {"how long": how_long, "five weeks": five_weeks, "eight weeks": eight_weeks, "one day": one_day}


def main():
    page = ROOT / "TEACHING.md"
    files.write(page, files.with_tables(page.read_text(encoding="utf-8"), TABLES, "course/teacher/timetable.py"))


if __name__ == "__main__":
    main()
