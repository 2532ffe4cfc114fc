"""`course resume`: where the reader stopped, three ideas, and the state back in a new kernel, in seconds."""

import re
import time

import nbformat
import pytest

from course import build
from course.author.build import MINE
from course.author.builder.execute import client_of
from course.author.setup import workspace
from course.reader import progress
from course.reader.session import replay, resume, sections, stops
from course.reader.session.table import table

LEVELS = list(map(build.level_of, build.names_in(build.ROOT)))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, with the reader's desk."""
    root = build.copy_project(build.ROOT, tmp_path_factory.mktemp("resume").resolve() / "copy", LEVELS)
    assert workspace.open_desk(root) == []
    return root


@pytest.fixture(autouse=True)
def reader(monkeypatch, tmp_path):
    """A reader who has answered nothing yet. A function that notes all questions and blanks of notebooks as done."""
    monkeypatch.setattr(progress, "FILE", tmp_path / "progress.db")

    def note(*names):
        with monkeypatch.context() as no_test:
            no_test.delenv("PYTEST_VERSION")
            for name in names:
                found = progress.questions_in(build.text_path(build.ROOT, name))
                for key in found["predictions"]:
                    progress.note_prediction(key, False, "**Not so.**")
                for key in found["blanks"]:
                    progress.note_solved(key)

    return note


def printed(cell):
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


def cell_with(notebook, text):
    return next(k for k, cell in enumerate(notebook.cells) if cell.cell_type == "code" and text in cell.source)


def run(root, name, first, last):
    """Run the first cell and those from `first` to `last` in a new kernel. Returns what the first cell printed."""
    notebook = build.read_notebook(root, name, MINE)
    code = [k for k, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    client, where = client_of(notebook, timeout=200), str((root / MINE / f"{name}.ipynb").parent)
    with client.setup_kernel(cwd=where, env=build.environment(root), cleanup_kc=True):
        for k in [code[0], *(k for k in code[1:] if first <= k <= last)]:
            client.execute_cell(notebook.cells[k], k)
    return notebook, printed(notebook.cells[code[0]])


@pytest.mark.parametrize(
    "name, stop",
    [
        ("trail/1_hardware", "program = write_program()"),
        pytest.param("04_mid_level", "#| export data", marks=pytest.mark.weekly),
    ],
)
def test_the_state_comes_back_and_the_rest_runs_on(project, name, stop, tell, reader):
    reader(*build.names_in(build.ROOT), *build.trail_in(build.ROOT))
    notebook = build.read_notebook(project, name, MINE)
    at = cell_with(notebook, stop)
    began = time.perf_counter()
    run(project, name, 0, at)
    first = time.perf_counter() - began
    assert stops.last_stop(project)[:2] == (name, at)
    told, opened = resume.main(project)
    assert opened == name and told.startswith(f"You stopped in mine/{name}.ipynb, today at")
    ideas = {"trail/1_hardware": 0, "04_mid_level": 3}  # of the stopping points up to there
    assert len(re.findall(r"^  - \S", told, re.MULTILINE)) == ideas[name]
    assert ("What you have so far:" in told) == bool(ideas[name])
    # The last one builds, or takes along.
    *_, end, _ = (k for k, cell in enumerate(notebook.cells) if cell.cell_type == "code")
    done, said = run(project, name, at + 1, end)
    (seconds,) = re.findall(r"Restored in ([\d.]+) s: \d+ cells ran again, without \d+ that only", said)
    tell("resume: the state comes back", f"{name:<20} {float(seconds):>5.1f} s instead of {first:.1f} s")
    assert float(seconds) < first
    assert "Continue in the section “" in said and build.title(at + 1, notebook.cells[at].source) in said
    assert not [cell for cell in done.cells if any(o.output_type == "error" for o in cell.get("outputs", []))]
    if name.startswith("trail"):
        assert any("0x1.26b37bd4bf3c0p+3" in printed(cell) for cell in done.cells[at:]), "the record's bits"
    assert stops.last_stop(project)[:2] == (name, end), "it stopped anew, before the last cell"
    assert run(project, name, 10**6, 0)[1] == "", "a kernel that is restarted starts as it always does"


def test_who_has_come_to_the_end_goes_on_with_the_next(project, reader):
    reader(*build.all_in(build.ROOT))
    ways = {"trail/1_hardware": "trail/2_kernels", "trail/5_high_level": "01_hardware", "01_hardware": "02_kernels"}
    ways |= {"05_high_level": "05_high_level", "more/01_measuring": "more/01_measuring"}
    for name, following in ways.items():
        run_to_the_end(project, name)
        told, opened = resume.main(project)
        assert opened == following and "Run its first cell" not in told, name
        next_one = resume.next_step(project)
        if following == name:
            assert next_one.startswith(f"You have finished mine/{name}.ipynb. ")
        else:
            assert next_one == f"Next: mine/{following}.ipynb, with `python3 -m course resume`."


def run_to_the_end(project, name):
    last = [cell for cell in build.read_notebook(project, name, MINE).cells if cell.cell_type == "code"][-1]
    (project / MINE / stops.STOPPED).unlink(missing_ok=True)
    stops.note_cell(name, last.id, last.source, project)


def test_who_has_run_all_cells_and_answered_nothing_has_not_finished(project, monkeypatch):
    """`resume` and `progress` say the same: no section that asks something is done, and which is the first."""
    run_to_the_end(project, "01_hardware")
    told, opened = resume.main(project)
    every = len({*sections.asking(build.read_notebook(project, "01_hardware", MINE).cells).values()})
    state = f"0 of its {every} sections with a question or a blank are done. The first open one is “A surprise to begin with”."
    assert every > 4 and opened == "01_hardware" and state in told
    # A question or a blank stands before each of its stopping points, so there are no ideas yet.
    assert re.findall(r"^  - (.*)$", told, re.MULTILINE) == []
    assert "finished" not in told
    assert "All its cells have run, so you can also go on with mine/02_kernels.ipynb." in told
    assert resume.next_step(project).endswith(f"mine/01_hardware.ipynb, with `python3 -m course resume`. {state}")
    monkeypatch.setattr(progress, "ROOT", project)
    monkeypatch.setattr(progress, "FILE", project / ".course" / "progress.db")
    assert state in table()


def test_a_section_is_done_when_its_question_is_answered_and_its_blank_tried(project, monkeypatch):
    cells = [
        nbformat.v4.new_markdown_cell("# Title\n\n## One (3 min)"),
        nbformat.v4.new_code_cell("# a question: run me\nchecks.predict(\n    '01-one',\n    'How many?',\n)"),
        nbformat.v4.new_markdown_cell("Seen.\n\n## Two (3 min)\n\nAnd more."),
        nbformat.v4.new_code_cell("#| export room blank two\ndef two():\n    ...  # 1 line"),
        nbformat.v4.new_markdown_cell("## Three (3 min, optional)"),
        nbformat.v4.new_code_cell("checks.predict('01-three', 'Why?')"),
        nbformat.v4.new_markdown_cell("## Exercises"),
        nbformat.v4.new_code_cell("checks.predict('01-four', 'Why?')"),
    ]
    assert sections.asking(cells) == {1: "One", 3: "Two"} == sections.still_open(cells, "01_hardware")
    cells[3].source = cells[3].source.replace("...  # 1 line", "return 3  # wrong, but tried")
    assert sections.still_open(cells, "01_hardware") == {1: "One"}
    cells[3].source = "#| export room blank two\ndef two(:"
    assert sections.still_open(cells, "01_hardware") == {1: "One"}
    monkeypatch.delenv("PYTEST_VERSION")
    progress.note_prediction("01-one", False, "**Not so.**")
    assert sections.still_open(cells, "01_hardware") == {}
    cells[3].source = "#| export room blank two\ndef two():\n    ..."
    progress.note_solved("01-two")  # on the trail
    assert sections.still_open(cells, "trail/1_hardware") == {}


def test_a_cell_is_found_by_what_it_says_where_its_number_is_another(project):
    name = "trail/1_hardware"
    cells = build.read_notebook(project, name, MINE).cells
    stops.note_cell(name, "no such id", cells[-3].source + "\n", project)
    assert stops.last_stop(project).cell == len(cells) - 3


@pytest.mark.parametrize("text", ["", "[]", "{", '{"trail/1_hardware": 3}', '{"x": {}}', '{"02_kernels": {"cell": 1}}'])
def test_a_damaged_note_is_no_note(project, text):
    (project / MINE / stops.STOPPED).write_text(text)
    assert stops.last_stop(project) is None
    assert resume.main(project) == ("You have not run a cell yet, so the first notebook opens.", "trail/1_hardware")


# What runs again.


def cells(*sources):
    made = [nbformat.v4.new_code_cell(source.removeprefix("%timed ")) for source in ("first", *sources)]
    for cell, source in zip(made[1:], sources, strict=True):
        cell.metadata["tags"] = ["nbval-ignore-output"] * source.startswith("%timed ")
    return made


@pytest.mark.quick
def test_what_times_draws_or_asks_stays_out_but_for_names_that_are_read_later():
    sources = (
        "x = 1",
        "%timed import timeit\nquick = timeit.timeit('x')\nprint(quick)",
        "figures.line(x)",
        "checks.predict(\n'01-why', 'Why?')",
        "%timed y = x + 1\nz = slow(y)\nprint(z)",
        "w = y",
        "def mine(x):\n    return x\n\n\nexercises.check('01-1', mine)",
    )
    plan = dict(replay.cells_to_rerun(cells(*sources, "timeit.repeat(w)", "z = 2", "print(z)"), 7))
    assert plan == {1: "x = 1", 2: "import timeit", 3: "", 4: "", 5: "y = x + 1", 6: "w = y", 7: ""}


def test_the_ideas_are_what_stands_at_the_stopping_points():
    """Whole sentences, as a terminal shows them; nothing of the prose around, which leans on its page."""
    markdown = nbformat.v4.new_markdown_cell
    found = resume.takeaways(
        [
            markdown("# Title\n\nA word of welcome."),
            markdown("## One (3 min)\n\nFirst. The second\nends here.\n\n- a list"),
            markdown("## Two\n\nSo.\n\n**A good place to stop.** The door\nstands.\n\nAnd more."),
            markdown(
                "**A good place to stop.** A *tape* knows `w * x`, and [its way](x.ipynb) back. *Whose turn is it?*"
            ),
            markdown("## Where to go from here\n\nIn *more/05_tensorflow* they run here, with one import changed.)"),
        ],
        "01_hardware",
    )
    assert found == ["The door stands.", "A tape knows `w * x`, and its way back."]
