"""The trail: the short way through all levels, with the reader's own functions, which go along to the five."""

import re
import textwrap
from functools import cache

import nbformat
import pytest

from course import build
from course.author.build import MINE
from course.author.builder.execute import client_of
from course.author.setup import workspace
from course.reader import trail
from course.reader.notebooks import blanks, minutes
from course.reader.notebooks.cells import MARKER
from course.reader.session import replay
from solutions.answers import ANSWERS

NAMES = build.trail_in(build.ROOT)
LEVELS = list(map(build.level_of, build.names_in(build.ROOT)))
LOSS = "0x1.26b37bd4bf3c0p+3"  # the last of the line, on every level


@cache
def cells_of(name):
    return build.from_text(build.ROOT, name).cells


def blanks_of(name):
    """{key: the cell} of the blanks in these cells."""
    code = [cell.source for cell in cells_of(name) if cell.cell_type == "code"]
    return {build.blank_in(source): source for source in code if build.blank_in(source)}


def printed(cell):
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


@pytest.mark.quick
def test_it_takes_two_and_a_half_hours_and_the_line_is_trained_after_45_minutes():
    taken = [minutes.total(minutes.sections(cells_of(name), build.ROOT)) for name in NAMES]
    assert len(NAMES) == 5 and sum(taken) <= 150 and taken[0] <= 45, taken
    last = [line for cell in build.read_notebook(build.ROOT, NAMES[0]).cells for line in printed(cell).split("\n")]
    assert [line for line in last if line.startswith("last loss")] == [f"last loss 9.209 ({LOSS})"] * 2, (
        "by hand, and by fit"
    )


@pytest.mark.parametrize("name", NAMES)
def test_its_blanks_are_those_of_the_core_and_nothing_is_exported(name):
    assert not [cell for cell in cells_of(name) if MARKER.match(cell.source)]
    theirs = blanks_of(build.core_of(name))
    assert blanks_of(name), "the reader writes something on each level"
    for key, source in blanks_of(name).items():
        core, ours = blanks.function_of(theirs[key], key), blanks.function_of(source, key)
        assert blanks.signature(ours) == blanks.signature(core) and blanks.is_stub(ours)
        text = cells_of(name)[[cell.source for cell in cells_of(name)].index(source) + 1].source
        assert re.findall("<summary>(.*?)</summary>", text) == ["Hint", "Solution"], key


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, with the reader's desk."""
    root = build.copy_project(build.ROOT, tmp_path_factory.mktemp("trail").resolve() / "copy", LEVELS)
    assert workspace.open_desk(root) == []
    return root


def run_on_desk(root, name, answers):
    """Run a notebook of the desk in a real kernel, with these bodies in its blanks, without what times, draws or asks. Returns it."""
    notebook = build.read_notebook(root, name, MINE)
    for number, source in replay.cells_to_rerun(notebook.cells, len(notebook.cells) - 2):
        notebook.cells[number].source = source
    for cell in notebook.cells:
        key = build.blank_in(cell.source) if cell.cell_type == "code" else ""
        if key in answers:
            cell.source = cell.source[: cell.source.rindex("    ...")] + textwrap.indent(answers[key].strip(), "    ")
    where = (root / MINE / f"{name}.ipynb").parent
    client_of(notebook, timeout=200).execute(cwd=str(where), env=build.environment(root), cleanup_kc=True)
    return notebook


def answered(name, how):
    """{key: a body} for each blank of a notebook on the trail."""
    return {key: how(ANSWERS[f"{build.core_of(name)[:2]}-{key}"]) for key in blanks_of(name)}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_there_goes_along_to_the_core(project, name, monkeypatch):
    answers = answered(name, lambda known: known.right[0])
    done = run_on_desk(project, name, answers)
    told = printed(done.cells[-1])
    assert f"blanks: yours {len(answers)}, the course's 0\n" in told
    assert any(LOSS in printed(cell) for cell in done.cells), "the record's bits"
    core = build.core_of(name)
    assert f"Your functions are now in {MINE}/{core}.ipynb, too: {', '.join(answers)}\n" in told or len(answers) == 1
    monkeypatch.setattr(blanks, "NOTED", project / ".course" / "blanks")
    cells = {build.blank_in(c.source): c.source for c in build.read_notebook(project, core, MINE).cells}
    for key in blanks_of(core):
        assert blanks.is_right(cells[key], core, key) == (key in answers), key
        assert MARKER.match(cells[key]), "it is exported there"


def test_what_is_wrong_stays_there_and_what_was_written_in_the_core_too(project):
    name, core = NAMES[0], build.core_of(NAMES[0])
    path = project / MINE / f"{core}.ipynb"
    notebook = workspace.course_copy(project, core)
    own = next(cell for cell in notebook.cells if build.blank_in(cell.source) == "line_slopes")
    own.source = own.source.replace("    ...", "    return 'mine'  # ")
    nbformat.write(notebook, path)
    answers = answered(name, lambda known: known.right[1]) | {"subtract": next(iter(ANSWERS["01-subtract"].wrong))}
    told = "".join(printed(cell) for cell in run_on_desk(project, name, answers).cells)
    assert "subtract: not yet. 5 - 3: expected 2, yours is -2" in told
    assert "blanks: yours 2, the course's 1 (subtract)" in told
    cells = {build.blank_in(c.source): c.source for c in build.read_notebook(project, core, MINE).cells}
    assert "return 'mine'" in cells["line_slopes"] and trail.untouched(cells["subtract"], "subtract")
    assert not trail.untouched(cells["descend"], "descend")
