"""Lines that are asked of the libraries: what is stored of their answers is whole, and what is said here agrees with it.

The answers of the real libraries are stored: `python3 -m course programs --corners --store` asked them.
"""

import pytest

from course.reader.programs import lines

ROWS = {row.key: row for row in lines.rows()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", lines.SPELLED)
def test_corners_are_those_of_the_library(library):
    asked, apart = lines.corners(library)
    real, space = lines.stored(lines.CORNERS)[library]["answers"], lines.begun(library, ours=True)
    assert {*asked} == {*real}, "the table has other lines than its answers: `course programs --corners --store`"
    found = {line: lines.answer_to(line, space) for line in asked}
    other = {line: (found[line], real[line]) for line in asked if not lines.agree(found[line], real[line])}
    assert {line: pair for line, pair in other.items() if line not in apart} == {}
    assert apart.keys() - other.keys() == set(), "these are no longer apart"


@pytest.mark.parametrize(
    "found, wanted, same",
    [
        ("[1.0, nan] float32", "[1.0, nan] float32", True),
        ("[1.0, nan] float32", "[1.0, 0.0] float32", False),
        ("0.0 float32", "-0.0 float32", False),
        ("inf float64", "-inf float64", False),
        ("1.0 float32", "1.0000001 float32", True),
        ("1.0 float32", "1.000001 float32", False),
        ("1.0 float64", "1.0000001 float64", False),
        ("0.0 float32", "1e-20 float32", False),
        ("[1, 2] int64", "[1, 2] int32", True),
        ("[1, 2] int64", "[1.0, 2.0] float32", False),
        ("[1.0] float32", "[[1.0]] float32", False),
        ("TypeError", "InvalidArgumentError", True),
        ("TypeError", "1.0 float32", False),
        ("1.0 float64", "1.0 float32", False),
        ("True bool", "True bool", True),
        ("True bool", "False bool", False),
        ("True", "False", False),
        ("True", "TypeError", False),
    ],
)
def test_answers_agree_to_their_last_digits(found, wanted, same):
    assert lines.agree(found, wanted) is same


# The table of differences.


@pytest.fixture(scope="module")
def space():
    return lines.begun(lines.OURS)


def test_each_line_has_an_answer_and_a_guess():
    for row in ROWS.values():
        assert row.lines.keys() == row.answers.keys(), row.key
        assert row.guess.keys() <= row.lines.keys() and row.guess, row.key
        assert row.asked.endswith("?") and row.ours, row.key
        assert row.decided.keys() <= {*row.lines, "keras"}, row.key


def test_three_libraries_were_asked_in_two_releases():
    twice = {library for row in ROWS.values() for library, known in row.answers.items() if len(known) > 1}
    assert {"numpy", "torch", "tensorflow", "jax", "onnxruntime", "sklearn"} <= twice


@pytest.mark.parametrize("key", [key for key, row in ROWS.items() if lines.OURS in row.lines])
def test_levels_still_answers_so(key, space):
    row = ROWS[key]
    (stored,) = row.answers[lines.OURS].values()
    found = lines.answer_to(row.lines[lines.OURS], space)
    if row.by_processor:
        assert not lines.FAILED.match(found)
    else:
        assert lines.agree(found, stored)
