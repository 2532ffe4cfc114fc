"""Solutions to the exercises of notebook 02. The level's names are at hand, as in the notebook."""

import math

import numpy as np

from levels.kernels import *

# 02-1


def hypotenuse(x, y):
    long, short = max(abs(x), abs(y)), min(abs(x), abs(y))
    ratio = short / long if long > 0.0 else 0.0
    return long * math.sqrt(1.0 + ratio * ratio)


def by_cases(x, y):
    x, y = abs(x), abs(y)
    if x < y:
        x, y = y, x
    if y == 0.0:
        return x
    return x * math.sqrt(1.0 + (y / x) ** 2)


def squares_overflow(x, y):
    return math.sqrt(x * x + y * y)


def zero_by_zero(x, y):
    long, short = max(abs(x), abs(y)), min(abs(x), abs(y))
    return long * math.sqrt(1.0 + (short / long) ** 2)


def x_is_longer(x, y):
    return abs(x) * math.sqrt(1.0 + (y / x) ** 2) if x != 0.0 else abs(y)


def sign_stays(x, y):
    long, short = (x, y) if abs(x) > abs(y) else (y, x)
    return long * math.sqrt(1.0 + (short / long) ** 2) if long != 0.0 else 0.0


def scaled_for_float64(x, y):
    big = 1e-160 if max(abs(x), abs(y)) > 1e100 else 1e160 if max(abs(x), abs(y)) < 1e-100 else 1.0
    return math.sqrt((x * big) ** 2 + (y * big) ** 2) / big


# 02-2


def gradient_product(dw, x, dy):
    dw[:] = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            for j in range(dy.shape[1]):
                dw[k, j] += x[i, k] * dy[i, j]


def number_by_number(dw, x, dy):
    turned = x.T
    for k in range(dw.shape[0]):
        for j in range(dw.shape[1]):
            total = 0.0
            for i in range(dy.shape[0]):
                total += turned[k, i] * dy[i, j]
            dw[k, j] = total


def row_by_row(dw, x, dy):
    dw.fill(0.0)
    for row, slope in zip(x, dy):  # noqa: B905 (numba knows no strict)
        dw += np.outer(row, slope)


def turned_and_copied(dw, x, dy):
    turned = x.T.copy()
    dw[:] = 0.0
    for k in range(turned.shape[0]):
        for i in range(turned.shape[1]):
            for j in range(dy.shape[1]):
                dw[k, j] += turned[k, i] * dy[i, j]


def laid_out_anew(dw, x, dy):
    turned = np.empty((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            turned[k, i] = x[i, k]
    number_by_number(dw, turned.T, dy)


def not_reset(dw, x, dy):
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            for j in range(dy.shape[1]):
                dw[k, j] += x[i, k] * dy[i, j]


def last_row_only(dw, x, dy):
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            for j in range(dy.shape[1]):
                dw[k, j] = x[i, k] * dy[i, j]


def not_transposed(dw, x, dy):
    dw[:] = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            for j in range(dy.shape[1]):
                dw[i, j] += x[i, k] * dy[k, j]


def downwards(dw, x, dy):
    dw[:] = 0.0
    for i in range(x.shape[0] - 1, -1, -1):
        for k in range(x.shape[1]):
            for j in range(dy.shape[1]):
                dw[k, j] += x[i, k] * dy[i, j]


def as_a_mean(dw, x, dy):
    gradient_product(dw, x, dy)
    dw /= x.shape[0]


def one_row_short(dw, x, dy):
    dw[:] = 0.0
    for i in range(x.shape[0] - 1):
        for k in range(x.shape[1]):
            for j in range(dy.shape[1]):
                dw[k, j] += x[i, k] * dy[i, j]


# 02-3


def steps_of(shape, common):
    steps, step = [], 1
    for size in reversed(shape):
        steps = [step if size > 1 else 0, *steps]
        step *= size
    return [0] * (len(common) - len(shape)) + steps


def asked_of_numpy(shape, common):
    return list(np.broadcast_to(np.empty(shape, "i1"), common).strides)


def aligned_left(shape, common):
    missing = len(common) - len(shape)
    return steps_of(shape, common)[missing:] + [0] * missing


def never_repeated(shape, common):
    own = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return [0] * (len(common) - len(shape)) + own


def of_the_common_shape(shape, common):
    return [math.prod(common[k + 1 :]) for k in range(len(common))]


def from_the_front(shape, common):
    own = [math.prod(shape[:k]) if size > 1 else 0 for k, size in enumerate(shape)]
    return [0] * (len(common) - len(shape)) + own


def own_axes_only(shape, common):
    return [math.prod(shape[k + 1 :]) if size > 1 else 0 for k, size in enumerate(shape)]


# 02-4


def sum_by_fours(out, x):
    whole = x.shape[1] // 4 * 4
    for i in range(x.shape[0]):
        a = b = c = d = 0.0
        for k in range(0, whole, 4):
            a, b = a + x[i, k], b + x[i, k + 1]
            c, d = c + x[i, k + 2], d + x[i, k + 3]
        total = (a + b) + (c + d)
        for k in range(whole, x.shape[1]):
            total += x[i, k]
        out[i] = total


def four_in_an_array(out, x):
    whole = x.shape[1] - x.shape[1] % 4
    for i in range(x.shape[0]):
        lanes = np.zeros(4, x.dtype)
        for k in range(whole):
            lanes[k % 4] += x[i, k]
        out[i] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        for k in range(whole, x.shape[1]):
            out[i] += x[i, k]


def rest_left_out(out, x):
    for i in range(x.shape[0]):
        a = b = c = d = 0.0
        for k in range(0, x.shape[1] // 4 * 4, 4):
            a, b = a + x[i, k], b + x[i, k + 1]
            c, d = c + x[i, k + 2], d + x[i, k + 3]
        out[i] = (a + b) + (c + d)


def past_the_end(out, x):
    for i in range(x.shape[0]):
        a = b = c = d = 0.0
        for k in range(0, x.shape[1], 4):
            a, b = a + x[i, k], b + x[i, k + 1]
            c, d = c + x[i, k + 2], d + x[i, k + 3]
        out[i] = (a + b) + (c + d)


def one_sum(out, x):
    for i in range(x.shape[0]):
        total = 0.0
        for k in range(x.shape[1]):
            total += x[i, k]
        out[i] = total


def carried_over(out, x):
    total, whole = 0.0, x.shape[1] // 4 * 4
    for i in range(x.shape[0]):
        a = b = c = d = 0.0
        for k in range(0, whole, 4):
            a, b = a + x[i, k], b + x[i, k + 1]
            c, d = c + x[i, k + 2], d + x[i, k + 3]
        total += (a + b) + (c + d)
        for k in range(whole, x.shape[1]):
            total += x[i, k]
        out[i] = total


def in_a_row(out, x):
    whole = x.shape[1] // 4 * 4
    for i in range(x.shape[0]):
        a = b = c = d = 0.0
        for k in range(0, whole, 4):
            a, b = a + x[i, k], b + x[i, k + 1]
            c, d = c + x[i, k + 2], d + x[i, k + 3]
        total = a + b + c + d
        for k in range(whole, x.shape[1]):
            total += x[i, k]
        out[i] = total


SOLUTIONS = {
    "02-1": hypotenuse,
    "02-2": gradient_product,
    "02-3": steps_of,
    "02-4": sum_by_fours,
}
ALSO_RIGHT = {
    "02-1": {"by cases": by_cases},
    "02-2": {"number by number, from a view": number_by_number, "row by row": row_by_row},
    "02-3": {"NumPy's own": asked_of_numpy},
    "02-4": {"the four in an array": four_in_an_array},
}


WRONG = {
    "02-1": {
        "the squares overflow": squares_overflow,
        "divides 0 by 0": zero_by_zero,
        "right only where x is the longer side": x_is_longer,
        "right only for positive numbers": sign_stays,
        "ignores the dtype": scaled_for_float64,
    },
    "02-2": {
        "the gradient is not reset": not_reset,
        "overwrites": last_row_only,
        "right only for symmetric x": not_transposed,
        "another order of the sum": downwards,
        "a mean": as_a_mean,
        "off by one": one_row_short,
        "a transposed copy": turned_and_copied,
        "a transposed copy, by hand": laid_out_anew,
    },
    "02-3": {
        "aligned at the left": aligned_left,
        "does not repeat": never_repeated,
        "steps of the common shape": of_the_common_shape,
        "right only for square shapes": from_the_front,
        "right only for as many axes": own_axes_only,
    },
    "02-4": {
        "right only for multiples of four": rest_left_out,
        "reads past the end": past_the_end,
        "one sum": one_sum,
        "not reset": carried_over,
        "another order": in_a_row,
    },
}
