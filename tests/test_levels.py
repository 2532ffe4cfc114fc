"""Five levels, one answer."""

import importlib

import numpy as np
import pytest

from course import reference, tasks
from course.figures import LEVELS, r_squared

LINEAR = [tasks.linear, tasks.penguins_mass]
level = pytest.fixture(params=LEVELS)(lambda request: importlib.import_module(f"levels.{request.param}.tasks"))


def single(task):
    """The same task in float32."""
    x, y, x_test, y_test = (a.astype("f4") for a in task[:4])
    return task._replace(x=x, y=y, x_test=x_test, y_test=y_test, weights=[w.astype("f4") for w in task.weights])


def train(function, task):
    return function(task.x, task.y, task.weights, task.batches, task.learning_rate)


@pytest.mark.parametrize("make", LINEAR)
def test_linear_regression_equals_the_record_to_the_last_bit(level, make):
    task = make()
    losses, weights = train(reference.linear_regression, task)
    fit = train(level.linear_regression, task)
    assert fit.losses.dtype == np.float64 and fit.losses.tolist() == losses
    assert [w.tolist() for w in fit.weights] == weights


@pytest.mark.parametrize("make", LINEAR)
def test_linear_regression_in_float32_stays_close(level, make):
    task = make()
    task = task._replace(batches=task.batches[:2000])
    losses, _ = map(np.array, train(reference.linear_regression, task)[:1] * 2)
    fit = train(level.linear_regression, single(task))
    assert fit.losses.dtype == np.float32 and all(w.dtype == np.float32 for w in fit.weights)
    assert (np.abs(fit.losses - losses) <= 1e-4 * np.maximum(1, losses)).all()


@pytest.mark.parametrize("make, score", [(tasks.linear, 0.98), (tasks.penguins_mass, 0.75)])
def test_predictions_are_good_and_the_same_on_every_level(level, make, score):
    task = make()
    fit = train(level.linear_regression, task)
    predicted = fit.predict(task.x_test)
    w, b = (weight.tolist() for weight in fit.weights)
    assert predicted.tolist() == [reference.layer(row, w, b) for row in task.x_test.tolist()]
    assert r_squared(task.y_test, predicted) > score


def test_arguments_are_never_changed(level):
    task = tasks.linear()
    before = [a.copy() for a in (task.x, task.y, *task.weights, task.batches)]
    train(level.linear_regression, task._replace(batches=task.batches[:50]))
    assert all((a == b).all() for a, b in zip((task.x, task.y, *task.weights, task.batches), before, strict=True))


def test_any_batch_size_and_number_of_steps(level):
    task = tasks.penguins_mass()
    for batches in ([[5]], [[0, 0, 7]], np.arange(51).reshape(3, 17).astype(np.int32)):
        fit = level.linear_regression(task.x, task.y, task.weights, batches, 0.01)
        losses, weights = reference.linear_regression(task.x, task.y, task.weights, batches, 0.01)
        assert fit.losses.tolist() == losses and [w.tolist() for w in fit.weights] == weights


def bad_calls():
    x, y, w, b = np.ones((4, 2)), np.ones((4, 1)), np.ones((2, 1)), np.zeros((1, 1))
    nan, batches = np.where(np.eye(4, 2) == 1, np.nan, 1.0), [[0, 1], [2, 3]]
    good = dict(x=x, y=y, weights=[w, b], batches=batches)
    wrong = dict(
        x_has_one_axis=dict(x=x[:, 0]),
        x_is_a_list=dict(x=x.tolist()),
        x_is_integers=dict(x=x.astype(int)),
        x_is_empty=dict(x=x[:0], y=y[:0]),
        x_holds_nan=dict(x=nan),
        y_holds_infinity=dict(y=y * np.inf),
        y_is_flat=dict(y=y[:, 0]),
        y_is_shorter=dict(y=y[:3]),
        y_is_float32=dict(y=y.astype("f4")),
        no_bias=dict(weights=[w]),
        w_is_too_long=dict(weights=[np.ones((3, 1)), b]),
        w_is_float32=dict(weights=[w.astype("f4"), b]),
        w_holds_nan=dict(weights=[w * np.nan, b]),
        no_steps=dict(batches=[]),
        empty_batches=dict(batches=[[], []]),
        one_flat_batch=dict(batches=[0, 1]),
        rows_are_floats=dict(batches=[[0.0, 1.0]]),
        row_too_large=dict(batches=[[0, 4]]),
        row_negative=dict(batches=[[0, -1]]),
        rate_is_text=dict(learning_rate="fast"),
        rate_is_nan=dict(learning_rate=float("nan")),
    )
    return [pytest.param(good | change, id=name) for name, change in wrong.items()]


@pytest.mark.parametrize("call", bad_calls())
def test_wrong_data_is_one_clear_error(level, call):
    with pytest.raises((TypeError, ValueError, IndexError)) as error:
        level.linear_regression(**call)
    assert len(str(error.value).splitlines()) == 1 and len(str(error.value)) > 20


@pytest.mark.parametrize(
    "x", [np.ones((3, 3)), np.ones(2), np.ones((3, 2), "f4"), np.full((3, 2), np.nan), [[1.0, 2.0]]]
)
def test_predict_refuses_wrong_data(level, x):
    task = tasks.linear()
    fit = train(level.linear_regression, task._replace(batches=task.batches[:5]))
    with pytest.raises((TypeError, ValueError)):
        fit.predict(x)
