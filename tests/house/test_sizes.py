"""Code that fits on a page: no file over 310 lines, no line over 120 characters, no function of levels_more over 40 lines."""

import ast

import pytest

from course.build import ROOT

FILE, LINE, FUNCTION = 310, 120, 40
FILES = sorted(path for package in ("levels_more", "course") for path in (ROOT / package).rglob("*.py"))

LONG_LINES = {  # these may have longer lines
    # a hash of these scripts stands in the results: with other lines they would have to be measured again
    "course/bench/formulas.py",
    "course/bench/peers/jax.py",
    "course/bench/work.py",
    "course/bench/worker.py",
    # pages of prose, kept in lines as long as those of the notebooks' text
    "course/inspection/questions.py",
    "course/inspection/walk/stages.py",
    "course/reading/names.py",
    "course/setup/commands.py",
    # a sentence as a key of a table; a line of LLVM's text, which has no breaks
    "course/practice/exercises/mid_level.py",
    "course/inspection/walk/probe.py",
}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def text_of(path):
    return path.read_text(encoding="utf-8")


def long_functions(text):
    """The names of functions with more than FUNCTION lines, decorators not counted."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in found if node.end_lineno - node.lineno + 1 > FUNCTION]


def long_lines(text):
    return [number for number, line in enumerate(text.splitlines(), 1) if len(line) > LINE]


@pytest.mark.quick
def test_no_file_is_long():
    assert {name_of(path) for path in FILES if len(text_of(path).splitlines()) > FILE} == set()


@pytest.mark.quick
def test_no_line_is_long_except_in_files_that_are_named_here():
    assert {name_of(path) for path in FILES if long_lines(text_of(path))} == LONG_LINES


@pytest.mark.quick
def test_no_function_of_levels_more_is_long():
    found = {name_of(path): long_functions(text_of(path)) for path in FILES if ROOT / "levels_more" in path.parents}
    assert len(found) > 100 and {name: functions for name, functions in found.items() if functions} == {}
