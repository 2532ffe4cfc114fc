"""Level 2: every kernel against NumPy, every refusal with its reason."""

import functools
import inspect
import itertools
import math
import operator
import subprocess
import sys
from fractions import Fraction

import numba
import numpy as np
import products
import pytest
from core_alone import more
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numba import njit

from course.author.build import ROOT, environment
from levels.support.compiled import SUBSTITUTIONS, compile_cpu
from levels.support.elementary import scaled
from levels_more import kernels
from levels_more.hardware import pool
from levels_more.kernels import KERNELS, PLANS, counted, kernel, launch, use
from levels_more.kernels import matmul as tiles

CPU = pool()["cpu:0"]
OPS = {op for op, _ in KERNELS}
DTYPES = st.sampled_from([np.dtype("f4"), np.dtype("f8")])
NUMBERS = st.floats(-1e3, 1e3, width=32)


def run(op, *inputs, out=None, **attrs):
    return launch(op, out, *(CPU.put(x) for x in inputs), **attrs).numpy()


def logistic(x):
    return 1 / (1 + np.exp(-x))


# op -> the same in NumPy, on float64; the attributes of the call are the last arguments' defaults
NAMED = "add subtract multiply divide power maximum minimum absolute negative exp log sqrt tanh"
ELEMENTWISE = {
    **{op: getattr(np, op) for op in f"{NAMED} less less_equal equal not_equal".split()},
    "multiply_no_nan": lambda x, y: np.where(y == 0, 0, x * y),
    "elu": lambda x, alpha=1.5: np.where(x > 0, x, alpha * np.expm1(x)),
    "erf": np.vectorize(math.erf, otypes=["f8"]),
    "copy": lambda x: x,
    "sigmoid": logistic,
    "sigmoid_grad": lambda dy, y: dy * y * (1 - y),
    "relu": lambda x: np.where(x <= 0, 0, x),
    "relu_grad": lambda dy, y: np.where(y <= 0, 0, dy),
    "clip": lambda x, low=-2.0, high=3.0: np.clip(x, low, high),
    "clip_grad": lambda dy, x, low=-2.0, high=3.0: np.where((x > low) & (x < high), dy, 0),
}
ANY = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-40])


def attributes(function):
    return {p.name: p.default for p in inspect.signature(function).parameters.values() if isinstance(p.default, float)}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(ELEMENTWISE.keys() & OPS)), DTYPES, st.data())
def test_elementwise_ops_are_numpys(op, dtype, data):
    """Any shapes that broadcast, with sizes of 0 and 1; any numbers, with infinities, NaN and subnormals."""
    reference = ELEMENTWISE[op]
    attrs = {} if isinstance(reference, np.ufunc | np.vectorize) else attributes(reference)
    count = getattr(reference, "nin", op == "erf") or len(inspect.signature(reference).parameters) - len(attrs)
    shapes = data.draw(arrays.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=4))
    inputs = [data.draw(arrays.arrays(dtype, shape, elements=ANY)) for shape in shapes.input_shapes]
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*(x.astype("f8") for x in inputs)))
        expected = expected if expected.dtype == bool else expected.astype(dtype)
    result = run(op, *inputs, **attrs)
    assert result.dtype == expected.dtype and result.shape == shapes.result_shape
    np.testing.assert_allclose(result, expected, *((1e-6, 1e-43) if dtype == "f4" else (1e-14, 0)))


SHAPES = [
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((4, 1, 3), (2, 1)),
    ((1, 3), (2, 3)),
    ((), (2, 2)),
    ((3, 0), (1,)),
    ((3,), (2, 0, 1)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_shapes_are_broadcast_as_in_numpy(shapes):
    """The larger array first and last, one that lacks axes, one that has an axis of size 1, and none to compute."""
    first, second = (np.arange(1.0, math.prod(shape) + 1.0).reshape(shape) for shape in shapes)
    for x, y in ((first, second), (second, first)):
        np.testing.assert_array_equal(run("subtract", x, y), x - y, strict=True)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_exp_and_log_at_the_ends_of_their_numbers(dtype):
    """Zeros, infinities and NaN as in NumPy, and the smallest and largest numbers close to it."""
    tiny, large = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    ends = [0.0, -0.0, -1.0, -1e4, 1e4, np.inf, -np.inf, np.nan, tiny, -tiny, large, -large]
    ends += [-745.0, -745.2, -746.0, 709.0, 710.0, -103.0, -104.0, 88.0, 89.0]
    with np.errstate(all="ignore"):
        x = np.array(ends, dtype)
        for op, expected in (("exp", np.exp(x.astype("f8"))), ("log", np.log(x.astype("f8")))):
            np.testing.assert_allclose(
                run(op, x), expected.astype(dtype), 1e-6 if dtype == "f4" else 1e-14, 0, err_msg=op
            )


@pytest.mark.more("sum_error")
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(ANY, ANY), min_size=1), DTYPES)
def test_sum_error_is_what_rounding_took(pairs, dtype):
    x, y = np.array(pairs, dtype).T
    error = run("sum_error", x, y)
    with np.errstate(all="ignore"):
        total = x + y
    for a, b, s, e in zip(x.tolist(), y.tolist(), total.tolist(), error.tolist(), strict=True):
        assert e == (Fraction(a) + Fraction(b) - Fraction(s) if math.isfinite(s) else 0.0)


@settings(max_examples=25, deadline=None)
@given(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9), DTYPES, st.integers(0, 2**32))
def test_sgd_updates_its_weight_in_place(shape, dtype, seed):
    draw = np.random.default_rng(seed)
    w, dw = (draw.normal(size=shape).astype(dtype) for _ in "12")
    out = CPU.put(w)
    assert launch("sgd", out, CPU.put(dw), rate=0.1) is out
    np.testing.assert_allclose(out.data, w - 0.1 * dw, 1e-5 if dtype == "f4" else 1e-13, 1e-6)


def test_sgd_into_a_new_buffer_leaves_its_weight():
    w, dw = CPU.put(np.array([1.0, 2.0])), CPU.put(np.array([4.0, -8.0]))
    found = launch("sgd", None, w, dw, rate=0.25)
    assert found is not w and found.numpy().tolist() == [0, 4] and w.numpy().tolist() == [1, 2]
    assert launch("sgd", w, dw, rate=0.25) is w and w.numpy().tolist() == [0, 4]


REDUCTIONS = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of the mean of nothing
@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(REDUCTIONS.keys() & OPS)),
    arrays.arrays(DTYPES, arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5), elements=NUMBERS),
    st.booleans(),
    st.data(),
)
def test_reductions_are_numpys(op, x, keepdims, data):
    first = data.draw(st.integers(0, x.ndim))
    axis = data.draw(st.sampled_from([None, tuple(range(first, data.draw(st.integers(first, x.ndim))))]))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1)) if x.ndim and data.draw(st.booleans()) else axis
    reference = REDUCTIONS[op]
    try:
        expected = reference(x.astype("f8"), axis=axis, keepdims=keepdims)
    except ValueError:  # NumPy's: zero-size array to reduction operation maximum which has no identity
        with pytest.raises(ValueError, match="no number along axis"):
            run(op, x, axis=axis, keepdims=keepdims)
        return
    result = run(op, x, axis=axis, keepdims=keepdims)
    assert result.shape == expected.shape and result.dtype == x.dtype
    rounds = x.dtype == "f4" and op in ("reduce_sum", "reduce_mean")
    bound = x.size * 2.0**-23 * np.abs(x.astype("f8")).sum()  # of a running sum (Higham, 1993)
    np.testing.assert_allclose(result, expected, 0, bound if rounds else 1e-10)


@pytest.mark.more("slice, slice_grad, concat, reshape")
@settings(max_examples=25, deadline=None)
@given(arrays.arrays(DTYPES, arrays.array_shapes(max_dims=4, min_side=0, max_side=5), elements=ANY), st.data())
def test_moves_are_numpys(x, data):
    """Slices with any steps, their gradients, and shapes changed and joined."""
    index = [data.draw(st.slices(size)) for size in x.shape]
    slices = tuple((part.start, part.stop, part.step) for part in index)
    part, zeros = x[tuple(index)], np.zeros_like(x)
    np.testing.assert_array_equal(run("slice", x, slices=slices), part)
    zeros[tuple(index)] = part
    np.testing.assert_array_equal(run("slice_grad", part, shape=x.shape, slices=slices), zeros)
    axis = data.draw(st.integers(0, x.ndim - 1))
    np.testing.assert_array_equal(run("concat", x, x, x, axis=axis), np.concatenate([x, x, x], axis))
    np.testing.assert_array_equal(run("reshape", x, shape=(x.size, 1)), x.reshape(x.size, 1))


@pytest.mark.more("arg_max, arg_min")
@settings(max_examples=25, deadline=None)
@given(arrays.arrays(DTYPES, arrays.array_shapes(max_dims=3, max_side=5), elements=ANY), st.data())
def test_the_place_of_the_largest_number_is_numpys(x, data):
    axis = data.draw(st.sampled_from([None, *range(-x.ndim, x.ndim)]))
    np.testing.assert_array_equal(run("arg_max", x, axis=axis), np.argmax(x, axis))
    np.testing.assert_array_equal(run("arg_min", x, axis=axis), np.argmin(x, axis))


@pytest.mark.more("where")
@settings(max_examples=30, deadline=None)
@given(arrays.arrays(st.sampled_from(["f4", "f8", "i8", "?"]), (3, 4)), arrays.arrays(bool, (4,)))
def test_where_is_numpys(x, mask):
    np.testing.assert_array_equal(run("where", mask, x, x[:1]), np.where(mask, x, x[:1]))


@pytest.mark.more("reduce_max, reduce_min")
@pytest.mark.quick
def test_the_largest_of_nan_is_nan_and_integers_reduce_too():
    x = np.array([[1.0, np.nan, 3.0], [-np.inf, 2.0, 5.0]])
    for op, expected in (("reduce_max", [np.nan, 5]), ("reduce_min", [np.nan, -np.inf])):
        np.testing.assert_array_equal(run(op, x, axis=1), expected)
        np.testing.assert_array_equal(run(op, x.T.astype("f4"), axis=0), expected)
    whole = np.array([[1, -5], [7, 2]])
    for op, expected in (("reduce_sum", [8, -3]), ("reduce_max", [7, 2]), ("reduce_min", [1, -5])):
        assert run(op, whole, axis=0).tolist() == expected and run(op, whole.T, axis=1).tolist() == expected


@pytest.mark.quick
def test_a_long_float32_sum_does_not_stop_where_its_numbers_end():
    assert run("reduce_sum", np.ones(2**25, "f4")).item() == 2**25  # one running sum would stop at 2**24


@pytest.mark.more("softmax")
@settings(max_examples=25, deadline=None)
@given(arrays.array_shapes(max_dims=3, min_side=0, max_side=40), DTYPES, st.sampled_from([0, 1, 30, 1000]))
def test_softmax_its_logarithm_and_their_gradients(shape, dtype, scale):
    draw = np.random.default_rng(math.prod(shape))
    x, dy = (draw.normal(size=shape).astype(dtype) for _ in "12")
    x *= scale
    z = x.astype("f8") - x.max(axis=-1, keepdims=True, initial=-np.inf)
    with np.errstate(divide="ignore"):  # of rows without numbers
        log_y = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    y = np.exp(log_y)
    tolerance = (1e-5, 1e-6 * max(1, scale)) if dtype == "f4" else (1e-11, 1e-12)
    for op, inputs, expected in (
        ("softmax", [x], y),
        ("log_softmax", [x], log_y),
        ("softmax_grad", [dy, y.astype(dtype)], y * (dy - (dy * y).sum(axis=-1, keepdims=True))),
        ("log_softmax_grad", [dy, log_y.astype(dtype)], dy - y * dy.sum(axis=-1, keepdims=True)),
    ):
        result = run(op, *inputs)
        assert result.shape == shape and result.dtype == dtype
        np.testing.assert_allclose(result, expected, *tolerance, err_msg=op)


@pytest.mark.more("transpose")
@settings(max_examples=25, deadline=None)
@given(
    arrays.arrays(
        DTYPES | st.just(np.dtype("i8")), arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
    ),
    st.data(),
)
def test_transpose(x, data):
    axes = data.draw(st.none() | st.permutations(range(x.ndim)).map(tuple))
    np.testing.assert_array_equal(run("transpose", x, axes=axes), x.transpose(axes))


@pytest.mark.more("cast")
@pytest.mark.parametrize("source", ["f4", "f8", "i8", "?"])
@pytest.mark.parametrize("target", ["f4", "f8", "i8", "?"])
def test_cast(source, target):
    x = np.array([[0, 1, -2.7], [1e6, 0.5, -0.0]]).astype(source)
    result = run("cast", x, dtype=target)
    assert result.dtype == target
    np.testing.assert_array_equal(result, x.astype(target))


@pytest.mark.more("scatter_add, one_hot")
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 6), st.integers(0, 20), st.sampled_from([(), (3,), (2, 2)]), DTYPES)
def test_scatter_add_and_one_hot(count, taken, shape, dtype):
    draw = np.random.default_rng(count * 100 + taken)
    rows = draw.integers(0, max(1, count), taken * (count > 0))
    x, expected = draw.normal(size=(len(rows), *shape)).astype(dtype), np.zeros((count, *shape), dtype)
    np.add.at(expected, rows, x)
    np.testing.assert_array_equal(run("scatter_add", x, rows, count=count), expected)  # NumPy adds in the same order
    np.testing.assert_array_equal(run("one_hot", rows, depth=count, dtype=dtype), np.eye(count, dtype=dtype)[rows])


def bits(counter, key):
    """Philox-4x32-10 by the paper, in Python's integers."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q % 2**32, (p >> 32) ^ d ^ m, p % 2**32
        k, m = (k + 0x9E3779B9) % 2**32, (m + 0xBB67AE85) % 2**32
    return a, b, c, d


@pytest.mark.more("philox")
@pytest.mark.parametrize(
    "words, expected",  # from kat_vectors of Random123, the library of the paper's authors
    [
        ([0] * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ([0xFFFFFFFF] * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0],
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_vectors(words, expected):
    for function in (kernels.philox, compile_cpu(kernels.philox, np.dtype("f8"))):
        assert tuple(map(int, function(*map(np.uint64, words)))) == expected
    assert bits(words[:4], words[4:]) == expected


@pytest.mark.more("random_uniform")
@settings(max_examples=30, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**62), st.integers(0, 9))
def test_random_numbers_are_a_function_of_key_and_counter(key, counter, count):
    words = [
        bits([(counter + n) % 2**32, (counter + n) >> 32, 0, 0], [key % 2**32, key % 2**64 >> 32]) for n in range(5)
    ]
    pairs = [[(x * 2**32 + y >> 11) / 2**53 for x, y in ((a, b), (c, d))] for a, b, c, d in words]
    uniform = [u for pair in pairs for u in pair][:count]
    state = np.array([key, counter])
    assert run("random_uniform", state, shape=(count,), dtype=np.float64).tolist() == uniform
    assert run("random_uniform", state, shape=(count,)).tolist() == [math.floor(u * 2**24) / 2**24 for u in uniform]
    points = [(math.sqrt(-2 * math.log(1 - u)), 2 * math.pi * v) for u, v in pairs]
    normal = [x for r, angle in points for x in (r * math.cos(angle), r * math.sin(angle))][:count]
    np.testing.assert_allclose(run("random_normal", state, shape=(count,), dtype=np.float64), normal, 1e-12, 1e-14)
    np.testing.assert_allclose(run("random_normal", state, shape=(count,)), normal, 1e-6, 1e-7)


def test_sums_of_products_run_upwards_from_zero():
    x, w = np.array([[1e16, 1.0, -1e16, 1.0]]), np.ones((4, 1))
    assert run("matmul", x, w).item() == ((0.0 + 1e16 + 1.0) - 1e16) + 1.0 == 1.0
    assert run("reduce_sum", x).item() == 1.0
    assert np.signbit(run("matmul", -np.zeros((1, 1)), np.ones((1, 1)))).item() is False
    for shape in ((3, 2), (3, 0)):  # 0.0 + -0.0 is 0.0, and so is a sum of nothing
        for axis in (0, 1):
            assert not np.signbit(run("reduce_sum", np.full(shape, -0.0), axis=axis)).any()


@pytest.mark.parametrize("shape, axis", [((5000,), 0), ((2, 5000), 1), ((5000, 2), 0)])
def test_a_long_float64_sum_runs_in_order(shape, axis):
    """However long it is: a float64 sum has the bits of a running sum (in float32, a long one may be split)."""
    x = np.random.default_rng(0).normal(size=shape)
    rows = np.moveaxis(x, axis, -1).reshape(-1, 5000).tolist()
    expected = [functools.reduce(operator.add, row, 0.0) for row in rows]
    assert run("reduce_sum", x, axis=axis).reshape(-1).tolist() == expected
    for row, total in zip(rows, expected, strict=True):  # four sums, added at the end, have other bits
        assert sum(functools.reduce(operator.add, row[k::4], 0.0) for k in range(4)) != total


@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3), (5, 2, 2), (5, 0)])
@pytest.mark.parametrize("rows", [[], [4, 0, 4], [[1, 2], [3, 4]]])
def test_gather(shape, rows):
    x, rows = np.arange(np.prod(shape), dtype="f4").reshape(shape), np.array(rows, np.int64)
    np.testing.assert_array_equal(run("gather", x, rows), x[rows])


TWICE = CPU.put(np.ones(2))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: run("ad", np.ones(1), np.ones(1)), "did you mean 'add'"),
        (lambda: run("add", np.ones(2), np.ones(3)), r"\(2,\) and \(3,\) do not broadcast"),
        (
            lambda: run("add", np.ones(2), np.ones(2, "f4")),
            r"^add: the inputs are float64\[2\] and float32\[2\], in this order; all need the same dtype, so cast one",
        ),
        (lambda: launch("add", None, np.ones(2), np.ones(2)), "works on live buffers"),
        (lambda: run("matmul", np.ones((2, 3)), np.ones((2, 3))), "inner sizes 3 and 2 differ"),
        (lambda: run("matmul", np.ones(3), np.ones((3, 1))), "two axes"),
        (lambda: run("reduce_sum", np.ones(3), axis=1), "axis 1 is not an axis"),
        (lambda: run("gather", np.ones((3, 1)), np.array([3])), "out of range"),
        (lambda: run("gather", np.ones((3, 1)), np.array([-1])), "out of range"),
        (lambda: run("gather", np.ones((3, 1)), np.array([1.0])), "float64"),
        (lambda: run("add", np.ones(2), np.ones(2), out=CPU.alloc((3,), "f8")), r"live buffer float64\[2\] on cpu:0"),
        (lambda: run("add", np.ones(2), np.ones(2), out=CPU.alloc((2,), "f4")), "float32"),
        (lambda: run("relu", np.ones(2, "i8")), "no kernel for int64"),
        (lambda: run("negative", np.ones(4), shape=(1,)), "do not fit a result"),
        (lambda: launch("sgd", CPU.put(np.ones(4)), CPU.put(np.ones((9, 4))), rate=0.1), "do not fit a result"),
        (lambda: launch("sgd", TWICE, rate=0.1), "takes w, dw, rate"),
        (lambda: launch("sgd", TWICE, TWICE, rate=0.1), "overwrite"),
        (lambda: run("reduce_sum", np.ones((2, 2, 2)), axis=(0, 2)), "not neighbours"),
        (lambda: run("reduce_sum", np.ones((2, 2)), axis=(0, -2)), "each named once"),
        (lambda: run("reduce_sum", np.ones((2, 2)), axis=[0]), "attributes are numbers"),
        (lambda: run("matmul", np.ones((2, 2)), np.ones((2, 2)), transpose=True), "argument 'transpose'"),
        *more(
            "several devices",
            (lambda: run("add", np.ones(2), np.ones(2), out=pool(cpus=2)["cpu:1"].alloc((2,), "f8")), "cpu:0"),
            (
                lambda: launch("add", None, CPU.put(np.ones(2)), pool(cpus=2)["cpu:1"].put(np.ones(2))),
                "cpu:0 and cpu:1",
            ),
        ),
        *more(
            "these ops",
            (lambda: run("transpose", np.ones((2, 3)), axes=(0, 0)), "in another order"),
            (lambda: run("cast", np.array([np.nan]), dtype="i8"), "has no place in int64"),
            (lambda: run("cast", np.array([2.0**63]), dtype="i8"), "has no place in int64"),
            (lambda: run("cast", np.ones(2), dtype="f2"), "expected float32"),
            (lambda: run("one_hot", np.array([3]), depth=3), "out of range"),
            (lambda: run("scatter_add", np.ones((1, 2)), np.array([5]), count=3), "out of range"),
            (lambda: run("scatter_add", np.ones((1, 2)), np.array([0, 0]), count=3), "one for each row"),
            (lambda: run("random_uniform", np.array([1]), shape=(2,)), "a key and a counter"),
            (lambda: run("random_normal", np.array([1, 2]), shape=(2,), dtype="i8"), "float32 or float64"),
            (lambda: run("softmax", np.ones(())), "rows of one shape"),
        ),
    ],
)
def test_wrong_launches_are_refused(call, message):
    with pytest.raises((LookupError, TypeError, ValueError), match=message):
        call()


def test_freed_and_aliased_buffers_are_refused():
    x, freed = CPU.put(np.ones(2)), CPU.put(np.ones(2))
    assert launch("add", None, x, freed).numpy().tolist() == [2, 2]  # from now on there is a plan for them
    CPU.free(freed)
    with pytest.raises(TypeError, match="live buffers.*freed"):
        launch("add", None, x, freed)
    with pytest.raises(ValueError, match="needs a live buffer"):
        launch("add", freed, x, x)
    y = CPU.put(np.full(2, 3.0))
    for out, *inputs in ((x, x, x), (x, x, y), (x, y, x)):
        with pytest.raises(ValueError, match="overwrite no input"):
            launch("add", out, *inputs)
    assert x.numpy().tolist() == [1, 1] and y.numpy().tolist() == [3, 3]


def test_launches_and_bytes_are_counted():
    run("add", np.ones((10, 4)), np.ones((1, 4)))
    assert counted(lambda: [run("add", np.ones((10, 4)), np.ones((1, 4))) for _ in "12"]) == (2, 2 * 8 * (40 + 40 + 4))


def test_a_gather_counts_only_the_rows_that_it_reads():
    x, rows = CPU.put(np.ones((100, 3))), CPU.put(np.array([7, 0]))
    moved = 8 * (2 * 3 + 2 * 3 + 2)  # the rows of x, those of the result, and their numbers
    assert counted(lambda: launch("gather", None, x, rows)) == (1, moved)


KEPT = """
import sys
import numba
import numpy as np
from numba import njit
from levels.hardware import exp
from levels.support import compiled

def hash_of(factor=1.0, times=1.0, scale=None):
    scope = {"__name__": "__main__", "njit": njit, "exp": exp, "FACTOR": factor, "scale": scale}
    exec(f"def inner(x):\\n    return x * {times}", scope)
    exec("@njit\\ndef callee(x):\\n    return inner(x) + exp(-1e4)", scope)
    exec(f"def mine(x):\\n    return callee(x) * FACTOR{' * scale' if scale else ''}", scope)
    return compiled.compile_cpu(scope["mine"], np.dtype("f8")).py_func.hash

print(hash_of(), hash_of(times=2.0), hash_of(factor=3.0), hash_of(scale=5.0), hash_of(scale=7.0), hash_of(scale=sys))

def loaded(self, types, result):
    raise AssertionError("this program was to be in the cache")

def calls_much(out, x):
    kept = [x[0]]
    kept.append(np.sort(x)[0] + np.random.random() * 0.0)
    if kept[1] > 100.0:
        raise ValueError("too large")
    print(hash("abc") * 0.0)
    out[0] = kept[0] + kept[1] + np.zeros(3).sum()

def asks_numba(out, x):
    out[0] = numba.get_num_threads()

if sys.argv[1] == "again":
    compiled._Cache.save_overload = loaded
out, x = np.zeros(1), np.array([3.0, 1.0])
compiled.compile_cpu(calls_much, x.dtype)(out, x)
assert out[0] == 4.0
compiled._Cache.save_overload = lambda *given: None
program = compiled.compile_cpu(asks_numba, x.dtype)
program(out, x)
assert out[0] >= 1.0 and program.py_func.hash is None
"""


def test_a_kept_program_runs_in_a_process_that_compiles_nothing(tmp_path):
    """It finds each address that it calls. One that numba registers only while it compiles is not kept: it would crash.

    It is found by its hash, which is another if the program, a callee or a global is another: each in turn. A program that
    reads a module, whose attributes may change, has none, and is not kept.
    """
    found = set()
    for run, seed in (("first", "1"), ("again", "2")):
        env = environment(ROOT) | {"LEVELS_CACHE": str(tmp_path), "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", KEPT, run], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout.splitlines()[0])
    (hashes,) = found
    assert len({*hashes.split()}) == 6 and hashes.endswith(" None")


def one_row_too_many(out, x, w):
    for i in range(out.shape[0] + 1):
        for j in range(out.shape[1]):
            out[i, j] = 0.0


@njit
def row_beyond(out):
    out[out.shape[0], 0] = 0.0


def beyond_in_a_callee(out, x, w):
    row_beyond(out)


def beside(out, x, w):
    for i in range(-1, out.shape[0] - 1):  # a negative index counts from the end: right for all but no rows at all
        for j in range(out.shape[1]):
            out[i, j] = 0.0


@pytest.mark.more("the trials of a kernel")
@pytest.mark.parametrize(
    "op, function, message",
    [
        ("relu", lambda x: x * (x > 0), r"relu\(-inf\) gives nan, and should give 0.0"),
        ("relu", lambda x: x if x > 0.0 else 0.0, r"relu\(nan\) gives 0.0, and should give nan"),
        ("sgd", lambda w, dw, rate: w + rate * dw, r"refused, sgd\("),
        ("matmul", one_row_too_many, "shapes .* it fails: index is out of bounds"),
        ("matmul", beyond_in_a_callee, "shapes .* it fails: index is out of bounds"),
        ("matmul", beside, r"matmul\(0\.\d+, -0\.\d+\) gives 0.0, and should give -0"),
        ("exp", lambda x: nowhere(x), "it fails"),  # noqa: F821
    ],
)
def test_a_wrong_kernel_is_refused_with_a_counter_example(op, function, message):
    before = KERNELS[op, "cpu"]
    with pytest.raises(ValueError, match=message), use(op, "cpu", function):
        raise AssertionError("it was accepted")
    assert KERNELS[op, "cpu"] is before


@pytest.mark.parametrize("op", sorted({op for op, _ in KERNELS}))
def test_every_kernel_passes_its_own_trials(op):
    with use(op, "cpu", KERNELS[op, "cpu"]):
        pass


def test_every_op_has_trials():
    assert all(kernels.verify.cases_of(op) for op, _ in KERNELS)


def reads_the_row_after(out, x, w):
    out[:] = w[w.shape[0], 0]


def test_only_the_kernel_in_a_use_block_pays_for_checked_bounds():
    """After the block kernels are compiled as before it: this one reads a row of the larger array that w is a part of."""

    def result():
        w = CPU.put(np.ones((2, 2)))
        w.data = np.array([[1.0, 1.0], [1.0, 1.0], [7.0, 7.0]])[:2]
        return launch("matmul", None, CPU.put(np.ones((2, 2))), w).numpy()

    before = KERNELS["matmul", "cpu"]
    with use("matmul", "cpu", before):
        pass
    try:
        kernel("matmul", "cpu")(reads_the_row_after)
        assert (result() == 7.0).all()
    finally:
        kernel("matmul", "cpu")(before)
    with pytest.raises((IndexError, ValueError), match="out of bounds"), use("matmul", "cpu", reads_the_row_after):
        result()
    assert (result() == 2.0).all()


@pytest.mark.more("kernels that follow what they call")
@pytest.mark.parametrize("decorator", [njit, lambda function: function])
def test_a_kernel_is_compiled_again_when_what_it_calls_is_rebound(decorator):
    """A function two calls away, and a number: in a cell (here: a namespace), without entering the kernel again."""
    scope = {"njit": decorator, "scalar": kernels.scalar, "__name__": "__main__"}
    exec("STEP = 1.0\n@njit\ndef inner(x):\n    return x + STEP\n@njit\ndef outer(x):\n    return inner(x)", scope)
    exec("@scalar('test_op')\ndef test_op(x):\n    return outer(x)", scope)
    try:
        assert run("test_op", np.zeros(2)).tolist() == [1, 1]
        exec("@njit\ndef inner(x):\n    return x - STEP", scope)
        assert run("test_op", np.zeros(2)).tolist() == [-1, -1]
        exec("STEP = 5.0\n@njit\ndef inner(x):\n    return x - STEP\n@njit\ndef outer(x):\n    return inner(x)", scope)
        assert run("test_op", np.zeros(2)).tolist() == [-5, -5] and run("test_op", np.zeros(3)).tolist() == [-5, -5, -5]
        # a kernel on whole arrays, whose callee was compiled, and whose callee's callee was changed, before its first call
        scope["kernel"] = lambda function: kernel("test_op 2", planner=kernels.reductions.plan_rows)(function)
        exec("@njit\ndef inner(x):\n    return x + STEP\n@njit\ndef outer(x):\n    return inner(x)", scope)
        exec("@kernel\ndef last(out, x):\n    out[0, 0] = outer(x[0, 0])", scope)
        assert scope["outer"](0.0) == 5.0
        exec("@njit\ndef inner(x):\n    return x * 0.0 - STEP", scope)
        assert run("test_op 2", np.ones(1)).item() == -5.0
    finally:
        for table in (KERNELS, kernels.PLANNERS, kernels.ELEMENTWISE):
            for key in [key for key in table if "test_op" in str(key)]:
                del table[key]


@pytest.mark.more("matmul_rows")
@pytest.mark.parametrize("turns", products.TURNS)
def test_the_tiles_give_the_record_to_the_bit(turns):
    """Any shape, also with edges that no tile fits, and a k so long that it is packed in parts."""
    draw, program = np.random.default_rng(0), compile_cpu(kernels.matmul.matmul_rows, np.dtype("f8"))
    shapes = [(0, 3, 2), (3, 0, 2), (1, 1, 1), (17, 1100, 19), *draw.integers(1, 90, (40, 3)).tolist()]
    for m, k, n in shapes:
        x, w = products.operands(draw, ((), ()), (m, k, n), turns, "f8")
        whole = np.full((m + 2, n), 7.0)
        program(whole[1:-1], x, w, *turns, 0)
        assert (whole[1:-1] == products.expected(x, w, turns)).all() and (whole[[0, -1]] == 7).all()


@pytest.mark.parametrize("m, k, n", [*itertools.product((0, 1, 3, 21), (0, 1, 40), (0, 1, 3, 70)), (20, 512, 9)])
def test_small_and_skinny_products_are_those_of_the_record(m, k, n):
    """Whatever program the plan chose: float64 to the bit, float32 to 1e-5 of the sums of absolute products."""
    draw = np.random.default_rng(m * 10_000 + k * 100 + n)
    for turns, dtype in itertools.product(products.TURNS, ("f8", "f4")):
        x, w = products.operands(draw, ((), ()), (m, k, n), turns, dtype)
        expected, size = (products.expected(*given, turns) for given in ((x, w), (np.abs(x), np.abs(w))))
        whole, out = np.full((m + 2, n), 7, dtype), CPU.alloc((m, n), dtype)
        out.data = whole[1:-1]
        launch("matmul", out, CPU.put(x), CPU.put(w), transpose_x=turns[0], transpose_w=turns[1])
        assert (np.abs(out.data - expected) <= (0 if dtype == "f8" else 1e-5 * size)).all()
        assert (whole[[0, -1]] == 7).all()


@pytest.mark.more("micro_kernel")
@pytest.mark.parametrize("machine, features", [("arm64", ()), ("x86_64", ("avx2",)), ("x86_64", ("avx512f",))])
def test_the_tiles_for_other_processors_give_the_same_bits(machine, features):
    """Their vectors and tiles, on this processor: LLVM computes a longer vector in pieces."""
    program = f"""if True:
        import platform
        import numpy as np
        from llvmlite import binding
        import importlib
        from levels_more import hardware
        from levels_more.kernels import launch, matmul, matmul_ikj, micro_kernel
        found = binding.get_host_cpu_features
        platform.machine, binding.get_host_cpu_features = lambda: {machine!r}, lambda: dict.fromkeys({features!r}, True)
        importlib.reload(micro_kernel)  # which alone is told of another machine
        matmul_rows = importlib.reload(matmul).matmul_rows
        binding.get_host_cpu_features = found
        assert micro_kernel.VECTOR_BYTES == {64 if "avx512f" in features else 32 if "avx2" in features else 16}
        from levels.support.compiled import compile_cpu
        plain, packed = (compile_cpu(function, np.dtype("f8")) for function in (matmul_ikj, matmul_rows))
        cpu, draw = hardware.pool()["cpu:0"], np.random.default_rng(0)
        for m, k, n in ((21, 40, 70), (3, 9, 17), (5, 7, 1), (37, 20, 12)):
            for flip_x, flip_w in ((False, False), (True, True)):
                x, w = draw.normal(size=(m, k)), draw.normal(size=(k, n))
                expected, tiles = np.empty((2, m, n))
                plain(expected, x, w)
                x, w = np.ascontiguousarray(x.T if flip_x else x), np.ascontiguousarray(w.T if flip_w else w)
                packed(tiles, x, w, flip_x, flip_w, 0)
                small = launch("matmul", None, cpu.put(x), cpu.put(w), transpose_x=flip_x, transpose_w=flip_w)
                assert (tiles == expected).all() and (small.numpy() == expected).all(), (m, k, n, flip_x, flip_w)
    """
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(ROOT), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_large_products_have_the_same_bits_for_any_number_of_threads(dtype, monkeypatch):
    monkeypatch.setattr(tiles, "WORTH_PACKING", 1)
    draw, results = np.random.default_rng(0), []
    x, w = draw.normal(size=(150, 70)).astype(dtype), draw.normal(size=(70, 90)).astype(dtype)
    before = numba.get_num_threads()
    try:
        for threads in range(1, numba.config.NUMBA_NUM_THREADS + 1):
            numba.set_num_threads(threads)
            results.append(run("matmul", x, w).tobytes())
    finally:
        numba.set_num_threads(before)
    assert len(set(results)) == 1
    np.testing.assert_allclose(run("matmul", x, w), x.astype("f8") @ w.astype("f8"), rtol=1e-3, atol=1e-4)


@pytest.mark.more("other programs for large products")
def test_a_matmul_of_ones_own_runs_for_products_of_any_size():
    def program(n):
        launch("matmul", None, CPU.put(np.ones((n, n))), CPU.put(np.ones((n, n))))
        return getattr(list(PLANS.values())[-1].compiled, "__qualname__", "")

    with use("matmul", "cpu", three_loops):
        assert all(program(n).startswith("plan_matmul") for n in (4, 40, 200))
    assert not any(program(n).startswith("plan_matmul") for n in (4, 40, 200))


def three_loops(out, x, w):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total


def test_how_a_function_is_compiled_and_what_stands_for_another_is_part_of_its_hash(monkeypatch):
    def compiled(way):
        name, *rest = way
        return compile_cpu(KERNELS["sigmoid", "cpu"], np.dtype(name), *rest)

    ways = [("f8",), ("f4",), ("f8", ("reassoc",)), ("f8", (), True)]
    programs = [*map(compiled, ways)]
    hashes = {program.py_func.hash for program in programs}
    assert len(hashes) == len(ways) and None not in hashes and compiled(ways[0]) is programs[0]
    monkeypatch.setitem(SUBSTITUTIONS, scaled, lambda dtype: lambda x, n: x)
    assert compiled(ways[0]).py_func.hash not in hashes


def test_constants_and_functions_called_take_the_dtype():
    """1/3 in float32 and in float64, as a constant, a global, in a closure, and in a function that is called."""
    scope = {"__name__": "__main__", "THIRD": 1 / 3}
    exec("def inner():\n    return THIRD\ndef outer():\n    return inner() + 0.1, (0.1, inner())", scope)
    for dtype in (np.float32, np.float64):
        third, tenth = dtype(1 / 3), dtype(0.1)
        assert compile_cpu(scope["outer"], np.dtype(dtype))() == (third + tenth, (tenth, third))
        factor = 1 / 3
        assert compile_cpu(lambda x: x * factor, np.dtype(dtype))(third) == third * third  # noqa: B023


def test_a_plan_is_known_by_the_types_of_attributes_too():
    """0, 0.0 and False are equal, and so are 1 and True: what is refused at first is refused later."""
    x = CPU.put(np.ones((2, 3)))
    for _ in range(2):
        assert launch("reduce_sum", None, x, axis=0, keepdims=True).shape == (1, 3)
        for wrong in ({"axis": 0.0}, {"axis": 0, "keepdims": 1}):
            with pytest.raises((TypeError, ValueError), match="axis 0.0|keepdims is 1"):
                launch("reduce_sum", None, x, **wrong)


def test_a_number_is_no_part_of_a_plan():
    """A schedule changes the rate in each step: one plan, and so one program, serves all rates."""
    w, dw = CPU.put(np.zeros(7)), CPU.put(np.ones(7))
    plans = [kernels.planned("sgd", [w, dw], {"rate": rate}) for rate in (0.5, 0.25, np.float64(2.0), -0.0)]
    assert all(plan is plans[0] for plan in plans)
    for rate in (0.5, 0.25):
        launch("sgd", w, dw, rate=rate)
    assert w.numpy().tolist() == [-0.75] * 7 and list(PLANS.values()).count(plans[0]) == 1


def test_what_finishes_plans_sees_each_and_may_replace_it():
    """Each new plan goes through all finishers in their order, and what the last returns is launched."""
    x, y = CPU.put(np.ones((3, 1))), CPU.put(np.full((3, 2), 2.0))
    seen, plain = [], kernels.plan("add", [x, y], {})

    def first(plan, op, function, specs, attrs):
        seen.append((plan.op, op, function is KERNELS["add", "cpu"], specs == [x.spec, y.spec], attrs))
        return plain

    def second(plan, *given):
        seen.append(plan is plain)
        return plan

    PLANS.clear()
    kernels.PLAN_FINISHERS.extend([first, second])
    try:
        for _ in range(2):
            assert launch("add", None, x, y).numpy().tolist() == [[3, 3]] * 3
        assert kernels.planned("add", [x, y], {}) is plain
        assert seen == [("add", "add", True, True, {}), True]
    finally:
        del kernels.PLAN_FINISHERS[-2:]
        PLANS.clear()
