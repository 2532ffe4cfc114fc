"""A program in TensorFlow, in PyTorch and on a level: the same answer, every line once, and it fits the page."""

import importlib
import re

import pytest
from code_edges import cut_names, drawn

from course import programs, tasks
from course.reader.inspection import framework_programs, marks, side_by_side
from course.reader.inspection.framework_programs import APIS, DIGITS, STEPS, TASKS
from course.reader.notebooks.cells import code_of

ALL = [(framework, api, task) for framework in ("tf", "torch") for api in APIS.values() for task in TASKS.values()]
LAB = 828  # px: what JupyterLab gives an output in a window of 1280, its list of files open


LEVELS = "low_level", "mid_level", "high_level"


@pytest.fixture(scope="module", params=[(level, name) for level in LEVELS for name in TASKS], ids=" ".join)
def beside(request):
    level, name = request.param
    train = getattr(importlib.import_module(f"levels.{level}.tasks"), name)
    return framework_programs.beside(tasks.FOR[name](), train)


def test_all_three_give_the_digits_that_are_shown(beside):
    """Which are printed once; a loss that is off by one in the last of them is printed beside."""
    (head, told, names) = next(answers := beside.answers())
    assert [*answers] == [] and names == f"TensorFlow, PyTorch, {side_by_side.COLUMNS[beside.rows[2].level]}"
    losses = [f"{beside.rows[0].losses[step - 1]:#.{DIGITS}g}" for step in STEPS]
    assert told == ", ".join(losses) and repr(beside).count(told) == beside._repr_html_().count(told) == 1
    other = beside.rows[1].losses.copy()
    other[STEPS[-1] - 1] *= 1 + 10.0 ** (1 - DIGITS)
    answers = beside._replace(rows=[beside.rows[0], beside.rows[1]._replace(losses=other)]).answers()
    assert [names for *_, names in answers] == ["TensorFlow", "PyTorch"]


@pytest.mark.quick
@pytest.mark.parametrize("framework, api, task", ALL)
def test_every_line_of_a_program_stands_once(framework, api, task):
    program = programs.program(framework, api, task)
    found = marks.read_program(program.name, program.text)
    lines = [line for steps in found.values() for step in steps for _, line in step.lines()]
    written = [marks.MARK.sub("", line).strip() for line in code_of(program.text).values()]
    assert sorted(line.strip() for line in lines if line.strip()[0] != "#") == sorted(written)
    assert [*found] == [*marks.MARKS, marks.AROUND]


@pytest.mark.parametrize("framework, api, task", ALL)
def test_what_runs_here_differs_in_its_imports(framework, api, task):
    program = programs.program(framework, api, task)
    made = framework_programs.here(framework, api, task)
    shown = made.text.splitlines()
    pairs = [(a, b) for a, b in zip(program.text.splitlines(), shown, strict=True) if a != b]
    assert pairs
    for was, line in pairs:
        assert re.match(r"(import|from) levels_more\.", line) and line.endswith(f"  # it was: {was}")
    assert f"{program.losses[199]:#.{DIGITS}g}" in made.told and program.version in made.told
    assert repr(made) == f"{made.text}\n\n{made.told}"


def test_beneath_level_3_there_is_no_api():
    train = importlib.import_module("levels.kernels.tasks").linear_regression
    told = "linear_regression is on level 2; TensorFlow and PyTorch have an API from level 3"
    with pytest.raises(ValueError, match=told):
        framework_programs.beside(tasks.linear(), train)


@pytest.mark.parametrize("width", [360, LAB])
def test_a_whole_program_fits_any_page(tab, show, width):
    show(framework_programs.here("torch", "high", "rings"), width)
    blocks = drawn(tab, "pre")
    assert len(blocks[0]) > 20 and cut_names(blocks) == []
    assert tab.evaluate("document.documentElement.scrollWidth") == width
