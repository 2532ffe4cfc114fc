"""The blanks: what is filled in is tried, only what is right goes on, and left empty they change nothing."""

import ast
import copy
import functools
import importlib
import inspect
import linecache
import re
import shutil
import textwrap
from pathlib import Path

import nbformat
import pytest
from answered import tried, with_body
from IPython.core.interactiveshell import InteractiveShell

from course import build
from course.author.builder.export import export
from course.author.setup import depth
from course.reader import cases, progress
from course.reader.cases.plain_data import pack, unpack
from course.reader.exercises.blanks import answers_of, compare_answers, named_in, try_blank
from course.reader.notebooks import blanks
from course.reader.notebooks.cells import MARKER, BuildError
from solutions.answers import ANSWERS

NAMES = build.names_in(build.ROOT)
# In a shell, one of each kind is enough: a function, a method, a kernel, one whose answers have no digits. The verdicts on
# all answers to all blanks are compared without one.
KINDS = ["01-subtract", "01-flat", "01-Sum.__iadd__", "02-relu_grad", "03-trace", "04-descend", "05-Sequential.call"]
ABOVE = {  # right here, and why it is not used above
    "01-subtract": r'Later there are other kinds of registers, and `arithmetic\("fsub", x, y\)` works for all of them\. So',
    "02-relu_grad": r"Level 3 calls it to write a program, .*: an `if` cannot choose there, and `select\(.*\)` can\. So",
    "04-descend": r"The weights of a model are variables, .*: `return w - …` works for all\. So",
}


@functools.cache
def course_notebook(name, most):
    """A notebook as it stands on the desk, at either depth, made once for all of these tests: who changes it changes a copy."""
    notebook = build.from_text(build.ROOT, name)
    if most:
        notebook.cells = depth.open_blanks(build.ROOT, name, notebook.cells)
    return notebook


def cells_of(name, most=True):
    """{key: the cell} of a notebook's blanks."""
    found = {}
    for cell in course_notebook(name, most).cells:
        if cell.cell_type == "code" and (key := build.blank_in(cell.source)):
            assert key not in found, f"{name} has two blanks {key}"
            found[key] = cell.source
    return found


CELLS = {f"{name[:2]}-{key}": source for name in NAMES for key, source in cells_of(name).items()}
SOME = [f"{name[:2]}-{key}" for name in NAMES for key in cells_of(name, most=False)]


def notebook_of(key):
    return next(name for name in NAMES if name.startswith(key[:2]))


def filled(key, body):
    """The cell of a blank with this body."""
    return with_body(notebook_of(key), CELLS[key], body)


def names_of(key):
    """The names that the function of a blank can use, as in a kernel: those of its level, without its own."""
    level = f"levels.{build.level_of(notebook_of(key))}"
    rooms = level, f"{level}.{MARKER.match(CELLS[key])[1]}"
    names = {n: v for room in rooms for n, v in vars(importlib.import_module(room)).items()}
    return {n: v for n, v in names.items() if not n.startswith("__") and n != key[3:].partition(".")[0]}


def made(key, source):
    """The function in a cell, whose lines an error can name."""
    file, names = f"<a cell of {key}>", names_of(key) | {"__name__": "__main__"}
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), names)
    return named_in(names, key[3:])


@pytest.fixture
def noted(tmp_path, monkeypatch):
    """Nothing is noted yet, and what is noted goes."""
    monkeypatch.setattr(blanks, "NOTED", tmp_path / "noted")
    monkeypatch.setattr(progress, "FILE", tmp_path / "progress.db")
    return tmp_path / "noted"


@pytest.fixture
def run(noted):
    """Run a cell in a shell that has the names of its level, as the kernel does. Returns what is said, and the function."""

    def in_shell(key, source):
        shell = InteractiveShell.instance()
        shell.user_ns.pop(key[3:].partition(".")[0], None)
        shell.user_ns.update(names_of(key))
        done = shell.run_cell(source, silent=True)
        told = try_blank(source, notebook_of(key), key[3:], done.success)
        return told, named_in(shell.user_ns, key[3:])

    yield in_shell
    InteractiveShell.clear_instance()


# What there is.


@pytest.mark.quick
def test_each_blank_has_cases_a_solution_and_answers():
    assert CELLS.keys() == ANSWERS.keys() == cases.CASES.keys()
    for key in ANSWERS:
        wrong = [each.state == "not yet" for each in tried(key)]
        assert wrong.count(True) >= 5 and wrong.count(False) >= 5, key


@pytest.mark.parametrize("key", CELLS)
def test_a_stub_is_the_solution_without_its_body(key):
    name = notebook_of(key)
    stub = blanks.written(CELLS[key], name, key[3:])
    whole = blanks.written(blanks.filled(CELLS[key], name, key[3:]), name, key[3:])
    assert blanks.is_stub(stub) and not blanks.is_stub(whole)
    assert blanks.signature(stub) == blanks.signature(whole)
    said, own = ast.get_docstring(stub), ast.get_docstring(whole) or ""
    assert said.startswith(own) if key not in SOME else said == own, "and with its docstring"


@pytest.mark.quick
@pytest.mark.parametrize("key", CELLS)
def test_hints_and_the_solution_are_folded_beneath_it(key):
    cells = course_notebook(notebook_of(key), True).cells
    at = next(k for k, cell in enumerate(cells) if build.blank_in(cell.source) == key[3:])
    text = cells[at + 1].source
    folded = re.findall(r"<details><summary>(.*?)</summary>(.*?)</details>", text, re.DOTALL)
    assert [title for title, _ in folded] == ["Hint", "Second hint", "Solution"]
    solution = textwrap.dedent(blanks.solution(notebook_of(key), key[3:]))
    assert folded[2][1] == f"\n\n```python\n{solution}\n```\n", "it is not that of solutions/blanks"


# Left empty.


@pytest.mark.parametrize("name", [name for name in NAMES if cells_of(name)])
def test_left_empty_the_build_is_the_committed_one(name, noted):
    for file, built in export(course_notebook(name, True), name).items():
        path = build.ROOT / "levels" / build.level_of(name) / file
        assert built.text == path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("key", KINDS)
def test_left_empty_the_courses_own_goes_on_and_says_so(key, run):
    told, function = run(key, CELLS[key])
    assert told == f"{key[3:]}: not filled in, so the notebook uses the course's function"
    assert inspect.getsource(function).strip() == blanks.solution(notebook_of(key), key[3:]).strip()
    assert function.__module__ == "__main__" and inspect.findsource(function)[0][0].startswith("#| export")


# Filled.


@pytest.mark.parametrize("key", CELLS)
def test_right_answers_are_accepted_and_wrong_ones_refused_with_what_helps(key):
    """All in one process; the course's own function answers once."""
    own = answers_of(made(key, blanks.filled(CELLS[key], notebook_of(key), key[3:])), cases.CapturedOutput())
    course = {most: own("filled", pack([key, 0, most])) for most in (2, 0)}
    for body, state, says in tried(key):
        mine = answers_of(made(key, filled(key, body)), cases.CapturedOutput())
        found = compare_answers(key, mine, lambda _, inputs: course[unpack(inputs)[2]])
        assert found.state == state and says in found.text, f"{body}\n{found.text}"
        if state == "not yet":
            assert re.search(r"([^.?:][.?]| \.\.\.)$", found.text) and len(found.text) < 700, found.text


@pytest.mark.parametrize("key", KINDS)
def test_what_is_right_goes_on_and_is_built(key, run, monkeypatch):
    monkeypatch.delenv("PYTEST_VERSION")
    source, name = filled(key, ANSWERS[key].right[-1]), notebook_of(key)
    told, function = run(key, source)
    bits = "" if key == "01-flat" else ", to the last bit"  # right or wrong, and nothing to round
    right = rf"{re.escape(key[3:])}: right{bits} \(\d+ cases\)\. The notebook and your `levels` use it from here on\."
    assert re.fullmatch(right, told), told
    assert inspect.getsource(function) in source + "\n" and f"{key}" in progress.load()["exercises"]
    notebook = copy.deepcopy(course_notebook(name, True))
    for cell in notebook.cells:
        if cell.source == CELLS[key]:
            cell.source = source
    built = export(notebook, name)[MARKER.match(source)[1] + ".py"].text
    assert blanks.lines_of(source, blanks.written(source, name, key[3:])) in built
    others = len(cells_of(name)) - 1
    assert build.written_by(notebook, name).startswith(f"blanks: yours 1, the course's {others}")


@pytest.mark.parametrize("key", [*ABOVE, "01-line_slopes"])
def test_what_is_right_with_other_bits_is_told_and_does_not_go_on(key, run):
    for body in ANSWERS[key].other_bits:
        told, function = run(key, filled(key, body))
        bits = r"but the last bits differ\. .*, yours is .*\. This gives the same bits: .*\. All levels must agree to the last bit\. So"
        why = ABOVE.get(key, bits) if "last bits" not in told else bits
        right = rf"{re.escape(key[3:])}: right \(\d+ cases\)[.,] {why} the notebook uses the course's function\."
        assert re.fullmatch(right, told), told
        assert inspect.getsource(function).strip() == blanks.solution(notebook_of(key), key[3:]).strip()


@pytest.mark.parametrize("key", KINDS)
def test_what_is_wrong_is_told_by_its_first_case_and_never_enters(key, run):
    body, says = next(iter(ANSWERS[key].wrong.items()))
    source, name = filled(key, body), notebook_of(key)
    told, function = run(key, source)
    assert told.startswith(f"{key[3:]}: not yet. ")
    assert told.endswith(" Until then the notebook uses the course's function.")
    assert says in told and len(told) < 700
    assert inspect.getsource(function).strip() == blanks.solution(name, key[3:]).strip()
    assert blanks.in_place(source, name, key[3:]) == blanks.filled(source, name, key[3:])


def test_what_stands_beside_a_wrong_one_is_made_anew_with_the_courses_own(run):
    for key, of, held in (
        ("03-Function.__call__", "Function", lambda names: names["function"]),
        ("04-Adam.update", "Adam", lambda names: names["OPTIMIZERS"]["adam"]),
    ):
        told, _ = run(key, filled(key, "return self"))
        names = InteractiveShell.instance().user_ns
        assert "not yet" in told and held(names) is names[of]


KEY = "03-unbroadcast"
HEAD = "#| export autodiff blank unbroadcast\n"
BROKEN = {  # what may stand in a cell, and what is said
    "def unbroadcast(dx, shape):\n    while True:\n        pass": "takes more than 2 s: does its loop ever end?",
    "def unbroadcast(dx, shape):\n    raise SystemExit": "raises SystemExit",
    "def unbroadcast(dx, shape):\n    return dx.nothing": "raises AttributeError",
    "def unbroadcast(dx):\n    return dx": "You wrote unbroadcast(dx), but the course calls unbroadcast(dx, shape).",
    "def unbroadcast(shape, dx):\n    return dx": "You wrote unbroadcast(shape, dx), but the course calls unbroadcast(dx, shape).",
    "def unbroadcast(dx, shape):\n    return dx[": "line 3 of its cell is no Python yet",
    "def add_up(dx, shape):\n    return dx": "its cell must hold one function called `unbroadcast` and nothing beside it, "
    "and holds `def add_up(dx, shape):`",
    "def unbroadcast(dx, shape):\n    return dx\n\n\nprint(1)": "nothing beside it",
    "unbroadcast = lambda dx, shape: dx": "nothing beside it",
    "": "and holds nothing",
    "def unbroadcast(dx, shape=1 / 0):\n    return dx": "You wrote unbroadcast(dx, shape=1 / 0), but the course calls",
    "def unbroadcast(dx: NoSuchName, shape):\n    return dx": "The cell raises an error",
    "def unbroadcast(dx, shape):\n    return [1.0] * 200_000": "What it gives cannot be compared",
    "def unbroadcast(dx, shape):\n    return unbroadcast(dx, shape)": "raises RecursionError",
}


@pytest.mark.parametrize("written", BROKEN)
def test_whatever_stands_in_the_cell_the_notebook_goes_on(written, run, monkeypatch, capsys):
    monkeypatch.setattr(cases, "TIME_LIMIT", 2)
    told, function = run(KEY, HEAD + written)
    assert BROKEN[written] in told and told.startswith("unbroadcast: not yet. "), told
    assert inspect.getsource(function).strip() == blanks.solution("03_low_level", "unbroadcast")


PRINTED = "\nIn the first case it prints:\n"


@pytest.mark.parametrize("body", [ANSWERS[KEY].right[0], "return dx + 1", "return dx.nothing"])
def test_what_it_prints_in_the_first_case_is_shown(run, capsys, body):
    told, _ = run(KEY, filled(KEY, "print('shape', shape)\n" + body))
    verdict, printed = told.split(PRINTED)
    assert verdict.startswith("unbroadcast: ") and re.fullmatch(r"  shape \(.*\)", printed), told
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "loop", ["for k in range(100_000):\n    print('line', k)\nreturn dx", "while True:\n    print('x' * 99)"]
)
def test_of_much_that_it_prints_ten_lines_are_shown(run, monkeypatch, loop):
    monkeypatch.setattr(cases, "TIME_LIMIT", 2)
    told, _ = run(KEY, filled(KEY, loop))
    printed = told.split(PRINTED)[1].split("\n")
    assert len(printed) == 11 and printed[-1] == "  …" and len(told) < 2000


def test_a_stub_is_known_by_its_body(run):
    stubs = [f'"""Added up."""\n    {rest}' for rest in ("...", "return ...", "pass", "# soon\n    ...", "")]
    for body in (*stubs, "return 2 * ...", "extra = len(dx.spec.shape)\n    ..."):
        assert "not filled in" in run(KEY, f"{HEAD}def unbroadcast(dx, shape):\n    {body}")[0], body


def test_what_is_right_today_is_tried_again_when_it_or_the_course_changes(run, noted, monkeypatch, tmp_path):
    source = filled(KEY, ANSWERS[KEY].right[0])
    assert not blanks.is_right(source, "03_low_level", "unbroadcast")
    run(KEY, source)
    assert blanks.is_right(source, "03_low_level", "unbroadcast")
    assert blanks.is_right(source + "  # done", "03_low_level", "unbroadcast")
    assert not blanks.is_right(source.replace("axis=0", "axis=1"), "03_low_level", "unbroadcast")
    folder = Path(shutil.copytree(blanks.SOLUTIONS, tmp_path / "solutions"))
    text = (folder / "low_level.py").read_text(encoding="utf-8")
    (folder / "low_level.py").write_text(text.replace("extra = ", "more = extra = "), encoding="utf-8")
    monkeypatch.setattr(blanks, "SOLUTIONS", folder)
    assert not blanks.is_right(source, "03_low_level", "unbroadcast")


def test_a_blank_without_a_solution_is_an_error_of_the_course(noted):
    cell = nbformat.v4.new_code_cell("#| export autodiff blank nothing\ndef nothing():\n    ...")
    with pytest.raises(BuildError, match=r"no function called nothing stands in solutions/blanks/low_level.py"):
        export(nbformat.v4.new_notebook(cells=[cell]), "03_low_level")


def test_a_change_of_the_solution_is_a_change_of_the_notebook(noted, monkeypatch, tmp_path):
    text = build.from_text(build.ROOT, "02_kernels")
    before = build.inputs_of(build.ROOT, "02_kernels", text)
    folder = Path(shutil.copytree(blanks.SOLUTIONS, tmp_path / "solutions"))
    own = (folder / "kernels.py").read_text(encoding="utf-8")
    (folder / "kernels.py").write_text(own.replace("def relu_grad(dy, y):", "def relu_grad(dy, y):  # anew"))
    monkeypatch.setattr(blanks, "SOLUTIONS", folder)
    assert build.inputs_of(build.ROOT, "02_kernels", text) != before
