"""Operands of several dtypes in one expression, as in PyTorch and NumPy. (Level 3 refuses them: it asks for a cast.)"""

import numpy as np

from levels.low_level import DTYPES, Operators, as_tensor, constant
from levels_more.low_level.ops import cast

ORDER = sorted(DTYPES, key=lambda dtype: ("bif".index(dtype.kind), dtype.itemsize))  # each fits into those after it
NUMBERS = {  # what Python's are, where they decide
    bool: np.dtype(bool),
    int: np.dtype("int64"),
    float: np.dtype("float32"),
}


def _rank(x):
    """The rank of an operand's dtype: 2 for a tensor with axes, 1 for a tensor of one number, 0 for a Python number."""
    return 2 if isinstance(x, Operators) and x.shape else int(isinstance(x, Operators))


def common(x, y):
    """The dtype of x and y together: the widest of the highest rank.

    A lower rank decides where it holds floats beside integers, or integers beside bools. They are tensors or numbers;
    raises TypeError for others.
    """
    best = None
    for z in (x, y):
        if not isinstance(z, (Operators, *NUMBERS, np.number, np.bool_)):
            raise TypeError(f"an operand is {z!r:.60}; expected a tensor or a number")
    for rank in (2, 1, 0):
        kinds = [z.dtype if rank else NUMBERS[type(np.asarray(z).item())] for z in (x, y) if _rank(z) == rank]
        wide = max(kinds, key=ORDER.index, default=None)
        if wide and (best is None or "bif".index(wide.kind) > "bif".index(best.kind)):
            best = wide
    return best


def beside(x, y):
    """Both in the dtype that they have in common. x and y are tensors, arrays or Python numbers, which stay numbers.

    Raises TypeError for others.
    """
    pair = [constant(z) if isinstance(z, np.ndarray) else z for z in (x, y)]
    best = common(*pair)
    number = {"b": bool, "i": int, "f": float}[best.kind]
    return [z if _rank(z) and z.dtype == best else cast(z, best) if _rank(z) else number(z) for z in pair]


def both(function):
    """A function of two operands, x and y, as one that takes them in different dtypes."""
    return lambda x, y: function(*beside(x, y))


def of_kinds(function, of_bools):
    """The same, with a function of its own for two bools: their sum is `or`, their product `and`."""

    def run(x, y):
        x, y = beside(x, y)
        bools = all(z.dtype == bool for z in (x, y) if isinstance(z, Operators))
        return of_bools(*map(as_tensor, (x, y))) if bools else function(x, y)

    return run


def floats(x):
    """A tensor x as floats: whole numbers and bools in the dtype of Python's floats."""
    return x if not isinstance(x, Operators) or x.dtype.kind == "f" else cast(x, NUMBERS[float])
