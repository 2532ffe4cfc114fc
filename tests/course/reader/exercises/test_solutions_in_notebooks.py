"""The solution of every exercise in `more` is right in the kernel of its notebook, where a reader writes it.

Cells that only show something are left out: what they print is compared elsewhere, and they take most of the time. (The five
run whole, with all that is solved in them, at the reader's desk, in `test_filled`, and the trail in `test_trail`.)
"""

import ast
import re

import pytest
from answered import answered, asked

from course import build
from course.author.build import MINE
from course.author.builder.execute import client_of
from course.author.setup import workspace

NAMES = [
    name
    for name in build.more_in(build.ROOT)
    if any(any(asked(c.source)) for c in build.from_text(build.ROOT, name).cells)
]


def only_shows(source):
    """Whether a cell does nothing but show values: it binds no name, and calls nothing by a name of its own."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a magic
        return False
    shown = ("checks.predict", "widgets.", "figures.", "print", "compare.", "page.")
    return bool(body) and all(isinstance(each, ast.Expr) and ast.unparse(each).startswith(shown) for each in body)


def without_times(cells):
    """The cells, without those from a measurement of all levels to the exercises, which would take a minute or more."""
    starts = [k for k, cell in enumerate(cells) if "compare.measure(" in cell.source]
    if not starts:
        return cells
    return cells[: starts[0]] + cells[next(k for k, cell in enumerate(cells) if "## Exercises" in cell.source) :]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, with all levels built, and with the reader's desk."""
    levels = list(map(build.level_of, build.names_in(build.ROOT)))
    root = build.copy_project(build.ROOT, tmp_path_factory.mktemp("solutions").resolve() / "copy", levels)
    assert workspace.open_desk(root) == []
    return root


@pytest.mark.parametrize("name", NAMES)
def test_each_is_right_in_the_kernel_of_its_notebook(project, name):
    """Where a reader opens it, at the desk."""
    notebook = build.from_text(project, name)
    notebook.cells = without_times(notebook.cells)
    notebook.cells = [c for c in notebook.cells if c.cell_type == "code" and not only_shows(c.source)]
    wanted = []
    for cell in notebook.cells:
        wanted += [key for key in asked(cell.source) if key]
        cell.source = answered(name, cell.source)
    run(notebook, project, project / MINE / f"{name}.ipynb")
    said = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    found = re.findall(r"(\d\d-\d) right: |^(\w+): right\b", said, re.MULTILINE)
    assert ["".join(each) for each in found] == wanted, said


def run(notebook, root, path):
    """Run a notebook as the one at this path, up to the cell that compares it with its file."""
    notebook.cells = [cell for cell in notebook.cells if "build.level(" not in cell.source]
    client_of(notebook, timeout=500).execute(cwd=str(path.parent), env=build.environment(root), cleanup_kc=True)
