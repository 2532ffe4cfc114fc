"""The blanks of notebook 01."""


def line_slopes(error, row, g):
    """Return what one row adds to the slopes: a list for the weights, and de for b."""
    de = g * error + g * error
    return [value * de for value in row], de


def subtract(x, y):
    """Write the instruction that takes the number y from x, and give back its value."""
    return arithmetic("fsub", x, y)


def flat(row, width, column):
    """The place of x[row, column] in memory, in rows of `width` numbers."""
    return row * width + column


def descend(w, slope, learning_rate):
    """The weight w, a number, after one step against its slope."""
    return w - learning_rate * slope


def through_relu(d, h, w):
    """Return, for each k, 0.0 where h[k] is 0, else the sum of d[j]·w[k][j] over j."""
    return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]
