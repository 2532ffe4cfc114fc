"""Random numbers for cases, with the special values that a function's contract allows."""

import numpy as np

SPECIAL = 0.0, -0.0, np.inf, -np.inf, np.nan


def drawn(draw, *dtypes, special=SPECIAL, **shapes):
    """Draw arrays of these shapes, and yield (the case in words, array, array, …). Of the shape (), they are numbers.

    First one case for each dtype. Then, for each array, one for each special value: its first number is that value, and
    so is one more. Of each other array the first number is 0.0, because 0.0 times an infinity is NaN.
    """
    numbers = {dtype: f"{np.dtype(dtype)} numbers, drawn" for dtype in dtypes or ("f8",)}
    rounds = [(said, dtype, "", 0.0) for dtype, said in numbers.items()]
    rounds += [(f"{x} holds {value}", "f8", x, value) for x in shapes for value in special]
    for said, dtype, where, value in rounds:
        arrays = {name: draw.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
        for name, array in arrays.items():
            if name == where and array.size:
                array.flat[[0, draw.integers(array.size)]] = value
            elif where and array.ndim:
                array.flat[:1] = 0.0
        yield said, *(array if array.ndim else array.item() for array in arrays.values())
