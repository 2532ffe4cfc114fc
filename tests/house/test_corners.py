"""A slope at a corner lies between the slopes on its two sides, and is a number wherever these are: for every function that has one.

The slopes of the sides come from the function's own values, a step to the left and to the right, in float64.
"""

import itertools

import numpy as np
import pytest

from levels_more import low_level, mid_level
from levels_more.low_level import GradientTape, constant, function, reduce_sum

POINTS = 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, 1e-30, -1e-30, 50.0, -50.0, 1e30, -1e30
STEEP = 1e5  # where a side is steeper, as that of log at 0, the slope may be infinite
ONE = {  # functions of each number of one tensor
    **{name: mid_level.ACTIVATIONS[name] for name in mid_level.ACTIVATIONS if "softmax" not in name},
    **{name: getattr(low_level, name) for name in ("abs", "exp", "log", "sqrt", "square", "sin", "cos", "erf")},
    "clip": lambda x: low_level.clip(x, -1.0, 1.0),
    **{f"x ** {n}": lambda x, n=n: x**n for n in (2, 3, 1, 0)},
    "2 ** x": lambda x: 2.0**x,
    "1 / x": lambda x: 1.0 / x,
    "maximum(x, 0)": lambda x: low_level.maximum(x, 0.0),
    "minimum(0, x)": lambda x: low_level.minimum(0.0, x),
    "sqrt(maximum(x, 1e-12))": lambda x: low_level.sqrt(low_level.maximum(x, 1e-12)),
    "log(maximum(x, 1e-7))": lambda x: low_level.log(low_level.maximum(x, 1e-7)),
    "log where positive": lambda x: low_level.where(x > 0.0, low_level.log(low_level.where(x > 0.0, x, 1.0)), 0.0),
}
ROWS = [*itertools.product((0.0, 1.0, -2.0), repeat=3), (5.0, 5.0, 5.0), (1e-30, 0.0, 0.0), (1e15, 1e15, 0.0)]
ROW = {  # functions of a row; of several numbers a weighted sum
    **{
        f"reduce_{name}": lambda x, name=name: getattr(low_level, f"reduce_{name}")(x, -1)
        for name in ("sum", "mean", "max", "min", "variance", "std")
    },
    "softmax": lambda x: reduce_sum(low_level.softmax(x) * np.array([1.0, 2.0, 4.0], x.dtype), -1),
    "log_softmax": lambda x: reduce_sum(low_level.log_softmax(x) * np.array([1.0, 2.0, 4.0], x.dtype), -1),
}


def slopes(run, x):
    """The slopes of Σ run(x), in the eager mode and from a function."""

    def traced(x):
        with GradientTape() as tape:
            tape_input = x * 1.0
            y = reduce_sum(run(tape_input))
        return tape.gradient(y, tape_input)

    yield traced(constant(x)).numpy()
    yield function(traced)(constant(x)).numpy()


def sides(run, x, k):
    """The slopes to the left and to the right of the k-th number of each row, [2, rows], NaN where a value is no number."""
    step, values = 1e-6 * np.maximum(1.0, abs(x[:, k])), []
    for move in (-1.0, 0.0, 1.0):
        there = x.copy()
        there[:, k] += move * step
        values.append(run(constant(there)).numpy().reshape(-1))
    with np.errstate(invalid="ignore"):
        return np.sort(np.diff(values, axis=0) / step, axis=0)


def wrong(run, rows, dtype):
    """What is wrong with the slopes of a function, which gives a number for each row, in words."""
    x = np.array(rows)
    for found in slopes(run, x.astype(dtype)):
        for k in range(x.shape[1]):
            low, high = sides(run, x, k)
            steep = np.maximum(abs(low), abs(high))
            slack = 1e-3 * (1.0 + steep)
            fits = (low - slack <= found[:, k]) & (found[:, k] <= high + slack)
            for n in np.flatnonzero(~fits & (steep <= STEEP)):
                yield f"at {x[n]} by number {k} it is {found[n, k]}, and beside it {low[n]:.4g} and {high[n]:.4g}"


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ONE)
def test_the_slope_of_a_function_lies_between_its_sides(name, dtype):
    points = [[p] for p in POINTS if dtype == "f8" or abs(p) < 1e10]
    assert [*wrong(ONE[name], points, dtype)] == []


def test_the_slopes_of_a_rest():
    """Not in a function: how often y fits is only known of numbers."""
    x, y = constant([7.5, -7.5, 0.5]), constant([2.0, 2.0, -3.0])
    with GradientTape() as tape:
        rest = (x * 1.0) % (y * 1.0)
    (dx, dy) = tape.gradient(rest, [x, y])
    assert dx.numpy().tolist() == [1.0, 1.0, 1.0] and dy.numpy().tolist() == [-3.0, 4.0, 1.0]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ROW)
def test_the_slopes_of_a_row_lie_between_its_sides(name, dtype):
    assert [*wrong(ROW[name], [row for row in ROWS if max(row) < 1e10], dtype)] == []


LABELS = {  # loss -> pairs of a target and a prediction, whose slope is asked for
    "mse": [(0.0, 0.0), (1.0, 0.0)],
    "mae": [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)],
    "binary_crossentropy": [(0.0, 0.0), (1.0, 1.0), (0.0, 1e-7), (1.0, 1 - 1e-7), (0.3, 0.5)],
}


@pytest.mark.parametrize("name", LABELS)
def test_the_slope_of_a_loss_lies_between_its_sides(name):
    for target, predicted in LABELS[name]:
        loss = mid_level.LOSSES[name]()

        def run(x, target=target, loss=loss):
            x = low_level.clip(x, 0.0, 1.0) if name == "binary_crossentropy" else x
            return loss(np.full((1, 1), target, x.dtype), x)

        assert [*wrong(run, [[predicted]], "f8")] == [], (target, predicted)
