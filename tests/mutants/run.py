"""Small faults that a test should notice: each is put into a copy of the project, and the tests named beside it must fail.

    python tests/mutants/run.py                # all of them, which takes hours
    python tests/mutants/run.py G04 K08        # these
    python tests/mutants/run.py -n 4 'm*'      # those of levels_more, four at a time, each in a copy of its own
    python tests/mutants/run.py --list         # runs none, but looks for each in the project

The faults are in the *.toml files beside this one. A row has a key, a `file`, a `text` in it, which must stand there exactly
once, what is written in its place (`wrong`), and `tests`: arguments of pytest, one run per line, until one fails. A row
whose `speed` is true changes nothing but the speed: no test need notice it.

The exit status is 0 if all were noticed, 1 if one survived, 2 if a row does not fit: its text is not found exactly once, or
without the fault its tests do not pass, or there are none.
"""

import argparse
import concurrent.futures
import contextlib
import fnmatch
import json
import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", ".course", "mine", "wheelhouse", "node_modules", "__pycache__", ".*_cache", ".hypothesis"
)
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


def ended(process, limit):
    """Return the exit status of a process, or None if it ran longer than the limit in seconds (or None) and was killed."""
    try:
        return process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        kill(process)
        process.wait()
        return None


def kill(process):
    """End a process and its children, which are in one group, where the system has groups."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()


class Runs:
    """Runs of pytest in copies of the project."""

    def __init__(self, root, copies, cache, times):
        self.times, self.cache = times, cache
        self.free = queue.Queue()
        for copy in copies:
            shutil.copytree(root, copy, ignore=NOT_COPIED)
            self.free.put(copy)
        self.without_fault, self.lock = {}, threading.Lock()  # line of tests -> (exit status, seconds)
        self.processes, self.stopped = set(), False

    def stop(self):
        """End the runs that go on, and begin no others."""
        self.stopped = True
        for process in [*self.processes]:
            kill(process)

    def run(self, copy, line, limit=None):
        """Run pytest with these arguments. Return its exit status, or None after the limit, and the last error it printed."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--tb=line",
            "-p",
            "no:cacheprovider",
            *shlex.split(line),
        ]
        # Bytecode is told apart by the second and the length of its source, which a fault may leave as they were.
        env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "LEVELS_CACHE": str(self.cache), "PYTHONPATH": ""}
        if self.stopped:
            raise InterruptedError
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            process = subprocess.Popen(command, cwd=copy, env=env, stdout=said, stderr=said, start_new_session=True)
            self.processes.add(process)
            status = ended(process, limit)
            self.processes.discard(process)
            said.seek(0)
            lines = [line.strip() for line in said if line.startswith(("FAILED", "ERROR", "E  "))]
        return status, lines[-1] if lines else ""

    def clean(self, copy, line):
        """Run pytest without a fault, once for each line. Return its exit status, and how many seconds it took."""
        with self.lock:
            if line not in self.without_fault:
                begun = time.monotonic()
                self.without_fault[line] = self.run(copy, line)[0], time.monotonic() - begun
        return self.without_fault[line]

    def noticed(self, copy, row):
        """Return the verdict on a row, whose fault is in this copy while the tests run, and the words of the test."""
        path = copy / row["file"]
        right = path.read_text(encoding="utf-8")
        for line in row["tests"]:
            status, seconds = self.clean(copy, line)
            if status != PASSED:
                return f"does not fit: without the fault pytest ends with {status}", line
            path.write_text(right.replace(row["text"], row["wrong"]), encoding="utf-8", newline="\n")
            try:
                status, said = self.run(copy, line, self.times * seconds)
            finally:
                path.write_text(right, encoding="utf-8", newline="\n")
            if status != PASSED:
                return "noticed", said if status is not None else f"more than {self.times} times as long"
        return "speed only" if row.get("speed") else "survived", ""

    def judged(self, key, row):
        """Return the record of a row: {"key": …, "verdict": …, "said": …, "seconds": …}."""
        copy, begun = self.free.get(), time.monotonic()
        try:
            verdict, said = self.noticed(copy, row)
        finally:
            self.free.put(copy)
        return {"key": key, "verdict": verdict, "said": said, "seconds": round(time.monotonic() - begun)}


def judge(rows, root, count, times, log):
    """Try all rows, so many at a time. Print a line for each, and return their records."""
    records = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(count) as workers:
        copies = [Path(folder) / f"copy{k}" for k in range(count)]
        runs = Runs(root, copies, Path(folder) / "cache", times)
        jobs = [workers.submit(runs.judged, *row) for row in rows.items()]
        try:
            for done in concurrent.futures.as_completed(jobs):
                records.append(record := done.result())
                told = record["said"][:100]
                print(f"{record['key']:4} {record['verdict']:10} {record['seconds']:4} s  {told}", flush=True)
                if log:
                    with open(log, "a", encoding="utf-8") as file:
                        file.write(json.dumps(record, ensure_ascii=False) + "\n")
        except KeyboardInterrupt:
            workers.shutdown(wait=False, cancel_futures=True)
            runs.stop()
            raise
    return records


def main(arguments, root=ROOT, folder=FOLDER):
    """Run the command. Return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keys", nargs="*", help="keys of rows, or patterns like 'K*' (default: all)")
    parser.add_argument("-n", type=int, default=1, metavar="N", help="how many at a time (default: 1)")
    parser.add_argument(
        "--times", type=int, default=10, metavar="T", help="a run may take T times as long (default: 10)"
    )
    parser.add_argument("--log", help="a file that gets a line of JSON for each")
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
    records = judge(rows, root, asked.n, asked.times, asked.log)
    survivors = [record["key"] for record in records if record["verdict"] == "survived"]
    misfits = [record["key"] for record in records if record["verdict"].startswith("does not fit")]
    for key in survivors:
        print(f"\n{key} in {rows[key]['file']}\n- {rows[key]['text']}\n+ {rows[key]['wrong']}")
    print(f"\n{len(rows)} rows; survivors: {' '.join(survivors) or 'none'}; do not fit: {' '.join(misfits) or 'none'}")
    return 2 if misfits else 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
