"""Level 3: tensors, the door, the tape."""

import contextlib
import dataclasses
import functools
import gc
import math
import operator

import numpy as np
import pytest
from core_alone import has, more
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from levels_more import low_level
from levels_more.distributed.collectives import COLLECTIVES
from levels_more.hardware import PLACE, pool
from levels_more.low_level import (
    DOOR,
    VJPS,
    GradientTape,
    Module,
    Tensor,
    Variable,
    absolute,
    apply,
    arg_max,
    arg_min,
    cast,
    clip,
    concat,
    constant,
    device,
    elu,
    erf,
    exp,
    gather,
    grad,
    log_softmax,
    matmul,
    maximum,
    minimum,
    one_hot,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_sum,
    relu,
    softmax,
    stop_gradient,
    transpose,
    where,
)
from levels_more.mid_level import Dense


def tapes():
    """The open tapes, the outermost first."""
    found, stands = [], DOOR.top
    while stands is not DOOR.bottom:
        found += [stands] * (stands.records is not None)
        stands = stands.below
    return found[::-1]


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


def weighted(tensors):
    """One number from many, in which each counts for another amount, so that no two can be mistaken for each other."""
    total = None
    for k, x in enumerate(tensors):
        weights = np.random.default_rng(k).uniform(0.5, 1.5, x.shape)
        total = reduce_sum(x * weights) if total is None else total + reduce_sum(x * weights)
    return total


# Every rule: op -> (function, shapes of its inputs, or arrays), …
ROWS, MASK = constant([2, 0, 2, 2]), constant(np.array([[True, False], [False, True], [True, True]]))
TIES = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])  # the largest stands twice, and three times
BROADCAST = (((3, 2), (2,)), ((3, 1), (1, 2)), ((), (3, 2)))
AXES = (None, 0, -1, 1, (0, 1), (1, 2), (-2, -1), (0, 1, 2))


def pairs(function):
    return [(function, *shapes) for shapes in BROADCAST]


def reductions(function, axes=AXES):
    return [
        (lambda x, axis=axis, keepdims=keepdims: function(x, axis, keepdims), (2, 3, 2))
        for axis in axes
        for keepdims in (False, True)
    ]


def products():
    yield lambda x, w: x @ w, (4, 3), (3, 2)
    flips = (False, True) if has(low_level, "transpose") else ()  # the core has a rule for x @ w alone
    for flip_x in flips:
        for flip_w in flips:
            shapes = (4, 3)[:: -1 if flip_x else 1], (3, 2)[:: -1 if flip_w else 1]
            yield lambda x, w, f=flip_x, g=flip_w: apply("matmul", x, w, transpose_x=f, transpose_w=g), *shapes


INDICES = [np.s_[1], np.s_[-1, ::2], np.s_[::-1], np.s_[2:0:-2, None, 1:], np.s_[..., -1], np.s_[:0], np.s_[1:3, ::-3]]
CASES = {
    "add": pairs(lambda a, b: a + b),
    "subtract": pairs(lambda a, b: a - b),
    "multiply": pairs(lambda a, b: a * b),
    "divide": pairs(lambda a, b: a / b),
    "maximum": pairs(maximum),
    "minimum": pairs(minimum),
    "power": [*pairs(lambda a, b: a**b), (lambda x: x**3, -np.ones((2, 2))), (lambda x: 2.0**x, (3,))],
    "where": [
        (lambda a, b: where(MASK, a, b), (3, 2), (3, 2)),
        (lambda a, b: where(MASK, a, b), (1, 2), ()),
        (lambda a: where(MASK, a, 2.0), (3, 1)),
    ],
    "negative": [(lambda x: -x, (3, 2))],
    **{op: [(getattr(low_level, op), (3, 2))] for op in ("exp", "log", "sqrt", "tanh", "sin", "cos", "sigmoid")},
    "multiply_no_nan": pairs(lambda x, y: apply("multiply_no_nan", x, y)),
    "logits_crossentropy": pairs(lambda y, z: apply("logits_crossentropy", y, z)),
    "probabilities_crossentropy": pairs(lambda y, z: apply("probabilities_crossentropy", y, 0.2 * z)),
    "probabilities_slope": pairs(lambda y, z: apply("probabilities_slope", y, 0.2 * z)),
    "absolute": [(lambda x: absolute(x - 1.0), (3, 2))],
    "elu": [(lambda x: elu(x - 1.0, 1.5), (3, 2))],
    "erf": [(erf, (3, 2)), (lambda x: erf(2.0 * x), (3, 2))],
    "relu": [(lambda x: relu(x - 1.0), (3, 2))],
    "clip": [(lambda x: clip(x, 0.8, 1.2), (4, 3))],
    "cast": [(lambda x: cast(x, "f8"), (3, 2))],
    "broadcast_to": [(lambda x: apply("broadcast_to", x, shape=(2, 3, 2)), shape) for shape in ((), (2,), (3, 1))],
    "reduce_sum": reductions(reduce_sum),
    "reduce_mean": reductions(reduce_mean),
    "broadcast_divide": [
        (lambda x: apply("broadcast_divide", x, np.ones((2, 3, 2)), count=3.0), shape) for shape in ((), (2,), (3, 1))
    ],
    "spread": [
        (lambda dy, axis=axis: apply("spread", dy, np.ones((2, 3, 2)), axis=axis), shape)
        for axis, shape in ((None, ()), (1, (2, 2)), (1, (2, 1, 2)), ((0, 1), (2,)), (-1, (2, 3)))
    ],
    "reduce_max": [*reductions(reduce_max), (lambda x: reduce_max(x), (3, 2))],
    "reduce_min": reductions(reduce_min, AXES[:4]),
    "softmax": [(softmax, (2, 3)), (softmax, (2, 2, 3)), (softmax, (3,))],
    "log_softmax": [(log_softmax, (2, 3)), (log_softmax, (2, 2, 3)), (log_softmax, (3,))],
    "matmul": list(products()),
    "gather": [
        (lambda x: gather(x, ROWS), (3, 2)),
        (lambda x: gather(x, ROWS), (3,)),
        (lambda x: gather(x, [[0, 1], [1, 1]]), (2, 2, 2)),
    ],
    "scatter_add": [(lambda x: apply("scatter_add", x, ROWS, count=5), (4, 2))],
    "transpose": [(lambda x, axes=a: transpose(x, axes), (2, 3, 2)) for a in (None, (1, 2, 0), (0, 2, 1))],
    "reshape": [
        (lambda x: apply("reshape", x, shape=(3, 2)), (2, 3)),
        (lambda x: apply("reshape", x, shape=()), (1, 1)),
    ],
    "slice": [(lambda x, index=index: x[index], (3, 4)) for index in INDICES],
    "slice_grad": [(lambda x: apply("slice_grad", x, shape=(5, 2), slices=((4, None, -2), (0, 2, 1))), (3, 2))],
    "to": [(lambda x: x.to("cpu:1").to("cpu:0"), (3, 2))],
    "relu_grad": [(lambda dy: apply("relu_grad", dy, TIES - 1.5), (2, 3))],
    "clip_grad": [(lambda dy: apply("clip_grad", dy, TIES, low=1.5, high=2.5), (2, 3))],
    "sigmoid_grad": [(lambda dy, y: apply("sigmoid_grad", dy, y), (3, 2), (3, 2))],
    "softmax_grad": [(lambda dy, y: apply("softmax_grad", dy, y), (2, 3), (2, 3))],
    "log_softmax_grad": [(lambda dy, y: apply("log_softmax_grad", dy, y), (2, 3), (2, 3))],
}
CASES["concat"] = [
    (
        lambda a, b, c, axis=axis: concat([a, b, c], axis),
        *[tuple(n if i == axis % 3 else 2 for i in range(3)) for n in (1, 2, 3)],
    )
    for axis in (0, 1, -1)
]
FLAT = {  # ops through which no gradient passes
    "copy": stop_gradient,
    "less": lambda x: x < 1.0,
    "less_equal": lambda x: x <= 1.0,
    "equal": lambda x: x == 1.0,
    "not_equal": lambda x: x != 1.0,
    "arg_max": arg_max,
    "arg_min": arg_min,
    "one_hot": lambda x: one_hot(cast(x, "i8"), 9, "f8"),
    "sum_error": lambda x: apply("sum_error", x, x),
}


@pytest.mark.quick
def test_every_rule_has_a_case():
    assert {*CASES, *FLAT} == {op for op in VJPS if isinstance(op, str)} - {
        *COLLECTIVES
    }  # those: tests/levels_more/distributed/test_machines.py


def targets(op):
    """For each case of an op: a function that gives one number, and its inputs."""
    if op == "to":
        pool(cpus=2)
    for case, (function, *shapes) in enumerate(CASES[op]):
        rng = np.random.default_rng(case)
        arrays = [s if isinstance(s, np.ndarray) else rng.uniform(0.5, 1.5, s) for s in shapes]

        def target(*inputs, function=function):
            y = function(*inputs)
            return weighted([y * y, y])  # the square gives a linear op a second derivative

        yield target, arrays


@pytest.mark.parametrize("op", [op for op in CASES if op in VJPS])
def test_derivatives_of_every_rule_are_slopes(op):
    tried = 0
    for target, arrays in targets(op):
        variables = [*map(Variable, arrays)]
        with GradientTape() as tape:
            y = target(*variables)
        assert op in [record[0] for record in tape.records]
        for k, dx in enumerate(tape.gradient(y, variables)):
            np.testing.assert_allclose(dx.numpy(), slope(target, arrays, k), rtol=1e-6, atol=1e-6)
            tried += 1
    assert tried


@pytest.mark.more("rules of the ops that rules use")
@pytest.mark.parametrize("op", CASES)
def test_second_derivatives_of_every_rule_are_slopes(op):
    for target, arrays in targets(op):
        variables = [*map(Variable, arrays)]
        with GradientTape() as outer:
            with GradientTape() as tape:
                y = target(*variables)
            first = tape.gradient(y, variables)
            pulled = weighted(first)
        second = outer.gradient(pulled, variables)
        for k, (dx, ddx) in enumerate(zip(first, second, strict=True)):
            assert dx.shape == ddx.shape == arrays[k].shape

            def slopes(*inputs, target=target):
                inputs = [*map(Variable, inputs)]
                with GradientTape() as tape:
                    y = target(*inputs)
                return weighted(tape.gradient(y, inputs))

            np.testing.assert_allclose(ddx.numpy(), slope(slopes, arrays, k), rtol=1e-5, atol=1e-5)


@pytest.mark.more("these ops")
@pytest.mark.parametrize("op", FLAT)
def test_no_gradient_passes(op):
    x = Variable(np.array([0.5, 1.0, 2.0]))
    with GradientTape(persistent=True) as tape:
        flat = reduce_sum(cast(FLAT[op](x), "f8"))
        y = x * flat
    assert op in [record[0] for record in tape.records]
    with pytest.raises(ValueError, match=r"source 0, float\d\d\[.*\] on cpu:0, was not used"):
        tape.gradient(flat, x)
    assert (tape.gradient(y, x).numpy() == float(flat)).all()


@pytest.mark.quick
@pytest.mark.more("these ops, and GradientTape(persistent=True)")
def test_ties_share_or_go_to_the_first():
    x, y = Variable(TIES), Variable(TIES.copy())
    with GradientTape(persistent=True) as tape:
        largest, smallest, larger, smaller = reduce_max(x, 1), reduce_min(x, 1), maximum(x, y), minimum(x, y)
    assert tape.gradient(largest, x).numpy().tolist() == [[0, 0.5, 0.5], [1 / 3] * 3]
    assert tape.gradient(smallest, x).numpy().tolist() == [[1, 0, 0], [1 / 3] * 3]
    for result in (larger, smaller):
        dx, dy = tape.gradient(result, [x, y])
        assert (dx.numpy() == 1).all() and (dy.numpy() == 0).all()


@pytest.mark.quick
def test_gradient_at_the_edge_of_a_clip_and_of_a_relu_is_zero():
    x = Variable(np.array([-1.0, 0.0, 0.5, 1.0, 2.0]))
    for edged, expected in ((lambda x: clip(x, 0.0, 1.0), [0, 0, 1, 0, 0]), (relu, [0, 0, 1, 1, 1])):
        with GradientTape() as tape:
            y = edged(x)
        assert tape.gradient(y, x).numpy().tolist() == expected


def nth_slope(power, x, n):
    """The n-th derivative of x**power, tape in tape."""
    x = Variable(np.array(x))

    def derivative(n):
        if n == 0:
            return x**power
        with GradientTape() as tape:
            y = derivative(n - 1)
        return tape.gradient(y, x)

    return float(derivative(n))


@pytest.mark.more("x**2")
@pytest.mark.parametrize(
    "power, x, n, expected",
    [(3, -2.0, 1, 12.0), (3, 0.0, 2, 0.0), (2, 0.0, 2, 2.0), (3, 2.0, 3, 6.0), (0.5, 4.0, 1, 0.25)]
    + [(0, 0.0, 1, 0.0), (1, 0.0, 2, 0.0)],  # there power's rule multiplies 0 by infinity: b * a ** (b - 1) for b = 0
)
def test_derivatives_of_powers(power, x, n, expected):
    assert nth_slope(power, x, n) == pytest.approx(expected, rel=1e-12, abs=0.0)


# A tensor is used as NumPy's arrays are.
CUBE = np.arange(24.0).reshape(2, 3, 4)
PART = st.integers(-5, 5) | st.slices(4) | st.sampled_from([None, Ellipsis, slice(None, None, 0), slice(9, -9, -2)])


@pytest.mark.more("x[...]")
@settings(max_examples=100, deadline=None)
@given(
    arrays_of.basic_indices(CUBE.shape, allow_newaxis=True, allow_ellipsis=True) | st.lists(PART, max_size=5).map(tuple)
)
@example(())
@example((2**70,))
@example((slice(-(2**70), 2**70, 2**70),))
def test_slicing_is_numpys(index):
    try:
        expected = CUBE[index]
    except (IndexError, ValueError) as error:
        with pytest.raises(type(error)):
            constant(CUBE)[index]
        return
    result = constant(CUBE)[index]
    assert isinstance(result, Tensor) and result.shape == expected.shape
    assert result.numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("index", [1.0, True, "0", [0], np.array([0]), (0, None, "a"), object(), slice(0.5, None), {}])
def test_what_is_no_index_is_refused(index):
    with pytest.raises(TypeError):
        constant(CUBE)[index]


SIDES = st.sampled_from([2, -3, 0.5, -0.0, 1e3, [[2.0, 0.5, 0.0], [-1.0, 1.0, 4.0]]])
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
BINARY += [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.more("x**2, x < 1")
@settings(max_examples=100, deadline=None)
@given(st.sampled_from(BINARY), SIDES, st.booleans(), st.booleans())
def test_operators_are_numpys(op, other, left, variable):
    x = np.array([[2.0, -3.0, 0.5], [0.0, 1.0, 4.0]])
    other = np.array(other) if isinstance(other, list) else other
    ours = Variable(x) if variable else constant(x)
    with np.errstate(all="ignore"):
        expected = op(other, x) if left else op(x, other)
        result = op(other, ours) if left else op(ours, other)
    assert isinstance(result, Tensor) and result.dtype == expected.dtype
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-14)


@pytest.mark.more("x**2, x < 1")
def test_operators_on_integers_and_bools():
    i, b = constant([3, -1]), constant([True, False])
    for op in (operator.sub, operator.lt):
        assert op(i, 2).numpy().tolist() == op(np.array([3, -1]), 2).tolist()
        assert op(2, i).numpy().tolist() == op(2, np.array([3, -1])).tolist()
    assert (-i).numpy().tolist() == [-3, 1] and (i**2).numpy().tolist() == [9, 1] and (i**2).dtype == np.int64
    assert (b == True).numpy().tolist() == (b != False).numpy().tolist() == [True, False]  # noqa: E712
    assert (np.ones((2, 2)) @ constant(np.eye(2))).numpy().tolist() == [[1, 1], [1, 1]]


@pytest.mark.more("len(x), x[...]")
def test_a_tensor_as_a_python_value():
    x = constant([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2 and [row.numpy().tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    assert float(constant([[1.5]])) == 1.5 and int(constant(2.9)) == 2 and int(constant([7])) == 7
    assert bool(constant([[0.5]])) and not bool(constant(0)) and not constant(False)
    assert np.asarray(x).dtype == np.float32 and np.asarray(x, "f8").tolist() == [[1, 2], [3, 4]]
    assert repr(constant([1.5])) == "Tensor([1.5], shape=(1,), float32, cpu:0)"
    assert repr(Variable(np.array(2))) == "Variable(2, shape=(), int64, cpu:0)"
    assert len(repr(constant(np.zeros(10**5)))) < 200
    x.numpy()[:] = 9.0
    assert float(x[0, 0]) == 1.0, "numpy() gives a copy"
    for call in (lambda: len(constant(1.0)), lambda: iter(constant(1.0)), lambda: float("x" + x)):
        with pytest.raises(TypeError):
            call()
    for call in (bool, float, int):
        for y in (x, constant([]), Variable([1.0, 2.0])):
            with pytest.raises(ValueError):
                call(y)


@pytest.mark.more("x == y")
def test_a_tensor_is_a_key_by_who_it_is():
    x, y = constant([1.0]), constant([1.0])
    assert {x: 1, y: 2}[x] == 1 and x in {x} and y not in {x} and hash(x) == hash(x)
    assert x in [y], "`in` a list asks ==, and one equal number is true"
    with pytest.raises(ValueError, match="not one number"):
        constant([1.0, 2.0]) in [constant([1.0, 2.0])]  # noqa: B015


@pytest.mark.more("x == y")
@pytest.mark.parametrize("x", [constant([1.0, 2.0]), constant(0), constant([True]), Variable([1.0, 2.0])])
def test_none_is_not_a_tensor(x):
    assert (x == None, None == x, x != None, None != x) == (False, False, True, True)  # noqa: E711, SIM300
    assert None not in [x] and x not in [None] and [x, None].index(None) == 1
    for odd in ("text", [None], object(), {}):
        for compare in (lambda odd: x == odd, lambda odd: x != odd):
            with pytest.raises(TypeError):
                compare(odd)


def test_dtypes():
    assert constant([1.0]).dtype == constant(1.5).dtype == np.float32
    assert constant(np.ones(2)).dtype == np.float64 and constant([1, 2]).dtype == np.int64
    assert constant([True]).dtype == np.bool_ and constant(constant([1.0], "f8")).dtype == np.float64
    listed = constant([constant([1.0], "f8"), constant([2.0], "f8")])
    assert listed.dtype == np.float64 and listed.shape == (2, 1)
    assert (constant([1.0], "f8") * 2 + 0.5).dtype == np.float64 and (2.0 / constant([1.0])).dtype == np.float32
    assert cast(constant([1.5, -1.5]), "i8").numpy().tolist() == [1, -1]
    half = constant([1]) / 2  # whole numbers give float64, as in NumPy and TensorFlow
    assert half.dtype == np.float64 and half.numpy().tolist() == [0.5]
    x = constant(np.full((2, 2), 0.5), "f4")
    for f in (exp, softmax, reduce_max, transpose):
        assert f(x).dtype == np.float32, f
    with GradientTape() as tape:
        y = reduce_mean(x**3 + where(x > 0, x, 0))
    assert tape.gradient(y, x).dtype == np.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda: constant([1]) + 0.5,
        lambda: 0.5 * constant([1]),
        lambda: constant([1]) * True,
        lambda: constant([True]) == 1,
        lambda: where(constant([True]), constant([1]), 0.5),
        lambda: constant([1.0]) * np.float64(2),
        lambda: np.ones(1) * constant([1.0]),
        lambda: constant([1]) / 2.0,
        lambda: constant([1]) / constant([2.0]),
        lambda: constant([True]) / True,
        lambda: constant(np.zeros(2, "f2")),
        lambda: constant(np.zeros(2, ">f8")),
    ],
)
def test_nothing_is_cast_in_silence(call):
    with pytest.raises((TypeError, ValueError)):
        call()


@dataclasses.dataclass(frozen=True)
class Divisor:
    by: float


@pytest.mark.parametrize(
    "made, number", [(Divisor, lambda divisor: divisor.by), (lambda by: (by,), lambda pair: pair[0])]
)
def test_equal_arguments_that_hold_other_zeros_are_traced_apart(made, number):
    divided = low_level.function(lambda x, divisor: x / number(divisor))
    with np.errstate(all="ignore"):
        assert [divided(constant([1.0]), made(by)).numpy()[0] for by in (0.0, -0.0)] == [np.inf, -np.inf]
    assert divided.traces == 2


@pytest.mark.more("x == y")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, -0.0, 0, False, 1, True, 1.0]), min_size=2, max_size=8))
def test_equal_numbers_are_not_confused(numbers):
    """Python takes 0, 0.0, -0.0 and False for one key; a cache of number tensors must not."""
    for number in numbers:
        for x in (constant([2.0]), constant([2]), constant([True])):
            fits = (
                type(number) is bool if x.dtype == np.bool_ else type(number) in (int, x.dtype.type(1).item().__class__)
            )
            if not fits:
                with pytest.raises(TypeError):
                    x == number  # noqa: B015
            elif x.dtype.kind == "f":
                product = x * number
                assert product.dtype == np.float32 and float(product) == 2 * number
                assert np.signbit(product.numpy()[0]) == (math.copysign(1, number) < 0)
            else:
                assert (x == number).numpy().tolist() == [bool(x.numpy()[0] == number)]


# Devices
@pytest.fixture
def second(pytestconfig):
    """cpu:1, with a tensor on it."""
    if pytestconfig.option.core:
        pytest.skip("needs levels_more: several devices")
    pool(cpus=2)
    with device("cpu:1"):
        x = constant(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert PLACE.device.name == "cpu:0"
    return x


def test_tensors_lie_where_they_were_placed(second):
    assert second.device.name == "cpu:1" and constant(1.0).device.name == "cpu:0"
    for y in (
        second + 1.0,
        2.0 * second,
        second[0],
        second @ second,
        reduce_mean(second),
        where(second > 2, second, 0),
        gather(second, [1, 0]),  # the row numbers are placed beside x, and not on the device of the moment
    ):
        assert y.device.name == "cpu:1"
    with pytest.raises(ZeroDivisionError), device("cpu:1"):
        raise ZeroDivisionError
    assert PLACE.device.name == "cpu:0"
    with pytest.raises(LookupError, match="gpu:7.*cpu:0, "), device("gpu:7"):
        pass


@pytest.mark.parametrize(
    "f", [lambda a, b: a + b, matmul, lambda a, b: concat([a, b]), lambda a, b: where(a > 0, a, b)]
)
def test_no_copy_between_devices_in_silence(second, f):
    with pytest.raises(ValueError, match="cpu:0 and cpu:1"):
        f(second, constant(np.ones((2, 2))))
    with pytest.raises(ValueError, match="cpu:1"):
        Variable(np.ones((2, 2))).assign(second)
    assert f(second, constant(np.ones((2, 2))).to("cpu:1")).device.name == "cpu:1"


def test_to_hands_the_gradient_back_to_where_the_numbers_came_from(second):
    x = Variable(np.array([1.0, 2.0]))
    with GradientTape() as tape:
        y = (x * 3.0).to("cpu:1")
        z = reduce_sum((y * y).to("cpu:0"))
    dx = tape.gradient(z, x)
    assert dx.device.name == "cpu:0" and dx.numpy().tolist() == [18.0, 36.0]
    with pytest.raises(LookupError, match="nowhere"):
        x.to("nowhere")


# backward_pass places its first gradient, ones, on the device of the moment instead of the target's.
def test_gradients_on_another_device(second):
    x = Variable(second)
    with GradientTape() as tape:
        y = reduce_sum(x * x)
    dx = tape.gradient(y, x)
    assert dx.device.name == "cpu:1" and dx.numpy().tolist() == [[2, 4], [6, 8]]


def test_memory_is_given_back_when_tensors_die(second):
    def work():
        x = Variable(np.ones((100, 100)))
        with GradientTape(persistent=True) as outer, GradientTape() as tape:
            y = reduce_sum((x @ x) * x[:, ::-1] + 1.0)
            dx = tape.gradient(y, x)
        x.assign(x - 0.1 * dx)
        outer.gradient(y, [])
        return dx.to("cpu:1")

    work()  # the numbers 1.0 and 0.1 stay in the cache of number tensors
    gc.collect()
    before = {name: d.used for name, d in pool().items()}
    kept = [work() for _ in range(3)]
    gc.collect()
    assert pool()["cpu:1"].used == before["cpu:1"] + 3 * 80_000 and pool()["cpu:0"].used == before["cpu:0"]
    del kept
    gc.collect()
    assert {name: d.used for name, d in pool().items()} == before


# Tapes
def test_a_tape_is_read_once():
    x = Variable([[2.0]])
    with GradientTape() as tape:
        y = x * x + 1.0
    assert [(op, inputs[0], result) for op, inputs, _, result in tape.records] == [
        ("multiply", x.value, tape.records[1][1][0]),
        ("add", tape.records[0][3], y),
    ]
    assert float(tape.gradient(y, x)) == 4.0
    with pytest.raises(RuntimeError, match="persistent=True"):
        tape.gradient(y, x)


@pytest.mark.more("GradientTape(persistent=True)")
def test_a_persistent_tape_is_read_many_times():
    x = Variable([2.0])
    with GradientTape(persistent=True) as tape, GradientTape() as younger:
        y = x * x
        assert float(tape.gradient(y, x)) == 4.0
        assert tapes() == [tape, younger]  # in this order still
        z = y * x
    assert [float(g) for _ in "12" for g in tape.gradient(z, [x, y])] == [12.0, 2.0] * 2
    assert tapes() == []


@pytest.mark.parametrize("start", [2.0, *more("a rule of spread", ([2.0],))])
def test_nested_tapes_give_higher_derivatives(start):
    x = Variable(start)
    with GradientTape() as third, GradientTape() as second_, GradientTape() as first:
        y = x * x * x * x
        dy = first.gradient(y, x)
        ddy = second_.gradient(dy, x)
        dddy = third.gradient(ddy, x)
    assert (float(dy), float(ddy), float(dddy)) == (32.0, 48.0, 48.0)
    assert tapes() == []


def test_a_tape_closes_after_an_exception():
    with pytest.raises(ZeroDivisionError), GradientTape() as outer:
        with contextlib.suppress(KeyError), GradientTape():
            raise KeyError
        assert [outer] == tapes()
        raise ZeroDivisionError
    assert tapes() == []


@pytest.mark.parametrize("options", [{}, *more("GradientTape(persistent=True)", ({"persistent": True},))])
def test_a_tape_stays_open_after_a_gradient_that_was_refused(options):
    x = Variable(2.0)
    with GradientTape(**options) as tape:
        y = x * x
        if options:
            with pytest.raises(ValueError):
                tape.gradient(constant(1.0), x)
        with pytest.raises(TypeError):
            tape.gradient("text", x)
        assert [tape] == tapes()
        assert float(tape.gradient(y, x)) == 4.0
    assert tapes() == []


def test_a_variable_assigned_under_a_tape_has_no_gradient():
    for k, slope_of_w in enumerate([2.0, 5.0]):
        x, w = Variable([2.0]), Variable([3.0])
        with GradientTape() as tape:
            y = x * w
            x.assign([5.0])
            z = x * w
        for target in (y, z):
            with pytest.raises(ValueError, match="source 1 was assigned"):
                tape.gradient(target, [w, x])
        assert float(tape.gradient((y, z)[k], w)) == slope_of_w


@pytest.mark.more("x > 1")
def test_only_floats_have_a_gradient():
    x, i = Variable([2.0]), Variable([1])
    with GradientTape(persistent=True) as tape:
        y, j = x * x, i * 2
    with pytest.raises(TypeError, match="source 0 is int64"):
        tape.gradient(y, i)
    with pytest.raises(TypeError, match="the target is int64"):
        tape.gradient(j, x)
    with pytest.raises(TypeError, match="the target is bool"):
        tape.gradient(x > 1.0, x)


def test_gradients_of_several_numbers_of_targets_and_of_results():
    x = Variable(np.array([[1.0, 2.0], [3.0, 4.0]]))

    def read(sources):
        """What a new tape says of z = 3·y, y = x², where `sources` of y and z gives the sources."""
        with GradientTape() as tape:
            y = x * x
            z = y * 3.0
        return tape.gradient(z, sources(y, z))

    assert read(lambda y, z: x).numpy().tolist() == [[6, 12], [18, 24]]
    assert (read(lambda y, z: y).numpy() == 3).all() and (read(lambda y, z: z).numpy() == 1).all()
    assert read(lambda y, z: []) == [] and type(read(lambda y, z: (x,))) is list
    a, b = read(lambda y, z: [x, x])
    assert a.numpy().tolist() == b.numpy().tolist() == [[6, 12], [18, 24]]


def test_grad_reads_the_innermost_tape():
    x, w = Variable([2.0]), Variable([3.0])
    with GradientTape() as outer:
        with GradientTape():
            dx, dw = grad(x * x * w, [x, w])
        assert (float(dx), float(dw)) == (12.0, 4.0)
        assert float(grad(dx, w)) == 4.0 and tapes() == []
    assert outer.records is None
    for name, call in {"grad": lambda: grad(x, x), "backward": x.backward}.items():
        with pytest.raises(RuntimeError, match=f"^{name}: no tape is open"):
            call()
    with GradientTape(), pytest.raises(ValueError, match=r"\(2,\)"):
        grad(constant([1.0, 2.0]), x)


@pytest.mark.more("x.backward()")
def test_backward_adds_up():
    x, w, aside, i = Variable([2.0]), Variable([3.0]), Variable([3.0]), Variable([1])
    for expected in (12.0, 24.0):
        with GradientTape():
            assert float(aside * 2.0) == 6.0 and float(i * 2) == 2
            (x * x * w).backward()
        assert (float(x.grad), float(w.grad), aside.grad, i.grad) == (expected, expected / 3, None, None)
    x.grad = None
    with GradientTape():
        (x * w).backward()
    assert float(x.grad) == 3.0 and float(w.grad) == 10.0


@pytest.mark.more("x.backward()")
def test_backward_reads_the_innermost_tape():
    x = Variable([2.0])
    with GradientTape(persistent=True) as outer, GradientTape() as inner:
        low_level.backward(x * x * x)
        assert float(x.grad) == 12.0 and [outer] == tapes() and inner.records is None
        x.grad.backward()
    assert float(x.grad) == 12.0 + 12.0, "the second derivative, 6x, was added"


@pytest.mark.more("x.backward()")
def test_backward_twice_on_one_tape_says_what_to_do():
    w = Variable([2.0])
    with GradientTape():
        one, two = w * 2.0, w * 4.0
        one.backward()
        for call in (two.backward, lambda: grad(two, w)):
            with pytest.raises(RuntimeError, match=r"this tape was read; GradientTape\(persistent=True\)"):
                call()
    assert float(w.grad) == 2.0


@pytest.mark.more("x.backward()")
def test_backward_refuses_a_variable_that_was_assigned():
    w = Variable([2.0])
    with GradientTape():
        loss = w * w
        w.assign([5.0])
        with pytest.raises(ValueError, match="assigned"):
            loss.backward()


# a variable's identity on the tape is its tensor, so two that hold one tensor get the sum of both gradients.
@pytest.mark.parametrize("share", ["constructor", "assign", "number"])
def test_variables_that_hold_one_tensor_have_their_own_gradients(share):
    a, b, t = Variable(1.0), Variable(1.0), constant(3.0)
    if share == "constructor":
        a, b = Variable(t), Variable(t)
    elif share == "assign":
        a.assign(t), b.assign(a)
    else:
        a.assign(3.0), b.assign(3.0)  # number_tensor's cache hands both the same tensor
    for target, sources in ((0, [a, b]), (1, [a])):
        with GradientTape() as tape:
            results = a * b, a * 3.0
        found = tape.gradient(results[target], sources)
        assert [float(d) for d in found] == [3.0] * len(sources)


# the rules take attributes that the kernels have defaults for as if they were always given.
@pytest.mark.parametrize("op", ["reduce_sum", *more("these ops", ("reduce_max",), ("transpose",))])
def test_rules_know_the_defaults_of_attributes(op):
    x = Variable(np.array([[1.0, 2.0]]))
    with GradientTape() as tape:
        y = apply(op, x)
    assert tape.gradient(y, x).shape == (1, 2)


# Variables and modules
def test_tensors_do_not_change_when_a_variable_does():
    w = Variable([1.0])
    y, alias = w * 1.0, w.value
    w.assign(w + 1.0)
    assert (float(y), float(alias), float(w)) == (1.0, 1.0, 2.0)


def test_a_module_finds_its_variables():
    class Dense(Module):
        def __init__(self, inputs, units):
            self.w, self.b, self.units = Variable(np.ones((inputs, units))), Variable(np.zeros(units)), units

    net = Module()
    net.layers = [Dense(2, 3), (Dense(3, 1), "text", None)]
    net.more = {"scale": Variable(1.0), 7: {"deep": [Variable([1, 2])]}}
    net.again, net.self, net.more[7]["cycle"] = net.layers[0].w, net, net.layers
    names = ["layers.0.w", "layers.0.b", "layers.1.0.w", "layers.1.0.b", "more.scale", "more.7.deep.0"]
    assert [*net.named(Variable)] == names and [*net.layers[1][0].named(Variable)] == ["w", "b"]
    assert all(a is b for a, b in zip(net.variables, net.named(Variable).values(), strict=True))
    assert Module().variables == []


# two variables whose paths spell the same name: the second takes the place of the first.
def test_a_module_loses_no_variable():
    net = Module()
    net.parts = {1: Variable(1.0), "1": Variable(2.0), "a.b": Variable(3.0), "a": {"b": Variable(4.0)}}
    with contextlib.suppress(ValueError):  # to refuse such names is as good
        assert len(net.variables) == 4


# What is wrong is said.
X = np.array([[1.0, 2.0, -3.0], [4.0, 0.5, 6.0]])


# slice_grad does not compare dy's shape with the slice's, and reads memory beyond dy, which may crash.
@pytest.mark.more("slice_grad")
@pytest.mark.parametrize("shape, slices", [((1000,), ((0, 1000, 1),)), ((1,), ((0, 1, 1),)), ((), ())])
def test_a_part_that_does_not_fit_its_slice_is_refused(shape, slices):
    with pytest.raises(ValueError, match="slice_grad"):
        apply("slice_grad", constant(np.ones(2)), shape=shape, slices=slices)


# beyond twelve axes that cannot be merged, `loop_source` runs out of letters and zip drops the other axes.
def test_many_axes_are_added_or_refused():
    x, y = (np.arange(2.0**7).reshape(shape) for shape in ((2, 1) * 7, (1, 2) * 7))
    try:
        result = (constant(x) + constant(y)).numpy()
    except ValueError:
        return
    assert np.array_equal(result, x + y)


@pytest.mark.parametrize(
    "call",
    [
        # numbers are cast on the way in.
        lambda: gather(constant(X), [0.7]),
        lambda: gather(constant(X), [True, False]),
        lambda: constant([0.5], "i8"),
        lambda: constant(math.nan, "i8"),
        lambda: constant([3]) ** 2.0,
        # an axis or a count that is none.
        lambda: concat([constant(X), constant(X)], axis=5),
        lambda: concat([constant(X), constant(X)], axis=-3),
        lambda: reduce_sum(constant(X), axis=(0, 0)),
        lambda: reduce_sum(constant(X), axis=0, keepdims=2),
        lambda: one_hot(constant([0]), 2, "f2"),
        # NumPy gives 0 everywhere here, TensorFlow 0 too; we give 1 below 1.
        lambda: clip(constant(X), 1, 0),
        # a loss of precision, or of everything, without a word.
        lambda: constant(1e300),
        lambda: constant([1.0]) * 1e300,
    ],
)
def test_no_wrong_number_in_silence(call):
    with pytest.raises((TypeError, ValueError, IndexError, OverflowError)):
        print(call())


# 1, 1.0, True and np.int64(1) are one key of PLANS, so a wrong call is let through once the right one was made.
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("x", [[3.0, 5.0, 5.0], [[1.0, 2.0], [4.0, 3.0]]])
def test_a_place_keeps_its_axes(x, axis):
    for mine, numpys in ((arg_max, np.argmax), (arg_min, np.argmin)):
        assert mine(x, axis, keepdims=True).numpy().tolist() == numpys(x, axis, keepdims=True).tolist()
    assert arg_max(3.0, keepdims=True).numpy().tolist() == 0
    assert arg_max([[1.0, 2.0], [4.0, 3.0]], (0, 1), keepdims=True).numpy().tolist() == [[2]]


# a module's lists are searched by recursion.
def test_deep_nesting_is_searched_or_refused():
    net, nest = Module(), [Variable(1.0)]
    for _ in range(5000):
        nest = [nest]
    net.nest = nest
    with contextlib.suppress(ValueError):  # to refuse it in words is as good
        assert len(net.variables) == 1


class Doubles:
    def __call__(self, x):
        return x + x


LAYER = Dense(2, dtype="float64")
LAYER.build((None, 2))


@pytest.mark.filterwarnings("ignore:.* was traced 10 times")
@pytest.mark.parametrize("called", [operator.neg, functools.partial(operator.mul, 3.0), Doubles(), LAYER])
def test_whatever_can_be_called_becomes_a_function(called):
    step = low_level.function(called)
    for rows in range(1, 12):  # from the tenth trace on, levels_more warns of it by its name
        x = constant(np.arange(2.0 * rows).reshape(rows, 2))
        assert step(x).numpy().tolist() == called(x).numpy().tolist()
