"""The exercises' checks: `exercises.check("01-3", my_function)` says how far a solution is.

One module a notebook holds its checks. Solutions, and wrong solutions that each check must reject, lie in `solutions/`.
"""

from course import progress
from course.exercises import hardware, kernels  # noqa: F401 (they enter their checks)
from course.exercises.trying import EXERCISES, Verdict, verdict

__all__ = ["EXERCISES", "Verdict", "check", "verdict"]


def check(key, function):
    """Try a reader's solution, print what is found, and note it when it is right."""
    found = verdict(key, function)
    print(f"{key} {found.state}: {found.text}")
    if found.state == "right":
        progress.solved(key)
