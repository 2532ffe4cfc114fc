"""Small faults that a test should notice: each is put into a copy of the project, and the tests named beside it must fail.

    python tests/mutants/run.py                # all of them, which takes hours
    python tests/mutants/run.py G04 K08        # these
    python tests/mutants/run.py 'm*'           # those of levels_more
    python tests/mutants/run.py --list         # runs none, but looks for each in the project

The faults are in the *.toml files beside this one. A row has a key, a `file`, a `text` in it, which must stand there exactly
once, what is written in its place (`wrong`), and `tests`: arguments of pytest, one run per line, until one fails or takes
ten times as long.

The exit status is 0 if all were noticed, 1 if one survived, 2 if a row does not fit: its text is not found exactly once, or
without the fault its tests do not pass, or there are none.
"""

import argparse
import fnmatch
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", ".course", "mine", "wheelhouse", "node_modules", "__pycache__", ".*_cache", ".hypothesis"
)
TIMES = 10  # a run with a fault may take so many times as long as without one
PASSED = 0  # pytest's exit status; 1: some failed, 2: a file could not be read, 5: no test was chosen


def rows_of(folder):
    """Return {key: row} from all *.toml files in a folder. Raises ValueError for a key that stands in two."""
    rows = {}
    for path in sorted(folder.glob("*.toml")):
        for key, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if key in rows:
                raise ValueError(f"{key} is the key of two rows")
            rows[key] = row
    return rows


def chosen(rows, patterns):
    """Return the rows whose keys match one of these patterns, or all. Raises ValueError for a pattern without a match."""
    for pattern in patterns:
        if not fnmatch.filter(rows, pattern):
            raise ValueError(f"no row has the key {pattern}; there are {' '.join(rows)}")
    return {key: row for key, row in rows.items() if not patterns or any(fnmatch.fnmatch(key, p) for p in patterns)}


def wrong_with(row, root):
    """Return what is wrong with a row as it is written, or None."""
    path = root / row["file"]
    found = path.read_text(encoding="utf-8").count(row["text"]) if path.exists() else 0
    if found != 1:
        return f"its text stands {found} times in {row['file']}, not once"
    if row["text"] == row["wrong"]:
        return "what is wrong is equal to its text"
    lost = [word for line in row["tests"] for word in shlex.split(line) if word.startswith("tests/")]
    lost = [word for word in lost if not (root / word).exists()]
    return f"there is no {lost[0]}" if lost else None


class Project:
    """A copy of the project, in which faults are put and tests are run."""

    def __init__(self, root, copy, cache):
        shutil.copytree(root, copy, ignore=NOT_COPIED)
        self.copy, self.cache = copy, cache
        self.seconds = {}  # line of tests -> how long they took without a fault

    def run(self, line, limit=None):
        """Run pytest with these arguments. Return its exit status and its last error. Raises TimeoutExpired."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider"]
        # Bytecode is told apart by the second and the length of its source, which a fault may leave as they were.
        env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "LEVELS_CACHE": str(self.cache), "PYTHONPATH": ""}
        with subprocess.Popen(
            command + shlex.split(line),
            cwd=self.copy,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                printed, _ = process.communicate(timeout=limit)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that a test has started
                raise
        told = [text.strip() for text in printed.splitlines() if text.startswith(("FAILED", "ERROR", "E  "))]
        return process.returncode, told[-1] if told else ""

    def fits(self, line):
        """Run pytest with these arguments without a fault, the first time. Return whether the tests pass."""
        if line not in self.seconds:
            begun = time.monotonic()
            status, _ = self.run(line)
            self.seconds[line] = time.monotonic() - begun if status == PASSED else None
        return self.seconds[line] is not None

    def verdict(self, row):
        """Return what comes of a row, whose fault is in the copy while the tests run, and the words of the test."""
        path = self.copy / row["file"]
        right = path.read_text(encoding="utf-8")
        for line in row["tests"]:
            if not self.fits(line):
                return "does not fit", f"without the fault these tests do not pass, or there are none: {line}"
            path.write_text(right.replace(row["text"], row["wrong"]), encoding="utf-8", newline="\n")
            try:
                status, told = self.run(line, TIMES * self.seconds[line])
            except subprocess.TimeoutExpired:
                return "noticed", f"more than {TIMES} times as long"
            finally:
                path.write_text(right, encoding="utf-8", newline="\n")
            if status != PASSED:
                return "noticed", told
        return "survived", ""


def main(arguments, root=ROOT, folder=FOLDER):
    """Run the command. Return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keys", nargs="*", help="keys of rows, or patterns like 'K*' (default: all)")
    parser.add_argument("--list", action="store_true", help="run none")
    asked = parser.parse_args(arguments)
    try:
        rows = chosen(rows_of(folder), asked.keys)
    except ValueError as error:
        print(error)
        return 2
    misfits = {key: told for key, row in rows.items() if (told := wrong_with(row, root))}
    for key, told in misfits.items():
        print(f"{key}: {told}")
    if misfits or asked.list:
        print(f"{len(rows)} rows, {len(misfits)} of them do not fit")
        return 2 if misfits else 0
    verdicts = {}
    with tempfile.TemporaryDirectory() as place:
        project = Project(root, Path(place) / "copy", Path(place) / "cache")
        for key, row in rows.items():
            verdicts[key], told = project.verdict(row)
            print(f"{key:4} {verdicts[key]:10} {told[:100]}", flush=True)
    survivors = [key for key, verdict in verdicts.items() if verdict == "survived"]
    misfits = [key for key, verdict in verdicts.items() if verdict == "does not fit"]
    for key in survivors:
        print(f"\n{key} in {rows[key]['file']}\n- {rows[key]['text']}\n+ {rows[key]['wrong']}")
    print(f"\n{len(rows)} rows; survivors: {' '.join(survivors) or 'none'}; do not fit: {' '.join(misfits) or 'none'}")
    return 2 if misfits else 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
