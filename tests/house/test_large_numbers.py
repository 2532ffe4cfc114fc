"""Whole numbers are kept to the last digit, or refused: none wraps, none is rounded on the way in, wherever it comes in."""

import numpy as np
import pytest

from levels import low_level as core
from levels_more import low_level, tensorflow, torch
from levels_more.checks import as_int64
from levels_more.high_level import Model
from levels_more.high_level.rows import inputs_of
from levels_more.high_level.targets import as_classes
from levels_more.mid_level import Dataset

NUMBERS = [2**24 + 1, -(2**24) - 1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]


def from_file(number, folder):
    path = folder / "numbers.csv"
    path.write_text(f"n\n{number}\n1\n")
    return next(iter(Dataset.from_csv(str(path))))["n"]


class Whole(Model):
    def call(self, x):
        return x


WAYS = {  # one whole number in, as Python has it or as an array of one; and out again
    "constant": lambda n, array, _: core.constant(array),
    "constant of a list": lambda n, array, _: core.constant([n]),
    "constant of a number": lambda n, array, _: core.constant(n),
    "levels_more tensor": lambda n, array, _: low_level.tensor(array),
    "Dataset": lambda n, array, _: next(iter(Dataset.from_tensor_slices(array))),
    "Dataset of a list": lambda n, array, _: next(iter(Dataset.from_tensor_slices([n]))),
    "Dataset, in batches": lambda n, array, _: next(iter(Dataset.from_tensor_slices(array).batch(1))),
    "from_csv": lambda n, array, folder: from_file(n, folder),
    "rows of fit": lambda n, array, _: inputs_of(Whole(), array)[0][0],
    "targets of fit": lambda n, array, _: as_classes(array),
    "torch.tensor": lambda n, array, _: torch.tensor([n]),
    "torch.tensor of an array": lambda n, array, _: torch.tensor(array),
    "tf.constant": lambda n, array, _: tensorflow.constant([n]),
    "tf.constant of an array": lambda n, array, _: tensorflow.constant(array),
    "tf.data": lambda n, array, _: next(iter(tensorflow.data.Dataset.from_tensor_slices(array))),
    "tf.cast": lambda n, array, _: tensorflow.cast(array, "int64"),
}


def out(x):
    """The one number, as Python's."""
    return np.ravel(np.asarray(x.numpy() if hasattr(x, "numpy") else x)).item()


@pytest.mark.parametrize("way", WAYS)
def test_a_whole_number_is_kept_or_refused(way, tmp_path):
    for number in NUMBERS:
        has_a_place = -(2**63) <= number < 2**63
        try:
            found = out(WAYS[way](number, np.array([number]), tmp_path))
        except (TypeError, ValueError, OverflowError) as error:
            assert not has_a_place, f"{number} has a place in int64, and was refused: {error}"
            continue
        if isinstance(found, int):
            assert found == number
        else:  # a float, which says so
            assert not has_a_place and found == pytest.approx(number, 1e-7)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4"])
def test_narrow_whole_numbers_are_what_they_were(dtype):
    array = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    assert [out(x) for x in Dataset.from_tensor_slices(array)] == array.tolist()
    assert [out(x) for x in tensorflow.data.Dataset.from_tensor_slices(array)] == array.tolist()
    assert torch.tensor(array).tolist() == array.tolist() == tensorflow.constant(array).numpy().tolist()


@pytest.mark.parametrize("rows, inner", [(1, 1), (3, 5), (17, 40), (64, 40)])
def test_a_product_of_whole_numbers_is_exact(rows, inner):
    random = np.random.default_rng(0)
    x, w = random.integers(-(2**40), 2**40, (rows, inner)), random.integers(-5, 5, (inner, rows))
    for run in (lambda x, w: x @ w, low_level.function(lambda x, w: x @ w)):
        assert np.array_equal(run(core.constant(x), core.constant(w)).numpy(), x @ w)
    assert np.array_equal((torch.tensor(x) @ torch.tensor(w)).tolist(), x @ w)
    big = x * 2**13 + 1  # beyond 2^53
    assert np.array_equal(tensorflow.matmul(big, w).numpy(), big @ w)
    assert np.array_equal(tensorflow.matmul(big, w.T, transpose_b=True).numpy(), big @ w)


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**61 + 1, -7])
def test_a_mean_of_whole_numbers_is_one(number):
    """Cut off behind the point, as TensorFlow has it."""
    numbers = tensorflow.constant([[number, number], [number, number + 1]], "int64")
    assert tensorflow.reduce_mean(numbers, 1).numpy().tolist() == [number, number + (number < 0)]


def test_a_float_at_the_lower_end_of_int64_fits():
    """The upper end, 2⁶³, does not."""
    assert as_int64(np.array([-(2.0**63), 2.0**63 - 1024])).tolist() == [-(2**63), 2**63 - 1024]
    for number in (2.0**63, -(2.0**63) - 2048, np.nan):
        with pytest.raises(OverflowError, match="does not fit in int64"):
            as_int64(np.array([number]))


@pytest.mark.parametrize("dtype", ["f8", np.float64, np.dtype("f8")], ids=["text", "type", "dtype"])
def test_a_tensor_gets_the_dtype_that_is_asked_for(dtype):
    """NumPy's float64 dtype says that it equals None."""
    x = core.constant([0.5])
    assert x.dtype == "f4" and core.constant(x, dtype).dtype == "f8"
    assert tensorflow.constant(x, dtype=tensorflow.float64).dtype == "f8"
    assert core.constant(x).dtype == core.constant(x, np.dtype("f4")).dtype == "f4"
