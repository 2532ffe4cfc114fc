"""Whoever calls with a wrong argument is told so, in words about the call: on all levels, for what is public (tests/support/calls.py)."""

import collections
import subprocess
import sys

from course.author.build import ROOT, environment

LEVELS = "hardware", "kernels", "low_level", "mid_level", "high_level"
OBSCURE = 0.03  # of a level's calls


def tried(folder):
    """[[level, "label(argument=wrong)", kind, what was said]] of all calls, made in a process of their own.

    Where it ends in the middle of a call, that call is of the kind "lost", and the next process goes on behind it.
    """
    report, done = folder / "report", []
    while True:
        command = [sys.executable, "-X", "utf8", ROOT / "tests" / "support" / "calls.py", str(len(done)), report]
        streams = dict(stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
        process = subprocess.run(command, cwd=folder, env=environment(ROOT), **streams)
        before, done = len(done), [line.split("\t") for line in report.read_text(encoding="utf-8").splitlines()]
        if process.returncode == 0:
            return done
        assert len(done) > before and done[-1][2:] == [""], process.stderr[-3000:]
        done[-1][2:] = "lost", f"{process.returncode}, {' '.join(process.stderr[-200:].split())}"
        with report.open("a", encoding="utf-8") as file:
            file.write("\t".join(done[-1][2:]) + "\n")


def test_a_wrong_argument_is_told(tmp_path, tell):
    """No call is silent, ends the process, goes on for ever, or takes gigabytes; and few end in Python's own words."""
    results = tried(tmp_path)
    bad = [result for result in results if result[2] not in ("fine", "clear")]
    for level in LEVELS:
        counts = collections.Counter(kind for each, _, kind, *_ in results if each == level)
        tell("wrong arguments", f"{level}: {dict(counts)}")
        assert counts.total() > 1000 and counts.keys() <= {"fine", "clear", "obscure"}, bad
        assert counts["obscure"] <= OBSCURE * counts.total(), bad
