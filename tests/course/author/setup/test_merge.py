"""A newer course in a reader's notebook: what the reader wrote stays, what the course changed arrives."""

import copy

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.author.build import hash_of
from course.author.setup.merge import ASIDE, NOTE, content, merge

new = nbformat.v4


def cells(*sources: str) -> list:
    """Cells as a text gives them: prose where a source begins with `# `, and ids that are hashes."""
    made = [new.new_markdown_cell(s) if s.startswith("# ") else new.new_code_cell(s) for s in sources]
    for k, cell in enumerate(made):
        cell.id = hash_of(cell.cell_type, cell.source, sources[:k].count(cell.source))[:8]
    return made


def edited(base: list, changes: dict[int, str | None], added: dict[int, str] | None = None) -> list:
    """What a reader's work leaves: cells changed or deleted (None) under their old ids, others added behind a place."""
    result = [new.new_code_cell(added[-1])] if added and -1 in added else []
    for k, cell in enumerate(copy.deepcopy(base)):
        cell.source = changes.get(k, cell.source)
        result += [cell] if cell.source is not None else []
        result += [new.new_code_cell(added[k])] if added and k in added else []
    return result


def sources(merged: list) -> list[str]:
    return [cell.source for cell in merged]


BASE = (
    "# Hardware",
    "import numpy as np",
    "#| export memory\ndef alloc(shape):\n    return np.zeros(shape)",
    "alloc(2)",
)


def test_each_side_keeps_what_it_alone_changed():
    base = cells(*BASE)
    mine = edited(base, {3: "alloc(3)"}, {1: "mine = 1"})
    course = cells("# Hardware: memory", *BASE[1:], "alloc(4)")
    merged, disputed = merge(base, mine, course)
    assert sources(merged) == ["# Hardware: memory", BASE[1], "mine = 1", BASE[2], "alloc(3)", "alloc(4)"]
    assert not disputed


def test_what_both_changed_stays_with_the_new_one_beneath():
    base, theirs = cells(*BASE), BASE[2].replace("zeros", "ones")
    mine = edited(base, {2: BASE[2] + "  # mine"}, {2: "alloc(7)"})
    merged, disputed = merge(base, mine, cells(*BASE[:2], theirs, BASE[3]))
    assert sources(merged) == [*BASE[:2], BASE[2] + "  # mine", NOTE.format(key="Y"), theirs, "alloc(7)", BASE[3]]
    assert [cell.cell_type for cell in merged[2:5]] == ["code", "markdown", "raw"]  # nothing of the new one runs
    assert disputed == ["a new cell (`def alloc(shape):`)"]


def test_prose_that_both_changed():
    base = cells("# One word about loops, which begin here.")
    merged, _ = merge(base, edited(base, {0: "# Two"}), cells("# One word about loops, which begin there."))
    assert sources(merged)[1] == NOTE.format(key="M")


def test_the_same_change_on_both_sides_is_no_dispute():
    base = cells(*BASE)
    merged, disputed = merge(base, edited(base, {3: "alloc(3)"}), cells(*BASE[:3], "alloc(3)"))
    assert sources(merged) == [*BASE[:3], "alloc(3)"] and not disputed


@pytest.mark.parametrize(
    "stub, filled, changed",
    [
        (
            'def half(x):\n    ...\n\n\nexercises.check("01-1", half)',
            'def half(x):\n    return x / 2\n\n\nexercises.check("01-1", half)',
            'def half(number):\n    """Divide by two, and say why."""\n    ...\n\n\nexercises.check("01-1", half)',
        ),
        (
            "#| export tensors blank add_rule\ndef rule(dy):\n    ...",
            "#| export tensors blank add_rule\ndef rule(dy):\n    return dy, dy",
            "#| export autodiff blank add_rule\ndef rule_of_add(dy, a, b):\n    '''Two gradients.'''\n    ...",
        ),
    ],
)
def test_a_blank_is_known_by_its_key_wherever_it_goes(stub, filled, changed):
    base = cells("# Task", stub, "x = 1", "y = 2")
    course = cells("x = 1", "y = 2", "# A new task", changed)
    merged, disputed = merge(base, edited(base, {1: filled}), course)
    assert sources(merged) == ["x = 1", "y = 2", "# A new task", filled] and not disputed
    merged, _ = merge(base, edited(base, {}), course)  # still empty: the new one
    assert sources(merged) == ["x = 1", "y = 2", "# A new task", changed]


@pytest.mark.parametrize("marker", ["#| export memory blank freed", "#| blank freed"])
def test_a_blank_whose_key_is_gone_is_kept_aside_and_named(marker):
    """Even if it looks like a new blank: that arrives, too, and is empty."""
    stub = f"{marker}\ndef freed(array):\n    'Give back the memory of an array.'\n    ..."
    base = cells("# Task", stub, "x = 1")
    course = cells("# Task", stub.replace("freed", "released"), "x = 1")
    half = stub.replace("    ...", "    LOG.pop()\n    ...")
    merged, disputed = merge(base, edited(base, {1: half}), course)
    assert [cell.cell_type for cell in merged] == ["markdown", "markdown", "raw", "code", "code"] and not disputed
    assert sources(merged)[1:4] == [ASIDE.format(key="freed"), half, course[1].source]
    assert sources(merge(course, merged, course)[0]) == sources(merged), "and it stays there"
    assert sources(merge(base, edited(base, {}), course)[0]) == sources(course), "nothing was written"


def test_what_the_reader_deleted_stays_away_until_it_changes():
    base = cells(*BASE)
    mine = edited(base, {0: None, 3: None})
    merged, _ = merge(base, mine, cells("# Hardware: memory is counted", *BASE[1:]))
    assert sources(merged) == ["# Hardware: memory is counted", *BASE[1:3]]


def test_what_the_course_dropped_goes_unless_the_reader_worked_in_it():
    base = cells(*BASE)
    merged, disputed = merge(base, edited(base, {3: "alloc(10)"}), cells(*BASE[1:2]))
    assert sources(merged) == [BASE[1], "alloc(10)"] and not disputed


def test_outputs_stay_where_the_cell_does():
    base = cells(*BASE)
    mine = edited(base, {})
    mine[3].outputs = [new.new_output("stream", text="[0. 0.]")]
    merged, _ = merge(base, mine, cells("# News", *BASE))
    assert merged[-1].outputs == mine[3].outputs and merged[-1].id == mine[3].id


def test_twice_the_same_news_is_once():
    """What has been merged is known by the course's ids: a second time there is nothing to do."""
    base = cells(*BASE)
    course = cells("# News", *BASE[:2], BASE[2].replace("zeros", "ones"), BASE[3])
    merged, disputed = merge(base, edited(base, {2: BASE[2] + "  # mine", 3: "alloc(9)"}, {3: "mine = 1"}), course)
    again, disputed_again = merge(course, merged, course)
    assert sources(again) == sources(merged) and disputed and not disputed_again


words = st.text(alphabet="abcd", min_size=1, max_size=3)
versions = st.lists(words, max_size=8)


@st.composite
def three(draw):
    base = cells(*draw(versions))
    changes = draw(st.dictionaries(st.integers(0, 7), st.one_of(st.none(), words)))
    added = draw(st.dictionaries(st.integers(-1, 7), words))
    mine = edited(base, changes, {k: source + "!" for k, source in added.items()})
    course = draw(versions)
    kept = [cell.source for cell in base if draw(st.booleans())]
    return base, mine, cells(*(kept + course if draw(st.booleans()) else course + kept))


@settings(deadline=None)  # nothing here is about time
@given(three())
def test_nothing_that_a_reader_wrote_is_lost_and_everything_new_of_the_course_arrives(versions):
    base, mine, course = versions
    merged, _ = merge(base, mine, course)
    began = {cell.id: content(cell) for cell in base}
    for cell in mine:
        if began.get(cell.id) != content(cell):
            assert content(cell) in [content(each) for each in merged]
    assert len({cell.id for cell in merged}) == len(merged)
    known = [cell.source for cell in base]
    assert {cell.source for cell in course if cell.source not in known} <= set(sources(merged))


@given(three())
def test_where_one_side_did_nothing_the_other_is_the_result(versions):
    base, mine, course = versions
    assert sources(merge(base, copy.deepcopy(base), course)[0]) == sources(course)
    assert sources(merge(base, mine, copy.deepcopy(base))[0]) == sources(mine)
