"""The checks of the exercises: `exercises.check("01-3", my_function)` tests a solution and prints what is wrong.

An exercise consists of a stub and `exercises.check(key, stub)` in a notebook, a check in that notebook's module here,
and, in `solutions/`, two or more solutions of different style and five or more plausible wrong ones, all of which the
check must reject. A check draws its inputs from a random generator. In the notebook its seed is always the same, so
that a failing case can be reproduced. Grading uses any seed.
"""

from course.reader import progress
from course.reader.cases import at_most  # noqa: F401 (its cases)
from course.reader.exercises import hardware, high_level, kernels, low_level, mid_level  # noqa: F401 (their checks)
from course.reader.exercises.judge import EXERCISES, Verdict, verdict
from course.reader.exercises.standalone import begin

__all__ = ["EXERCISES", "Verdict", "begin", "check", "verdict"]


def check(key, function):
    """Test a reader's solution, print the verdict, and record the exercise as solved if it is right."""
    found = verdict(key, function)
    print(f"{key} {found.state}: {found.text}")
    if found.state == "right":
        progress.note_solved(key)
