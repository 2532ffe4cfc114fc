"""Ruff, import-linter and deptry find nothing, by the rules in pyproject.toml: on the desk as in the lint job.

And code fits on a page: no file over 310 lines, no function of levels_more over 40. (Long lines are found by ruff.)
"""

import ast

import pytest
from fresh import printed

from course.author.build import ROOT

LINTERS = {  # what runs it; a fault is told on its output
    "ruff check": ["-m", "ruff", "check", "--no-cache"],
    "ruff format": ["-m", "ruff", "format", "--check", "--no-cache"],
    "lint-imports": ["-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"],
    "deptry": ["-m", "deptry", "."],
}


@pytest.mark.parametrize("name", LINTERS)
def test_a_linter_finds_nothing(name):
    printed(*LINTERS[name])


FILE, FUNCTION = 310, 40


def texts(*packages):
    """{name: text} of all files of these packages."""
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def long_functions(text):
    """The names of functions with more than FUNCTION lines, decorators not counted."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in found if node.end_lineno - node.lineno + 1 > FUNCTION]


@pytest.mark.quick
def test_no_file_is_long():
    found = texts("levels_more", "course")
    assert [name for name, text in found.items() if len(text.splitlines()) > FILE] == []


@pytest.mark.quick
def test_no_function_of_levels_more_is_long():
    found = {name: long_functions(text) for name, text in texts("levels_more").items()}
    assert len(found) > 100 and {name: functions for name, functions in found.items() if functions} == {}
