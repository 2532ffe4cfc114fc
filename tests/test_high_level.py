"""Levels 4 and 5: parts that own their variables, models that own their loop."""

import numpy as np
import pytest

from course import tasks
from levels.high_level import Sequential
from levels.low_level import constant
from levels.mid_level import SGD, Dataset, Dense, MeanSquaredError


def model(rate=0.0005):
    result = Sequential([Dense(1)])
    result.compile(SGD(rate), "mse")
    return result


def test_a_layer_builds_once_and_refuses_another_width():
    dense = Dense(3)
    assert dense.variables == []
    assert dense(np.ones((2, 4))).shape == (2, 3)
    kernel, bias = dense.variables
    assert kernel.shape == (4, 3) and kernel.dtype == np.float64 and bias.numpy().tolist() == [[0, 0, 0]]
    assert np.abs(kernel.numpy()).max() <= np.sqrt(6 / 7) and len(np.unique(kernel.numpy())) == 12
    dense(np.ones((5, 4)))
    assert dense.variables[0] is kernel
    with pytest.raises(ValueError, match="built for 4 inputs, got 5"):
        dense(np.ones((2, 5)))


def test_loss_and_update_by_hand():
    y, p = constant([[1.0], [2.0]]), constant([[2.0], [4.0]])
    assert float(MeanSquaredError()(y, p)) == 2.5
    dense = Dense(1)
    dense.build((1, 1))
    dense.set_weights([np.array([[1.0]], "f4"), np.array([[2.0]], "f4")])
    SGD(0.5).apply_gradients(zip([constant([[4.0]]), constant([[2.0]])], dense.variables, strict=True))
    assert [w.item() for w in dense.get_weights()] == [-1.0, 1.0]


def test_a_dataset_can_be_walked_twice():
    data = Dataset.from_batches(np.arange(3.0)[:, None], np.arange(3.0)[:, None], [[2, 0], [1]])
    for _ in "12":
        assert [(x.numpy().ravel().tolist(), y.shape) for x, y in data] == [([2, 0], (2, 1)), ([1], (1, 1))]
    assert len(data) == 2


def test_fit_on_arrays_learns_and_repeats_with_its_seed():
    task = tasks.linear()
    runs = []
    for seed in (1, 1, 2):
        m = model()
        m.build(task.x.shape, "f8")
        m.set_weights(task.weights)
        history = m.fit(task.x, task.y, batch_size=30, epochs=30, seed=seed)
        assert len(history.losses) == 30 * 14 and len(history.epochs) == 30
        assert m.evaluate(task.x_test, task.y_test) < 8 < history.losses[0]
        runs.append(history.losses)
    assert runs[0] == runs[1] != runs[2]


def test_evaluate_and_predict_are_what_the_weights_say():
    task, m = tasks.linear(), model()
    m.build(task.x.shape, "f8")
    m.set_weights([np.array([[2.0], [-3.0]]), np.array([[3.0]])])
    predicted = task.x_test @ [[2.0], [-3.0]] + 3.0
    np.testing.assert_allclose(m.predict(task.x_test), predicted)
    assert m.evaluate(task.x_test, task.y_test) == pytest.approx(((predicted - task.y_test) ** 2).mean())


def test_summary_counts_parameters(capsys):
    m = Sequential([Dense(4), Dense(8), Dense(1)])
    m.build((None, 2))
    m.summary()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[-1] for row in rows] == ["parameters", "12", "40", "9", "61"]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Sequential([Dense(1)]).fit(np.ones((2, 1)), np.ones((2, 1))), "not compiled"),
        (lambda: Sequential([Dense(1)]).evaluate(np.ones((2, 1)), np.ones((2, 1))), "not compiled"),
        (lambda: model().compile("sdg"), "no optimizer is called 'sdg'"),
        (lambda: model().compile("sgd", "mso"), "no loss is called 'mso'"),
        (lambda: model().fit(np.ones((2, 1)), np.ones((3, 1))), "x has 2 rows and y has 3"),
        (lambda: model().fit(np.ones((0, 1)), np.ones((0, 1))), "at least one"),
        (lambda: model().fit(np.ones((2, 1)), np.ones((2, 2))), "y_true is"),
        (lambda: model().set_weights([]) or model().set_weights([np.ones(1)]), "is it built"),
        (lambda: Dense(0), "expected a whole number from 1 on"),
        (lambda: SGD(-1.0), "positive number"),
        (lambda: Dataset.from_batches(np.ones((2, 1)), np.ones((2, 1)), [[]]), "an empty one"),
        (lambda: Dataset.from_batches(np.ones((2, 1)), np.ones((3, 1)), [[0]]), r"arrays of \[2, 3\] rows"),
    ],
)
def test_wrong_calls_are_refused(call, message):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        call()
