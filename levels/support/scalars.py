"""Numbers of Python beside tensors: which dtype they have, and a cache of those that a training uses. For notebook 03."""

import functools


def pythons_floats(values):
    """Return whether values, which make a float64 array, are Python's floats, and not NumPy's, which have a dtype."""
    while isinstance(values, (list, tuple)) and len(values):
        values = values[0]
    return not hasattr(values, "dtype")


def check_number(value, dtype):
    """Raise TypeError for a Python number that would lose something in a tensor of this dtype."""
    if dtype.kind not in {bool: "b", int: "if", float: "f"}[type(value)]:
        raise TypeError(f"{value} beside a tensor of {dtype}: cast one of them")


def kept_numbers(make):
    """Decorate `make(number, spec)`: its results are kept in a cache. A training uses few numbers, thousands of times."""

    @functools.lru_cache(maxsize=1024, typed=True)
    def kept(value, name, spec):  # the name tells 0.0 from -0.0, which are equal
        return make(value, spec)

    return lambda value, spec: kept(value, value or str(value), spec)
