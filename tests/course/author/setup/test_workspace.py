"""The reader's desk: working copies in `mine/`, the `levels` they build, and a newer course that reaches both."""

import json
import os
import shutil

import nbformat
import pytest
from nbclient import NotebookClient

from course import build, commands
from course.author.build import MINE
from course.author.setup import reset, warmup, workspace
from course.reader import checks
from course.reader.answers import Answer
from course.reader.notebooks import names
from course.reader.session import stops

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


def test_opening_again_brings_back_what_is_missing_and_changes_nothing_else(opened):
    work(opened, "KERNELS = {}", "KERNELS = dict()")
    stamps = {path: path.stat().st_mtime_ns for path in (opened / MINE).rglob("*")}
    assert workspace.open_desk(opened) == []
    assert {path: path.stat().st_mtime_ns for path in (opened / MINE).rglob("*")} == stamps
    before = files(opened)
    path_of(opened, "01_hardware").unlink()
    shutil.rmtree(opened / MINE / "levels" / "kernels")
    assert workspace.open_desk(opened) == []
    assert files(opened) == before


def test_a_newer_course_reaches_notebooks_in_which_nobody_worked_and_says_so_in_one_line(opened):
    news(opened, "KERNELS = {}", "KERNELS = dict()")
    told = workspace.open_desk(opened)
    assert told[0] == ("The course has changed, and with it mine/02_kernels.ipynb in which you had written nothing.")
    assert "KERNELS = dict()" in mine(opened).cells[2].source
    assert b"KERNELS = dict()" in files(opened)["mine/levels/kernels/registry.py"]
    assert workspace.open_desk(opened) == []
    assert reset.main("undo", [], opened) == 0
    news(opened, "# what is held", "# what is kept", NAMES[0])
    told = workspace.open_desk(opened)
    assert len(told) == 2 and "kept in .course/aside/" in told[1]
    assert told[0] == "The course has changed, and with it 2 notebooks in which you had written nothing."
    assert reset.main("undo", [], opened) == 0
    work(opened, "alloc(2)", "alloc(3)", NAMES[0])
    told = workspace.open_desk(opened)
    assert told[0] == (
        "01_hardware: the course has changed, and mine/01_hardware.ipynb with it. What you wrote is still there."
    )
    assert told[1].startswith("The course has changed, and with it mine/02_kernels.ipynb in") and len(told) == 3


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


def test_a_cell_that_both_changed_is_told(opened):
    work(opened, "KERNELS = {}", "KERNELS = {}  # mine")
    news(opened, "KERNELS = {}", "KERNELS = dict()")
    stays = "you have changed it, too. Your cell stays, and the course's is beneath it."
    assert f"  a new cell (`KERNELS = dict()`): {stays}" in workspace.open_desk(opened)
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


@pytest.mark.parametrize("text", ["", '{"cells": [{"cell_ty', "[]", "{}", "\0\0\0", '{"cells": null, "nbformat": 4}'])
@pytest.mark.parametrize("newer", [True, False])
def test_a_damaged_notebook_is_left_and_told(opened, text, newer):
    path_of(opened).write_text(text)
    if newer:
        news(opened, "KERNELS = {}", "KERNELS = dict()")
    (told, *_) = workspace.open_desk(opened)
    assert told.startswith("mine/02_kernels.ipynb cannot be read") and "`python3 -m course reset 02_kernels`" in told
    assert "and keeps this one in .course/aside/" in told and path_of(opened).read_text() == text
    assert reset.main("reset", ["02_kernels"], opened) == 0
    assert [path.read_text() for path in opened.glob(".course/aside/*/mine/02_kernels.ipynb")] == [text]
    assert workspace.open_desk(opened) == []


def test_lines_that_end_as_on_windows_are_no_news(opened):
    path = opened / "notebooks" / "text" / "02_kernels.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert workspace.open_desk(opened) == []


# What the Build cell writes, and where.


def run(root, name, folder=MINE, **environment):
    """Run a notebook's code cells, in this folder, as any Jupyter would: what they print, and {number: error}."""
    notebook = nbformat.read(root / folder / f"{name}.ipynb", 4)
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True)
    reader = {key: value for key, value in build.environment(root).items() if key != build.COPY}
    client.execute(cwd=str(root / folder), env=reader | environment)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [(number, output) for number, cell in enumerate(cells) for output in cell.outputs]
    printed = "".join(output.get("text", "") for _, output in outputs)
    return printed, {number: output.evalue for number, output in outputs if output.output_type == "error"}


def test_the_build_cell_at_the_desk_writes_the_readers_levels_and_the_next_level_runs_on_them(opened):
    work(opened, "np.mean(x[rows] - y[rows])", "np.mean(x[rows] - y[rows]) + 1", "01_hardware")
    work(opened, "return x.sum() / len(x)", "return x.sum() / len(x) + alloc(1)[0] + len(LOG)")
    work(opened, "import Fit, alloc", "import LOG, Fit, alloc")
    work(opened, "build.level(", "import levels\nprint(levels.__file__)\nbuild.level(")
    course = levels(opened)
    printed, errors = run(opened, "01_hardware")
    assert "mine/levels/hardware\n" in printed and "3 steps in a fresh process, last loss -0.5" in printed
    assert levels(opened) == course and errors == {}
    assert b"y[rows]) + 1" in files(opened)["mine/levels/hardware/tasks.py"]
    printed, errors = run(opened, "02_kernels")
    assert f"{opened / MINE / 'levels' / '__init__.py'}\n" in printed
    assert "mine/levels/kernels" in printed and errors == {}


def test_a_notebook_of_the_course_opened_by_hand_runs_and_changes_nothing(project):
    before = levels(project), files(project)["notebooks/02_kernels.ipynb"]
    printed, errors = run(project, "02_kernels", "notebooks")
    assert errors == {}
    assert printed.count("3 steps in a fresh process") == 1
    assert "levels/kernels\n" in printed and "This notebook is the course's own." in printed
    assert (levels(project), files(project)["notebooks/02_kernels.ipynb"]) == before
    assert "mine" not in os.listdir(project)


def test_a_level_that_is_missing_at_the_desk_says_what_to_do(opened):
    shutil.rmtree(opened / MINE / "levels" / "hardware")
    shutil.rmtree(opened / "levels" / "hardware")
    _, errors = run(opened, "02_kernels")
    cure = "levels.hardware is not built yet: run all cells of mine/01_hardware.ipynb, or "
    assert any(error.startswith(cure) for error in errors.values())


# A notebook that the reader has renamed.


BUILD_CELL = 6  # the number of the last cell of 01_hardware


@pytest.mark.parametrize("told_by_jupyter", [True, False])
def test_a_renamed_notebook_is_noticed_in_its_first_cell_and_told_its_name(opened, told_by_jupyter):
    path_of(opened, "01_hardware").rename(path_of(opened, "my work"))
    before = files(opened / MINE)
    called = {"JPY_SESSION_NAME": str(path_of(opened, "my work"))}
    _, errors = run(opened, "my work", **called if told_by_jupyter else {})
    assert [*errors] == [0, BUILD_CELL]
    for error in errors.values():
        assert "mine/01_hardware.ipynb is missing" in error and "rename it back to 01_hardware.ipynb" in error
        assert "reset" not in error and ("this is mine/my work.ipynb" in error) == told_by_jupyter
    now = files(opened / MINE)
    now.pop(stops.STOPPED)  # the cell that ran last
    assert now == before
    if not told_by_jupyter:
        return
    path_of(opened, "my work").rename(path_of(opened, "01_hardware"))
    _, errors = run(opened, "01_hardware", **called)  # the kernel has its old name still
    assert errors == {}


def test_a_renamed_notebook_beside_a_new_copy_does_not_build_from_that_copy(opened):
    """`course lab` has made a new copy since."""
    path_of(opened, "01_hardware").rename(path_of(opened, "copy"))
    assert workspace.open_desk(opened) == []
    before = files(opened)
    printed, errors = run(opened, "copy", JPY_SESSION_NAME=str(path_of(opened, "copy")))
    advice = "Then give that file another name, and rename this one back to 01_hardware.ipynb"
    assert "Note: this file is mine/copy.ipynb, and the last cell builds from mine/01_hardware.ipynb. " in printed
    assert advice in printed and "reset" not in printed
    ((number, error),) = errors.items()
    assert number == BUILD_CELL and advice in error and "reset" not in error
    assert {path: text for path, text in files(opened).items() if path in before} == before


# The one switch that shows all answers.


@pytest.mark.parametrize("choices", [None, ["10", "20"]])
def test_answers_stand_with_their_questions(monkeypatch, choices):
    answer = Answer("20" if choices else 20, "Ten rows of two.")
    asked = checks.Prediction("00-rows", "How many?", answer, choices, None)
    outputs = []
    monkeypatch.setattr(checks.DisplayHandle, "display", lambda self, bundle, raw: outputs.append(bundle))
    asked._ipython_display_()
    with monkeypatch.context() as patch:
        patch.setenv(checks.ANSWERS, "1")
        asked._ipython_display_()
    asked._ipython_display_()
    before, shown, after = outputs
    for kind in ("text/html", "text/plain"):
        text = shown[kind]
        assert text.index("How many?") < text.index("Answer: 20") < text.index("Ten rows of two.")
        assert "Ten rows" not in before[kind] and "Ten rows" not in after[kind]
    widget = "application/vnd.jupyter.widget-view+json"
    assert widget in before and widget not in shown  # text, which needs no kernel


def test_lab_hands_the_switch_to_its_kernels(project, monkeypatch):
    begun = []
    monkeypatch.setattr(warmup, "begin", lambda root: None)
    monkeypatch.setattr(commands, "hand_over", lambda command: begun.append((command, dict(os.environ))))
    monkeypatch.setattr(names, "ROOT", project)
    monkeypatch.setenv(checks.ANSWERS, "")  # so that it is absent again after the test, whatever `lab` sets
    monkeypatch.delenv(checks.ANSWERS)
    commands.lab(["--no-browser"])
    commands.lab(["--answers"])
    (plain, before), (asked, after) = begun
    assert plain[-1] == "--no-browser" and f"--ServerApp.root_dir={project / MINE}" in plain
    assert "--answers" not in asked and checks.ANSWERS not in before and after[checks.ANSWERS] == "1"


def test_a_desk_without_a_lab(project, monkeypatch):
    """As the hub makes it, before it starts JupyterLab itself."""
    monkeypatch.setattr(commands, "hand_over", lambda command: pytest.fail("JupyterLab is started"))
    monkeypatch.setattr(names, "ROOT", project)
    assert commands.lab(["--desk"]) == 0
    assert (project / MINE / "01_hardware.ipynb").is_file()
