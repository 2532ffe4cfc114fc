"""Five levels, one answer."""

import ast
import importlib
import itertools

import numpy as np
import pytest

from course import build, reference, tasks
from course.reader.figures import LEVELS, r_squared
from course.reader.inspection import marks
from levels.hardware import exp, log

LINEAR = [(tasks.linear, 0.98), (tasks.penguins_mass, 0.75)]
RINGS = [tasks.rings, tasks.penguins_sex]
level = pytest.fixture(params=LEVELS)(lambda request: importlib.import_module(f"levels.{request.param}.tasks"))


def single(task):
    """The same task in float32."""
    x, y, x_test, y_test = (a.astype("f4") for a in task[:4])
    return task._replace(x=x, y=y, x_test=x_test, y_test=y_test, weights=[w.astype("f4") for w in task.weights])


def train(function, task):
    return function(task.x, task.y, task.weights, task.batches, task.learning_rate)


@pytest.mark.quick
@pytest.mark.parametrize("make, score", LINEAR)
def test_linear_regression_equals_the_record_to_the_last_bit_and_predicts_well(level, make, score):
    """And leaves its arguments as they were."""
    task = make()
    before = [a.copy() for a in (task.x, task.y, *task.weights, task.batches)]
    losses, weights = train(reference.linear_regression, task)
    fit = train(level.linear_regression, task)
    assert all((a == b).all() for a, b in zip((task.x, task.y, *task.weights, task.batches), before, strict=True))
    assert fit.losses.dtype == np.float64 and fit.losses.tolist() == losses
    assert [w.tolist() for w in fit.weights] == weights
    predicted = fit.predict(task.x_test)
    assert predicted.tolist() == [reference.layer(row, *weights) for row in task.x_test.tolist()]
    assert r_squared(task.y_test, predicted) > score


@pytest.mark.parametrize(
    "name, make", [*(("linear_regression", make) for make, _ in LINEAR), *(("dnn_classifier", make) for make in RINGS)]
)
def test_in_float32_losses_stay_close(level, name, make):
    """To those in float64, which other tests prove."""
    task = make()
    task = task._replace(batches=task.batches[:2000])
    losses = train(getattr(level, name), task).losses
    fit = train(getattr(level, name), single(task))
    assert fit.losses.dtype == np.float32 and all(w.dtype == np.float32 for w in fit.weights)
    assert (np.abs(fit.losses - losses) <= 1e-4 * np.maximum(1, losses)).all()


def test_any_batch_size_and_number_of_steps(level):
    task = tasks.penguins_mass()
    for batches in ([[5]], [[0, 0, 7]], np.arange(51).reshape(3, 17).astype(np.int32)):
        fit = level.linear_regression(task.x, task.y, task.weights, batches, 0.01)
        losses, weights = reference.linear_regression(task.x, task.y, task.weights, batches, 0.01)
        assert fit.losses.tolist() == losses and [w.tolist() for w in fit.weights] == weights


def test_wrong_data_is_one_clear_error(level):
    """Beside those of tests/support/calls.py."""
    x, y, w, b = np.ones((4, 2)), np.ones((4, 1)), np.ones((2, 1)), np.zeros((1, 1))
    good = dict(x=x, y=y, weights=[w, b], batches=[[0, 1], [2, 3]])
    wrong = dict(
        x_is_a_list=dict(x=x.tolist()),
        x_is_empty=dict(x=x[:0], y=y[:0]),
        y_holds_infinity=dict(y=y * np.inf),
        y_is_shorter=dict(y=y[:3]),
        y_is_float32=dict(y=y.astype("f4")),
        no_bias=dict(weights=[w]),
        w_is_too_long=dict(weights=[np.ones((3, 1)), b]),
        w_is_float32=dict(weights=[w.astype("f4"), b]),
        w_holds_nan=dict(weights=[w * np.nan, b]),
        empty_batches=dict(batches=[[], []]),
        one_flat_batch=dict(batches=[0, 1]),
        row_too_large=dict(batches=[[0, 4]]),
        row_negative=dict(batches=[[0, -1]]),
    )
    for name, change in wrong.items():
        with pytest.raises((TypeError, ValueError, IndexError)) as error:
            level.linear_regression(**good | change)
        assert len(str(error.value).splitlines()) == 1 and len(str(error.value)) > 20, name


def test_predict_refuses_wrong_data(level):
    task = tasks.linear()
    fit = train(level.linear_regression, task._replace(batches=task.batches[:5]))
    for x in (np.ones((3, 3)), np.ones(2), np.ones((3, 2), "f4"), np.full((3, 2), np.nan), [[1.0, 2.0]]):
        with pytest.raises((TypeError, ValueError)):
            fit.predict(x)


SHORT = 6000  # of 24,000 steps on the rings: what differs anywhere shows in the losses of the first few


def shortened(task):
    return task._replace(batches=task.batches[:SHORT])


@pytest.fixture(scope="session")
def machine_code():
    """Level 1's runs, which the test below proves against the record, and the others against them."""
    classifier = importlib.import_module("levels.hardware.tasks").dnn_classifier
    return {make: train(classifier, shortened(make())) for make in RINGS}


@pytest.mark.quick
@pytest.mark.parametrize("make", RINGS)
def test_dnn_in_machine_code_equals_the_record(machine_code, make):
    task = make()
    task = task._replace(batches=task.batches[:500])
    losses, weights = reference.dnn_classifier(*task[:2], *task[4:7], exp=exp, log=log)
    assert machine_code[make].losses[:500].tolist() == losses
    fit = train(importlib.import_module("levels.hardware.tasks").dnn_classifier, task)
    assert [w.tolist() for w in fit.weights] == weights


@pytest.mark.quick
@pytest.mark.parametrize("make", RINGS)
def test_dnn_is_the_same_on_every_level_to_the_last_bit(level, machine_code, make):
    fit, below = train(level.dnn_classifier, shortened(make())), machine_code[make]
    assert fit.losses.dtype == np.float64 and fit.losses.tolist() == below.losses.tolist()
    assert [w.tolist() for w in fit.weights] == [w.tolist() for w in below.weights]
    assert fit.predict(make().x_test).tolist() == below.predict(make().x_test).tolist()


@pytest.mark.parametrize(
    "change",
    [dict(weights=lambda w: w[:4]), dict(weights=lambda w: [*w[:2], w[2][:3], *w[3:]]), dict(x=lambda x: x[:, :1])],
)
def test_dnn_refuses_another_net(level, change):
    task = tasks.rings()
    arguments = dict(x=task.x, y=task.y, weights=task.weights, batches=task.batches[:2])
    with pytest.raises(ValueError):
        level.dnn_classifier(**arguments | {k: f(arguments[k]) for k, f in change.items()})


@pytest.mark.quick
@pytest.mark.parametrize("task", ["linear_regression", "dnn_classifier"])
def test_each_mark_stands_once(level, task):
    """`# model`, `# forward`, `# loss`, `# backward`, `# update`: by them the five versions are laid beside each other."""
    assert [*marks.read(getattr(level, task))] == [*marks.MARKS, marks.AROUND]


# The core is read line by line, so it stays small. The bounds leave 3 % of air, so that a repair squeezes no other
# line.

LINES, FULL, SUPPORT = 3107, 2292, 1710
SMALL = 987  # levels 1 and 2, without blank lines


def lines_of(*rooms):
    """{file: its lines} of these rooms of `levels`."""
    files = [path for room in rooms for path in (build.ROOT / "levels" / room).rglob("*.py")]
    return {path: path.read_text(encoding="utf-8").splitlines() for path in files}


def test_the_core_is_small():
    lines = lines_of(*LEVELS)
    assert sum(map(bool, itertools.chain(*lines_of("support").values()))) <= SUPPORT  # explained by no notebook
    assert max(map(len, lines.values())) <= 250, max(lines, key=lambda path: len(lines[path]))
    assert sum(map(len, lines.values())) <= LINES
    assert sum(map(bool, itertools.chain(*lines.values()))) <= FULL
    assert sum(map(bool, itertools.chain(*lines_of("hardware", "kernels").values()))) <= SMALL
    assert max(map(len, lines_of("support").values())) <= 153
    names = [name for room in LEVELS for name in importlib.import_module(f"levels.{room}").__all__]
    assert len(names) < 200


@pytest.mark.quick
@pytest.mark.parametrize("room", LEVELS)
def test_it_can_be_read_without_scrolling(room):
    """At most 88 columns, 25 lines for a function and 40 for a class, none of them blank; one statement per line."""
    for path, lines in lines_of(room).items():
        if path.name == "__init__.py":
            continue
        tree = ast.parse("\n".join(lines))
        begin = min(node.lineno for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr))
        assert max(map(len, lines[begin - 1 :])) <= 88, path
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound = 40 if isinstance(node, ast.ClassDef) else 25
                count = sum(map(bool, lines[node.lineno - 1 : node.end_lineno]))
                assert count <= bound, f"{path.name}: {node.name} has {count} lines"
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                assert not isinstance(node.targets[0], ast.Tuple), (
                    f"{path.name}:{node.lineno}: two statements in a line"
                )
