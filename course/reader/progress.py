"""The reader's answers and solved exercises, stored in `.course/progress.db` on this computer and nowhere else.

The first answer to a prediction counts. Nothing is stored in a notebook, and test runs write nothing.
"""

import ast
import contextlib
import json
import os
import sqlite3
from datetime import date
from pathlib import Path

from course.reader.language import say
from course.reader.notebooks.cells import blank_in, most_in, read_text
from course.reader.notebooks.names import depth_in, text_path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / ".course" / "progress.db"
WAIT = 4  # seconds for which one notebook waits while another writes
TABLE = "CREATE TABLE IF NOT EXISTS noted (kind TEXT, key TEXT, value TEXT, PRIMARY KEY (kind, key))"


def record(kind: str, key: str, value) -> None:
    """Store a value for a question ("predictions") or an exercise ("exercises"), unless one is stored already."""
    if "PYTEST_VERSION" in os.environ:  # in a test, or in a notebook that a test runs: no reader is answering
        return
    with contextlib.suppress(OSError, sqlite3.Error):  # on a full or read-only disk only the score is lost
        FILE.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(kind, key, json.dumps(value))
        except sqlite3.OperationalError:  # locked, read-only or full, but not damaged
            raise
        except sqlite3.DatabaseError:
            os.replace(FILE, FILE.with_suffix(".damaged.db"))
            write(kind, key, json.dumps(value))


def write(*row: str) -> None:
    with contextlib.closing(sqlite3.connect(FILE, timeout=WAIT)) as file, file:
        file.execute(TABLE)
        file.execute("INSERT OR IGNORE INTO noted VALUES (?, ?, ?)", row)


def load() -> dict[str, dict]:
    """{"predictions": {key: {"right", "verdict"}}, "exercises": {key: day}}, both empty if the file cannot be read."""
    noted = {"predictions": {}, "exercises": {}}
    address = f"{FILE.resolve().as_uri()}?mode=ro"
    with (
        contextlib.suppress(OSError, sqlite3.Error),
        contextlib.closing(sqlite3.connect(address, uri=True, timeout=WAIT)) as file,
    ):
        for kind, key, value in file.execute("SELECT * FROM noted"):
            noted[kind][key] = json.loads(value)
    return noted


def note_prediction(key: str, right: bool, verdict: str) -> None:
    """Store whether the answer to a question was right, and what the page said of it: "**Not so.** You said 20."."""
    record("predictions", key, {"right": right, "verdict": verdict})


def verdict(key: str) -> str:
    """Return what the page said of the reader's first answer to a question; "" if there is none, or in a test."""
    if "PYTEST_VERSION" in os.environ:  # what a notebook shows there depends on no reader
        return ""
    return load()["predictions"].get(key, {"verdict": ""})["verdict"]


def note_solved(key: str) -> None:
    record("exercises", key, date.today().isoformat())


def questions_in(path: Path, depth: str = "some") -> dict:
    """{"predictions": keys, "exercises": keys, "blanks": keys at this depth} in the text of a notebook."""
    text = read_text(path)
    number = path.stem.split("_")[0].zfill(2)
    lines = text.split("\n")
    keys = [key for line in lines if (key := blank_in(line) or most_in(line) * (depth == "most"))]
    return {
        "predictions": keys_in(text, "checks.predict"),
        "exercises": keys_in(text, "exercises.check"),
        "blanks": [f"{number}-{key}" for key in keys],
    }


def keys_in(source: str, name: str) -> list[str]:
    """The first argument, a text, of each call of this function in a notebook's text or one of its cells."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    given = [call.args[0] for call in calls if call.args and ast.unparse(call.func) == name]
    return [key.value for key in given if isinstance(key, ast.Constant)]


def level_of(name: str) -> str:
    """The number of the level that a notebook belongs to: "1" for 01_hardware, trail/1_hardware and more/01_gpu."""
    return name.split("/")[-1].split("_")[0].lstrip("0")


def counts(noted: dict, names: list[str]) -> dict[str, str]:
    """How much is done of the predictions, blanks and exercises of these notebooks. Repeated questions count once."""
    every = [questions_in(text_path(ROOT, name), depth_in(ROOT)) for name in names]
    questions, blanks, exercises = (
        {each for found in every for each in found[kind]} for kind in ("predictions", "blanks", "exercises")
    )
    answers = [noted["predictions"][key] for key in questions if key in noted["predictions"]]
    right = sum(each["right"] for each in answers)
    return {
        "predictions": say(
            "{right} right, {wrong} wrong, {open} open",
            right=right,
            wrong=len(answers) - right,
            open=len(questions) - len(answers),
        ),
        "blanks": done(noted, blanks),
        "exercises": done(noted, exercises),
    }


def done(noted: dict, keys: set) -> str:
    """How many of these blanks or exercises are done."""
    return say("{done} of {count} done", done=sum(key in noted["exercises"] for key in keys), count=len(keys))
