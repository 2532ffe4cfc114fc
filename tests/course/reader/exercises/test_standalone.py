"""Each exercise opened alone: its cells, and no other, in a new notebook on the built levels."""

import re
import sys

import jupytext
import pytest
from answered import SOLUTIONS, answered

from course import build
from course.reader.notebooks import running


def cells_of(name):
    """{exercise: the code of its cells, in order; the last one has the check}"""
    found, key = {}, None
    for cell in jupytext.read(build.text_path(build.ROOT, name)).cells:
        for heading, begun in re.findall(r"^###? ((\d\d-\d)?.*)", cell.source, re.MULTILINE):
            key = begun if heading else None
        if key and cell.cell_type == "code":
            found.setdefault(key, []).append(cell.source)
            if f'exercises.check("{key}"' in cell.source:
                key = None  # what follows goes on with the notebook
    return found


CELLS = {key: cells for name in build.all_in(build.ROOT) for key, cells in cells_of(name).items()}


def run(*cells, notebook=None):
    """Run cells in a notebook, a new one if none is given. Returns its names."""
    names = {"__name__": "__main__"} if notebook is None else notebook
    for cell in cells:
        exec(compile(cell, "a cell", "exec"), names)
    return names


@pytest.mark.parametrize("key", SOLUTIONS)
def test_an_exercise_runs_alone(key, capsys):
    run(CELLS[key][-1])
    assert re.fullmatch(rf"{key} still blank: a solution takes about \d+ lines\n", capsys.readouterr().out)
    run(*CELLS[key][:-1], answered(key, CELLS[key][-1]))
    assert re.search(rf"{key} right: \d+ cases\n\Z", capsys.readouterr().out)


# A part of notebook 04 that some reader may have run. (`Layer` is not the whole of the level.)
OWN = """
from levels_more.low_level import Module, Variable

class Layer(Module):
    pass
"""


def test_the_notebooks_own_names_stay_and_are_not_mixed_with_others(capsys):
    """A reader opens an exercise, then begins the notebook, and comes back."""
    notebook = run(CELLS["04-1"][-1])
    assert {"Layer", "Loss", "Variable", "np"} <= notebook.keys()
    run(OWN, notebook=notebook)
    own = notebook["Layer"]
    run("exercises.begin('04-1')", notebook=notebook)
    assert notebook["Layer"] is own and "Loss" not in notebook
    assert {"Variable", "np"} <= notebook.keys()  # these are the same in the notebook, and it may have imported them
    assert "Loss" not in run(OWN, "from course.reader import exercises\nexercises.begin('04-2')")


def test_whoever_ran_half_of_the_notebook_is_told_to_run_the_rest(capsys):
    """No tape of the built level is asked about tensors of the notebook: the verdict on a right solution would be wrong."""
    run("class Tensor:\n    pass", answered("03-3", CELLS["03-3"][-1]))
    assert "needs the notebook's own `reduce_sum`: run the cell that defines it" in capsys.readouterr().out


def test_numbers_of_the_reader_are_kept_and_hinder_nothing(capsys):
    assert run("size = 3", answered("03-3", CELLS["03-3"][-1]))["size"] == 3
    assert capsys.readouterr().out.startswith("03-3 right")


def test_at_the_readers_desk_these_are_the_levels_that_the_reader_built(tmp_path, monkeypatch):
    desk = tmp_path / build.MINE
    desk.mkdir()
    monkeypatch.setattr(running, "ROOT", tmp_path)
    monkeypatch.setattr(running, "HOME", [tmp_path])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(desk)
    run("from course.reader import exercises", "exercises.begin('01-1')")
    assert sys.path[0] == str(desk) and [desk] == running.HOME


def test_where_levels_are_built_from_nothing_nothing_is_missed(tmp_path, monkeypatch, capsys):
    """Notebook 02 runs while there is no level 2: `begin` leaves everything to it."""
    (tmp_path / "levels").mkdir()
    (tmp_path / "levels" / "__init__.py").touch()
    import levels

    monkeypatch.setattr(levels, "__file__", str(tmp_path / "levels" / "__init__.py"))
    notebook = run("from course.reader import exercises\nexercises.begin('02-3')")
    assert notebook.keys() <= {"__name__", "__builtins__", "exercises"}
