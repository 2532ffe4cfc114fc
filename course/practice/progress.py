"""What a reader has answered and solved: kept in `.course/progress.db` on this computer, and nowhere else.

Of a prediction the first answer counts. Nothing of it is stored in a notebook, and no test run writes it.
"""

import ast
import contextlib
import json
import os
import sqlite3
from datetime import date
from pathlib import Path

from course.build import all_in, text_path
from course.build.rooms import blank_in, read_text

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / ".course" / "progress.db"
WAIT = 4  # seconds for which one notebook waits while another writes
TABLE = "CREATE TABLE IF NOT EXISTS noted (kind TEXT, key TEXT, value TEXT, PRIMARY KEY (kind, key))"


def record(kind: str, key: str, value) -> None:
    """Note this of a question ("predictions") or an exercise ("exercises"), unless something is noted of it already."""
    if "PYTEST_VERSION" in os.environ:  # a test, or a notebook that one runs: nobody is answering
        return
    with contextlib.suppress(OSError, sqlite3.Error):  # a full or read-only disk costs the score, not the lesson
        FILE.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(kind, key, json.dumps(value))
        except sqlite3.OperationalError:  # locked, read-only, full: the file itself is whole
            raise
        except sqlite3.DatabaseError:
            os.replace(FILE, FILE.with_suffix(".damaged.db"))
            write(kind, key, json.dumps(value))


def write(*row: str) -> None:
    with contextlib.closing(sqlite3.connect(FILE, timeout=WAIT)) as file, file:
        file.execute(TABLE)
        file.execute("INSERT OR IGNORE INTO noted VALUES (?, ?, ?)", row)


def load() -> dict[str, dict]:
    """{"predictions": {question: right}, "exercises": {key: day}}; of a file that cannot be read just now, nothing."""
    noted, address = {"predictions": {}, "exercises": {}}, f"{FILE.resolve().as_uri()}?mode=ro"
    with (
        contextlib.suppress(OSError, sqlite3.Error),
        contextlib.closing(sqlite3.connect(address, uri=True, timeout=WAIT)) as file,
    ):
        for kind, key, value in file.execute("SELECT * FROM noted"):
            noted[kind][key] = json.loads(value)
    return noted


def predicted(question: str, right: bool) -> None:
    record("predictions", " ".join(question.split()), right)


def solved(key: str) -> None:
    record("exercises", key, date.today().isoformat())


def asked(path: Path) -> dict[str, list[str]]:
    """What a notebook's text asks: its questions, and the keys of its exercises and blanks."""
    text = read_text(path)
    keys, number = filter(None, map(blank_in, text.split("\n"))), path.stem.split("_")[0].zfill(2)
    found = {"predictions": [], "exercises": [], "blanks": [f"{number}-{key}" for key in keys]}
    kinds = {"checks.predict": "predictions", "exercises.check": "exercises"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in kinds:
            found[kinds[ast.unparse(node.func)]].append(" ".join(ast.literal_eval(node.args[0]).split()))
    return found


def table() -> str:
    """Each notebook's predictions, blanks and exercises."""
    noted, lines = load(), [f"{'':20}{'predictions':26}{'blanks':20}exercises"]
    for name in all_in(ROOT):
        questions, *keys = asked(text_path(ROOT, name)).values()
        answers = [noted["predictions"][question] for question in questions if question in noted["predictions"]]
        exercises, blanks = (f"{sum(k in noted['exercises'] for k in each)} done, {len(each)} in all" for each in keys)
        right = f"{sum(answer is True for answer in answers)} right of {len(answers)}, {len(questions)} in all"
        lines.append(f"{name:20}{right:26}{blanks:20}{exercises}")
    return "\n".join([*lines, f"Kept in {FILE.relative_to(ROOT).as_posix()}, on this computer only."])
