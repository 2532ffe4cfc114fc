"""The reader's desk: working copies in `mine/`, the `levels` they build, and a newer course that reaches both."""

import json
import os
import re
import shutil

import nbformat
import pytest

from course import build
from course.build import MINE
from course.builder.names import names_in
from course.practice import checks
from course.setup import reset, workspace
from course.setup.arguments import parser

NAMES = ["01_hardware", "02_kernels"]


@pytest.fixture
def opened(project):
    """The tiny project with its desk."""
    assert workspace.open_desk(project) == []
    return project


def path_of(root, name="02_kernels"):
    return root / MINE / f"{name}.ipynb"


def mine(root, name="02_kernels"):
    return nbformat.read(path_of(root, name), 4)


def work(root, old, new, name="02_kernels"):
    """What a reader's edit in Lab leaves."""
    notebook = mine(root, name)
    (cell,) = [cell for cell in notebook.cells if old in cell.source]
    cell.source = cell.source.replace(old, new)
    nbformat.write(notebook, path_of(root, name))


def news(root, old, new, name="02_kernels"):
    """What a `git pull` brings."""
    path = root / "notebooks" / "text" / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8", newline="\n")


def files(root):
    paths = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def levels(root):
    return {path: text for path, text in files(root).items() if path.startswith("levels/")}


def test_a_desk_holds_the_notebooks_without_outputs_and_all_levels(project):
    before = files(project)
    assert workspace.open_desk(project) == []
    for name in NAMES:
        copy, course = mine(project, name), build.read_notebook(project, name)
        assert build.essence(copy) == build.essence(course) and copy.metadata.kernelspec == course.metadata.kernelspec
        assert [cell.id for cell in copy.cells] == [cell.id for cell in course.cells]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in copy.cells)
        assert any(cell.get("outputs") for cell in course.cells)
    assert levels(project / MINE) == levels(project)
    now = files(project)
    assert {path: now[path] for path in before} == before
    assert all(path.startswith(f"{MINE}/") for path in now.keys() - before.keys())


def test_opening_again_changes_nothing(opened):
    work(opened, "KERNELS = {}", "KERNELS = dict()")
    stamps = {path: path.stat().st_mtime_ns for path in (opened / MINE).rglob("*")}
    assert workspace.open_desk(opened) == []
    assert {path: path.stat().st_mtime_ns for path in (opened / MINE).rglob("*")} == stamps


def test_what_is_missing_comes_back_and_nothing_else(opened):
    work(opened, "KERNELS = {}", "KERNELS = dict()", "02_kernels")
    before = files(opened)
    path_of(opened, "01_hardware").unlink()
    shutil.rmtree(opened / MINE / "levels" / "kernels")
    assert workspace.open_desk(opened) == []
    assert files(opened) == before


def test_a_newer_course_reaches_a_notebook_in_which_nobody_worked(opened):
    news(opened, "KERNELS = {}", "KERNELS = dict()")
    told = workspace.open_desk(opened)
    assert (
        told[0]
        == "02_kernels: the course has changed, and mine/02_kernels.ipynb with it. What you wrote is still there."
    )
    assert "KERNELS = dict()" in mine(opened).cells[2].source
    assert b"KERNELS = dict()" in files(opened)["mine/levels/kernels/registry.py"]
    assert workspace.open_desk(opened) == []


def test_a_newer_course_leaves_the_readers_cells_and_the_level_built_from_them(opened):
    notebook = mine(opened)
    (cell,) = [cell for cell in notebook.cells if "x.sum() / len(x)" in cell.source]
    cell.source = cell.source.replace("x.sum() / len(x)", "x.mean()")
    notebook.cells.insert(3, nbformat.v4.new_code_cell("my_own = 1"))
    nbformat.write(notebook, path_of(opened))
    built = opened / MINE / "levels" / "kernels" / "tasks.py"
    built.write_text(built.read_text().replace("x.sum() / len(x)", "x.mean()"))  # as the last cell of the notebook does
    news(opened, "KERNELS = {}", "KERNELS = dict()")
    before = path_of(opened).read_bytes(), built.read_bytes()
    told = workspace.open_desk(opened)
    sources = [cell.source for cell in mine(opened).cells]
    assert "my_own = 1" in sources and any("x.mean()" in source for source in sources)
    assert any("KERNELS = dict()" in source for source in sources) and len(told) == 2
    assert "x.mean()" in built.read_text()
    assert "dict()" in (built.parent / "registry.py").read_text()
    assert reset.main("undo", [], opened) == 0
    assert (path_of(opened).read_bytes(), built.read_bytes()) == before
    assert len(workspace.open_desk(opened)) == 2  # undone, it is news again


def test_the_owner_of_a_desk_of_version_1_is_told_once_what_to_run(opened):
    (opened / workspace.VERSION).unlink()  # version 1 wrote none
    told = workspace.open_desk(opened)
    assert told == workspace.OLDER and workspace.open_desk(opened) == []
    named = re.findall(r"`python3 -m course (\S+) (.+?)`", " ".join(told))
    assert [command for command, _ in named] == ["reset", "catch-up"]
    for command, given in named:
        assert vars(parser(command).parse_args(given.split()))["name"] in names_in(build.ROOT)


def test_a_cell_that_both_changed_is_told(opened):
    work(opened, "KERNELS = {}", "KERNELS = {}  # mine")
    news(opened, "KERNELS = {}", "KERNELS = dict()")
    told = workspace.open_desk(opened)
    assert (
        "  a new cell (`KERNELS = dict()`): you have changed it, too. Your cell stays, and the course's is beneath it."
        in told
    )
    kinds = [(cell.cell_type, "KERNELS = " in cell.source) for cell in mine(opened).cells]
    assert ("code", True) in kinds and ("raw", True) in kinds
    assert "# mine" in mine(opened).cells[2].source


def test_a_level_that_cannot_be_built_after_the_news_is_the_courses(opened):
    notebook = mine(opened)
    notebook.cells.insert(3, nbformat.v4.new_code_cell("#| export registry\nMORE = {}"))
    nbformat.write(notebook, path_of(opened))
    built = opened / MINE / "levels" / "kernels" / "registry.py"
    built.write_text(built.read_text() + "\nMORE = {}\n")
    news(opened, "KERNELS = {}", "KERNELS = {}\nMORE = {}")
    told = workspace.open_desk(opened)
    assert "It cannot be built now, so mine/levels/kernels is the course's own: " in told[1]
    assert "MORE is bound again" in told[1]
    assert any("MORE = {}" in cell.source for cell in mine(opened).cells[3:])


def test_the_desk_has_what_the_levels_are_supported_by_and_its_news(project):
    for text in ("LIMIT = 1\n", "LIMIT = 2\n"):
        path = project / "levels" / "support" / "limits.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        assert workspace.open_desk(project) == []
        assert (project / MINE / "levels" / "support" / "limits.py").read_text() == text


@pytest.mark.parametrize("base", ["gone", "damaged"])
def test_without_what_it_was_made_from_a_notebook_is_all_the_readers(opened, base):
    work(opened, "KERNELS = {}", "KERNELS = {}  # mine")
    before = path_of(opened).read_bytes()
    path = opened / workspace.BASE / "02_kernels.ipynb"
    path.unlink() if base == "gone" else path.write_text("{")
    workspace.open_desk(opened)
    assert (
        "# mine" in mine(opened).cells[2].source
        and json.loads(before)["cells"] == json.loads(path_of(opened).read_text())["cells"]
    )


def test_a_damaged_notebook_is_left_and_told(opened):
    path_of(opened).write_text("{")
    news(opened, "KERNELS = {}", "KERNELS = dict()")
    (told, *_) = workspace.open_desk(opened)
    assert told.startswith("mine/02_kernels.ipynb is damaged") and "`python3 -m course reset 02_kernels`" in told
    assert path_of(opened).read_text() == "{"


def test_lines_that_end_as_on_windows_are_no_news(opened):
    path = opened / "notebooks" / "text" / "02_kernels.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert workspace.open_desk(opened) == []


# What the Build cell writes, and where.


def run_in_kernel(root, folder, name, environment):
    """Run a notebook's code cells, in this folder, as any Jupyter would: what they print, or the error."""
    from nbclient import NotebookClient

    notebook = nbformat.read(root / folder / f"{name}.ipynb", 4)
    client = NotebookClient(notebook, timeout=120, kernel_name="python3")
    client.execute(cwd=str(root / folder), env=environment)
    outputs = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(outputs)


def as_a_reader(root):
    return {key: value for key, value in build.environment(root).items() if key != build.COPY}


def test_the_build_cell_at_the_desk_writes_the_readers_levels(opened):
    work(opened, "# what is held", "# what is held, by me", "01_hardware")
    course = levels(opened)
    printed = run_in_kernel(opened, MINE, "01_hardware", as_a_reader(opened))
    assert "mine/levels/hardware\n" in printed and "3 steps in a fresh process" in printed
    assert levels(opened) == course
    assert b"# what is held, by me" in files(opened)["mine/levels/hardware/memory.py"]
    work(opened, "build.level(", "import levels\nprint(levels.__file__)\nbuild.level(")
    printed = run_in_kernel(opened, MINE, "02_kernels", as_a_reader(opened))
    assert f"{opened / MINE / 'levels' / '__init__.py'}\n" in printed


def test_a_level_above_runs_on_what_the_reader_built(opened):
    work(opened, "np.mean(x[rows] - y[rows])", "np.mean(x[rows] - y[rows]) + 1", "01_hardware")
    work(opened, "return x.sum() / len(x)", "return x.sum() / len(x) + alloc(1)[0] + len(LOG)")
    work(opened, "import Fit, alloc", "import LOG, Fit, alloc")
    assert "last loss -0.5" in run_in_kernel(opened, MINE, "01_hardware", as_a_reader(opened))
    assert "mine/levels/kernels" in run_in_kernel(opened, MINE, "02_kernels", as_a_reader(opened))


def test_a_notebook_of_the_course_opened_by_hand_runs_and_changes_nothing(project):
    before = levels(project), files(project)["notebooks/02_kernels.ipynb"]
    printed = run_in_kernel(project, "notebooks", "02_kernels", as_a_reader(project))
    assert printed.count("3 steps in a fresh process") == 1
    assert "levels/kernels\n" in printed and "This notebook is the course's own." in printed
    assert (levels(project), files(project)["notebooks/02_kernels.ipynb"]) == before
    assert "mine" not in os.listdir(project)


def test_a_level_that_is_missing_at_the_desk_says_what_to_do(opened):
    shutil.rmtree(opened / MINE / "levels" / "hardware")
    shutil.rmtree(opened / "levels" / "hardware")
    with pytest.raises(
        Exception, match=r"levels.hardware is not built yet: run all cells of mine/01_hardware.ipynb, or "
    ):
        run_in_kernel(opened, MINE, "02_kernels", as_a_reader(opened))


# The one switch that shows all answers.


@pytest.mark.parametrize("choices", [None, ["10", "20"]])
def test_answers_stand_with_their_questions(monkeypatch, choices):
    asked = checks.predict("How many?", "20" if choices else 20, "Ten rows of two.", choices=choices)
    assert "Ten rows" not in told(asked.box())
    checks.show_answers()
    try:
        shown = told(asked.box())
    finally:
        checks.show_answers(False)
    assert shown.index("How many?") < shown.index("Answer: 20") < shown.index("Ten rows of two.")
    assert "Ten rows" not in told(asked.box())


def told(box):
    """The words of a widget and all within it."""
    return " ".join([getattr(box, "value", "") or "", *map(told, getattr(box, "children", ()))])


def test_lab_hands_the_switch_to_its_kernels(project, monkeypatch):
    from course.setup import commands

    begun = []
    monkeypatch.setattr(commands, "hand_over", lambda command: begun.append((command, dict(os.environ))))
    monkeypatch.setattr(build, "ROOT", project)
    monkeypatch.delenv(checks.ANSWERS, raising=False)
    commands.lab(["--no-browser"])
    commands.lab(["--answers"])
    monkeypatch.delenv(checks.ANSWERS)
    (plain, before), (asked, after) = begun
    assert plain[-1] == "--no-browser" and f"--ServerApp.root_dir={project / MINE}" in plain
    assert "--answers" not in asked and checks.ANSWERS not in before and after[checks.ANSWERS] == "1"
