"""A tape of a shape that was met before is walked back by one program: with the same bits, and as long as nothing has
changed.
"""

import numpy as np
import pytest

from course import tasks
from levels.low_level.tasks import dnn_classifier, linear_regression
from levels_more.compiler.eager import backward
from levels_more.hardware import pool
from levels_more.kernels import KERNELS, use
from levels_more.low_level import (
    VJPS,
    GradientTape,
    Variable,
    backward_pass,
    clip,
    constant,
    eager,
    exp,
    nn,
    reduce_mean,
    reduce_sum,
)
from levels_more.mid_level import SGD

OFTEN = backward._SELDOM + 2
FACTOR = 1.0


@pytest.fixture(autouse=True)
def forgotten():
    backward._WALKS.clear()
    yield
    backward._WALKS.clear()


def programs():
    """The walks that are programs now."""
    return [walk for walk in backward._WALKS.values() if type(walk) is backward._Walk and walk.programs]


def gradients(forward, sources, times=1):
    """The gradients of so many tapes, as arrays: those of the last."""
    for _ in range(times):
        with GradientTape() as tape:
            y = forward()
        found = [dx.numpy() for dx in tape.gradient(y, sources)]
    return found


def op_by_op(forward, sources):
    with GradientTape() as tape:
        y = forward()
    return [dx.numpy() for dx in backward_pass(tape.records, y, [v.read_value() for v in sources])]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("task", [(tasks.linear, linear_regression), (tasks.rings, dnn_classifier)])
def test_a_task_trains_as_before_and_in_float64_to_the_bit(task, dtype, monkeypatch):
    make, train = task
    x, y, _, _, weights, batches, *_ = make()
    given = x.astype(dtype), y.astype(dtype), [w.astype(dtype) for w in weights], batches[:60]
    core = train(*given)
    monkeypatch.setitem(train.__globals__, "GradientTape", GradientTape)  # the wider tape, which knows the walks
    with eager():
        quick = train(*given)
        assert len(programs()) == 1
        monkeypatch.setattr(backward, "_SELDOM", 10**9)
        backward._WALKS.clear()
        slow = train(*given)
    assert not programs()
    same = np.array_equal if dtype == "f8" else lambda a, b: np.allclose(a, b, 1e-4, 1e-6)
    assert all(map(same, (quick.losses, *quick.weights), (slow.losses, *slow.weights)))
    assert all(map(same, (core.losses, *core.weights), (slow.losses, *slow.weights)))


@pytest.mark.quick
@pytest.mark.parametrize(
    "table, key, other, slope",
    [
        (VJPS, "relu", (lambda dy, y, x: 0.0 * dy,), [1.0, 0.0, 3.0]),
        (KERNELS, ("relu_grad", "cpu"), lambda dy, y: dy + y, [3.0, -2.0, 9.0]),
    ],
)
def test_a_rule_or_a_kernel_that_is_replaced_is_heard(table, key, other, slope, monkeypatch):
    w = Variable([1.0, -2.0, 3.0])

    def forward():
        return reduce_sum(nn.relu(w) * w)

    before = gradients(forward, [w], OFTEN)[0]
    assert len(programs()) == 1
    monkeypatch.setitem(table, key, other)
    assert np.array_equal(gradients(forward, [w], 2)[0], slope)
    monkeypatch.undo()
    assert np.array_equal(gradients(forward, [w])[0], before) and np.array_equal(before, [2.0, 0.0, 6.0])


def test_a_rule_of_the_readers_runs_in_each_walk(monkeypatch):
    heard, rules = [], VJPS["exp"]
    monkeypatch.setitem(VJPS, "exp", (lambda dy, y, x: heard.append(1) or rules[0](dy, y, x),))
    w = Variable([0.5])
    gradients(lambda: reduce_sum((w - 0.25) * exp(w)), [w], OFTEN)
    assert len(heard) == OFTEN


def test_what_a_kernel_reads_is_watched_in_a_walk_and_in_a_step(monkeypatch):
    w, optimizer = Variable(np.array([1.0])), SGD(0.5)
    with use("multiply", "cpu", lambda x, y: x * y * FACTOR):
        for _ in range(OFTEN + 1):
            (dw,) = gradients(lambda: w * 6.0, [w])
            optimizer.apply_gradients([(constant(np.array([0.0])), w)])
        monkeypatch.setitem(globals(), "FACTOR", 2.0)
        assert dw == 6.0 and gradients(lambda: w * 6.0, [w]) == [12.0]
        optimizer.apply_gradients([(constant(np.array([1.0])), w)])
        assert w.numpy() == 0.0  # by the rate 0.5, twice


def test_tapes_of_equal_ops_and_shapes_are_told_apart():
    a, b = Variable(np.array([[1.0, 2.0], [3.0, 5.0]])), Variable(np.array([[7.0, 11.0], [13.0, 17.0]]))
    forwards = [
        lambda: reduce_sum(a * b - a),
        lambda: reduce_sum(a * b - b),
        lambda: reduce_sum(a * a - b),
        lambda: reduce_sum(b * a - a),
        lambda: reduce_sum(clip(a, 0.0, 2.5) - b),
        lambda: reduce_sum(clip(a, -0.0, 2.0) - b),
        lambda: reduce_sum(reduce_sum(a * b, axis=0)),
        lambda: reduce_sum(reduce_sum(a * b, axis=1)),
        lambda: reduce_mean(a @ b),
    ]
    wanted = [op_by_op(forward, [a, b]) for forward in forwards]
    for _ in range(OFTEN):
        for forward, each in zip(forwards, wanted, strict=True):
            assert all(map(np.array_equal, gradients(forward, [a, b]), each))
    assert len(programs()) == len(forwards)
    a.assign(2.0 * a), b.assign(b + 1.0)
    for forward in forwards:
        assert all(map(np.array_equal, gradients(forward, [a, b]), op_by_op(forward, [a, b])))


def test_an_unused_source_is_told_each_time():
    a, b = Variable([1.0]), Variable([2.0])
    for _ in range(OFTEN):
        with pytest.raises(ValueError, match=r"source 1, float\d\d\[.*\] on cpu:0, was not used"):
            gradients(lambda: reduce_sum(a * a), [a, b])


def test_a_tape_around_it_hears_every_op():
    w, slopes = Variable(3.0), []
    for _ in range(2 * OFTEN):
        with GradientTape() as outer:
            with GradientTape() as inner:
                y = w * w * w
            dy = inner.gradient(y, w)
        slopes.append((float(dy), float(outer.gradient(dy, w))))
    assert {*slopes} == {(27.0, 18.0)}


def test_no_numbers_are_kept():
    cpu, w = pool()["cpu:0"], Variable(np.ones((100, 100)))
    gradients(lambda: reduce_sum(w * w), [w], OFTEN)
    used = cpu.used
    gradients(lambda: reduce_sum(w * w), [w], 5)
    assert cpu.used == used and len(programs()) == 1
