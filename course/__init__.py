"""The tooling of the course: what the notebooks use and do not teach, written by hand, with a door for each who enters.

`reader` holds what a notebook's kernel imports: the data sets, figures, checks, exercises and comparisons. `author`
holds what makes the course: its setup, the builder, the site, the programs' runs and the bench. `teacher` grades, and
plans the weeks. `author` and `teacher` import `reader`, never the reverse. Beneath them lies `terminal`, how a command
speaks. What every notebook needs is offered here, too, and loaded on first use:

    from course import build, compare, figures, reference, tasks, where
"""

import importlib
import sys

if sys.version_info < (3, 6):  # noqa: UP036 (Python 2 can read this file, and no other one of the course)
    sys.exit("Python " + sys.version.split()[0] + " is too old. The course runs on Python 3.11 to 3.14.")

OFFERED = {  # name: the module that it is, or, of a function of the same name, its module
    "build": "course.author.build",
    "compare": "course.reader.compare",
    "figures": "course.reader.figures",
    "programs": "course.reader.programs",
    "prose": "course.reader.prose",
    "reference": "course.reader.reference",
    "serving": "course.reader.serving",
    "tasks": "course.reader.tasks",
    "where": "course.reader.inspection.where",
}


def __getattr__(name):
    """Load what is offered on first use, because the command line imports this package and should start quickly."""
    if name not in OFFERED:
        raise AttributeError("module " + repr(__name__) + " has no attribute " + repr(name))
    module = importlib.import_module(OFFERED[name])
    return module.where if name == "where" else module
