"""Level 3: tensors, the door, the tape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levels.low_level import TAPES, GradientTape, Variable, constant, gather, matmul, reduce_mean, reduce_sum


def slope(function, arrays, k):
    """d function / d arrays[k] by central differences."""
    result = np.zeros(arrays[k].shape)
    for index in np.ndindex(result.shape):
        values = []
        for nudge in (1e-6, -1e-6):
            moved = [a.copy() for a in arrays]
            moved[k][index] += nudge
            values.append(float(function(*map(constant, moved))))
        result[index] = (values[0] - values[1]) / 2e-6
    return result


FUNCTIONS = {
    "add": lambda x, y: reduce_sum((x + y) * (x + 2.0)),
    "subtract": lambda x, y: reduce_sum((x - y) * (1.0 - y)),
    "multiply": lambda x, y: reduce_mean(x * y * x),
    "divide": lambda x, y: reduce_sum(x / (y * y + 1.0) + 1.0 / (x * x + 2.0)),
    "negative": lambda x, y: reduce_sum(-x * y),
    "reused": lambda x, y: (lambda z: reduce_sum(z * z + z))(x * y),
    "axis": lambda x, y: reduce_sum(reduce_sum(x * y, axis=0, keepdims=True) * y),
    "means": lambda x, y: reduce_sum(reduce_mean(x * y, axis=1, keepdims=True) * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shapes", [((3, 2), (3, 2)), ((3, 2), (1, 2)), ((3, 2), (3, 1)), ((3, 2), (1, 1))])
def test_gradients_are_slopes(name, shapes):
    rng, function = np.random.default_rng(1), FUNCTIONS[name]
    arrays = [rng.normal(size=shape) for shape in shapes]
    x, y = map(Variable, arrays)
    with GradientTape() as tape:
        target = function(x, y)
    for k, gradient in enumerate(tape.gradient(target, [x, y])):
        assert gradient.shape == shapes[k]
        np.testing.assert_allclose(gradient.numpy(), slope(function, arrays, k), atol=1e-5)


def test_gradient_of_matmul():
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(4, 3)), rng.normal(size=(3, 2))]
    x, w = map(Variable, arrays)
    with GradientTape() as tape:
        target = reduce_sum((x @ w) * (x @ w))
    for k, gradient in enumerate(tape.gradient(target, [x, w])):
        np.testing.assert_allclose(
            gradient.numpy(), slope(lambda x, w: reduce_sum((x @ w) * (x @ w)), arrays, k), atol=1e-5
        )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("+-*/"), st.integers(0, 9)), min_size=1, max_size=12))
def test_gradients_of_random_programs_are_slopes(steps):
    """A program picks two earlier results and combines them, so results are used many times."""

    def function(x, y):
        values = [x, y]
        for op, pick in steps:
            a, b = values[pick % len(values)], values[-1]
            values.append(
                a + b if op == "+" else a - b if op == "-" else a * b * 0.1 if op == "*" else a / (b * b + 1.0)
            )
        return reduce_sum(values[-1] + values[0] + values[1])

    rng = np.random.default_rng(len(steps))
    arrays = [rng.uniform(-1, 1, (2, 2)), rng.uniform(-1, 1, (1, 2))]
    x, y = map(Variable, arrays)
    with GradientTape() as tape:
        target = function(x, y)
    for k, gradient in enumerate(tape.gradient(target, [x, y])):
        np.testing.assert_allclose(gradient.numpy(), slope(function, arrays, k), rtol=1e-4, atol=1e-4)


def test_a_tape_can_be_read_twice_and_printed():
    x = Variable([[2.0]])
    with GradientTape() as tape:
        y = x * x + 1.0
    assert [float(g) for _ in "12" for g in tape.gradient(y, [x])] == [4.0, 4.0]
    assert [line.split()[1] for line in repr(tape).splitlines()] == ["multiply", "add"]


def test_nested_tapes_give_second_derivatives():
    x = Variable([2.0])
    with GradientTape() as outer:
        with GradientTape() as inner:
            y = x * x * x
        (slope_,) = inner.gradient(y, [x])
    assert outer.gradient(slope_, [x])[0].numpy().tolist() == [12.0]
    assert TAPES == []


def test_a_tape_closes_after_an_exception():
    with pytest.raises(ZeroDivisionError), GradientTape():
        raise ZeroDivisionError
    assert TAPES == []


def test_tensors_do_not_change_when_a_variable_does():
    w = Variable([1.0])
    y, alias = w * 1.0, w.value
    w.assign(w + 1.0)
    assert (float(y), float(alias), float(w)) == (1.0, 1.0, 2.0)


def test_dtypes():
    assert constant([1.0]).dtype == constant(1.5).dtype == np.float32
    assert constant(np.ones(2)).dtype == np.float64 and constant([1, 2]).dtype == np.int64
    assert (constant([1.0], "f8") * 2 + 0.5).dtype == np.float64 and (2.0 / constant([1.0])).dtype == np.float32
    assert np.signbit((constant([1.0]) * -0.0).numpy()).all() and not np.signbit((constant([1.0]) * 0.0).numpy()).any()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: constant([1.0]) + constant([1.0], "f8"), "do not mix"),
        (lambda: constant([1.0, 2.0]) + constant([1.0, 2.0, 3.0]), "do not broadcast"),
        (lambda: matmul(constant([[1.0]]), constant([1.0])), "two axes"),
        (lambda: Variable([1.0]).assign([1.0, 2.0]), "the value"),
        (lambda: Variable([1.0]).assign(np.ones(1)), "float64"),
        (lambda: constant("text"), "no kernels"),
        (lambda: constant([1j]), "complex"),
        (lambda: gather(constant([[1.0]]), [1]), "out of range"),
    ],
)
def test_wrong_calls_are_refused(call, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        call()


def test_a_gradient_of_something_never_used_says_so():
    x, y = Variable([1.0]), Variable([2.0])
    with GradientTape() as tape:
        z = x * x
    with pytest.raises(ValueError, match="source 1 was not used"):
        tape.gradient(z, [x, y])
