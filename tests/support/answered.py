"""A cell of a notebook with the course's answer in it: a blank filled, an exercise solved."""

import ast
import inspect
import re
import textwrap

from course import build
from course.builder import blanks
from solutions import hardware, high_level, kernels, low_level, mid_level
from solutions.answers import ANSWERS

SOLUTIONS = {}
for module in (hardware, kernels, low_level, mid_level, high_level):
    SOLUTIONS |= module.SOLUTIONS
CHECK = re.compile(r'^exercises\.check\("(.*?)"', re.MULTILINE)


def asked(source):
    """(the key of a cell's blank or "", the key of its exercise or "")"""
    exercise = CHECK.search(source)
    return build.blank_in(source), exercise[1] if exercise else ""


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
