"""How long the notebooks take: each of the five at most two sittings of 85 minutes, none of the trail over 40, no other over 66.

And each heading says what is counted.
"""

import functools
import itertools
import re

import nbformat
import pytest

from course import build
from course.reader.notebooks import minutes
from course.reader.notebooks.cells import BuildError, code_of

NAMES = build.all_in(build.ROOT)
SITTING = 85  # minutes
LIMIT = {"more": 66, "trail": 40}  # minutes, by the folder
FOLDED = 250  # lines that are folded in a notebook
LONGEST, LONGEST_FOLDED = 25, 60  # lines of a cell that is shown, and of one that is folded
LONGEST_CLASS = 40  # of a cell that holds one class
AT_ONCE = 37  # minutes to the next place where one may stop: half an hour, and a thought to its end
STOP = "**A good place to stop.** "


@functools.cache
def cells_of(name):
    return build.from_text(build.ROOT, name).cells


@functools.cache
def sections_of(name):
    return minutes.sections(cells_of(name), build.ROOT)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_takes_no_longer_than_it_may(name, tell):
    found = sections_of(name)
    folded = sum(section.folded for section in found)
    tell("minutes of the notebooks, counted", f"{name:<24} {minutes.total(found):>6.1f} min, {folded:>4} lines folded")
    assert minutes.total(found) <= LIMIT.get(name.split("/")[0], 2 * SITTING), minutes.table(name, found)
    assert folded <= FOLDED


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_is_too_long(name):
    long = []
    for number, cell in enumerate(cells_of(name), 1):
        if cell.cell_type == "code":
            most = LONGEST_FOLDED if "hide-input" in cell.metadata.get("tags", []) else LONGEST
            lines = len(code_of(cell.source))
            if re.search(r"^class ", cell.source, re.MULTILINE) and not re.search(
                r"^(def|@)", cell.source, re.MULTILINE
            ):
                most = max(most, LONGEST_CLASS)
            long += [build.title(number, cell.source) + f": {lines} lines"] * (lines > most)
    assert long == []


@pytest.mark.parametrize("name", NAMES)
def test_nobody_reads_long_without_a_good_place_to_stop(name):
    """From the beginning to the first one, from each to the next, and from the last one to the end."""
    cells, ends = cells_of(name), [0.0]
    for count, cell in enumerate(cells):
        if STOP in cell.source:
            before = nbformat.v4.new_markdown_cell(cell.source.split(STOP)[0])
            ends.append(minutes.total(minutes.sections([*cells[:count], before], build.ROOT)))
    ends.append(minutes.total(sections_of(name)))
    found = [round(end - begin, 1) for begin, end in itertools.pairwise(ends)]
    assert max(found) <= AT_ONCE, found


@pytest.mark.parametrize("name", NAMES)
def test_a_heading_says_what_is_counted(name):
    found = minutes.broken(sections_of(name))
    assert not found, "\n".join([*found, "run `python3 -m course build --minutes`"])


# The rule.


def notebook(*cells):
    new = nbformat.v4
    return [new.new_markdown_cell(c) if c.startswith(("#  ", "## ", "A ")) else new.new_code_cell(c) for c in cells]


def section(*cells, root=build.ROOT):
    (_, found) = minutes.sections(notebook("## Title (3 min)", *cells), root)
    return found


@pytest.mark.quick
def test_words_lines_questions_figures_and_blanks_are_counted():
    question = "checks.predict(\n    '01-why', 'Why?'\n)"
    found = section(
        "A word or two, [with](https://example.org/some words) `code` and a block:\n\n```\nno words\n```",
        "# a comment\nx = 1\n\n",
        question,
        "checks.answer_to('01-why')",
        "widgets.explore(f)",
        "#| export room blank f\ndef f():\n    ...",
    )
    assert found[3:8] == (9, 5, 2, 1, 0) and found.writes == ("f",)
    assert found.minutes == pytest.approx(9 / 100 + 5 / 8 + 3 * 3.5) and found.rounded == 11


def test_a_function_that_is_written_at_most_takes_longer_there():
    found = section("#| export room most f\ndef f(x):\n    y = x + 1\n    return y")
    assert found.minutes == 3 / 8 and found.writes == ("f",)
    assert found.at_most == pytest.approx(1 / 8 + 2 + 2 * 1.5)


def test_a_wide_line_counts_twice():
    assert section(f"x = {'1' * 84}").lines == 1 and section(f"x = {'1' * 85}").lines == 2


def test_folded_code_and_a_folded_question_count_in_full():
    hidden, asked = notebook("x = 1\ny = 2", "checks.predict(\n'01-why', 'Why?')")
    for cell in (hidden, asked):
        cell.metadata["tags"] = ["hide-input"]
    (_, found) = minutes.sections([*notebook("## Title (3 min)"), hidden, asked], build.ROOT)
    assert found[3:8] == (0, 0, 1, 0, 2) and found.minutes == 2 / 8 + 3.5
    assert section("A \n<details><summary>Hint</summary>so many words</details>\nB").words == 2


def test_source_that_is_shown_counts(tmp_path):
    module = tmp_path / "levels_more" / "hardware" / "gpu" / "device.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "'''Text.'''\n\n\n@cached\ndef f(x):\n    # why\n    return x\n\n\nclass C:\n    def g(self):\n        return 1\n"
    )
    ways = {
        "from levels_more.hardware.gpu import device\npage.source(device.f, device.C.g)": 3 + 2,
        "from levels_more.hardware.gpu.device import C as K\npage.source(K)": 3,
        "from levels_more import f\npage.source(f)": 3,  # which its front hands on
        "def h():\n    pass\npage.source(h)": 1,  # shown above
    }
    for source, lines in ways.items():
        assert section(source, root=tmp_path).lines == 2 + lines, source
    with pytest.raises(BuildError, match="device.nothing: no function or class is called so in levels_more"):
        section("from levels_more.hardware.gpu import device\npage.source(device.nothing)", root=tmp_path)


def test_minutes_are_written_beside_the_headings():
    text = "# %% [markdown]\n# # Title\n# ## One\n# word\n# ## Two (9 min, optional)\n# ## Build\n"
    cells = notebook("#  Title\n## One\nword\n## Two (9 min, optional)\n## Build")
    found = minutes.sections(cells, build.ROOT)
    assert minutes.written(text, found) == text.replace("One", "One (1 min)").replace("9 min", "1 min")
    assert minutes.broken(found) == [
        "One: 1 min are counted, the heading says none",
        "Two: 1 min are counted, the heading says 9",
    ]
