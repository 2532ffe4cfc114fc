"""The blanks of notebook 01."""


def line_slopes(error, row, g):
    """What one row adds to the slopes of (Σ error·error)·g, with g = 1/n: a list for the weights, a number for b."""
    de = g * error + g * error
    return [value * de for value in row], de


def subtract(x, y):
    """Write the instruction that takes the number y from x, and give back its value."""
    return arithmetic("fsub", x, y)


def flat(row, width, column):
    """The place of x[row, column] in memory, where rows of `width` numbers lie one behind the other."""
    return row * width + column


def descend(w, slope, learning_rate):
    """The weight w, a number, after one step against its slope."""
    return w - learning_rate * slope


def through_relu(d, h, w):
    """The slopes at a layer's units, a list of numbers: 0 where relu cut, else the sum over the next layer's units."""
    return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]
