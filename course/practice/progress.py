"""What a reader has answered and solved: kept in `.course/progress.json` on this computer, and nowhere else.

Of a prediction the first answer counts. Nothing of it is stored in a notebook, and no test run writes it.
"""

import ast
import contextlib
import json
import os
import time
from datetime import date
from pathlib import Path

from course.build import all_in, text_path
from course.build.rooms import blank_in, read_text

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / ".course" / "progress.json"
WAIT = 2  # seconds after which a lock is one that its owner left behind


def record(kind: str, key: str, value) -> None:
    """Note this of a question ("predictions") or an exercise ("exercises"), unless something is noted of it already."""
    if "PYTEST_VERSION" in os.environ:  # a test, or a notebook that one runs: nobody is answering
        return
    with contextlib.suppress(OSError), locked():  # a disk that is full or read-only costs the score, not the lesson
        noted = read()
        if key not in noted[kind]:
            noted[kind][key] = value
            aside = FILE.with_suffix(f".{os.getpid()}")
            aside.write_text(json.dumps(noted, indent=1, ensure_ascii=False), encoding="utf-8")
            os.replace(aside, FILE)
            for left in FILE.parent.glob(f"{FILE.stem}.*[0-9]"):  # by whoever was killed while it had the lock
                left.unlink()


@contextlib.contextmanager
def locked():
    """Two notebooks may answer at once: one writes, the other waits."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    lock, end = FILE.with_suffix(".lock"), time.monotonic() + 2 * WAIT
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            if time.monotonic() > end:
                raise
            with contextlib.suppress(OSError):
                if time.time() - lock.stat().st_mtime > WAIT:
                    lock.unlink()
            time.sleep(0.01)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def load() -> dict[str, dict]:
    """{"predictions": {question: right}, "exercises": {key: day}}; of a file that cannot be read just now, nothing."""
    try:
        return read()
    except OSError:
        return {"predictions": {}, "exercises": {}}


def read() -> dict[str, dict]:
    """The same; OSError where the file cannot be read. A damaged file is put aside, not overwritten."""
    noted = {"predictions": {}, "exercises": {}}
    try:
        found = json.loads(FILE.read_text(encoding="utf-8"))
        return {kind: dict(found[kind]) for kind in noted}
    except FileNotFoundError:
        return noted
    except (ValueError, KeyError, TypeError, RecursionError):
        with contextlib.suppress(OSError):
            os.replace(FILE, FILE.with_suffix(".damaged.json"))
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
