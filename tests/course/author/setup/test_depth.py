"""How much a reader writes: *most* makes blanks of functions that the course's notebooks hold whole, and takes nothing away."""

import nbformat
import pytest

from course import build
from course.author.build import MINE
from course.author.setup import depth, workspace
from course.reader import progress
from course.reader.notebooks import blanks
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.names import depth_in

NAME = "01_hardware"
SAID = """
[alloc]
hints = ["What does `LOG` hold?", "`LOG.append(shape)`, then x < y is no tag: `np.zeros(shape)`."]
contract = '''
shape: a whole number. Gives an array of as many zeros.
'''
right = []
wrong = []
"""
OWN = "    LOG.append(shape)\n    return np.zeros(shape)"
LEFT = '    """shape: a whole number. Gives an array of as many zeros."""\n    ...  # about 2 lines'


@pytest.fixture
def course(project, monkeypatch):
    """The tiny project, with one function that is a blank at the depth *most*."""
    path = project / "notebooks" / "text" / f"{NAME}.py"
    text = path.read_text(encoding="utf-8").replace("#| export memory\n", "#| export memory most alloc\n")
    path.write_text(text, encoding="utf-8", newline="\n")
    beside = project / "solutions" / "at_most" / "hardware.toml"
    beside.parent.mkdir(parents=True)
    beside.write_text(SAID, encoding="utf-8")
    monkeypatch.setattr(blanks, "TEXTS", path.parent)
    monkeypatch.setattr(blanks, "SOLUTIONS", project / "solutions" / "blanks")
    monkeypatch.setattr(blanks, "NOTED", project / ".course" / "blanks")
    assert workspace.open_desk(project) == []
    return project


def mine(root):
    return nbformat.read(root / MINE / f"{NAME}.ipynb", 4)


def alloc_in(notebook):
    """The cell of the function, and what stands beneath it."""
    at = next(k for k, cell in enumerate(notebook.cells) if "def alloc" in cell.source)
    return notebook.cells[at], notebook.cells[at + 1]


def write(root, body):
    notebook = mine(root)
    cell, _ = alloc_in(notebook)
    cell.source = cell.source.replace("    ...  # about 2 lines", body)
    nbformat.write(notebook, root / MINE / f"{NAME}.ipynb")


def choose(root, *depths, **more):
    """Choose these depths, one after the other, and open the desk each time."""
    for each in depths:
        depth.choose(root, each, **more)
        workspace.open_desk(root)


def levels(root):
    return {path.name: path.read_text(encoding="utf-8") for path in (root / MINE / "levels").rglob("*.py")}


def test_at_most_a_stub_stands_there_with_hints_beneath_it_and_the_levels_stay(course):
    whole, before = mine(course), levels(course)
    assert build.essence(whole) == build.essence(build.from_text(course, NAME)) and depth_in(course) == "some"
    choose(course, "most")
    (cell, _), (stub, beneath) = alloc_in(whole), alloc_in(mine(course))
    assert stub.source == cell.source.replace("most alloc", "blank alloc").replace(OWN, LEFT) and stub.id == cell.id
    assert len(mine(course).cells) == len(whole.cells) + 1
    assert "What does <code>LOG</code> hold?" in beneath.source and "x &lt; y is no tag" in beneath.source
    assert f"\n```python\ndef alloc(shape):\n{OWN}\n```\n" in beneath.source
    assert levels(course) == before
    assert workspace.open_desk(course) == [] and depth_in(course) == "most", "it stays so"


def test_back_at_some_what_was_left_empty_is_whole_again(course):
    whole = build.essence(mine(course))
    choose(course, "most", "some")
    assert build.essence(mine(course)) == whole


def test_what_the_reader_wrote_stays_at_either_depth(course):
    choose(course, "most")
    write(course, "    LOG.append(shape)\n    return np.zeros(shape) + 0")
    for each in ("some", "most"):
        choose(course, each)
        cell, _ = alloc_in(mine(course))
        assert cell.source.endswith("np.zeros(shape) + 0") and "blank alloc" in cell.source


def test_a_function_that_was_changed_as_a_whole_becomes_a_filled_blank(course):
    notebook = mine(course)
    cell, _ = alloc_in(notebook)
    cell.source = cell.source.replace("return np.zeros(shape)", "return np.zeros(shape, float)")
    nbformat.write(notebook, course / MINE / f"{NAME}.ipynb")
    choose(course, "most")
    cell, beneath = alloc_in(mine(course))
    assert cell.source.startswith("#| export memory blank alloc\n") and "np.zeros(shape, float)" in cell.source
    assert "Second hint" in beneath.source, "and no second version of the course's"


def test_a_desk_with_half_filled_blanks_and_a_key_that_is_gone_is_opened_and_nothing_is_lost(course):
    """As the desk of a reader of an older course, who had written a part of two functions."""
    choose(course, "most")
    write(course, "    LOG.append(shape)\n    ...")
    gone = '#| export memory blank freed\ndef freed(array):\n    """Give back the memory of an array."""\n    ...'
    for folder, source in ((workspace.BASE, gone), (MINE, gone.replace("    ...", "    LOG.pop()\n    ..."))):
        path = course / folder / f"{NAME}.ipynb"
        notebook = nbformat.read(path, 4)
        notebook.cells.insert(2, nbformat.v4.new_code_cell(source, id="gone"))
        nbformat.write(notebook, path)
    path = course / "notebooks" / "text" / f"{NAME}.py"
    path.write_text(path.read_text(encoding="utf-8") + "\n# %% [markdown]\n# The news.\n", encoding="utf-8")
    told = workspace.open_desk(course)
    assert told[1] == (
        "  The course no longer asks for `freed`. What you wrote is kept there in a cell that does not run."
    )
    cells = mine(course).cells
    assert "LOG.append(shape)\n    ..." in alloc_in(mine(course))[0].source and cells[-1].source == "The news."
    (kept,) = [k for k, cell in enumerate(cells) if "LOG.pop()" in cell.source]
    assert cells[kept].cell_type == "raw" and "`freed`" in cells[kept - 1].source
    assert workspace.open_desk(course) == [], "it is told once"
    assert "np.zeros(shape)" in levels(course)["memory.py"], "and the levels are there"


def test_for_a_class_the_solutions_are_not_there_and_come_back(course):
    choose(course, "most", hidden=True)
    assert "Second hint" in alloc_in(mine(course))[1].source and "Solution" not in alloc_in(mine(course))[1].source
    choose(course, "", hidden=False)
    assert "Solution" in alloc_in(mine(course))[1].source and depth_in(course) == "most"


def test_a_function_of_which_nothing_is_said_and_an_unknown_depth_are_errors(course):
    with pytest.raises(BuildError, match=r"there is no depth 'all': there are some and most"):
        depth.choose(course, "all")
    (course / "solutions" / "at_most" / "hardware.toml").write_text("")
    depth.choose(course, "most")
    with pytest.raises(BuildError, match=r"solutions/at_most/hardware.toml says nothing of alloc: it needs two hints"):
        workspace.open_desk(course)


def test_the_score_counts_the_functions_of_this_depth(course):
    text = course / "notebooks" / "text" / f"{NAME}.py"
    assert progress.questions_in(text)["blanks"] == []
    assert progress.questions_in(text, "most")["blanks"] == ["01-alloc"]


CLASS = '''#| export room most Counter.add
class Counter:
    """Counts."""

    def __init__(self):
        self.count = 0

    def add(self, number):
        checked = int(number)
        self.count += checked
        return self.count

    def __repr__(self):
        return str(self.count)'''


def test_a_method_becomes_a_blank_in_its_class_and_what_is_given_stays():
    stub = depth.stub(CLASS, "Counter.add", given=1, stub="add it, and give the count")
    assert stub == CLASS.replace("most Counter.add", "blank Counter.add").replace(
        "        self.count += checked\n        return self.count\n", "        ...  # add it, and give the count\n"
    )
    assert blanks.is_stub(blanks.function_of(stub, "Counter.add"))
    with pytest.raises(blanks.Unfit, match="must have one method called `add`"):
        blanks.function_of(stub.replace("def add", "def put"), "Counter.add")
    with pytest.raises(blanks.Unfit, match="one class called `Counter` and nothing beside it, and holds `print"):
        blanks.function_of("print(1)", "Counter.add")
