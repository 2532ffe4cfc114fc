"""The functions of `levels_more.torch` and `levels_more.tensorflow` give at their corners what the real libraries gave.

The answers of the real libraries are stored: `python3 -m course programs --corners --store` asked them.
"""

import warnings

import pytest

from course.reader.programs import lines

STORED = lines.stored(lines.CORNERS)
SPACES = {}


def answered(library, line):
    """The answer to a line here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if library not in SPACES:
            SPACES[library] = lines.begun(library, ours=True)
        return lines.answer_to(line, SPACES[library])


@pytest.mark.parametrize("library", lines.SPELLED)
def test_corners_are_those_of_the_library(library):
    asked, apart = lines.corners(library)
    real = STORED[library]["answers"]
    assert {*asked} == {*real}, "the table has other lines than its answers: `course programs --corners --store`"
    found = {line: answered(library, line) for line in asked}
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
