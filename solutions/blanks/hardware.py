"""The blanks of notebook 01."""


def line_slopes(error, row, g):
    """What a row adds to the slopes of (Σ error·error)·g: of the weights, of b."""
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
    """A number per unit, its slope: 0 where relu cut, else the next layer's sum."""
    return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]
