"""The runner of the mutation list (tests/mutants/run.py), on a tiny project."""

import runpy

import pytest

from course.author.build import ROOT

RUN = ROOT / "tests" / "mutants" / "run.py"
main = runpy.run_path(str(RUN))["main"]
PROGRAM = """
def largest(numbers):
    best = numbers[0]
    for number in numbers[1:]:
        if number > best:
            best = number
    return best
"""
TESTS = """
import sys
sys.path.insert(0, ".")
from program import largest

def test_the_largest_stands_anywhere():
    assert largest([1, 3, 2]) == 3 and largest([3, 1]) == 3

def test_one_number():
    assert largest([5]) == 5

def test_that_fails():
    assert False
"""
WELL = "tests/test_program.py -k 'anywhere or one'"
ROW = """
[{key}]
file = "program.py"
text = '{text}'
wrong = '{wrong}'
tests = ["{tests}"]
"""


@pytest.fixture
def tried(tmp_path, capsys, monkeypatch):
    """tried(rows, …) runs the command on a project with these rows. Returns its exit status and what it printed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take seconds to load
    root, folder = tmp_path / "project", tmp_path / "rows"
    (root / "tests").mkdir(parents=True)
    folder.mkdir()
    (root / "program.py").write_text(PROGRAM)
    (root / "tests" / "test_program.py").write_text(TESTS)

    def tried(rows, *arguments):
        texts = []
        for key, row in rows.items():
            row = {"text": "number > best", "wrong": "number < best", "tests": WELL} | row
            texts.append(ROW.format(key=key, **row))
        (folder / "rows.toml").write_text("".join(texts))
        status = main([*arguments], root, folder)
        assert (root / "program.py").read_text() == PROGRAM, "the project is never touched"
        return status, capsys.readouterr().out

    return tried


def test_a_fault_that_a_test_notices(tried):
    status, said = tried({"A1": {}})
    assert status == 0 and "A1   noticed" in said and "survivors: none; do not fit: none" in said
    assert "test_the_largest_stands_anywhere" in said


def test_a_survivor_is_shown_with_its_fault(tried, tmp_path):
    equal = {"wrong": "number >= best"}
    status, said = tried({"A1": {}, "A2": equal, "A3": equal | {"tests": WELL + '"]\nspeed = true # "'}}, "-n", "2")
    assert status == 1 and "A2   survived" in said and "A3   speed only" in said
    assert "A2 in program.py\n- number > best\n+ number >= best" in said and "survivors: A2;" in said


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"text": "number > worst"}, "A2: its text stands 0 times in program.py, not once"),
        ({"text": "number"}, "A2: its text stands 6 times in program.py, not once"),
        ({"wrong": "number > best"}, "A2: what is wrong is equal to its text"),
        ({"tests": "tests/test_nothing.py"}, "A2: there is no tests/test_nothing.py"),
    ],
)
def test_a_row_that_does_not_fit_the_project_is_told_before_anything_runs(tried, row, words):
    for arguments in ([], ["--list"]):
        status, said = tried({"A1": {}, "A2": row}, *arguments)
        assert status == 2 and words in said and "A1" not in said


def test_a_fault_that_never_ends_is_noticed_and_ended(tried):
    status, said = tried({"A1": {"text": "return best", "wrong": "while True: pass"}}, "--times", "2")
    assert status == 0 and "A1   noticed" in said and "more than 2 times as long" in said
