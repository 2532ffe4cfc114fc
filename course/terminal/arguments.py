"""The description and the arguments of each command. Help and errors in arguments are shown before .venv is made.

Like `course/__main__.py`, this module uses only the standard library and the syntax of Python 3.7.
"""

import argparse
import os

from course.terminal.kinds import SECTIONS, address, flag, listed, number, path, port, section, value

LANGUAGES = "en", "zh"  # of `lab`
DEPTHS = "some", "most"  # of `lab` and `grade`: how many functions a reader writes
NOTEBOOK = "a notebook: 02, kernels, 02_kernels, or a path to it"
PYTHON = value("--python", "LIBRARY=PATH", "the Python that has this library", action="append", default=[])


COMMANDS = {  # name: (its line of help, its arguments)
    "lab": (
        "open JupyterLab on your copies of the notebooks, in mine/"
        " (--trail opens the trail, --answers shows all answers)",
        [
            flag("--trail", "open the trail, the short way through all five levels"),
            flag("--answers", "show the answers to all predictions, for a projector"),
            value(
                "--write",
                None,
                "how many functions you write: some (18, the default) or most (42); it stays so",
                choices=DEPTHS,
            ),
            value(
                "--language",
                None,
                "the language of the trail, the map, and what `lab`, `resume` and `progress` say; it stays so",
                choices=LANGUAGES,
            ),
            flag(
                "--class",
                "for a class: without the solutions beneath the functions (--no-class brings them back)",
                dest="hidden",
            ),
            flag("--no-class", argparse.SUPPRESS),
            flag("--desk", "only make or renew the copies, for a hub that starts JupyterLab"),
            flag("--no-browser", "print the address instead of opening it"),
            value("--port", "NUMBER", "the port to listen at (default: 8888, or the next free one)", type=port),
            value("--ip", "ADDRESS", "the address to listen at (default: this computer only)"),
        ],
    ),
    "test": (
        "two minutes of tests: the levels, the notebooks, a sample of the rest (--all runs all but a few)",
        [
            flag("--all", "every test but the weekly ones: 10 to 25 minutes"),
            flag(
                "--weekly",
                "the tests that --all leaves out, because they take long and seldom fail: CI runs them weekly "
                "(with --all: every test)",
            ),
        ],
    ),
    "browser-test": ("run all notebooks in JupyterLab in this system's browser", []),
    "setup": ("install all packages, also those for more/, the tests and the site", []),
    "build": (
        "run the notebooks' texts, and write the notebooks and levels/ (--check only compares)",
        [
            value("names", "NOTEBOOK", NOTEBOOK + " (default: all)", nargs="*"),
            flag("--check", "only compare; if something differs, name the file and the cell, and exit with 1"),
            flag("--minutes", "count the minutes, and write them beside the headings"),
            flag("--po", "bring what is translated in po/ up to date, and its pages"),
        ],
    ),
    "bench": (
        "time levels beside NumPy, PyTorch, JAX and others (--quick takes two minutes)",
        [
            value("sections", "SECTION", ", ".join(SECTIONS) + " (default: all)", nargs="*", type=section),
            flag("--quick", "training only, in short rounds, in two minutes; no file is written"),
            value("--only", "TEXT", "only what has this text in its name, such as rings", default=""),
            value("--peer", "LIBRARY", "install this library from PyPI into .course/peers, and do nothing else"),
            PYTHON,
        ],
    ),
    "serve": (
        "serve models over the Open Inference Protocol: folders that `save` made, .onnx files, or rings (400 MB, once)",
        [
            value("models", "MODEL", "a folder, an .onnx file, or rings; NAME=MODEL gives it a name", nargs="*"),
            value("--port", "NUMBER", "the port to listen at (default: 8080)", type=port, default=8080),
            value("--host", "ADDRESS", "the address to listen at (default: this computer only)", default="127.0.0.1"),
            flag("--setup", "only make the server's environment, .course/serving"),
        ],
    ),
    "programs": (
        "run TensorFlow and PyTorch programs on levels_more, and compare with the stored losses (--real stores them)",
        [
            flag(
                "--places",
                "run nothing: look in the real libraries for the places that the notebooks name, "
                "and say what has moved",
            ),
            flag("--real", "first run them on the real libraries, and store their losses"),
            value(
                "--books",
                "FOLDER",
                "run chapter 3 of two books as it is printed, from your clones of them in this folder, and count "
                "the statements that run (with --real: on the real libraries, too)",
            ),
            flag(
                "--corners",
                "run nothing: ask the real libraries for the corners of the functions that levels_more spells",
            ),
            flag(
                "--differences",
                "run nothing: ask the libraries that are installed where they differ, and say what has changed",
            ),
            flag("--store", "store the answers to --corners or --differences"),
            PYTHON,
        ],
    ),
    "progress": ("show how many predictions were right, and how many exercises are done", []),
    "resume": (
        "show where you stopped, and open JupyterLab there: the first cell restores the state",
        [
            flag("--no-browser", "print the address instead of opening it"),
            value("--port", "NUMBER", "the port to listen at, as for lab", type=port),
        ],
    ),
    "reset": (
        "replace your copy of a notebook with the course's (--level: the level it has built); yours is kept",
        [
            value("name", "NOTEBOOK", NOTEBOOK),
            flag("--level", "replace the level that the notebook has built, not the notebook"),
        ],
    ),
    "catch-up": (
        "replace the levels beneath a notebook with the course's, so that you can go on there; yours are kept",
        [value("name", "NOTEBOOK", NOTEBOOK)],
    ),
    "undo": ("put back what the last reset, catch-up or update of the course replaced", []),
    "grade": (
        "check the exercises of every student in a folder (--csv FILE: a row per student and exercise)",
        [
            value(
                "folder",
                "FOLDER",
                "it holds a folder for each student, or notebooks named after students",
                type=path,
            ),
            value(
                "--notebook",
                "NAME,...",
                "the assignment: these notebooks of every student, such as 02,03"
                " (default: of each student, those that are there)",
                type=listed,
                default=[],
            ),
            value(
                "--only",
                "KEY,...",
                "the assignment: these functions and exercises, such as 02-matmul_ikj,02-1",
                type=listed,
                default=[],
            ),
            value("--csv", "FILE", "write a row per student and exercise into this file", type=path),
            value("--feedback", "FOLDER", "write a page for each student into this folder", type=path),
            value("--gradebook", "FILE", "write a table that Moodle and Canvas import into this file", type=path),
            value(
                "-j --jobs",
                "N",
                "how many notebooks are graded at once (default: %(default)s, the number of processors)",
                type=number,
                default=os.cpu_count() or 1,
            ),
            value(
                "--write", None, "which functions were to be written (default: some)", choices=DEPTHS, default="some"
            ),
            value("--seconds", None, "the time limit of one exercise (default: 60)", type=float, default=60),
        ],
    ),
    "beat": (
        "try to beat the check of a blank or exercise with a wrong answer that passes it",
        [
            value("key", "KEY", "of a blank or an exercise, such as 02-matmul_ikj or 01-3"),
            value("file", "FILE", "the answer, and maybe a `case()` for which it is wrong", type=path),
            value("--seconds", None, "the time limit of one question (default: 60)", type=float, default=60),
        ],
    ),
    "site": (
        "write the whole course as web pages into a folder (nothing is executed)",
        [
            value(
                "folder",
                "FOLDER",
                "the folder to write; what is in it is replaced (default: .course/site)",
                nargs="?",
                type=path,
            ),
            value(
                "--address",
                "URL",
                "where the site will stand: each page then says its address, the first one its picture too",
                type=address,
            ),
        ],
    ),
    "wheelhouse": (
        "download all packages, for computers without a network",
        [
            value(
                "folder",
                "FOLDER",
                "the folder to write (default: wheelhouse, in the course's folder)",
                nargs="?",
                type=path,
            )
        ],
    ),
}

HANDED_ON = {  # command: (its usage, which arguments are passed to the program that it starts)
    "lab": (
        "[--trail] [--answers] [--write some|most] [--language en|zh] [--class] [--desk] [--no-browser] "
        "[--port NUMBER] [--ip ADDRESS] [-- ARGUMENT ...]",
        "Arguments after -- go to JupyterLab unchanged: `-- --help` shows which ones it takes.",
    ),
    "test": (
        "[--all] [--weekly] [ARGUMENT ...]",
        "Other arguments go to pytest, such as tests/levels_more/mid_level/test_data.py, -k WORDS or --numprocesses=2,"
        " and select from all tests, also from the weekly ones: "
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


def check_arguments(name, given):
    """Return the arguments for the command, after checking them. Raises SystemExit for `--help` or a wrong argument.

    `test` passes unknown arguments to pytest, which rejects those that it does not know. JupyterLab ignores unknown
    arguments, so `lab` accepts only its own, defined above, and those after `--`.
    """
    end = given.index("--") if name in HANDED_ON and "--" in given else len(given)
    own = given[:end]
    others = given[end + 1 :]
    if "-h" in own or "--help" in own:  # even if another argument is wrong
        parser(name).parse_args(["--help"])
    if name not in ("test", "browser-test"):
        parser(name).parse_args(own)
    return own + others
