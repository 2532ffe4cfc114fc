"""The five at the depth *most*, filled by other right answers: the levels built from them give the record's losses.

Once a week the notebooks run, too, at a reader's desk, 01 to 05, each on the levels that the ones before it have just built: no cell
raises. One set of answers runs there; `--all-answers` runs the others, too: the first ones, some with other bits, nothing at all,
and five halves.
"""

import functools
import json
import random
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from answered import answered, asked, with_body

from course import build, reference, tasks
from course.author.build import MINE
from course.author.builder.execute import client_of
from course.author.builder.export import export
from course.author.setup import depth, workspace
from course.reader.notebooks import blanks
from levels.hardware import exp, log
from solutions.answers import ANSWERS

NAMES = build.names_in(build.ROOT)
LEVELS = list(map(build.level_of, NAMES))


def half(seed):
    """What a reader may have written who has written about half of it: for each blank an answer, or nothing."""
    draw = random.Random(seed)
    return lambda known: draw.choice([known.right[-1], None])


SETS = {  # what stands in a blank for which several answers are known; the first set runs always
    "second": lambda known: known.right[1],
    "first": lambda known: known.right[0],
    "other bits": lambda known: [*known.other_bits, *known.right][0],
    "nothing": lambda known: None,
    **{f"half, seed {seed}": half(seed) for seed in range(5)},
}


STEPS = 400
OF_RECORD = {
    "linear_regression": reference.linear_regression,
    "dnn_classifier": functools.partial(reference.dnn_classifier, exp=exp, log=log),
}


def pytest_generate_tests(metafunc):
    if "answer" in metafunc.fixturenames:
        names = list(SETS)[: None if metafunc.config.getoption("--all-answers") else 1]
        metafunc.parametrize("answer", [SETS[name] for name in names], ids=names)


def printed(cell):
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


def filled(root, name, answer):
    """A notebook of the desk with an answer in its blanks, its exercises solved, and the former: {key: its body, or None}."""
    notebook, bodies = build.read_notebook(root, name, MINE), {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and asked(cell.source)[1]:
            cell.source = answered(name, cell.source)
        elif cell.cell_type == "code" and (key := build.blank_in(cell.source)):
            bodies[key] = answer(ANSWERS[f"{name[:2]}-{key}"])
            if bodies[key] is not None:
                cell.source = with_body(name, cell.source, bodies[key])
    return notebook, bodies


def last_losses(notebook):
    """What the last cell says of both tasks, as decimals and in hexadecimal."""
    (*_, last) = (cell for cell in notebook.cells if cell.cell_type == "code")
    return re.findall(r"last loss (\S+ \(\S+\))", printed(last))


LOSSES = f"""
import importlib, json, sys
import levels
from course.reader import tasks

found = {{"levels": levels.__file__}}
for level in sys.argv[1:]:
    for name in ("linear_regression", "dnn_classifier"):
        task = tasks.FOR[name]()
        given = task.x, task.y, task.weights, task.batches[:{STEPS}], task.learning_rate
        found[level + " " + name] = getattr(importlib.import_module("levels." + level), name)(*given).losses.tolist()
print(json.dumps(found))
"""


@pytest.mark.parametrize("chosen", ["second", "half, seed 0"])
def test_levels_built_from_other_answers_have_the_losses_of_record(chosen, tmp_path, monkeypatch):
    """Each answer stands in the level that is built from it, and all five run on one another, in a fresh process."""
    monkeypatch.setattr(blanks, "NOTED", tmp_path / "noted")
    shutil.copytree(build.ROOT / "levels" / "support", tmp_path / "levels" / "support")
    for name in NAMES:
        notebook = build.from_text(build.ROOT, name)
        notebook.cells = depth.open_blanks(build.ROOT, name, notebook.cells)
        functions = {}
        for cell in notebook.cells:
            key = build.blank_in(cell.source) if cell.cell_type == "code" else ""
            body = SETS[chosen](ANSWERS[f"{name[:2]}-{key}"]) if key else None
            if body is not None:
                cell.source = with_body(name, cell.source, body)
                blanks.note(cell.source, name, key, True)  # as a kernel does that finds it right
                functions[key] = blanks.lines_of(cell.source, blanks.written(cell.source, name, key))
        built = export(notebook, name)
        build.write_level(tmp_path, name, built)
        texts = [file.text for file in built.values()]
        assert functions and [key for key, lines in functions.items() if not any(lines in text for text in texts)] == []
    environment = build.environment(tmp_path, build.ROOT)
    done = subprocess.run([sys.executable, "-c", LOSSES, *LEVELS], env=environment, cwd=tmp_path, capture_output=True)
    assert not done.returncode, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["levels"] == str(tmp_path / "levels" / "__init__.py")
    for name, train in OF_RECORD.items():
        task = tasks.FOR[name]()
        of_record, _ = train(task.x, task.y, task.weights, task.batches[:STEPS], task.learning_rate)
        assert [level for level in LEVELS if found[f"{level} {name}"] != of_record] == [], name


@pytest.mark.weekly
@pytest.mark.timeout(1800)
def test_with_other_answers_all_five_run_and_their_losses_are_the_records(answer, tmp_path, tell, request):
    root = build.copy_project(build.ROOT, tmp_path.resolve() / "copy", LEVELS)
    depth.choose(root, "most")
    assert workspace.open_desk(root) == []
    for name in NAMES:
        notebook, bodies = filled(root, name, answer)
        nbformat.write(notebook, root / MINE / f"{name}.ipynb")  # its last cell compares what ran with the file
        client = client_of(notebook, timeout=500)
        client.execute(cwd=str(root / MINE), env=build.environment(root), cleanup_kc=True)
        written = [key for key, body in bodies.items() if body is not None]
        ours = [key for key in written if bodies[key] in ANSWERS[f"{name[:2]}-{key}"].right]
        said = "".join(map(printed, notebook.cells))
        told = re.findall(r"^([\w.]+): right.*(your `levels` use it|uses the course's)", said, re.MULTILINE)
        wanted = [(key, "your `levels` use it" if key in ours else "uses the course's") for key in written]
        assert told == wanted, said
        assert f"blanks: yours {len(ours)}, the course's {len(bodies) - len(ours)}" in said
        solved = re.findall(r"^(\d\d-\d) (\w+)", said, re.MULTILINE)
        assert solved == [(key, "right") for cell in notebook.cells for key in asked(cell.source)[1:] if key], said
        record = last_losses(build.read_notebook(build.ROOT, name))
        assert len(record) == 2 and last_losses(notebook) == record
        counts = f"yours {len(ours)} of {len(bodies)}"
        tell("notebooks with all blanks filled", f"{request.node.callspec.id:<12} {name:<16} {counts}")
