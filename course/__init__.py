"""The stage: everything around the five notebooks that is not taught by them. Written by hand, in rooms by trade.

    from course import build, compare, figures, reference, tasks, where
    from course.practice import checks, exercises

What every notebook needs stands at the door, all else in the room of its trade: `setup` (what the commands do),
`builder` (texts, notebooks, levels), `practice` (predictions, exercises, grading), `figures`, `inspection` (side by
side, x-ray), `data` (how its files were made), `bench` (beside other libraries), `programs` (as those libraries'
readers write them).
"""

import sys

if sys.version_info < (3, 6):  # noqa: UP036 (Python 2 can read this file, and no other one of the course)
    sys.exit("Python " + sys.version.split()[0] + " is too old. The course runs on Python 3.11 to 3.14.")


def __getattr__(name):
    """`course.where`, loaded on first use: the command line starts with this package and waits for nothing."""
    if name == "where":
        from course.inspection.where import where

        return where
    raise AttributeError("module " + repr(__name__) + " has no attribute " + repr(name))
