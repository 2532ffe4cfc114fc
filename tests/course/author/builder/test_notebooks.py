"""The course builds from nothing: one execution of each notebook, each output compared, and its level rebuilt by it."""

import configparser
import dis
import importlib.util
import json
import re
import shutil

import pytest
from answered import solve_exercises
from markdown_it import MarkdownIt

from course import build, serving

NAMES = build.names_in(build.ROOT)
LEVELS = [build.level_of(name) for name in NAMES]


@pytest.mark.quick
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_notebook_gives_its_stored_outputs_and_rebuilds_its_level(name, tmp_path, nbval, tell):
    """In a copy of the project that has the committed levels beneath it, and no others, nor `levels_more`.

    All five together are the run from nothing, 01 to 05 in order: the level that each finds beneath it is, byte for byte,
    the one that the notebook before has built, since this very test holds that for each. So they can run side by side.
    """
    beneath = LEVELS[: NAMES.index(name)]
    root = build.copy_project(build.ROOT, tmp_path.resolve() / "copy", beneath)
    shutil.rmtree(root / "levels_more")
    solve_exercises(root, name)
    result = nbval(root, name)
    told = f"{name:<16} {result.cells:>4} cells passed {result.seconds:>7.1f} s"
    tell("notebooks, every output compared by nbval", told)
    tail = "\n".join(result.output.split("\n")[-60:])
    assert result.passed, f"notebooks/{name}.ipynb does not give its stored outputs:\n{tail}"
    assert {path.name for path in (root / "levels").glob("[a-z]*")} == {*beneath, build.level_of(name), "support"}
    for level in (*beneath, build.level_of(name)):
        fresh, stored = files(root / "levels" / level), files(build.ROOT / "levels" / level)
        assert fresh.keys() == stored.keys(), f"levels/{level} has other files than notebooks/{name}.ipynb leaves"
        for file in fresh:
            assert fresh[file] == stored[file], f"levels/{level}/{file} is not what notebooks/{name}.ipynb leaves"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A copy of the project that has all levels, for the notebooks that change nothing: 50 copies take half a minute."""
    return build.copy_project(build.ROOT, tmp_path_factory.mktemp("shared").resolve() / "copy", LEVELS)


def state(root):
    """When each file of a project was written, but for pages that a reader takes home, and what is kept beside it."""
    own = {".course", ".ipynb_checkpoints", "__pycache__"}
    files = [path for path in root.rglob("*") if path.is_file() and not own & {*path.relative_to(root).parts}]
    files = [path for path in files if path.suffix != ".html"]
    return {path: path.stat().st_mtime_ns for path in files}


# One for each level. What one of the others uses cannot change without `test_text_notebooks_and_levels_agree` asking for a
# new build. So a run finds only an output that differs from one run, or one computer, to the next: once a week is enough.
SAMPLE = [f"more/{name}" for name in ("01_exp_and_log", "02_reductions", "03_passes", "04_pipeline", "05_functional")]
# The short ones of the trail run one after the other in one process of pytest.
TOGETHER = [pytest.param("trail", build.trail_in(build.ROOT), marks=pytest.mark.quick, id="trail")]
TOGETHER += [pytest.param(name, [name], id=name) for name in SAMPLE]
TOGETHER += [pytest.param("zh", build.translated_in(build.ROOT), marks=pytest.mark.weekly, id="zh")]  # the trail's code
OTHERS = [name for name in build.more_in(build.ROOT) if name not in SAMPLE]
TOGETHER += [pytest.param(name, [name], marks=pytest.mark.weekly, id=name) for name in OTHERS]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name, notebooks", TOGETHER)
def test_notebooks_of_trail_and_more_give_their_stored_outputs(name, notebooks, shared, nbval, tell):
    """They build nothing, and leave no file behind; what the course noted of the ones before is gone.

    The solution of each exercise, in a cell before its stub, is found right in the kernel of its notebook.
    """
    if name == "more/05_machines" and not all(map(importlib.util.find_spec, ("ipyparallel", "mpi4py"))):
        pytest.skip("MPI is not here")  # nor in the lock, on Windows
    if name == "more/05_at_work" and not serving.environment.ready():
        pytest.skip("the server's environment is not made here: python3 -m course serve --setup")
    shutil.rmtree(shared / ".course", ignore_errors=True)
    for each in notebooks:
        solve_exercises(shared, each)
    before = state(shared)
    result = nbval(shared, *notebooks)
    tell(
        "notebooks, every output compared by nbval",
        f"{name:<16} {result.cells:>4} cells passed {result.seconds:>7.1f} s",
    )
    tail = "\n".join(result.output.split("\n")[-60:])
    assert result.passed, f"notebooks/{name} does not give its stored outputs:\n{tail}"
    assert state(shared) == before


def files(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()}


def test_text_notebooks_and_levels_agree():
    assert build.check(build.ROOT, build.all_in(build.ROOT) + build.translated_in(build.ROOT)) == []


@pytest.mark.quick
def test_sizes():
    sizes = {path.name: path.stat().st_size for path in build.ROOT.glob("notebooks/*.ipynb")}
    assert max(sizes.values(), default=0) <= 2e6 and sum(sizes.values()) <= 7e6, sizes


@pytest.mark.parametrize("name", build.all_in(build.ROOT))
def test_no_line_of_a_paragraph_begins_a_list(name):
    """A list ends no paragraph above it: between them is a blank line."""
    for cell in build.from_text(build.ROOT, name).cells:
        if cell.cell_type == "markdown":
            parts = [part for part in MarkdownIt().parse(cell.source) if part.map and part.level == 0]
            ends = {part.map[1] for part in parts if part.type == "paragraph_open"}
            lists = {part.map[0] for part in parts if part.type.endswith("list_open")}
            assert not ends & lists, cell.source


@pytest.mark.parametrize("name", build.all_in(build.ROOT))
def test_no_stored_output_looks_like_an_error_or_tells_of_the_machine_that_built_it(name):
    """None is on stderr, which Jupyter shows in red; and the text before a note says that it comes.

    None names folders of the machine, or what was installed on the way: `course serve --setup`, then build again.
    """
    prose = ""
    for number, cell in enumerate(build.read_notebook(build.ROOT, name).cells, 1):
        if cell.cell_type == "markdown":
            prose = cell.source
        for output in cell.get("outputs", []):
            where = build.title(number, cell.source)
            told = json.dumps({**output, "data": {**output.get("data", {}), "image/png": ""}})
            assert not re.search(r"(?<![\w.])/(tmp|root|home|opt|var|Users)/|Setting up ", told), where
            assert output.get("name") != "stderr", where
            if output.output_type == "stream" and re.search("^Note: ", output.text, re.MULTILINE):
                assert re.search(r"\b[Nn]otes? (will )?says?\b", prose), where


@pytest.mark.parametrize("name", NAMES)
def test_a_hidden_question_does_not_show_its_answer(name):
    """Lab shows the first line of a cell that it collapses."""
    for cell in build.from_text(build.ROOT, name).cells:
        if "hide-input" in cell.metadata.get("tags", []) and "checks.predict(" in cell.source:
            first = cell.source.splitlines()[0]
            told = first.startswith(("from course", "#| export", "# a question: run me"))
            assert first.endswith("(") or told, f"break the line after the bracket: {first}"


def links_in(text):
    """The notebooks to which a text of Markdown links."""
    return re.findall(r"\]\(([^)#]+\.ipynb)[^)]*\)", text)


@pytest.mark.parametrize("name", build.names_in(build.ROOT))
def test_a_notebook_of_the_five_leads_on(name):
    """To the next one, before and after Build; and to each notebook that branches off, where to go is said."""
    prose = [cell.source for cell in build.from_text(build.ROOT, name).cells if cell.cell_type == "markdown"]
    (where,) = [
        part for text in prose for part in re.split(r"^(?=## )", text, flags=re.M) if part.startswith("## Where to go")
    ]
    beside = [f"{each}.ipynb" for each in build.more_in(build.ROOT) if each[5:7] == name[:2]]
    found = links_in(where)
    assert len(beside) >= 4 and [*sorted(set(found) & {*beside})] == beside
    five = build.names_in(build.ROOT)
    following = five[five.index(name) + 1 :][:1]
    walk = [f"{five[-1]}.ipynb"] * bool(following)  # the stage of the walk that belongs to this level
    assert [link for link in found if link not in beside] == [f"{each}.ipynb" for each in following] + walk
    after = links_in(prose[-1])
    assert after == [f"{following[0]}.ipynb"] if following else after


@pytest.mark.quick
def test_sanitizer_hides_times_but_no_result():
    config = configparser.ConfigParser()
    config.read(build.ROOT / "tests" / "nbval_sanitize.cfg", encoding="utf-8")

    def sanitize(text: str) -> str:
        for section in config.sections():
            text = re.sub(config[section]["regex"], config[section]["replace"], text)
        return text

    assert sanitize("<Tensor at 0x7f00a1b2c3d4> in 1.23 s, 45 µs, 6 ms") == "<Tensor at ADDRESS> in TIME, TIME, TIME"
    last = f"8,000 steps in a fresh process, last loss 4.06421 ({(4.06421).hex()}), the same; w = [2.00012, -2.99979]"
    assert sanitize(last) == last


def named_by(code, *operations) -> set[str]:
    """The names in these bytecode instructions."""
    return {each.argval for each in dis.get_instructions(code) if each.opname in operations}


def read_by(code) -> set[str]:
    """The globals that a function reads, and those inside it."""
    inner = [const for const in code.co_consts if hasattr(const, "co_code")]
    return named_by(code, "LOAD_GLOBAL").union(*map(read_by, inner))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_slider_draws_keeps_its_meaning(name):
    """A slider is moved after all cells ran: no later cell gives another meaning to a name that its functions read."""
    cells = [cell.source for cell in build.from_text(build.ROOT, name).cells if cell.cell_type == "code"]
    codes, reads = [compile(source, "cell", "exec") for source in cells], {}  # reads: {function: the globals it reads}
    bound = [named_by(code, "STORE_NAME") - named_by(code, "IMPORT_FROM", "IMPORT_NAME") for code in codes]
    for number, code in enumerate(codes):
        reads |= {const.co_name: read_by(const) for const in code.co_consts if hasattr(const, "co_code")}
        if "widgets.explore(" in cells[number]:
            read, waiting = set(), [each for each in named_by(code, "LOAD_NAME") if each in reads]
            while waiting:
                each = waiting.pop()
                waiting += reads.get(each, set()) - read
                read |= reads.get(each, set()) | {each}
            read &= set().union(*bound[: number + 1])
            for later, source in zip(bound[number + 1 :], cells[number + 1 :], strict=True):
                again = later & read
                assert not again, f"{name}: {sorted(again)} is read by a slider, and bound again by:\n{source}"
