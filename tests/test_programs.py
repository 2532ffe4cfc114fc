"""Programs of TensorFlow and PyTorch on levels_more: what is stored of the real libraries, and nothing else is changed."""

import ast
import json
import math
import sys

import pytest

from course import programs, reference, tasks

ALL = [*programs.programs()]
NAMES = [each.name for each in ALL]


def bound(text):
    """(the lines that import, the names that they bind, all other statements)"""
    tree = ast.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names]
    rest = [ast.dump(node) for node in tree.body if node not in imports]
    return {node.lineno for node in imports}, names, rest


@pytest.mark.parametrize("framework", programs.FRAMEWORKS)
def test_they_give_the_losses_of_the_real_library(framework):
    asked = [*programs.programs(framework)]
    found = programs.ask_all(asked, lambda each: "levels_more", lambda each: sys.executable)
    assert [told["skipped"] for _, told in found if "skipped" in told] == []
    far = {each.name: programs.distance(told["losses"], each.losses) for each, told in found}
    assert max(far.values()) <= programs.ALIKE, far


def test_there_are_three_apis_and_two_tasks_a_framework():
    every = [(api, task) for api in ("high", "low", "mid") for task in ("linear", "rings")]
    wanted = {"tf": every, "torch": every, "torchkeras": [("high", "linear"), ("high", "rings")]}
    assert {name: [each[1:3] for each in programs.programs(name)] for name in programs.FRAMEWORKS} == wanted
    assert programs.program("torch", "low", "rings").name == "torch/low_rings.py"
    with pytest.raises(LookupError, match="there is no program torch top linear: there are tf high linear, "):
        programs.program("torch", "top", "linear")


@pytest.mark.quick
@pytest.mark.parametrize("each", ALL, ids=NAMES)
def test_only_lines_that_import_change(each):
    """The same lines, the same names bound, and not one of the real library's."""
    text = programs.here(each.text)
    old, new = each.text.splitlines(), text.splitlines()
    changed = {n for n, pair in enumerate(zip(old, new, strict=True), 1) if pair[0] != pair[1]}
    (lines, names, rest), after = bound(each.text), bound(text)
    assert changed and changed <= lines and after == (lines, names, rest)
    others = {line for line in new if line.split()[:1] in (["import"], ["from"])}
    assert {line.split()[1].partition(".")[0] for line in others} == {"levels_more", "course"}


@pytest.mark.quick
def test_how_an_import_changes():
    text = "import torch\nimport tensorflow as tf\n    from torch.utils import data\nimport torchvision\nx = 'import torch'\n"
    assert programs.here(text).splitlines() == [
        "import levels_more.torch as torch",
        "import levels_more.tensorflow as tf",
        "    from levels_more.torch.utils import data",
        "import torchvision",
        "x = 'import torch'",
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

    monkeypatch.setattr(programs, "ask", told)
    assert programs.main(["--real"]) == 1
    stored = json.loads(programs.STORED.read_text())
    assert stored["torch/low_rings.py"]["digest"] == "old" and stored["tensorflow/low_rings.py"]["version"] == "3"
    text = capsys.readouterr().out
    assert "torch/mid_rings.py: skipped (ModuleNotFoundError: No module named 'torch'; python3 -m course bench" in text
    assert "tensorflow/low_rings.py    1 losses, 1.0e-06 from tensorflow 3\n" in text
    assert "tensorflow/mid_rings.py    NameError: no relu\n" in text and text.endswith("distance inf, asked 1e-05\n")


def test_a_program_runs_alone(tmp_path, monkeypatch):
    """What it saves and prints is gone, and one that fails says why."""
    monkeypatch.chdir(tmp_path)
    text = "print('seen')\nopen('saved.txt', 'w').close()\nlosses = [1, 0.5]\n"
    each = ALL[0]._replace(text=text)
    assert programs.ask(each, "levels_more") == {"losses": [1.0, 0.5], "version": ""}
    assert [*tmp_path.iterdir()] == []
    told = programs.ask(each._replace(text="import no_such_library"), "levels_more")
    assert told == {"skipped": "ModuleNotFoundError: No module named 'no_such_library'"}
