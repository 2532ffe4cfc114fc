"""What each command is for and what it takes: `--help` and a slip of the pen are answered before anything is made.

It starts with the standard library alone, in the grammar of Python 3.7, as `course/__main__.py` does.
"""

import argparse

SECTIONS = "training", "kernels", "start", "growth", "machines", "course"  # of `bench`
NOTEBOOK = "a notebook: 02, kernels, 02_kernels, or a path to it"


def argument(*names, **settings):
    return names, settings


def section(text):
    """One of the sections. (As `choices` they would have to be there in some versions of Python, and not in others.)"""
    if text not in SECTIONS:
        raise argparse.ArgumentTypeError(f"there is no section {text}: there are {', '.join(SECTIONS)}")
    return text


def port(text):
    """The number of a port: what is none would be taken, and an address printed that cannot be."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("a port is a whole number from 1 to 65535, not " + text)
    return int(text)


COMMANDS = {  # name: (a line of help, what it takes)
    "lab": (
        "open JupyterLab on your copies of the notebooks, in mine/"
        " (--trail begins with the two hours, --answers shows all answers)",
        [
            argument("--trail", action="store_true", help="begin with the trail: all five levels in two hours"),
            argument("--answers", action="store_true", help="show the answers to all predictions, for a projector"),
            argument("--no-browser", action="store_true", help="print the address instead of opening it"),
            argument(
                "--port", type=port, metavar="NUMBER", help="where it listens (default: 8888, or the next free one)"
            ),
            argument("--ip", metavar="ADDRESS", help="whom it listens to (default: this computer alone)"),
        ],
    ),
    "test": (
        "three minutes of tests: the levels, the notebooks, a sample of the rest (--all runs every test)",
        [argument("--all", action="store_true", help="every test: about 20 minutes")],
    ),
    "browser-test": ("run all notebooks in JupyterLab in this system's browser", []),
    "setup": ("install everything, also for more/, the tests and the site; run nothing", []),
    "build": (
        "text -> executed notebooks -> levels/ (--check only compares)",
        [
            argument("names", metavar="NOTEBOOK", nargs="*", help=NOTEBOOK + " (default: all)"),
            argument("--check", action="store_true", help="only compare; exit 1 naming file and cell"),
            argument("--minutes", action="store_true", help="write the minutes that are counted beside the headings"),
        ],
    ),
    "run": ("run all notebooks from top to bottom, into a temporary folder", []),
    "bench": (
        "time levels beside NumPy, PyTorch, JAX and others (--quick takes two minutes)",
        [
            argument(
                "sections", metavar="SECTION", nargs="*", type=section, help=", ".join(SECTIONS) + " (default: all)"
            ),
            argument("--quick", action="store_true", help="training, short rounds, nothing written: two minutes"),
            argument("--only", metavar="TEXT", default="", help="only what has this in its name, such as rings"),
            argument("--peer", metavar="LIBRARY", help="install one from PyPI into .course/peers, and stop"),
            argument("--python", metavar="LIBRARY=PATH", action="append", default=[], help="the Python that has it"),
        ],
    ),
    "serve": (
        "answer the Open Inference Protocol for models: folders that `save` made, .onnx files, or rings (400 MB, once)",
        [
            argument("models", metavar="MODEL", nargs="*", help="a folder, an .onnx file, rings; NAME=MODEL names it"),
            argument("--port", type=port, metavar="NUMBER", default=8080, help="where it listens (default: 8080)"),
            argument(
                "--host", metavar="ADDRESS", default="127.0.0.1", help="whom it listens to (default: this computer)"
            ),
            argument("--setup", action="store_true", help="only make the server's environment, .course/serving"),
        ],
    ),
    "programs": (
        "run programs of TensorFlow and PyTorch on levels_more, beside the stored losses (--real stores them)",
        [
            argument(
                "--real", action="store_true", help="first run them on the real libraries, and store their losses"
            ),
            argument("--python", metavar="LIBRARY=PATH", action="append", default=[], help="the Python that has it"),
        ],
    ),
    "progress": ("how many predictions were right, and which exercises are done", []),
    "resume": (
        "where you stopped, three ideas, and JupyterLab there: its first cell brings the state back",
        [
            argument("--no-browser", action="store_true", help="print the address instead of opening it"),
            argument("--port", type=port, metavar="NUMBER", help="where it listens, as for lab"),
        ],
    ),
    "reset": (
        "put back a notebook of yours as the course has it (--level: what it has built); yours is kept",
        [
            argument("name", metavar="NOTEBOOK", help=NOTEBOOK),
            argument("--level", action="store_true", help="the level that it has built, not the notebook"),
        ],
    ),
    "catch-up": (
        "put the course's own levels beneath a notebook, so that you can go on there; yours are kept",
        [argument("name", metavar="NOTEBOOK", help=NOTEBOOK)],
    ),
    "undo": ("put back what the last reset, catch-up or update of the course replaced", []),
    "grade": (
        "try the exercises of every student in a folder (--csv FILE: a row for each)",
        [
            argument("folder", metavar="FOLDER", help="with a folder, or notebooks, of each student"),
            argument("--csv", metavar="FILE", help="write a row for each student and exercise"),
            argument("--seconds", type=float, default=60, help="for one exercise (default: 60)"),
        ],
    ),
    "site": (
        "the whole course as pages to read, from what is stored, into a folder (nothing is executed)",
        [argument("folder", metavar="FOLDER", nargs="?", help="where to; replaced whole (default: .course/site)")],
    ),
    "wheelhouse": (
        "download all packages, for computers without a network",
        [argument("folder", metavar="FOLDER", nargs="?", help="where to (default: wheelhouse, in the course's own)")],
    ),
}

HANDED_ON = {  # command: (how it is called, what goes to the program that it starts)
    "lab": (
        "[--trail] [--answers] [--no-browser] [--port NUMBER] [--ip ADDRESS] [-- ARGUMENT ...]",
        "What follows -- goes to JupyterLab as it is: `-- --help` shows what that takes.",
    ),
    "test": (
        "[--all] [ARGUMENT ...]",
        "Other arguments go to pytest, such as tests/levels_more/mid_level/test_data.py, -k WORDS or --numprocesses=2,"
        " and select from all tests: "
        "`-- --help` shows them.",
    ),
    "browser-test": ("[ARGUMENT ...]", "Arguments go to pytest, such as -x: `-- --help` shows them all."),
}


def parser(name):
    line, takes = COMMANDS[name]
    made = argparse.ArgumentParser(prog="python3 -m course " + name, description=line, allow_abbrev=False)
    if name in HANDED_ON:
        called, made.epilog = HANDED_ON[name]
        made.usage = "%(prog)s [-h] " + called
    for names, settings in takes:
        made.add_argument(*names, **settings)
    return made


def checked(name, given):
    """The arguments as the command gets them, after a look at each: help that is asked for, or a mistake, ends it here.

    What `test` does not know goes to pytest, which refuses what it does not know either. JupyterLab refuses nothing, it
    goes on without. So `lab` hands on what stands above, and what follows `--`.
    """
    end = given.index("--") if name in HANDED_ON and "--" in given else len(given)
    own, others = given[:end], given[end + 1 :]
    if "-h" in own or "--help" in own:  # whatever else is wrong
        parser(name).parse_args(["--help"])
    if name not in ("test", "browser-test"):
        parser(name).parse_args(own)
    return own + others
