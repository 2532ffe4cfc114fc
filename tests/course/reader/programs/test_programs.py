"""Programs of TensorFlow and PyTorch on levels_more: what is stored of the real libraries, and nothing else is changed."""

import ast
import importlib
import json
import math
import subprocess
import sys

import numpy as np
import pytest

from course import build, programs, reference, tasks
from course.author.programs import cli, processes

ALL = [*programs.programs()]
NAMES = [each.name for each in ALL]
CHAPTER3 = [*programs.programs(folder=programs.CHAPTER3)]
EVERY = programs.every()


def bound(text):
    """(the lines that import, the names that they bind, all other statements)"""
    tree = ast.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names]
    rest = [ast.dump(node) for node in tree.body if node not in imports]
    return {node.lineno for node in imports}, names, rest


LOSSES = """
import json, sys
from course import programs

asked = programs.programs(sys.argv[1])
print(json.dumps({each.name: programs.run(programs.here(each.text), each.name) for each in asked}))
"""


@pytest.mark.parametrize("framework", programs.FRAMEWORKS)
def test_they_give_the_losses_of_the_real_library(framework):
    """One process runs all programs of a library: each sets what it needs, such as a dtype."""
    environment = build.environment(build.ROOT)
    command = [sys.executable, "-c", LOSSES, framework]
    found = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
    far = {each.name: programs.distance(found[each.name], each.losses) for each in programs.programs(framework)}
    assert max(far.values()) <= programs.ALIKE, far


def test_the_net_that_writes_gives_the_losses_of_pytorch():
    """`course/reader/programs/text`: attention, a mask, embeddings, a cross-entropy and Adam, with PyTorch's names."""
    (each,) = programs.programs(folder=programs.TEXT)
    assert each.digest == programs.digest(each.text), f"{each.name} changed: python3 -m course programs --real"
    assert len(each.losses) == 200 and each.losses[-1] < 2.5 < 3.5 < each.losses[0]
    told = processes.ask(each, "levels_more")
    assert "skipped" not in told, told
    assert programs.distance(told["losses"], each.losses) <= programs.ALIKE


# The longest run for a fifth of their epochs, but once a week: {name: its epochs}.
SHORTER = {
    "chapter3/tensorflow/high_rings.py": 1000,
    "chapter3/torch/low_rings.py": 100,
    "chapter3/torch/mid_rings.py": 50,
}
RUNS = [pytest.param(each, each.name in SHORTER, id=each.name) for each in CHAPTER3]
RUNS += [
    pytest.param(each, False, id=f"{each.name}, to its end", marks=pytest.mark.weekly)
    for each in CHAPTER3
    if each.name in SHORTER
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("each, shorter", RUNS)
def test_a_program_of_chapter_3_ends_where_the_real_library_ends(each, shorter):
    """After as many epochs as in the book; so do the losses that it tells on the way, more roughly while they fall fast."""
    if shorter:
        epochs = SHORTER[each.name]
        whole, told = f"range(1, {epochs} + 1)", len(each.losses) // 5
        assert each.text.count(whole) == 1 and told > 0
        text = each.text.replace(whole, f"range(1, {epochs // 5} + 1)")
        each = each._replace(text=text, losses=each.losses[:told])
    told = processes.ask(each, "levels_more")
    assert "skipped" not in told, told
    assert programs.last_apart(told["losses"], each.losses) <= programs.NEAR
    np.testing.assert_allclose(told["losses"], each.losses, rtol=10.0 * programs.NEAR)


@pytest.mark.parametrize("each", CHAPTER3, ids=[each.name for each in CHAPTER3])
def test_what_is_stored_of_chapter_3_is_of_this_text_and_learns(each):
    assert each.digest == programs.digest(each.text), f"{each.name} changed: python3 -m course programs --real"
    assert each.version and len(each.text.splitlines()) <= 100
    assert max(map(len, each.text.splitlines())) <= 120
    assert all(map(math.isfinite, each.losses)) and 4 <= len(each.losses) <= 200
    assert each.losses[-1] < {"linear": 10.0, "rings": 0.5}[each.task]


@pytest.mark.quick
def test_there_is_one_version_of_each_library():
    """That which `levels_more` names is that which gave the stored losses."""
    stored = {(programs.FRAMEWORKS[each.framework], each.version) for each in EVERY}
    own = {importlib.import_module(f"levels_more.{library}").__version__ for library, _ in stored}
    assert len(stored) == 3 and {f"{version}+levels" for _, version in stored} == own


@pytest.mark.quick
def test_the_page_promises_what_is_stored():
    """The page's table holds the twelve last losses, in digits that levels_more and the real libraries share."""
    page = (build.ROOT / "course/author/site/pages/beside.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| 3-")]
    assert [row[0] for row in rows] == ["3-1 low"] * 2 + ["3-2 mid"] * 2 + ["3-3 high"] * 2
    stored = {(each.api, each.framework, each.task): f"{each.losses[-1]:#.6g}" for each in CHAPTER3}
    framework = {"TensorFlow": "tf", "PyTorch": "torch", "torchkeras on PyTorch": "torchkeras"}
    shown = {
        (row[0].split()[1], framework[row[1]], task): row[column]
        for row in rows
        for task, column in (("linear", 3), ("rings", 5))
    }
    assert shown == stored and len(EVERY) == 27 and "27 programs" in page


@pytest.mark.quick
def test_a_program_runs_as_a_file():
    """A function knows its source, which is what TensorFlow's `tf.function` reads; and classes can be found by their name."""
    text = "import inspect, sys\n\n\ndef one():\n    return 1\n\n\nclass Net:\n    pass\n\n\n"
    text += "assert 'return 1' in inspect.getsource(one) and sys.modules[Net.__module__].Net is Net\nlosses = [one()]\n"
    assert programs.run(text, "chapter3/torch/low_linear.py") == [1.0] == programs.run(text)


@pytest.mark.quick
@pytest.mark.parametrize("each", EVERY, ids=[each.name for each in EVERY])
def test_only_lines_that_import_change(each):
    """The same lines, the same names bound, and not one of the real library's."""
    text = programs.here(each.text)
    old, new = each.text.splitlines(), text.splitlines()
    changed = {n for n, pair in enumerate(zip(old, new, strict=True), 1) if pair[0] != pair[1]}
    (lines, names, rest), after = bound(each.text), bound(text)
    assert changed and changed <= lines and after == (lines, names, rest)
    others = {line for line in new if line.split()[:1] in (["import"], ["from"])}
    known = {line.split()[1].partition(".")[0] for line in others}
    assert {"levels_more", "course"} <= known <= {"levels_more", "course", "numpy"}


@pytest.mark.quick
def test_how_an_import_changes():
    text = "import torch\nimport tensorflow as tf\n    from torch.utils import data\nimport torchvision\nx = 'import torch'\n"
    text += "import torch \nimport torch  # a remark\nimport torch.nn as nn\n"
    assert programs.here(text).splitlines() == [
        "import levels_more.torch as torch",
        "import levels_more.tensorflow as tf",
        "    from levels_more.torch.utils import data",
        "import torchvision",
        "x = 'import torch'",
        "import levels_more.torch as torch ",
        "import levels_more.torch as torch  # a remark",
        "import levels_more.torch.nn as nn",
    ]


@pytest.mark.parametrize("each", ALL, ids=NAMES)
def test_what_is_stored_is_of_this_text_and_right(each):
    """The steps of the real library are those of plain Python; torchkeras has a table of five epochs, learning."""
    assert each.digest == programs.digest(each.text), f"{each.name} changed: python3 -m course programs --real"
    assert each.version and len(each.text.splitlines()) <= 40
    if each.framework == "torchkeras":
        assert len(each.losses) in (10, 15) and each.losses[4] < each.losses[0] / 2
        return
    task = getattr(tasks, each.task)()
    train = {"linear": reference.linear_regression, "rings": reference.dnn_classifier}[each.task]
    losses = train(task.x, task.y, task.weights, task.batches[:200], task.learning_rate)[0]
    assert programs.distance(losses, each.losses) < 1e-12


@pytest.mark.parametrize(
    "losses, stored, apart",
    [
        ([1.0, 2.0], [1.0, 2.5], 0.5),
        ([1.0], [1.0, 2.5], math.inf),
        ([], [], math.inf),
        ([1.0, math.nan], [1.0, 2.0], math.inf),
        ([math.inf], [math.inf], math.inf),
    ],
)
def test_the_distance_of_two_lists_of_losses(losses, stored, apart):
    assert programs.distance(losses, stored) == apart


def test_a_library_that_is_not_here_keeps_what_is_stored_of_it(tmp_path, monkeypatch, capsys):
    """And a program that fails, or is far off, is told and ends the command with 1."""
    monkeypatch.setattr(programs, "STORED", tmp_path / "losses.json")
    programs.STORED.write_text(json.dumps({"torch/low_rings.py": {"losses": [1.0], "version": "0", "digest": "old"}}))

    def told(each, library, python):
        if library == "levels_more" and each.api == "mid":
            return {"skipped": "NameError: no relu"}
        if library == "torch":
            return {"skipped": "ModuleNotFoundError: No module named 'torch'"}
        return {"losses": [1.0 + 1e-6 * (library == "levels_more")], "version": "3"}

    monkeypatch.setattr(processes, "ask", told)
    assert cli.main(["--real"]) == 1
    stored = json.loads(programs.STORED.read_text())
    assert stored["torch/low_rings.py"]["digest"] == "old" and stored["tensorflow/low_rings.py"]["version"] == "3"
    text = capsys.readouterr().out
    assert "torch/mid_rings.py: skipped (ModuleNotFoundError: No module named 'torch'; python3 -m course bench" in text
    assert f"{'tensorflow/low_rings.py':37} 1 losses, 1.0e-06 from tensorflow 3\n" in text
    assert f"{'chapter3/tensorflow/low_rings.py':37} last loss 1.000001, a share of 1.0e-06 from tensorflow 3\n" in text
    assert f"{'tensorflow/mid_rings.py':37} NameError: no relu\n" in text
    assert text.endswith("distance inf, asked 1e-05; of chapter 3 a share of inf, asked 1e-06\n")


def test_a_program_runs_alone(tmp_path, monkeypatch):
    """What it saves and prints is gone, and one that fails says why."""
    monkeypatch.chdir(tmp_path)
    text = "print('seen')\nopen('saved.txt', 'w').close()\nlosses = [1, 0.5]\n"
    each = ALL[0]._replace(text=text)
    assert processes.ask(each, "levels_more") == {"losses": [1.0, 0.5], "version": "", "beside": ""}
    assert [*tmp_path.iterdir()] == []
    told = processes.ask(each._replace(text="import no_such_library"), "levels_more")
    assert told == {"skipped": "ModuleNotFoundError: No module named 'no_such_library'"}
