"""`course resume`: where the reader stopped, three ideas, and the state back in a new kernel, in seconds."""

import re
import time

import nbformat
import pytest

from course import build
from course.build import MINE
from course.practice.session import replay, resume, stops
from course.setup import workspace

LEVELS = list(map(build.level_of, build.names_in(build.ROOT)))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, with the reader's desk."""
    root = build.copy_project(build.ROOT, tmp_path_factory.mktemp("resume").resolve() / "copy", LEVELS)
    assert workspace.open_desk(root) == []
    return root


def kernel(root, name, notebook):
    """A client with a new kernel for a notebook of the desk."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    where = str((root / MINE / f"{name}.ipynb").parent)
    client = NotebookClient(notebook, km=manager, timeout=200)
    return client, client.setup_kernel(cwd=where, env=build.environment(root), cleanup_kc=True)


def printed(cell):
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


def cell_with(notebook, text):
    return next(k for k, cell in enumerate(notebook.cells) if cell.cell_type == "code" and text in cell.source)


def run(root, name, first, last):
    """Run the first cell and those from `first` to `last` in a new kernel. Returns what the first cell printed."""
    notebook = build.read_notebook(root, name, MINE)
    code = [k for k, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    client, running = kernel(root, name, notebook)
    with running:
        for k in [code[0], *(k for k in code[1:] if first <= k <= last)]:
            client.execute_cell(notebook.cells[k], k)
    return notebook, printed(notebook.cells[code[0]])


@pytest.mark.parametrize(
    "name, stop", [("trail/1_hardware", "program = write_program()"), ("04_mid_level", "#| export data")]
)
def test_the_state_comes_back_and_the_rest_runs_on(project, name, stop, tell):
    notebook = build.read_notebook(project, name, MINE)
    at = cell_with(notebook, stop)
    run(project, name, 0, at)
    assert stops.last_stop(project)[:2] == (name, at)
    told, opened = resume.main(project)
    assert opened == name and told.startswith(f"You stopped in mine/{name}.ipynb, today at")
    ideas = {"trail/1_hardware": 0, "04_mid_level": 3}  # of the stopping points up to there
    assert len(re.findall(r"^  - \S", told, re.MULTILINE)) == ideas[name] and ("What you have so far:" in told) == bool(
        ideas[name]
    )
    end = [k for k, cell in enumerate(notebook.cells) if cell.cell_type == "code"][
        -2
    ]  # the last one builds, or takes along
    began = time.perf_counter()
    done, said = run(project, name, at + 1, end)
    (seconds,) = re.findall(r"Restored in ([\d.]+) s: \d+ cells ran again, without \d+ that only", said)
    tell("resume: the state comes back", f"{name:<20} {float(seconds):>5.1f} s of {time.perf_counter() - began:.1f} s")
    assert float(seconds) < 20
    assert "Continue in the section “" in said and build.title(at + 1, notebook.cells[at].source) in said
    assert not [cell for cell in done.cells if any(o.output_type == "error" for o in cell.get("outputs", []))]
    if name.startswith("trail"):
        assert any("0x1.26b37bd4bf3c0p+3" in printed(cell) for cell in done.cells[at:]), "the record's bits"
    assert resume.main(project)[0].count("Run its first cell") == 1, "and it stopped anew, before the last cell"


def test_what_was_asked_for_comes_back_once(project):
    name = "trail/2_kernels"
    run(project, name, 0, cell_with(build.read_notebook(project, name, MINE), "def twice"))
    resume.main(project)
    assert "Restored in" in run(project, name, 10**6, 0)[1]
    assert run(project, name, 10**6, 0)[1] == "", "a kernel that is restarted starts as it always does"


def test_who_has_come_to_the_end_goes_on_with_the_next(project):
    ways = {"trail/1_hardware": "trail/2_kernels", "trail/5_high_level": "01_hardware", "01_hardware": "02_kernels"}
    ways |= {"05_high_level": "05_high_level", "more/01_numbers": "more/01_numbers"}
    for name, following in ways.items():
        last = [cell for cell in build.read_notebook(project, name, MINE).cells if cell.cell_type == "code"][-1]
        (project / MINE / stops.STOPPED).unlink(missing_ok=True)
        stops.note_cell(name, last.id, last.source, project)
        told, opened = resume.main(project)
        assert opened == following and "Run its first cell" not in told, name
        next_one = resume.next_step(project)
        if following == name:
            assert next_one.startswith(f"You have finished mine/{name}.ipynb. ")
        else:
            assert next_one == f"Next: mine/{following}.ipynb, with `python3 -m course resume`."


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


def test_what_times_draws_or_asks_stays_out_but_for_names_that_are_read_later():
    sources = (
        "x = 1",
        "%timed import timeit\nquick = timeit.timeit('x')\nprint(quick)",
        "figures.line(x)",
        "checks.predict(\n'Why?', 1, 'So.')",
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
        ]
    )
    assert found == ["The door stands.", "A tape knows `w * x`, and its way back."]


def test_every_idea_of_the_course_is_whole():
    ways = build.trail_in(build.ROOT) + build.names_in(build.ROOT)
    for name in ways:
        found = resume.takeaways(build.from_text(build.ROOT, name).cells)
        assert len(found) >= (1 if name.startswith("trail") else 3), name
        for idea in found:
            assert idea[0].isupper() and idea.endswith(".") and idea.count("(") == idea.count(")"), idea
            assert "*" not in re.sub("`[^`]*`", "", idea) and "](" not in idea, idea
