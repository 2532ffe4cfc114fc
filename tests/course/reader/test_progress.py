"""The score: what is kept of a reader's answers, whoever writes at the same time, and whatever became of the file."""

import contextlib
import sqlite3
import subprocess
import sys

import pytest

from course import build, commands
from course.reader import checks, progress
from course.reader.answers import Answer


@pytest.fixture
def reader(monkeypatch, tmp_path):
    """As if no test ran: what is answered is kept, in a folder of its own."""
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.setattr(progress, "FILE", tmp_path / ".course" / "progress.db")
    monkeypatch.setattr(progress, "ROOT", tmp_path)
    return tmp_path


def answer(given, choices=None):
    box = checks.Prediction("01-how-many", "How\n  many?", Answer(12, "Twelve."), choices, None).box()
    _, row, _ = box.children
    row.children[0].value = given
    row.children[-1].click()


def score():
    return {key: noted["right"] for key, noted in progress.load()["predictions"].items()}


@pytest.mark.parametrize("given, right", [("12", True), ("13", True), ("24", False)])
def test_a_prediction_is_scored_when_it_is_committed(reader, given, right):
    answer("")
    assert not progress.FILE.exists()
    answer(given)
    assert score() == {"01-how-many": right} and progress.load()["exercises"] == {}


@pytest.mark.quick
def test_the_first_answer_counts(reader):
    answer(7, choices=[7, 12])
    answer(12, choices=[7, 12])
    assert score() == {"01-how-many": False}


def test_a_new_kernel_still_knows_the_verdict(reader, monkeypatch):
    """A reader commits on one evening, and comes to the result on the next."""
    monkeypatch.setattr(checks, "VERDICTS", {})
    answer(7, choices=[7, 12])
    monkeypatch.setattr(checks, "VERDICTS", {})
    told = repr(checks.Told("01-how-many", Answer(12, "Twelve.")))
    assert told == "Not so. You said 7. Answer: 12\nTwelve."
    monkeypatch.setenv("PYTEST_VERSION", "9")  # nbval compares what a notebook shows with what the course has stored
    assert repr(checks.Told("01-how-many", Answer(12, "Twelve."))) == "Answer: 12\nTwelve."


def test_a_notebook_that_a_test_runs_inherits_what_says_so():
    assert "PYTEST_VERSION" in build.environment(build.ROOT)  # which the `nbval` fixture hands on


@pytest.mark.quick
@pytest.mark.parametrize("damaged", [b"[" * 100_000, bytes(4096), "half"], ids=lambda damaged: str(damaged[:8]))
def test_a_damaged_file_is_put_aside(reader, damaged):
    if damaged == "half":
        progress.note_solved("01-0")
        damaged = progress.FILE.read_bytes()[:4096] + b"?" * 4096
    progress.FILE.parent.mkdir(exist_ok=True)
    progress.FILE.write_bytes(damaged)
    assert progress.load() == {"predictions": {}, "exercises": {}}
    progress.note_solved("01-1")
    assert list(progress.load()["exercises"]) == ["01-1"]
    assert (reader / ".course" / "progress.damaged.db").read_bytes() == damaged


def test_a_folder_that_cannot_be_written_costs_the_score_only(reader):
    (reader / ".course").write_text("a file where the folder should be")
    answer("12")
    progress.note_solved("01-1")
    assert progress.load() == {"predictions": {}, "exercises": {}}


def test_a_lock_that_stays_is_not_waited_for_for_ever(reader, monkeypatch):
    monkeypatch.setattr(progress, "WAIT", 0.05)
    progress.note_solved("01-1")
    with contextlib.closing(sqlite3.connect(progress.FILE)) as other:
        other.execute("BEGIN EXCLUSIVE")
        progress.note_solved("01-2")
        assert progress.load() == {"predictions": {}, "exercises": {}}
    assert list(progress.load()["exercises"]) == ["01-1"]


WRITER = """
import sys
from pathlib import Path
from course.reader import progress
progress.FILE = Path(sys.argv[1])
for number in range(20):
    progress.note_solved(f"{sys.argv[2]}-{number}")
"""


def test_notebooks_that_write_at_once_lose_nothing(reader):
    environment = build.environment(build.ROOT)
    command = [sys.executable, "-c", WRITER, str(progress.FILE)]
    writers = [subprocess.Popen([*command, name], env=environment, cwd=reader) for name in "abcd"]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert len(progress.load()["exercises"]) == 80
    assert [path.name for path in progress.FILE.parent.iterdir()] == ["progress.db"]


TEXT = """
# %%
checks.predict(
    "01-how-many",
    "How "
    "many?",
)
checks.predict("01-and-now", "And now?")

# %%
checks.answer_to("01-how-many")

# %%
exercises.check("01-1", one)
exercises.check("01-2", two)

# %%
#| export room blank three
def three():
    ...
"""


MORE = """
# %%
checks.predict("01-and-then", "And then?")
exercises.check("01-3", three)
"""


def test_the_table(reader, capsys):
    """A row for each level, with all its notebooks. What the trail asks again counts once."""
    for name, text in {"01_one": TEXT, "02_two": "", "more/01_three": MORE, "trail/1_one": TEXT}.items():
        path = build.text_path(reader, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    answer("12")
    progress.note_prediction("01-and-then", False, "**Not so.**")
    progress.note_prediction("01-gone", True, "**Right.**")
    progress.note_solved("01-2")
    progress.note_solved("01-three")
    assert commands.progress([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "                predictions                 blanks              exercises",
        "01_one          1 right, 1 wrong, 1 open    1 of 1 done         1 of 3 done",
        "02_two          0 right, 0 wrong, 0 open    0 of 0 done         0 of 0 done",
        "in all          1 right, 1 wrong, 1 open    1 of 1 done         1 of 3 done",
        "Next: mine/trail/1_one.ipynb, with `python3 -m course lab --trail`.",
        "All this is stored in .course/progress.db, on this computer only.",
    ]
