"""The table of differences: it is whole, and what it says of `levels` is so."""

import pytest

from course.reader.programs import lines

ROWS = {row.key: row for row in lines.rows()}


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
