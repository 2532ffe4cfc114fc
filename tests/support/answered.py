"""A cell of a notebook with the course's answer in it: a blank filled, an exercise solved."""

import ast
import inspect
import re
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

import nbformat

from course import build
from course.reader import exercises
from course.reader.notebooks import blanks
from solutions import hardware, high_level, kernels, low_level, mid_level
from solutions.answers import ANSWERS

CHANGES = Path(__file__).resolve().parents[1] / "course" / "reader" / "exercises" / "changes"
SOLUTIONS = {}
for module in (hardware, kernels, low_level, mid_level, high_level):
    SOLUTIONS |= module.SOLUTIONS
CHECK = re.compile(r'^exercises\.check\("(.*?)"', re.MULTILINE)


def asked(source):
    """(the key of a cell's blank or "", the key of its exercise or "")"""
    exercise = CHECK.search(source)
    return build.blank_in(source), exercise[1] if exercise else ""


class Tried(NamedTuple):
    """An answer to a blank, what its check must find ("right", "other bits", "not yet"), and what the message says."""

    body: str
    state: str
    says: str = ""


def tried(key):
    """All answers to a blank: those of `solutions`, and the changes of the course's own function."""
    known = ANSWERS[key]
    yield from (Tried(body, "right") for body in known.right)
    yield from (Tried(body, "other bits") for body in known.other_bits)
    yield from (Tried(body, "not yet", says) for body, says in known.wrong.items())
    (path,) = CHANGES.glob(f"{key[:2]}_*.toml")
    own = body_of(path.stem, key[3:])
    changes = tomllib.loads(path.read_text(encoding="utf-8"))[key[3:]]
    for kind, state in {"right": "right", "other_bits": "other bits", "wrong": "not yet"}.items():
        for old, new, *says in changes.get(kind, []):
            assert own.count(old) == 1 or not old, f"{key}: {old!r} does not stand in the solution once"
            yield Tried(own.replace(old, new) if old else new, state, *says)


def body_of(name, key):
    """The body of the course's own function for a blank, without its docstring."""
    text = textwrap.dedent(blanks.solution(name, key))
    (function,) = ast.parse(text).body
    first = function.body[ast.get_docstring(function) is not None]
    return textwrap.dedent("\n".join(text.split("\n")[first.lineno - 1 :]))


def with_body(name, source, body):
    """The cell of a blank whose function has this body, behind its docstring."""
    function = blanks.written(source, build.core_of(name), build.blank_in(source))
    kept = function.body[: ast.get_docstring(function) is not None]
    head = kept[0].end_lineno if kept else function.body[0].lineno - 1
    lines, indent = source.split("\n"), " " * function.body[0].col_offset
    return "\n".join([*lines[:head], textwrap.indent(body.strip("\n"), indent), *lines[function.end_lineno :]])


def answered(name, source):
    """A cell with the course's answer in it."""
    blank, exercise = asked(source)
    if blank:
        return with_body(name, source, ANSWERS[f"{build.core_of(name)[:2]}-{blank}"].right[0])
    if exercise:
        solution = SOLUTIONS[exercise]
        (stub,) = [each for each in ast.parse(source).body if getattr(each, "name", "") == solution.__name__]
        lines = source.split("\n")
        return "\n".join([*lines[: stub.lineno - 1], with_helpers(solution), *lines[stub.end_lineno :]])
    return source


def with_helpers(solution):
    """The source of a solution, behind that of the functions of its own module that it calls."""
    used = getattr(solution, "__code__", None)
    helpers = [vars(inspect.getmodule(solution)).get(name) for name in (used.co_names if used else ())]
    own = [each for each in helpers if inspect.isfunction(each) and each.__module__ == solution.__module__]
    return "\n\n".join(map(inspect.getsource, [*own, solution]))


def solve_exercises(root, name):
    """Add cells to a stored notebook of a copy: before each exercise its solution, which must be found right there.

    The stub follows, so the rest of the notebook runs as it is stored, also where it uses what the reader has written.
    """
    notebook = build.read_notebook(root, name)
    cells = []
    for cell in notebook.cells:
        key = asked(cell.source)[1] if cell.cell_type == "code" else ""
        if key:
            says = f"{key} right: {exercises.verdict(key, SOLUTIONS[key]).text}\n"
            output = nbformat.v4.new_output("stream", name="stdout", text=says)
            cells.append(nbformat.v4.new_code_cell(answered(name, cell.source), outputs=[output], execution_count=1))
        cells.append(cell)
    if len(cells) > len(notebook.cells):
        notebook.cells = cells
        build.write_notebook(root, name, notebook)
