"""The formulas of the course's arithmetic. The same code works on Python floats and in programs."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.


def dot(p, q):
    """Return 0.0 + p[0]·q[0] + p[1]·q[1] + …, in that order. (Since 3.12, Python's `sum` corrects its rounding.)"""
    total = 0.0
    for a, b in zip(p, q):
        total = total + a * b
    return total


def line_slopes(error, row, g):
    """What one row adds to the slopes of (Σ error·error)·g, with g = 1/n: a list for the weights, a number for b."""
    de = g * error + g * error
    return [value * de for value in row], de


def flat(row, width, column):
    """The place of x[row, column] in memory, where rows of `width` numbers lie one behind the other."""
    return row * width + column


def descend(w, slope, learning_rate):
    """The weight w, a number, after one step against its slope."""
    return w - learning_rate * slope
