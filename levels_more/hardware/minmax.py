"""The larger and the smaller of two numbers, one source for Python's floats and for programs, like level 1's exp and log."""

from levels.hardware import Value, named


def maximum(x, y):
    """The larger of two numbers or values: of 0.0 and -0.0 the first, and NaN if either is (IEEE 754-2019, 9.6)."""
    if isinstance(x, Value) or isinstance(y, Value):
        return named("maximum", x, y)
    if x == y == 0.0 or x != x or y != y:
        return x + y
    return x if x > y else y


def minimum(x, y):
    """The smaller of two numbers or values: of 0.0 and -0.0 the second, and NaN if either is (IEEE 754-2019, 9.6)."""
    if isinstance(x, Value) or isinstance(y, Value):
        return named("minimum", x, y)
    if x == y == 0.0 or x != x or y != y:
        return -(-x - y)
    return x if x < y else y
