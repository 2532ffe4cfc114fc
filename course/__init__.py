"""The tooling of the course: the code that the notebooks use and do not teach, written by hand, in subpackages.

    from course import build, compare, figures, reference, tasks, where
    from course.practice import checks, exercises

The modules that every notebook needs are at the top level. The subpackages are `setup` (the commands), `builder`
(texts, notebooks, levels), `practice` (predictions, exercises, grading), `figures`, `inspection` (side by side, x-ray),
`data` (scripts for data files), `bench` (comparison with other libraries), `programs` (the tasks written for other
libraries), `reading` (the site) and `serving` (the model server).
"""

import sys

if sys.version_info < (3, 6):  # noqa: UP036 (Python 2 can read this file, and no other one of the course)
    sys.exit("Python " + sys.version.split()[0] + " is too old. The course runs on Python 3.11 to 3.14.")


def __getattr__(name):
    """Load `course.where` on first use, because the command line imports this package and should start quickly."""
    if name == "where":
        from course.inspection.where import where

        return where
    raise AttributeError("module " + repr(__name__) + " has no attribute " + repr(name))
