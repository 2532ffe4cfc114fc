"""`grade`: real notebooks in real processes; whatever a student hands in, there is a row that says what it was."""

import csv
import inspect
import os
import time

import nbformat
import pytest

from course import build, exercises, grading
from solutions import hardware, kernels

NAMES = build.names_in(build.ROOT)


def notebook(path, solved):
    """A student's copy of a notebook. `solved` is what they wrote where an exercise had its stub: {"01-3": code}."""
    name = next(name for name in NAMES if name in path.stem)
    made = build.from_text(build.ROOT, name)
    for key, code in solved.items():
        check = f'exercises.check("{key}"'
        (cell,) = (cell for cell in made.cells if check in cell.source)
        cell.source = code + "\n\n" + next(line for line in cell.source.splitlines() if check in line)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)
    return path


def graded(path, student="bob", seconds=20):
    name = next(name for name in NAMES if name in path.stem)
    keys = [key for key in exercises.EXERCISES if key.startswith(name[:2])]
    rows = grading.grade(student, name, path, keys, seconds, build.ROOT, path.parent)
    assert [row.exercise for row in rows] == keys and {row.student for row in rows} == {student}
    return {row.exercise: row for row in rows}


LEARNED = {}


def recites_by_heart():
    """01-3 as somebody writes it who knows the answers of the notebook, and nothing else."""

    def learns(count, step, itemsize):
        LEARNED[count, step, itemsize] = hardware.lines_touched(count, step, itemsize)
        return LEARNED[count, step, itemsize]

    assert exercises.verdict("01-3", learns).state == "right"
    return f"def lines_touched(count, step, itemsize):\n    return {LEARNED}.get((count, step, itemsize), 1)"


def test_what_is_right_blank_wrong_and_missing(tmp_path, capsys):
    """A class of three, from the folder to the table."""
    folder, table = tmp_path / "handed in", tmp_path / "out.csv"
    solved = {
        "01-1": "from course import exercises\n\n\n" + inspect.getsource(hardware.sum_in_pairs),
        "01-2": inspect.getsource(hardware.centre),
        "01-3": inspect.getsource(hardware.lines_touched),
    }
    notebook(folder / "Änne Ö" / "course" / "notebooks" / "01_hardware.ipynb", solved)
    notebook(folder / "Änne Ö" / "02_kernels.ipynb", {"02-3": inspect.getsource(kernels.steps_of)})
    notebook(folder / "carl_01_hardware.ipynb", {"01-3": recites_by_heart()})
    (folder / "dora").mkdir()
    (folder / "dora" / "01_hardware.ipynb").write_text('{"cells": [')
    assert grading.main([str(folder), "--csv", str(table)]) == 0
    with open(table, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    states = {(row["student"], row["exercise"]): row["state"] for row in rows}
    assert len(states) == len(rows) == 3 * 11  # notebooks 03 to 05 were handed in by nobody

    assert [states["Änne Ö", key] for key in ("01-1", "01-2", "01-3")] == ["right"] * 3
    assert states["Änne Ö", "01-4"] == states["Änne Ö", "02-1"] == "still blank"
    assert states["Änne Ö", "02-3"] == "right"
    assert states["carl", "01-3"] == "not yet"
    assert states["dora", "01-1"] == "unreadable" and states["dora", "02-1"] == "missing"
    assert "4 right of 11" in capsys.readouterr().out


def test_nothing_that_a_student_writes_stops_it_or_gets_out(tmp_path):
    """One notebook in which every exercise goes wrong in another way."""
    child = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)']).pid"
    told = "'\\ud800\\n\\0' + f' {child} {build.ROOT} ' + os.environ['LEVELS_CACHE']"
    wrong = {
        "01-1": "while True:\n    pass",
        "01-2": "import os\n\nos._exit(3)",
        "01-3": "def lines_touched(count, step, itemsize:",
        "01-4": "print('x' * 10**7)\nopen('marker', 'w').close()\nexit()",
        "01-5": f"import os, subprocess, sys\nchild = {child}\nraise ValueError({told})",
    }
    path = notebook(tmp_path / "01_hardware.ipynb", wrong)
    started = time.monotonic()
    rows = graded(path, seconds=2)
    assert time.monotonic() - started < 60
    assert rows["01-1"][3:5] == ("no answer", "it takes more than 2 s")
    assert rows["01-2"][3:5] == ("no answer", "it ends the process (status 3)")
    assert rows["01-3"].state == "error" and "SyntaxError" in rows["01-3"].text
    assert rows["01-4"].state == "error" and "SystemExit" in rows["01-4"].text
    assert rows["01-5"].state == "error" and rows["01-5"].text.isprintable()
    pid, root, cache = rows["01-5"].text.split()[-3:]
    assert root != str(build.ROOT) and cache.startswith(root) and not os.path.exists(root)
    assert not list(build.ROOT.rglob("marker"))
    if os.name == "posix":
        with open(f"/proc/{pid}/stat") if os.path.exists(f"/proc/{pid}/stat") else open(os.devnull) as file:
            assert file.read().split()[2:3] in ([], ["Z"]), "the student's process still runs"


def test_cells_of_a_notebook_without_headings_in_another_order(tmp_path):
    """Helpers in cells of their own, a broken body, an endless helper, a later attempt: the exercises count."""
    code = nbformat.v4.new_code_cell
    cells = [
        "import math as mathematics\nraise ValueError",
        "def not python",
        "from course import exercises",
        "while True: pass",
        "%matplotlib inline\nline = 64",
        "def lines_touched(count, step, itemsize):\n    return 0\n\nexercises.check('01-3', lines_touched)",
        "def lines_touched(count, step, itemsize):\n    assert mathematics\n    return len({k * step * itemsize // line "
        'for k in range(count)})\n\nexercises.check(\n    "01-3", lines_touched)',
        "input()",
        'exercises.check("01-1", lambda x: input())',
        "exercises.verdict = lambda *a: exercises.Verdict('right', '')\nexercises.check('01-2', print)",
    ]
    path = tmp_path / "01_hardware.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[code(cell) for cell in cells]), path)
    rows = graded(path, seconds=3)
    assert {key: row.state for key, row in rows.items()} == {
        "01-1": "not yet",
        "01-2": "not yet",
        "01-3": "right",
        "01-4": "missing",
        "01-5": "missing",
        "01-6": "missing",
    }


def test_who_handed_in_what(tmp_path, capsys):
    for path in (
        "anna/02_kernels.ipynb",
        "anna/old/02_kernels.ipynb",
        "anna/.ipynb_checkpoints/03_low_level-checkpoint.ipynb",
        "anna/course/.course/aside/05_high_level.ipynb",
        "bob_01_hardware.ipynb",
        "02_kernels-carl.ipynb",
        "05_high_level.ipynb",
        "nobody/readme.txt",
        ".hidden/01_hardware.ipynb",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"")
    (tmp_path / "dora.ipynb").write_text(r'"source": ["build.watch(\"04_mid_level\")"]')
    (tmp_path / "eve.ipynb").write_bytes(b"\xff")
    found = grading.submissions(tmp_path, NAMES)
    assert {
        student: {name: path.relative_to(tmp_path).as_posix() for name, path in theirs.items()}
        for student, theirs in found.items()
    } == {
        "anna": {"02_kernels": "anna/02_kernels.ipynb"},
        "bob": {"01_hardware": "bob_01_hardware.ipynb"},
        "carl": {"02_kernels": "02_kernels-carl.ipynb"},
        "05_high_level": {"05_high_level": "05_high_level.ipynb"},
        "nobody": {},
        "dora": {"04_mid_level": "dora.ipynb"},
        "eve": {"eve.ipynb": "eve.ipynb"},
    }
    assert capsys.readouterr().out == "anna/old/02_kernels.ipynb is left out: anna/02_kernels.ipynb is there too\n"


def test_each_student_has_numbers_of_their_own_on_every_computer():
    assert grading.seed_of("anna") == 1431804757
    assert len({grading.seed_of(f"student {n}") for n in range(100)}) == 100


@pytest.mark.parametrize(
    "state, word", [("no folder", "there is no folder"), ("empty", "no notebook"), ("marked", "is there already")]
)
def test_what_cannot_be_graded_is_one_clear_error(tmp_path, capsys, state, word):
    folder, table = tmp_path / "handed in", tmp_path / "out.csv"
    if state != "no folder":
        folder.mkdir()
    if state == "marked":
        (folder / "eve.ipynb").touch()
        table.write_text("anna,01-1,a good idea")
    assert grading.main([str(folder), "--csv", str(table)]) == 1
    said = capsys.readouterr().err
    assert word in said and said.count("\n") == 1
    assert (table.read_text() == "anna,01-1,a good idea") if state == "marked" else not table.exists()
