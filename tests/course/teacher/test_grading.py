"""`grade`: real notebooks in real processes; whatever a student hands in, there is a row that says what it was."""

import contextlib
import copy
import csv
import functools
import inspect
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from answered import with_body

from course import build
from course.author.setup import depth
from course.reader import cases, exercises
from course.reader.notebooks import blanks
from course.teacher.grading import grade as grading
from course.teacher.grading import own_notebooks, whole_class
from course.teacher.sandbox.isolation import FILES, LIMITS, NETWORK, PROCESSES, SPACE
from solutions import hardware
from solutions.answers import ANSWERS

NAMES = [Path(name).name for name in build.all_in(build.ROOT)]


@functools.cache
def course(name):
    """A notebook of the course, made from its text once for all of these tests: who changes it changes a copy."""
    return build.from_text(build.ROOT, build.named(build.ROOT, name))


def notebook(path, solved):
    """A student's copy of a notebook. `solved` is what they wrote where an exercise had its stub: {"01-3": code}.

    An exercise of another notebook, in `more`, stands at its end.
    """
    name = next(name for name in NAMES if name in path.stem)
    made = copy.deepcopy(course(name))
    others = [cell for other in build.more_in(build.ROOT) for cell in course(Path(other).name).cells]
    for key, code in solved.items():
        check = f'exercises.check("{key}"'
        if not any(check in cell.source for cell in made.cells):
            made.cells += copy.deepcopy([cell for cell in others if check in cell.source])
        (cell,) = (cell for cell in made.cells if check in cell.source)
        cell.source = code + "\n\n" + next(line for line in cell.source.splitlines() if check in line)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)
    return path


def cells_of(path):
    return nbformat.read(path, 4).cells


def graded(path, student="bob", seconds=20, hidden=None):
    name = next(name for name in NAMES if name in path.stem)
    asked = [
        *own_notebooks.keys_of(build.ROOT, name),
        *own_notebooks.CHECK.findall("\n".join(c.source for c in cells_of(path))),
    ]
    keys = [key for key in exercises.EXERCISES if key in asked]
    rows = grading.grade(student, name, path, keys, seconds, build.ROOT, hidden or path.parent)
    assert [row.exercise for row in rows] == keys and {row.student for row in rows} == {student}
    return {row.exercise: row for row in rows}


@pytest.mark.versions
def test_blanks_are_graded_wherever_they_stand(tmp_path):
    path, key = notebook(tmp_path / "03_low_level.ipynb", {}), "03-unbroadcast"
    made = nbformat.read(path, 4)
    (cell,) = (cell for cell in made.cells if build.blank_in(cell.source) == "unbroadcast")
    stub, answers = cell.source.replace("...", "BODY"), ANSWERS[key]
    bodies = {
        "...": ("still blank", "not filled in"),
        answers.right[0].strip().replace("\n", "\n    "): ("right", "right, to the last bit"),
        "return dx": ("not yet", "(1, 4), yours is (10, 4)"),
        "while True: pass": ("not yet", "does its loop ever end?"),
    }
    sources = {stub.replace("BODY", body): said for body, said in bodies.items()}
    sources[stub.replace("BODY", "return dx").replace("def unb", "def my_unb")] = ("not yet", "called `unbroadcast`")
    for source, (state, text) in sources.items():
        cell.source = source
        nbformat.write(made, path)
        (row,) = grading.grade("bob", "03_low_level", path, [key], 20, build.ROOT, tmp_path)
        assert row.state == state and text in row.text, row


# Two at each change, one with methods to write; that those of all notebooks can be graded, with the same code, once a week.
EVERY = build.trail_in(build.ROOT) + build.names_in(build.ROOT)
GRADED = [name if "4_mid_level" in name else pytest.param(name, marks=pytest.mark.weekly) for name in EVERY]


@pytest.mark.parametrize("name", GRADED)
def test_what_is_written_on_the_trail_and_at_most_is_graded(tmp_path, name):
    """All blanks of a notebook with the course's own functions, then the first one with a function that gives nothing."""
    path, core = tmp_path / f"{Path(name).name}.ipynb", build.core_of(name)
    made = copy.deepcopy(course(path.stem))
    made.cells = depth.open_blanks(build.ROOT, name, made.cells)
    blank = [cell for cell in made.cells if build.blank_in(cell.source)]
    stubs = [cell.source for cell in blank]
    keys = [f"{core[:2]}-{build.blank_in(stub)}" for stub in stubs]
    asked = [key for key in own_notebooks.keys_of(build.ROOT, path.stem, "most") if key in cases.CASES]
    assert keys and asked == sorted(keys, key=list(cases.CASES).index)

    def states(*keys):
        nbformat.write(made, path)
        rows = grading.grade("bob", path.stem, path, [*keys], 20, build.ROOT, tmp_path)
        assert [(row.notebook, row.exercise) for row in rows] == [(path.stem, key) for key in keys]
        print(*rows, sep="\n")
        return [row.state for row in rows]

    assert states(*keys) == ["still blank"] * len(keys)
    for cell in blank:
        cell.source = blanks.filled(cell.source, core, build.blank_in(cell.source))
    assert states(*keys) == ["right"] * len(keys)
    blank[0].source = with_body(name, stubs[0], "return 'nothing'")
    assert states(keys[0]) == ["not yet"]


def test_who_knows_the_answers_of_the_notebook_by_heart_and_nothing_else_is_not_right(tmp_path):
    learned = {}

    def learns(count, step, itemsize):
        learned[count, step, itemsize] = hardware.lines_touched(count, step, itemsize)
        return learned[count, step, itemsize]

    assert exercises.verdict("01-3", learns).state == "right"
    code = f"def lines_touched(count, step, itemsize):\n    return {learned}.get((count, step, itemsize), 1)"
    assert graded(notebook(tmp_path / "01_hardware.ipynb", {"01-3": code}))["01-3"].state == "not yet"


@pytest.mark.versions
def test_nothing_that_a_student_writes_stops_it_or_gets_out(tmp_path):
    """One notebook in which every exercise goes wrong in another way."""
    mark = f"mark {time.time_ns()}"
    child = f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)  # {mark}'])"
    told = "'\\ud800\\n\\0' + f' {build.ROOT} ' + os.environ['LEVELS_CACHE']"
    wrong = {
        "01-1": "while True:\n    pass",
        "01-2": "import os\n\nos._exit(3)",
        "01-3": "def lines_touched(count, step, itemsize:",
        "01-4": "print('x' * 10**7)\nopen('written_by_a_student', 'w').close()\nexit()",
        "01-5": f"import os, subprocess, sys\nchild = {child}\nraise ValueError({told})",
    }
    path = notebook(tmp_path / "01_hardware.ipynb", wrong)
    rows = graded(path, seconds=2)
    assert rows["01-1"][3:5] == ("no answer", "it takes more than 2 s")
    assert rows["01-2"][3:5] == ("no answer", "it ends the process (status 3)")
    assert rows["01-3"].state == "error" and "SyntaxError" in rows["01-3"].text
    assert rows["01-4"].state == "error" and "SystemExit" in rows["01-4"].text
    assert rows["01-5"].state == "error" and rows["01-5"].text.isprintable()
    root, cache = rows["01-5"].text.split()[-2:]
    assert root != str(build.ROOT) and cache.startswith(os.path.dirname(root)) and not os.path.exists(root)
    assert not list(build.ROOT.rglob("written_by_a_student"))
    assert not [each for each in psutil.process_iter(["cmdline"]) if mark in str(each.info["cmdline"])]


@pytest.mark.versions
def test_cells_of_a_notebook_without_headings_in_another_order(tmp_path):
    """Helpers in cells of their own, a broken body, an endless helper, a later attempt: the exercises count."""
    code = nbformat.v4.new_code_cell
    cells = [
        "import math as mathematics\nraise ValueError",
        "def not python",
        "from course.reader import exercises",
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
        "1_hardware.ipynb",
        "anna/trail/2_kernels.ipynb",
        "frank_3_low_level.ipynb",
        "nobody/readme.txt",
        ".hidden/01_hardware.ipynb",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"")
    (tmp_path / "dora.ipynb").write_text(r'"source": ["build.watch(\"04_mid_level\")"]')
    (tmp_path / "eve.ipynb").write_bytes(b"\xff")
    (tmp_path / "gus.ipynb").write_text(r'"source": ["build.watch(\"trail/5_high_level\")"]')
    found = whole_class.submissions(tmp_path, NAMES)
    assert {
        student: {name: path.relative_to(tmp_path).as_posix() for name, path in theirs.items()}
        for student, theirs in found.items()
    } == {
        "anna": {"02_kernels": "anna/02_kernels.ipynb", "2_kernels": "anna/trail/2_kernels.ipynb"},
        "bob": {"01_hardware": "bob_01_hardware.ipynb"},
        "carl": {"02_kernels": "02_kernels-carl.ipynb"},
        "05_high_level": {"05_high_level": "05_high_level.ipynb"},
        "1_hardware": {"1_hardware": "1_hardware.ipynb"},
        "frank": {"3_low_level": "frank_3_low_level.ipynb"},
        "nobody": {},
        "dora": {"04_mid_level": "dora.ipynb"},
        "gus": {"5_high_level": "gus.ipynb"},
        "eve": {"eve.ipynb": "eve.ipynb"},
    }
    assert capsys.readouterr().out == "anna/old/02_kernels.ipynb is left out: anna/02_kernels.ipynb is there too\n"


@pytest.mark.quick
def test_each_student_has_numbers_of_their_own_on_every_computer():
    assert grading.seed_of("anna") == 1431804757
    assert len({grading.seed_of(f"student {n}") for n in range(100)}) == 100


@pytest.mark.parametrize("there, word", [(False, "there is no folder"), (True, "no notebook")])
def test_what_cannot_be_graded_is_one_clear_error(tmp_path, capsys, there, word):
    folder, table = tmp_path / "handed in", tmp_path / "out.csv"
    if there:
        folder.mkdir()
    assert whole_class.main([str(folder), "--csv", str(table)]) == 1
    said = capsys.readouterr().err
    assert word in said and said.count("\n") == 1 and not table.exists()


# What a student forges. On the grading of old, which ran the checks beside a student's code, each of these was marked
# right, or did its damage. ROOT is the course's folder.

ZERO = "\ndef lines_touched(count, step, itemsize):\n    return 0\n"
LIES = """
import json, os, sys, time

LIES = [["29", ["answer", ["plain", 1]]], {"key": "01-3", "state": "right", "text": "29 cases"}, {"end": True}]

def lie(*files):
    for file in files:
        try:
            os.write(file, "".join(json.dumps(line) + "\\n" for line in LIES).encode())
        except OSError:
            pass
"""
FORGED = {
    "the results, written where the arguments say": LIES
    + """
for path in sys.argv:
    try:
        lie(os.open(path, os.O_WRONLY | os.O_APPEND))
    except OSError:
        pass
os._exit(0)""",
    "the results, again and again, from a thread": LIES
    + """
import threading

def insist():
    LIES.pop()
    while True:
        time.sleep(0.01)
        lie(*range(3, 40))

threading.Thread(target=insist, daemon=True).start()

def lines_touched(count, step, itemsize):
    time.sleep(0.1)
    return 0

exercises.check("01-3", lines_touched)
time.sleep(0.3)""",
    "the results, from a fork that outlives the notebook": LIES
    + """
if os.fork():
    os._exit(0)
os.setsid()
lie(*range(3, 40))
"""
    + ZERO,
    "a solution, imported": "from solutions.hardware import lines_touched",
    "a solution, read": """
from pathlib import Path
source = Path("ROOT/solutions/hardware.py").read_text(encoding="utf-8")
exec(source[source.index("# 01-3"):source.index("# 01-4")])""",
    "what is expected, from the frames above": """
import sys

def lines_touched(count, step, itemsize):
    frame = sys._getframe()
    while frame and "expected" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["expected"]""",
    "what compares, replaced": """
import sys
import numpy as np

np.array_equal = np.allclose = lambda *_, **__: True
for module in [module for name, module in sys.modules.items() if name.startswith("course")]:
    for name in ("equal", "agree", "form", "difference"):
        setattr(module, name, lambda *_, **__: True)
"""
    + ZERO,
    "an object that is equal to everything": """
def lines_touched(count, step, itemsize):
    return type("int", (), {"__eq__": lambda *_: True})()""",
    "a float that is whatever suits": """
class Rate(float):
    def __rmul__(self, share):
        return 1e-9 if share < 1 else 1e9

def highest_rate(x):
    return Rate(1.0)""",
}


@pytest.mark.versions
@pytest.mark.parametrize("forged", FORGED)
def test_what_is_forged_is_not_right(forged, tmp_path):
    """And what is honest beside it counts."""
    if forged == "a solution, read" and FILES not in protections():
        pytest.skip("this system cannot keep a process from reading")
    key = "01-5" if "float" in forged else "01-3"
    solved = {
        "01-1": "from course.reader import exercises\n\n\n" + inspect.getsource(hardware.sum_in_pairs),
        key: FORGED[forged].replace("ROOT", build.ROOT.as_posix()),
    }
    rows = graded(notebook(tmp_path / "01_hardware.ipynb", solved), seconds=5)
    assert rows[key].state in ("not yet", "error", "no answer"), rows[key]
    assert rows["01-1"].state == "right"


@functools.cache
def protections():
    return whole_class.protections(build.ROOT, build.ROOT)


def left_behind(python):
    """Code that starts this Python in a session of its own, whose parent is gone."""
    starts = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {python!r}], start_new_session=True)"
    return f"import subprocess, sys\n\nsubprocess.run([sys.executable, '-c', {starts!r}], check=True)\n" + ZERO


TELLS = "\n\ndef lines_touched(count, step, itemsize):\n    raise ValueError(f'told: {told}')"
FILLS = """
import os

told = 0
try:
    while told < 400:
        with open(NAME, "ab") as file:
            file.write(os.urandom(1 << 20))
        told += 1
except OSError:
    pass"""
DAMAGE = {  # what is done: by which code, and what keeps it from that
    "a process goes on, its pipes closed": (
        left_behind("import os, time; os.closerange(0, 99); time.sleep(100)  # MARK"),
        PROCESSES,
    ),
    "a file is written": ('told = open("PLACE/written", "w").close()' + TELLS, FILES),
    "a file of a classmate is read": ('told = open("PLACE/anna").read()' + TELLS, FILES),
    "the course is changed": ('from course import build\ntold = (build.ROOT / "data" / "new").touch()' + TELLS, FILES),
    "the disk is filled": (FILLS.replace("NAME", 'f"{told}"') + TELLS, SPACE),
    "a file grows": (FILLS.replace("NAME", '"file"') + TELLS, LIMITS),
    "the memory is taken": ("told = len(bytes(20 << 30))" + TELLS, LIMITS),
    "somebody is called": ('import socket\ntold = socket.create_connection(("127.0.0.1", PORT), 5)' + TELLS, NETWORK),
    "the grading is ended": ("import os, signal\ntold = os.kill(PID, signal.SIGUSR1)" + TELLS, NETWORK),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_no_damage_is_done(damage, tmp_path):
    code, protection = DAMAGE[damage]
    if protection not in protections():
        pytest.skip(f"this system cannot keep a process from {protection}")
    (tmp_path / "anna").write_text("a secret")
    mark = f"mark {time.time_ns()}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        places = {"PLACE": tmp_path.as_posix(), "MARK": mark, "PORT": server.getsockname()[1], "PID": os.getpid()}
        for place, what in places.items():
            code = code.replace(place, str(what))
        row = graded(notebook(tmp_path / "bob" / "01_hardware.ipynb", {"01-3": code}), hidden=tmp_path)["01-3"]
    assert row.state in ("not yet", "error") and not (tmp_path / "written").exists()
    assert not [each for each in psutil.process_iter(["cmdline"]) if mark in str(each.info["cmdline"])]
    told = re.search(r"told: (.*), in line", row.text)
    if protection in (SPACE, LIMITS):
        assert "MemoryError" in row.text or 10 < int(told[1]) < 300, row.text
    else:
        assert not told, row.text


HOSTILE = {
    "01-1": """
from course.reader import exercises
from course.reader.cases import plain_data
import base64, functools, os, pickle

class Marker:
    def __reduce__(self):
        return os.mkdir, ("PLACE/unpickled",)

pickled = base64.b64encode(pickle.dumps(Marker())).decode()
plain_data.pack = lambda value: ["array", ["|O", [1], pickled]]
""",
    "01-2": 'plain_data.pack = lambda value: functools.reduce(lambda inner, _: ["list", [inner]], range(200), ["plain", 1])\n',
    "01-3": 'plain_data.pack = lambda value: ["plain", "x" * (20 << 20)]\n',
    "01-4": "import time\n\nplain_data.pack = lambda value: time.sleep(100)\n",
    "01-5": "import os, time\n\nplain_data.pack = lambda value: (os.closerange(0, 99), time.sleep(100))\n",
}
COMPUTED = 'from course.reader.cases import plain_data\n\nplain_data.pack = lambda value: ["plain", "=1+1 is right"]\n'  # by a spreadsheet


@pytest.mark.versions
def test_no_answer_harms_who_asks(tmp_path):
    """Pickled, too deep, too long, none, the pipe closed, and one that a spreadsheet would compute."""
    solved = {}
    for key, code in HOSTILE.items():
        code = "import functools\n\nfrom course.reader.cases import plain_data\n\n" + code.replace(
            "PLACE", tmp_path.as_posix()
        )
        solved[key] = code + inspect.getsource(hardware.SOLUTIONS[key])
    rows = graded(notebook(tmp_path / "01_hardware.ipynb", solved), seconds=3)
    told = {key: (row.state, row.text) for key, row in rows.items()}
    assert not (tmp_path / "unpickled").exists()
    assert {key: state for key, (state, _) in told.items()} == {
        **{"01-1": "not yet", "01-2": "not yet"},
        **{"01-3": "no answer", "01-4": "no answer", "01-5": "no answer"},
    }, told
    rows = graded(notebook(tmp_path / "01_gpu.ipynb", {"01-6": COMPUTED + inspect.getsource(hardware.turn)}), seconds=3)
    told |= {key: (row.state, row.text) for key, row in rows.items()}
    assert rows["01-6"].state == "not yet" and grading.cell(rows["01-6"].text).startswith("'=1+1")
    assert "cannot be compared" in told["01-1"][1] and "it gives an answer to another question" in told["01-3"][1]
    assert "it takes more than 3 s" in told["01-4"][1] and "it gives no answer any more" in told["01-5"][1]


# What the table holds.

RIGHT = "#| blank descend\ndef descend(w, slope, learning_rate):\n    return w - learning_rate * slope"
EMPTY = RIGHT.replace("return w - learning_rate * slope", "...")


def handed_in(path, change=lambda made: None, blank=RIGHT):
    """A notebook of the trail with one blank, as JSON: filled in, or otherwise; `change` may alter it."""
    made = json.loads(nbformat.writes(course("1_hardware")))
    (cell,) = (cell for cell in made["cells"] if "".join(cell["source"]).startswith("#| blank descend"))
    cell["source"] = blank
    made = change(made) or made
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made if isinstance(made, bytes) else json.dumps(made).encode())
    return path


def without_ids(made):
    for cell in made["cells"]:
        cell.pop("id", None)


R = {"name": "ir", "language": "R", "display_name": "R"}
ODD = {  # name: (what was changed, the state of the blank, what its text says)
    "of Colab": (without_ids, "right", ""),
    "with a mark": (lambda made: b"\xef\xbb\xbf" + json.dumps(made).encode(), "right", ""),
    "cells without source": (lambda made: made["cells"].insert(0, {"cell_type": "code"}), "right", ""),
    "source null": (lambda made: made["cells"].insert(0, {"cell_type": "code", "source": None}), "right", ""),
    "no metadata": (lambda made: made.pop("metadata") and None, "right", ""),
    "NaN": (lambda made: json.dumps(made).replace('"metadata"', '"x": NaN, "metadata"', 1).encode(), "right", ""),
    "of R": (lambda made: made["metadata"].update(kernelspec=R), "unreadable", "a notebook for R, not for Python"),
    "format 3": (lambda made: {"nbformat": 3, "worksheets": []}, "unreadable", "it has no list of cells"),
    "cells no list": (lambda made: {"cells": 5}, "unreadable", "it has no list of cells"),
    "a cell no dict": (lambda made: {"cells": [5]}, "unreadable", "cell 1 is no cell"),
    "a source of numbers": (lambda made: {"cells": [{"source": [5]}]}, "unreadable", "cell 1 is no cell"),
    "a list": (lambda made: b"[]", "unreadable", "it has no list of cells"),
    "cut off": (lambda made: json.dumps(made).encode()[:3000], "unreadable", "no JSON"),
    "empty": (lambda made: b"\n", "unreadable", "no JSON"),
    "deep": (lambda made: b"[" * 99_999, "unreadable", "no JSON"),
    "utf-16": (lambda made: json.dumps(made).encode("utf-16"), "unreadable", "no JSON"),
    "huge": (lambda made: b" " * (50 << 20) + b"{}", "unreadable", "52,428,802 bytes; clear its outputs"),
}


@pytest.mark.versions
def test_each_odd_notebook_has_a_row_that_says_what_it_is(tmp_path):
    for name, (change, state, text) in ODD.items():
        path = handed_in(tmp_path / name / "1_hardware.ipynb", change)
        (row,) = grading.grade(name, "1_hardware", path, ["01-descend"], 20, build.ROOT, tmp_path)
        assert (row.state, text in row.text) == (state, True), (name, row)


FORMULAS = "=1+1", "+1", "-1", "@SUM(1)", "＝1+1", "＋1", "－1", "＠SUM(1)", '"=1"', "'=1", " =1"
BEFORE = "", "a;", "a; ", "a|", "a\t", "a\r\n", "\t"  # what stands before it


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_is_a_formula(formula):
    """Nor does a part behind a semicolon or a tab begin one: in many countries these stand between cells."""
    for before in BEFORE:
        cell = grading.cell(before + formula)
        assert cell.isprintable()
        for part in re.split("[;|]", cell):
            bare = part.lstrip("\"' ")
            assert bare[:1] not in "=+-@＝＋－＠" or "'" in part.removesuffix(bare), cell
    assert [grading.cell(each) for each in (5, "anna, 1-2; -", "x = 1")] == ["5", "anna, 1-2; '-", "x = 1"]


@pytest.mark.skipif(os.name == "nt", reason="Windows allows no such names")
def test_names_of_students_and_files_are_protected_too(tmp_path, capsys):
    folder, table = tmp_path / "handed in", tmp_path / "out.csv"
    for student in ("=1+1|'x'!A0", "@bob", "a;=1+1", "tab\t=1", "\x1b[31mred", os.fsdecode(b"Andr\xe9")):
        handed_in(folder / student / "1_hardware.ipynb", without_ids, EMPTY)
    handed_in(folder / "carl" / "=2+2.ipynb", lambda made: {"cells": []})
    with open(os.devnull, "w") as null, contextlib.redirect_stderr(null):
        assert whole_class.main([str(folder), "--csv", str(table), "--jobs", "1"]) == 0
    with open(table, encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["student", "notebook", "exercise", "state", "text", "seed"]
    found = {row[0] for row in rows if row[2:4] == ["01-descend", "still blank"]}
    assert found == {"'=1+1|'x'!A0", "'@bob", "a;'=1+1", "tab =1", "[31mred", "Andr\\udce9"}
    assert [row[4] for row in rows if row[3] == "unreadable"] == [
        "'=2+2.ipynb: no notebook of the course has this name"
    ]
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("answer", [5, [[[]], 3], [5, None]])
def test_no_report_of_a_cell_harms_who_asks(answer, tmp_path):
    cells = [
        "from course.reader import exercises\nfrom course.teacher.sandbox import worker",
        f"worker.cell = lambda *_: {answer}",
    ]
    cells += ["def lines_touched(*_):\n    return 0\n\nexercises.check('01-3', lines_touched)"]
    path = tmp_path / "01_hardware.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    assert graded(path)["01-3"][3:5] == ("no answer", "it gives an answer to another question")


@pytest.mark.skipif(not shutil.which("unshare"), reason="no namespaces to try it in")
def test_where_the_system_refuses_namespaces_the_rest_holds(tmp_path):
    """As in most containers."""
    mark = f"mark {time.time_ns()}"
    code = left_behind(f"import time; time.sleep(100)  # {mark}")
    notebook(tmp_path / "bob" / "01_hardware.ipynb", {"01-3": code, "01-5": inspect.getsource(hardware.highest_rate)})
    inside = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    refusing = ["unshare", "--user", "--map-root-user", "sh", "-c", inside, "sh"]
    command = [*refusing, sys.executable, "-m", "course", "grade", str(tmp_path)]
    done = subprocess.run(command, env=build.environment(build.ROOT), capture_output=True, text=True, timeout=120)
    if done.returncode and "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert "1 of 1 optional exercises" in done.stdout and "cannot keep it from the network" in done.stdout, done
    assert not [each for each in psutil.process_iter(["cmdline"]) if mark in str(each.info["cmdline"])]


def test_a_notebook_in_which_nothing_is_filled_in_starts_no_process(tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "Process", None)
    for name in (name for name, text in own_notebooks.texts(build.ROOT).items() if own_notebooks.CHECK.search(text)):
        rows = graded(notebook(tmp_path / f"{name}.ipynb", {}))
        assert {row.state for row in rows.values()} == {"still blank"}
        assert all(
            row.text == f"a solution takes about {exercises.EXERCISES[key].lines} lines" for key, row in rows.items()
        )
