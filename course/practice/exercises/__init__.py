"""The exercises' checks: `exercises.check("01-3", my_function)` says how far a solution is.

An exercise is a stub and `exercises.check(key, stub)` in a notebook, a check in that notebook's module here, and, in
`solutions/`, two or more solutions of different style and five or more plausible wrong ones, all of which the check
must reject. A check draws its inputs from a generator: in the notebook always the same, so that a failing case comes
again; to grade, from any seed.
"""

from course.practice import progress
from course.practice.cases import at_most  # noqa: F401 (its cases)
from course.practice.exercises import hardware, high_level, kernels, low_level, mid_level  # noqa: F401 (their checks)
from course.practice.exercises.judge import EXERCISES, Verdict, verdict
from course.practice.exercises.standalone import begin

__all__ = ["EXERCISES", "Verdict", "begin", "check", "verdict"]


def check(key, function):
    """Try a reader's solution, print what is found, and note it when it is right."""
    found = verdict(key, function)
    print(f"{key} {found.state}: {found.text}")
    if found.state == "right":
        progress.solved(key)
