"""Code that fits on a page: no file over 310 lines, no function of levels_more over 40. (Long lines are found by ruff.)"""

import ast

import pytest

from course.author.build import ROOT

FILE, FUNCTION = 310, 40
FILES = sorted(path for package in ("levels_more", "course") for path in (ROOT / package).rglob("*.py"))


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def text_of(path):
    return path.read_text(encoding="utf-8")


def long_functions(text):
    """The names of functions with more than FUNCTION lines, decorators not counted."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in found if node.end_lineno - node.lineno + 1 > FUNCTION]


@pytest.mark.quick
def test_no_file_is_long():
    assert {name_of(path) for path in FILES if len(text_of(path).splitlines()) > FILE} == set()


@pytest.mark.quick
def test_no_function_of_levels_more_is_long():
    found = {name_of(path): long_functions(text_of(path)) for path in FILES if ROOT / "levels_more" in path.parents}
    assert len(found) > 100 and {name: functions for name, functions in found.items() if functions} == {}
