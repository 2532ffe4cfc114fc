"""The checks of notebook 02: a scalar function, two kernels, and broadcasting."""

import math
from numbers import Real

import numpy as np

from course.reader.cases import Wrong, called
from course.reader.cases.kernels import bytes_held, kernel_ran, scalars_compiled
from course.reader.cases.plain_data import describe
from course.reader.exercises.judge import exercise

FILL = 7.5  # what a result holds before its kernel runs


def check_kernel(mine, cases):
    """Test a kernel(out, *inputs) on cases (inputs, expected, mistakes).

    It runs as Python first, because that can be interrupted, and then compiled with bounds checks.
    """
    for compiled in (False, True):
        for inputs, expected, mistakes in cases:
            shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in (expected, *inputs))
            said = f"{mine.name}({shapes}){' compiled,' * compiled}"
            out, after = mine.ask(kernel_ran, said, compiled, np.full_like(expected, FILL), list(inputs))
            if not all(map(np.array_equal, after, inputs)):
                raise Wrong(f"{said} changes an input: write into out only")
            if (out == FILL).any():
                raise Wrong(f"{said} leaves {(out == FILL).sum()} of the {out.size} places of out as they were")
            mine.compare(said, out, expected, mistakes)


@exercise("02-1", lines=4)
def hypotenuse(mine, draw):
    """√(x² + y²) of numbers, also if the squares overflow or underflow."""
    pairs = [(3.0, 4.0), (-5.0, 12.0), (8.0, -15.0), (0.0, 0.0), (0.0, 2.0), *draw.normal(size=(20, 2)).tolist()]
    pairs += [(1e25, 1e25), (2e-25, 1e-25), (1e-30, 3e30)]
    wide = [(1e200, 1e200), (3e-200, 4e-200), (1e-200, 1e200)]
    for x, y in map(np.float64, pairs + wide):
        result, _ = mine.ask(called, mine.spelled((x, y)), [x, y])
        check_hypotenuse(mine, x, y, np.float64(result) if isinstance(result, Real) else result)
    for dtype, numbers in (("f8", pairs + wide), ("f4", pairs)):
        x, y = np.array(numbers, dtype).T.copy()
        found = mine.ask(scalars_compiled, f"{mine.name}, compiled for {x.dtype},", x, y, np.full_like(x, FILL))
        for each in zip(x, y, found, strict=True):
            check_hypotenuse(mine, *each)


def check_hypotenuse(mine, x, y, result):
    """Compare one result with that of `math.hypot`."""
    real = type(x)
    with np.errstate(all="ignore"):
        mistakes = {
            "a square is too large or too small for the dtype": np.sqrt(x * x + y * y),
            "0 was divided by 0": real(math.nan),
            "the square root is missing": x * x + y * y,
            "the result is negative": -real(math.hypot(x, y)),
        }
    said = f"{mine.name}({x:.6g}, {y:.6g}) in {x.dtype}"
    mine.compare(said, result, real(math.hypot(x, y)), mistakes, near=4 * np.finfo(real).eps)


@exercise("02-2", lines=5)
def gradient_product(mine, draw):
    """dw[k, j] = Σᵢ x[i, k]·dy[i, j], with i ascending: the product xᵀ @ dy, without a transposed copy."""
    cases = []
    for rows, inputs, units in ((3, 2, 1), (4, 4, 4), (1, 3, 2), (10, 2, 5), (2, 7, 3)):
        for dtype in ("f8", "f4"):
            x, dy = draw.normal(size=(rows, inputs)), draw.normal(size=(rows, units))
            if dtype == "f4":  # whole numbers: their float32 sums are exact, with fused multiply-adds or not
                x, dy = (np.rint(4 * v).astype(dtype) for v in (x, dy))
            terms = x[:, :, None] * dy[:, None, :]
            right = np.cumsum(np.concatenate([np.zeros_like(terms[:1]), terms]), axis=0)[-1]
            mistakes = {
                "the sums start at what is in out, not at 0": right + FILL,
                "only the last row counts: add, do not overwrite": terms[-1],
                "the last row is left out": np.sum(terms[:-1], axis=0),
                "the first row is left out": np.sum(terms[1:], axis=0),
                "it divides by the rows: that is a mean": right / rows,
                "it goes downwards over i, and so rounds differently": np.cumsum(terms[::-1], axis=0)[-1],
            }
            if rows == inputs:
                mistakes["it reads x, not x transposed"] = x @ dy
            cases.append(((x, dy), right, mistakes))
    check_kernel(mine, cases)
    x, dy = draw.normal(size=(512, 32)), draw.normal(size=(512, 1))
    said = f"{mine.name}, for {describe(x)} and {describe(dy)},"
    held = mine.ask(bytes_held, said, np.empty((32, 1)), [x, dy])
    if not held < x.nbytes / 2:
        raise Wrong(f"{said} takes {held:,} bytes more, and x has {x.nbytes:,}: is x copied? Read it in place")
    mine.cases += 1


@exercise("02-3", lines=6)
def steps_of(mine, draw):
    """The stride, in numbers, along each axis of the common shape: 0 along an axis on which an array is repeated."""
    cases = [((3,), (3,)), ((3,), (2, 3)), ((3, 1), (3, 4)), ((1, 4), (10, 4)), ((2, 3), (2, 3)), ((), (2, 3))]
    cases += [((2, 3, 4), (2, 3, 4)), ((2, 1, 4), (5, 2, 3, 4)), ((1, 1), (6, 6)), ((4, 4), (2, 4, 4))]
    for _ in range(10):
        common = tuple(draw.integers(2, 6, size=draw.integers(1, 5)).tolist())
        shape = tuple(size if draw.random() < 0.6 else 1 for size in common)[draw.integers(0, 2) :]
        cases.append((shape, common))
    for shape, common in cases:
        own = lying(shape)
        missing = len(common) - len(shape)
        right = [0] * missing + [step * (size > 1) for size, step in zip(shape, own, strict=True)]
        mistakes = {
            "it aligns the shapes at the left": [*right[missing:], *[0] * missing],
            "it moves along an axis of size 1, although that is repeated": [0] * missing + own,
            "it takes the steps of the common shape": lying(common),
            "it multiplies the sizes before an axis, not those after it": [0] * missing
            + [step * (size > 1) for size, step in zip(shape, lying(shape[::-1])[::-1], strict=True)],
        }
        mine.gives((shape, common), right, mistakes)


def lying(shape):
    """The stride, in numbers, along each axis of a contiguous array of that shape."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


@exercise("02-4", lines=11)
def sum_by_fours(mine, draw):
    """out[i] = Σₖ x[i, k] in four sums side by side, (a + b) + (c + d), then the rest of the row one by one."""
    cases = []
    for dtype in ("f8", "f4"):
        for rows, n in ((1, 4), (2, 8), (3, 5), (2, 7), (2, 3), (1, 0), (4, 50)):
            x = draw.normal(size=(rows, n)).astype(dtype)
            whole = n // 4 * 4
            lanes = np.zeros((rows, 4), dtype)
            for k in range(0, whole, 4):
                lanes = lanes + x[:, k : k + 4]
            a, b, c, d = lanes.T
            right = (a + b) + (c + d)
            in_a_row = ((a + b) + c) + d
            lost = right
            for k in range(whole, n):
                right = right + x[:, k]
                in_a_row = in_a_row + x[:, k]
            mistakes = {
                "the rest of a row is left out": lost,
                "the last number is left out": lost if n - whole == 1 else (),
                "it adds in one sum, from left to right": np.cumsum(np.c_[np.zeros(rows, dtype), x], axis=1)[:, -1],
                "the four sums are added in another order": in_a_row,
                "the sums are not reset to 0 for a new row": np.cumsum(right),
            }
            cases.append(((x,), right, mistakes))
    check_kernel(mine, cases)
