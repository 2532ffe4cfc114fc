"""The five notebooks end alike, so that a reader finds the same thing in the same place on every level."""

import re

import pytest

from course import build
from course.author.builder.sitting import room_of
from course.reader.notebooks import minutes

NAMES = build.names_in(build.ROOT)
TASKS = ["Data", "Model and training", "Result", "The second task: a net"]
END = [
    "The two tasks on this level",
    "What this level cost",
    "Side by side",
    "The same in TensorFlow and PyTorch",
    "What you do differently now",
    "Exercises",
    "Where to go from here",
    "Build",
]
WIDTH = 88  # characters of a line of code


def sections(name):
    """The sections of a notebook, in order: {title: (its subtitles, the sources of its code cells)}."""
    found = {}
    title = ""
    for cell in build.from_text(build.ROOT, name).cells:
        if cell.cell_type == "code":
            if found:
                found[title][1].append(cell.source)
            continue
        text = re.sub(r"^```.*?^```", "", cell.source, flags=re.MULTILINE | re.DOTALL)
        for hashes, heading in re.findall(r"^(##+) (.+)$", text, re.MULTILINE):
            if hashes == "##":
                title = re.sub(r" \(.*\)$", "", heading)
                assert title not in found, title
                found[title] = ([], [])
            elif hashes == "###":
                found[title][0].append(heading)
    return found


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_the_five_end_with_the_same_headings_and_what_they_promise(name):
    """Both tasks, their cost, and the level beside the one below."""
    found = sections(name)
    assert list(found)[-len(END) :] == END
    titles, sources = found["The two tasks on this level"]
    tasks = "\n".join(sources)
    assert titles == TASKS and "linear_regression(" in tasks and "dnn_classifier(" in tasks
    assert found["What this level cost"][1] and found["The same in TensorFlow and PyTorch"]
    assert any("compare.side_by_side(" in source for source in found["Side by side"][1])
    assert "build.level(" in found["Build"][1][-1]


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES + build.trail_in(build.ROOT))
def test_no_line_of_code_scrolls(name):
    cells = build.from_text(build.ROOT, name).cells
    code = [line for cell in cells if cell.cell_type == "code" for line in cell.source.split("\n")]
    assert [line for line in code if len(line) > WIDTH] == []


@pytest.mark.quick
@pytest.mark.parametrize("name", build.all_in(build.ROOT))
def test_only_exercises_are_called_optional(name):
    text = build.text_path(build.ROOT, name).read_text(encoding="utf-8")
    headings = re.findall(r"^# #+ (.+optional.*)$", text, re.MULTILINE)
    assert all(heading.startswith("Exercises") for heading in headings), headings


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_every_exported_line_is_on_the_path(name):
    """Shown when the notebook opens, with its minutes in the notebook's sum, and with prose within two cells."""
    cells = build.from_text(build.ROOT, name).cells
    timed = {section.title for section in minutes.sections(cells, build.ROOT) if section.timed}
    title = ""
    off = []
    for number, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            title = ([title] + re.findall(r"^## (.+?)(?: \(.*\))?$", cell.source, re.MULTILINE))[-1]
        elif room_of(cell):
            near = cells[max(0, number - 2) : number + 3]
            told = any(each.cell_type == "markdown" and minutes.words(each.source) > 5 for each in near)
            if "hide-input" in cell.metadata.get("tags", []) or title not in timed or not told:
                off.append(build.title(number + 1, cell.source))
    assert off == []
