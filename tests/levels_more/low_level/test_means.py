"""A mean in one op, as `levels_more` has it, against the core's, a sum and a quotient: in float64 the same bits."""

import numpy as np
import pytest

from course import tasks
from levels import low_level as core
from levels_more import low_level as wide
from levels_more.low_level import GradientTape, Variable, constant, eager, function, gather, reduce_sum

MEANS = core.reduce_mean, wide.reduce_mean
X = np.random.default_rng(0).normal(size=(5, 3, 4))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (1, 2)])
def test_means_and_their_gradients_have_the_bits_of_the_core(axis, keepdims):
    found = []
    for mean in MEANS:

        def step(x, mean=mean):
            with GradientTape() as tape:
                y = mean(x * x, axis, keepdims)
                total = reduce_sum(y * y * y)
            return y, tape.gradient(total, x)

        with eager():
            found.append(step(constant(X)))
        found.append(function(step)(X))
        found.append(function(step)(X.reshape(5, 12)) if axis in (0, 1, None) else found[-1])
    for k in range(3):
        for by_the_core, ours in zip(found[k], found[k + 3], strict=True):
            assert by_the_core.numpy().tolist() == ours.numpy().tolist()


def trained(task, formula, mean, run):
    """The losses of some steps of a task."""
    weights = [Variable(w) for w in task.weights]

    @function
    def step(x, y):
        with GradientTape() as tape:
            loss = formula(x, y, weights, mean)
        for w, dw in zip(weights, tape.gradient(loss, weights), strict=True):
            w.assign(w - task.learning_rate * dw)
        return loss

    x, y = constant(task.x), constant(task.y)
    batches = [*task.batches[:40], task.batches[0][:3]]  # the last is shorter
    if run == "over":
        return step.over(x, y, batches).numpy().tolist()
    return [float(step(gather(x, i), gather(y, i))) for i in batches]


def line(x, y, weights, mean):
    w, b = weights
    error = x @ w + b - y
    return mean(error * error)


def rings(x, y, weights, mean):
    c = core.clip(core.dnn(x, weights), 1e-7, 1.0 - 1e-7)
    return -mean(y * core.log(c) + (1.0 - y) * core.log(1.0 - c))


@pytest.mark.parametrize("run", ["over", "calls"])
@pytest.mark.parametrize(("task", "formula"), [(tasks.linear, line), (tasks.rings, rings)])
def test_both_tasks_train_with_the_same_bits(task, formula, run):
    task = task()
    with eager():
        right = trained(task, formula, core.reduce_mean, run)
    for mean in MEANS:
        assert trained(task, formula, mean, run) == right
