"""PyTorch's dtypes, and which of them the result of two operands has.

(Level 3 raises an error for two dtypes, which asks for a cast.)
"""

import numpy as np

from levels.low_level import DTYPES, Operators, as_tensor, constant
from levels_more import low_level as low

ORDER = sorted(DTYPES, key=lambda dtype: ("bif".index(dtype.kind), dtype.itemsize))  # bool, int64, float32, float64
NUMBERS = {  # the dtypes of Python numbers, if no tensor decides
    bool: np.dtype(bool),
    int: np.dtype("int64"),
    float: np.dtype("float32"),
}


class dtype:
    """A dtype with PyTorch's name: one object for each dtype of NumPy, which NumPy accepts in its place."""

    known = {}

    def __new__(cls, kind):
        kind = np.dtype(kind)
        self = cls.known.setdefault(kind, super().__new__(cls))
        self.dtype = kind
        return self

    def __reduce__(self):
        return dtype, (self.dtype.str,)

    kind = property(lambda self: self.dtype.kind)
    itemsize = property(lambda self: self.dtype.itemsize)

    def __eq__(self, other):
        return self.dtype == other

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return f"torch.{self.dtype}"


def _rank(x):
    """The rank of an operand's dtype: 2 for a tensor with axes, 1 for a tensor of one number, 0 for a Python number."""
    return 2 if isinstance(x, Operators) and x.shape else int(isinstance(x, Operators))


def common(x, y):
    """Return the common dtype of x and y, tensors or numbers: the widest dtype of the highest rank (see `_rank`).

    A lower rank decides if its kind is higher: floats beside integers, or integers beside bools. Raises TypeError for
    other operands.
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
    """Return x and y in their common dtype: tensors and arrays as tensors, Python numbers as Python numbers.

    Raises TypeError for other operands.
    """
    pair = [constant(z) if isinstance(z, np.ndarray) else z for z in (x, y)]
    best = common(*pair)
    number = {"b": bool, "i": int, "f": float}[best.kind]
    return [z if _rank(z) and z.dtype == best else low.cast(z, best) if _rank(z) else number(z) for z in pair]


def both(function):
    """Return a version of a function of two operands that takes them in different dtypes."""
    return lambda x, y: function(*beside(x, y))


def of_kinds(function, of_bools):
    """The same, but with `of_bools` for two bools: their sum is `or`, their product is `and`."""

    def run(x, y):
        x, y = beside(x, y)
        bools = all(z.dtype == bool for z in (x, y) if isinstance(z, Operators))
        return of_bools(*map(as_tensor, (x, y))) if bools else function(x, y)

    return run


def floats(x):
    """Return a tensor x as floats: integers and bools are cast to the default dtype. Python numbers are unchanged."""
    return x if not isinstance(x, Operators) or x.dtype.kind == "f" else low.cast(x, NUMBERS[float])
