"""The score: what is kept of a reader's answers, whoever writes at the same time, and whatever became of the file."""

import json
import os
import subprocess
import sys
import time

import pytest

from course import __main__ as the_door
from course import build
from course.practice import checks, progress


@pytest.fixture
def reader(monkeypatch, tmp_path):
    """As if no test ran: what is answered is kept, in a folder of its own."""
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.setattr(progress, "FILE", tmp_path / ".course" / "progress.json")
    monkeypatch.setattr(progress, "ROOT", tmp_path)
    return tmp_path


def answer(given, **options):
    box = checks.predict("How\n  many?", 12, "Twelve.", **options).box()
    _, row, _ = box.children
    row.children[0].value = given
    row.children[-1].click()


@pytest.mark.parametrize("given, right", [("12", True), ("13", True), ("24", False)])
def test_a_prediction_is_scored_when_it_is_committed(reader, given, right):
    answer("")
    assert not progress.FILE.exists()
    answer(given)
    assert progress.load() == {"predictions": {"How many?": right}, "exercises": {}}


def test_the_first_answer_counts(reader):
    answer(7, choices=[7, 12])
    answer(12, choices=[7, 12])
    assert progress.load()["predictions"] == {"How many?": False}


def test_no_test_run_writes(reader, monkeypatch):
    monkeypatch.setenv("PYTEST_VERSION", "9")
    answer("12")
    progress.solved("01-1")
    assert not list(reader.iterdir())


def test_a_notebook_that_a_test_runs_inherits_what_says_so():
    assert "PYTEST_VERSION" in build.environment(build.ROOT)  # which the `nbval` fixture hands on


DAMAGED = [
    "",
    "{",
    "[]",
    "null",
    '{"predictions": {}}',
    '{"predictions": [1], "exercises": 3}',
    "\udcff",
    "[" * 100_000,
]


@pytest.mark.parametrize("text", DAMAGED, ids=lambda text: text[:20])
def test_a_damaged_file_is_put_aside(reader, text):
    progress.FILE.parent.mkdir()
    damaged = text.encode(errors="surrogateescape")
    progress.FILE.write_bytes(damaged)
    progress.solved("01-1")
    assert list(progress.load()["exercises"]) == ["01-1"]
    assert (reader / ".course" / "progress.damaged.json").read_bytes() == damaged


def test_a_folder_that_cannot_be_written_costs_the_score_only(reader):
    (reader / ".course").write_text("a file where the folder should be")
    answer("12")
    progress.solved("01-1")
    assert progress.load() == {"predictions": {}, "exercises": {}}


def test_a_lock_left_behind_is_taken_over(reader, monkeypatch):
    lock = reader / ".course" / "progress.lock"
    lock.parent.mkdir()
    lock.touch()
    os.utime(lock, (time.time() - 60,) * 2)
    progress.solved("01-1")
    assert list(progress.load()["exercises"]) == ["01-1"] and not lock.exists()


def test_a_lock_that_stays_is_not_waited_for_for_ever(reader, monkeypatch):
    monkeypatch.setattr(progress, "WAIT", 0.05)
    lock = reader / ".course" / "progress.lock"
    lock.parent.mkdir()
    lock.touch()
    os.utime(lock, (time.time() + 60,) * 2)
    progress.solved("01-1")
    assert lock.exists() and not progress.FILE.exists()


WRITER = """
import sys
from pathlib import Path
from course.practice import progress
progress.FILE = Path(sys.argv[1])
for number in range(20):
    progress.solved(f"{sys.argv[2]}-{number}")
"""


def test_notebooks_that_write_at_once_lose_nothing(reader):
    environment = build.environment(build.ROOT)
    command = [sys.executable, "-c", WRITER, str(progress.FILE)]
    writers = [subprocess.Popen([*command, name], env=environment, cwd=reader) for name in "abcd"]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert len(json.loads(progress.FILE.read_text())["exercises"]) == 80
    assert [path.name for path in progress.FILE.parent.iterdir()] == ["progress.json"]


def test_a_file_that_cannot_be_read_just_now_is_not_overwritten(reader, monkeypatch):
    """As on Windows, while another program holds it."""
    progress.solved("01-1")
    before = progress.FILE.read_bytes()

    def held(*_, **__):
        raise PermissionError("another program holds it")

    with monkeypatch.context() as patch:
        patch.setattr(progress.Path, "read_text", held)
        progress.solved("01-2")
        assert progress.load() == {"predictions": {}, "exercises": {}}
    assert {path.name: path.read_bytes() for path in progress.FILE.parent.iterdir()} == {"progress.json": before}


def test_a_writer_that_was_killed_leaves_nothing_that_stays(reader):
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER.replace("20", "100_000"), str(progress.FILE), "a"],
            env=build.environment(build.ROOT),
            cwd=reader,
        )
        while not progress.FILE.exists():
            assert writer.poll() is None
        time.sleep(0.05)
        writer.kill()
        writer.wait()
        assert json.loads(progress.FILE.read_text(encoding="utf-8"))["exercises"]
        (progress.FILE.parent / "progress.12345").touch()
        (progress.FILE.parent / "progress.lock").unlink(missing_ok=True)  # (or two seconds go by)
        progress.solved("01-1")
        assert [path.name for path in progress.FILE.parent.iterdir()] == ["progress.json"]
        progress.FILE.unlink()


TEXT = """
# %%
checks.predict(
    "How "
    "many?",
    answer=12,
    because="Twelve.",
)
checks.predict("And now?", 3, "")

# %%
exercises.check("01-1", one)
exercises.check("01-2", two)

# %%
#| export room blank three
def three():
    ...
"""


def test_the_table(reader, capsys):
    (reader / "notebooks" / "text").mkdir(parents=True)
    (reader / "notebooks" / "text" / "01_one.py").write_text(TEXT)
    (reader / "notebooks" / "text" / "02_two.py").write_text("")
    (reader / "notebooks" / "more" / "text").mkdir(parents=True)
    (reader / "notebooks" / "more" / "text" / "01_three.py").write_text("")
    answer("12")
    progress.predicted("a question that the notebook no longer asks", True)
    progress.solved("01-2")
    progress.solved("01-three")
    assert the_door.progress([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "                    predictions               blanks              exercises",
        "01_one              1 right of 1, 2 in all    1 done, 1 in all    1 done, 2 in all",
        "02_two              0 right of 0, 0 in all    0 done, 0 in all    0 done, 0 in all",
        "more/01_three       0 right of 0, 0 in all    0 done, 0 in all    0 done, 0 in all",
        "Kept in .course/progress.json, on this computer only.",
    ]


def test_every_notebook_asks_four_questions_or_more_and_none_twice():
    asked = {name: progress.asked(build.text_path(build.ROOT, name)) for name in build.all_in(build.ROOT)}
    assert min(len(asked[name]["predictions"]) for name in build.names_in(build.ROOT)) >= 4
    for kind in ("predictions", "exercises"):  # the trail may ask what its core asks: the first answer counts
        every = [
            each for name, found in asked.items() if name not in build.trail_in(build.ROOT) for each in found[kind]
        ]
        assert len(every) == len(set(every))
