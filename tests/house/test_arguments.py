"""Shapes, axes, counts and row numbers may be Python's, NumPy's or tensors: each gives what Python's number gives, or is refused."""

import numpy as np
import pytest

from levels_more import low_level as low
from levels_more import tensorflow as tf
from levels_more import torch
from levels_more.mid_level import Dataset, Embedding

KINDS = {  # a whole number as it comes
    "np.int64": np.int64,
    "np.uint8": np.uint8,
    "array of no axis": np.array,
    "tensor": low.constant,
}
SHAPES = {  # a shape as it comes
    "list": list,
    "array": np.array,
    "tensor": low.constant,
    "NumPy's numbers": lambda shape: tuple(map(np.int64, shape)),
    "tensors": lambda shape: tuple(map(low.constant, shape)),
}
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def along(name):
    """A function of level 3 as one of an axis."""
    return lambda n: getattr(low, name)(low.constant(X), n)


NUMBERS = {  # called with the number 1
    **{f"reduce_{name}": along(f"reduce_{name}") for name in ("sum", "mean", "max", "min", "std", "variance")},
    **{name: along(name) for name in ("argmax", "argmin", "softmax", "log_softmax", "expand_dims")},
    "squeeze": lambda n: low.squeeze(low.constant(X[:, :1]), n),
    "swapaxes": lambda n: low.swapaxes(low.constant(X), n, 0),
    "concat": lambda n: low.concat([low.constant(X), low.constant(X)], n),
    "stack": lambda n: low.stack([low.constant(X), low.constant(X)], n),
    "take": lambda n: low.take(low.constant(X), [0, 1], n),
    "one_hot": lambda n: low.one_hot(low.constant([0]), n),
    "range": lambda n: low.range(n),
    "zeros": low.zeros,
    "index": lambda n: low.constant(X)[n],
    "slice": lambda n: low.constant(X)[n:],
    "batch": lambda n: next(iter(Dataset.from_tensor_slices(X).batch(n))),
    "take of a Dataset": lambda n: next(iter(Dataset.from_tensor_slices(X).take(n))),
    "skip": lambda n: next(iter(Dataset.from_tensor_slices(X).skip(n))),
    "repeat": lambda n: low.stack([*Dataset.from_tensor_slices(X).repeat(n)]),
    "shard": lambda n: next(iter(Dataset.from_tensor_slices(X).shard(2, n))),
    "tf.reduce_sum": lambda n: tf.reduce_sum(X, axis=n),
    "tf.argmax": lambda n: tf.argmax(X, axis=n),
    "tf.expand_dims": lambda n: tf.expand_dims(X, n),
    "tf.concat": lambda n: tf.concat([X, X], axis=n),
    "tf.range": lambda n: tf.range(n),
    "tf.gather": lambda n: tf.gather(X, np.array(n) if isinstance(n, np.uint8) else n),
    "torch.sum": lambda n: torch.tensor(X).sum(dim=n),
    "torch.cat": lambda n: torch.cat([torch.tensor(X), torch.tensor(X)], dim=n),
    "torch.unsqueeze": lambda n: torch.tensor(X).unsqueeze(n),
    "torch.softmax": lambda n: torch.softmax(torch.tensor(X), dim=n),
    "torch.arange": lambda n: torch.arange(n),
    "torch.zeros": lambda n: torch.zeros(n, 2),
    "torch index": lambda n: torch.tensor(X)[n],
}
OF_SHAPES = {  # called with the shape (2, 12)
    "reshape": lambda shape: low.reshape(low.constant(X), shape),
    "broadcast_to": lambda shape: low.broadcast_to(low.constant([1.0]), shape),
    "zeros": low.zeros,
    "tf.reshape": lambda shape: tf.reshape(X, shape),
    "tf.zeros": tf.zeros,
    "torch.reshape": lambda shape: torch.tensor(X).reshape(shape),
    "torch.ones": torch.ones,
}


def out(x):
    return np.asarray((x.detach() if hasattr(x, "detach") else x).numpy())


def same_or_refused(call, given, expected):
    try:
        found = out(call(given))
    except (TypeError, ValueError) as error:
        return f"refused: {error}"
    assert found.dtype == expected.dtype and np.array_equal(found, expected)
    return "same"


@pytest.mark.parametrize("name", NUMBERS)
def test_a_whole_number_is_taken_as_python_s(name):
    expected = out(NUMBERS[name](1))
    for kind, made in KINDS.items():
        told = same_or_refused(NUMBERS[name], made(1), expected)
        not_torchs = kind == "tensor" and name.startswith("torch")
        assert told == "same" or kind == "array of no axis" or not_torchs, f"{kind}: {told}"


@pytest.mark.parametrize("name", OF_SHAPES)
def test_a_shape_is_taken_as_a_tuple_is(name):
    expected = out(OF_SHAPES[name]((2, 12)))
    for kind, made in SHAPES.items():
        told = same_or_refused(OF_SHAPES[name], made((2, 12)), expected)
        assert told == "same" or name.startswith("torch"), f"{kind}: {told}"


@pytest.mark.parametrize("name", ["concat", "one_hot", "zeros", "index", "batch", "shard", "squeeze"])
def test_what_is_no_whole_number_is_refused(name):
    for number in (1.5, "1", None, np.nan, [1.5]):
        if (name, number) in (("index", None), ("squeeze", None)):  # they mean something
            continue
        with pytest.raises((TypeError, ValueError, IndexError, MemoryError, OverflowError)):
            out(NUMBERS[name](number))


@pytest.mark.parametrize("rows", [[2, 0], (2, 0), np.array([2, 0]), np.array([2, 0], np.uint8), low.constant([2, 0])])
def test_row_numbers_in_every_spelling(rows):
    layer = Embedding(3, 2)
    expected = layer(np.array([2, 0])).numpy()
    assert np.array_equal(layer(rows).numpy(), expected)
    assert np.array_equal(low.gather(low.constant(X[0]), rows).numpy(), X[0][[2, 0]])


AXES = {  # X along several axes, and the same of NumPy
    "tf.reduce_sum": (lambda axes: tf.reduce_sum(X, axis=axes), np.sum),
    "tf.math.reduce_max": (lambda axes: tf.math.reduce_max(X, axis=axes), np.max),
    "torch.sum": (lambda axes: torch.tensor(X).sum(axes), np.sum),
    "torch.mean": (lambda axes: torch.tensor(X).mean(axes), np.mean),
}


@pytest.mark.parametrize("name", AXES)
def test_several_axes_are_those_of_numpy_or_are_refused(name):
    run, of_numpy = AXES[name]
    for axes in ((0, 1), (1, 0), (-1, -2), (2,), (0, 1, 2)):
        for kind in (tuple, list, np.array, tf.constant) if name.startswith("tf.") else (tuple,):
            np.testing.assert_allclose(out(run(kind(axes))), of_numpy(X, axes), rtol=1e-6)
    for axes in ((0, 0), (0, -3), (0, 5), (0, 1, 5), (5, 6, 7), (-4,)):
        with pytest.raises((ValueError, RuntimeError), match="ax"):
            run(axes)


def test_no_axis_at_all_means_all_in_pytorch_and_none_in_tensorflow():
    assert torch.tensor(X).sum(()).item() == X.sum()
    assert np.array_equal(tf.reduce_sum(X, axis=[]).numpy(), X)


SIZES = {  # a shape that has this size in it
    "tf.zeros": lambda n: tf.zeros([n, 3]),
    "tf.zeros alone": lambda n: tf.zeros(n),
    "tf.ones": lambda n: tf.ones((n,)),
    "tf.constant": lambda n: tf.constant(0.0, shape=(n, 2)),
    "tf.reshape": lambda n: tf.reshape(X, (n, 12)),
    "torch.zeros": lambda n: torch.zeros(n, 3),
    "torch.zeros of a list": lambda n: torch.zeros([n]),
    "torch.randn": lambda n: torch.randn(n),
    "torch.reshape": lambda n: torch.tensor(X).reshape(n, 12),
    "torch.view": lambda n: torch.tensor(X).view((n, 12)),
    "torch.expand": lambda n: torch.ones(1, 2).expand(n, 2),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_is_no_whole_number_is_no_size(name):
    SIZES[name](2)
    for size in (2.0, 2.7, "2", True, None, np.nan):
        with pytest.raises((TypeError, ValueError), match="whole number|size"):
            SIZES[name](size)


def test_a_mask_that_is_none_and_nothing_to_join_are_called_so():
    for mask in ([1, 0], [1.0, 0.0]):
        with pytest.raises(TypeError, match="the mask is .*expected bools, such as x > 0.0"):
            low.where(low.constant(mask), 1.0, 2.0)
    assert low.where(low.constant([1.0, 0.0]) > 0.0, 1.0, 2.0).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="one tensor or more"):
        low.concat([])


@pytest.mark.parametrize("numbers", [range(3), np.arange(3).tolist(), np.arange(3, dtype=">i4"), bytearray([0, 1, 2])])
def test_whole_numbers_in_any_row_are_int64_in_pytorch(numbers):
    made = torch.tensor(numbers)
    assert made.dtype == torch.int64 and made.tolist() == [0, 1, 2]


@pytest.mark.parametrize("rows", [[[1], [2, 3]], [None], {1}, "a", np.ma.array([1.0, 2.0], mask=[0, 1])])
def test_what_is_no_row_of_numbers_is_refused_in_words(rows):
    with pytest.raises(TypeError, match="expected an array of numbers|mask"):
        torch.tensor(rows)
    with pytest.raises(TypeError, match="from_numpy is"):
        torch.from_numpy([1.0])
