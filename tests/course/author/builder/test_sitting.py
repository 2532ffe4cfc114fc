"""The Build at the end of a sitting: what is finished is the reader's, the rest is the course's, and both tasks run."""

import shutil
import subprocess
import sys

import nbformat
import pytest

from course import build
from course.author.builder.sitting import room_of
from course.reader.notebooks.cells import halves
from course.reader.notebooks.names import level_of, notebook_path

NAMES = build.names_in(build.ROOT)
END = "This is the end of the first sitting."


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_each_of_the_five_builds_at_the_end_of_its_first_sitting(name):
    cells = build.from_text(build.ROOT, name).cells
    above, below = halves(cells, name)
    ends = [number for number, cell in enumerate(cells) if END in " ".join(cell.source.split())]
    assert len(ends) == 1 and len(above) - ends[0] <= 2
    assert sum("build.so_far(" in cell.source for cell in cells) == 1
    whole = set(filter(None, map(room_of, above))) - set(map(room_of, below))
    assert whole, "no room is finished"


class Desk:
    """A copy of the project with a desk, on which notebook 01 can be changed and built as far as it stands."""

    def __init__(self, folder):
        self.root = build.copy_project(build.ROOT, folder, list(map(level_of, NAMES)))
        mine = self.root / "mine"
        mine.mkdir()
        shutil.copytree(self.root / "levels", mine / "levels")
        build.write_notebook(self.root, "01_hardware", build.from_text(self.root, "01_hardware"))
        self.path = mine / "01_hardware.ipynb"
        shutil.copy2(notebook_path(self.root, "01_hardware"), self.path)

    def change(self, old, new):
        """Change one place in the reader's notebook."""
        notebook = nbformat.read(self.path, 4)
        (cell,) = [cell for cell in notebook.cells if room_of(cell) and old in cell.source]
        cell.source = cell.source.replace(old, new)
        nbformat.write(notebook, self.path)

    def built(self):
        """Run the Build at the end of the sitting. Returns what it prints, or the last line of its error."""
        code = "from course import build; from course.author.builder import session; session.find_home()"
        command = [sys.executable, "-c", f"{code}; build.so_far('01_hardware')"]
        env = build.environment(self.root)
        done = subprocess.run(command, cwd=self.path.parent, env=env, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else done.stderr.strip().split("\n")[-1]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    return Desk(tmp_path_factory.mktemp("sitting").resolve() / "copy")


RECORD = "25 steps in a fresh process, and the losses of record"


def test_it_says_what_is_finished_and_what_is_the_courses(desk):
    lines = desk.built().splitlines()
    assert lines[0] == "mine/levels/hardware, as far as it stands"
    assert any(line.split()[0] == "values.py" and line.endswith("lines of code") for line in lines)
    (rest,) = [line for line in lines if line.startswith("the course's, until you go on: ")]
    assert "tasks" in rest and "values" not in rest
    assert lines[-2:] == [f"linear_regression: {RECORD}", f"dnn_classifier: {RECORD}"]


def test_what_stands_below_is_not_read_and_what_stands_above_is_built(desk):
    desk.change("def linear_regression(", "def linear_regression((")  # half-written, in the second sitting
    desk.change('"""A number to compute with."""', '"""A number, as I would say."""')
    assert desk.built().endswith(f"dnn_classifier: {RECORD}\n")
    assert "as I would say" in (desk.path.parent / "levels" / "hardware" / "values.py").read_text(encoding="utf-8")


def test_other_arithmetic_is_told(desk):
    desk.change("total = 0.0", "total = 1e-9")
    (line, _) = desk.built().splitlines()[-2:]
    assert line.startswith("linear_regression: the loss of step 0 is ") and " and that of record is " in line
    desk.change("total = 1e-9", "total = 0.0")


def test_a_half_written_cell_above_is_named(desk):
    desk.change("class Value(Register):", "class Value(Register:")
    assert "01_hardware.ipynb, cell " in desk.built()
    desk.change("class Value(Register:", "class Value(Register):")
