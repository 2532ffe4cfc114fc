"""The checks of notebook 01: a sum, a program, cache lines, slopes, a rate, a barrier."""

import math

import numpy as np

from course.reader.cases import Wrong, called
from course.reader.cases.hardware import centred, loss, nudged_slopes, turned
from course.reader.exercises.judge import exercise
from course.reader.words import brief


def added_in_pairs(x):
    while len(x) > 1:
        odd = x[len(x) // 2 * 2 :]
        x = np.concatenate([x[0 : len(x) - len(odd) : 2] + x[1 : len(x) : 2], odd])
    return x[0]


@exercise("01-1", lines=5)
def sum_in_pairs(mine, draw):
    """The sum of float32 by adding neighbouring pairs in rounds; an odd number at the end waits for the next round."""
    arrays = [draw.normal(size=n).astype("f4") for n in (1, 2, 3, 4, 5, 7, 8, 100, 300, 999, 1000, 3001)]
    for x in (*arrays, np.tile(np.array([2**24, 1], "f4"), 40)):  # in the last one each 1 is rounded away
        half = len(x) // 2
        mistakes = {
            "it adds from left to right": np.cumsum(x)[-1],
            "the odd number at the end is lost": added_in_pairs(x[: max(1, 2 * half)]),
            "it pairs the two halves, not neighbours": added_in_pairs(
                np.r_[x[:half] + x[half : 2 * half], x[2 * half :]]
            ),
            "it adds in float64 and rounds once, at the end": np.float32(np.cumsum(x.astype("f8"))[-1]),
        }
        mine.gives((x,), added_in_pairs(x), mistakes)


@exercise("01-2", lines=8)
def centre(mine, draw):
    """A program that subtracts from each column its mean, in two loops, one after the other."""
    for rows, columns in ((3, 2), (4, 4), (7, 1), (10, 3), (1, 2), (49, 20)):
        said = f"{mine.name}, for x of shape ({rows}, {columns}),"
        given = draw.normal(size=(rows, columns))
        x, y = mine.ask(centred, said, given)
        if not np.array_equal(x, given):
            raise Wrong(f"{said} writes into x: store into y")
        if np.isnan(y).any():
            raise Wrong(f"{said} leaves {np.isnan(y).sum()} of the {y.size} places of y as they were")
        total = np.cumsum(given, axis=0)[-1]  # in order, as the record requires
        mistakes = {
            "it takes the mean of each row": given - np.cumsum(given, axis=1)[:, -1:] / columns,
            "it divides by the number of columns": given - total / columns,
            "it multiplies by 1/n, where the record divides by n": given - total * (1.0 / rows),
            "it subtracts the sum, not the mean": given - total,
            "it takes the mean of the rows so far: the first loop must end before the second begins": given
            - np.cumsum(given, axis=0) / rows,
        }
        mine.compare(said, y, given - total / rows, mistakes)


@exercise("01-3", lines=2)
def lines_touched(mine, draw):
    """How many lines of 64 bytes hold x[0], x[step], x[2·step], …, `count` numbers of `itemsize` bytes."""
    fixed = [(0, 1, 4), (1, 1, 8), (16, 1, 4), (17, 1, 4), (5, 3, 4), (4, 5, 4), (5, 4, 4), (3, 16, 4), (3, 1000, 8)]
    drawn = [(int(draw.integers(2, 40)), int(draw.integers(1, 30)), size) for size in (2, 4, 8) for _ in range(5)]
    for count, step, itemsize in fixed + drawn:
        right = len({k * step * itemsize // 64 for k in range(count)})
        mistakes = {
            "it ignores the step": math.ceil(count * itemsize / 64),
            "it does not count a line of which it uses only a part": (count - 1) * step * itemsize // 64,
            "it also counts what lies behind the last number": math.ceil(count * step * itemsize / 64),
            "it also counts lines between two numbers, which are never touched": (count - 1) * step * itemsize // 64
            + 1,
            "it counts a new line for every number": count,
        }
        mine.gives((count, step, itemsize), right, mistakes)


@exercise("01-4", lines=7)
def slopes(mine, draw):
    """The slope of a loss in each weight, by nudging one weight at a time, up and down."""
    for shape in ((1, 1), (2, 2), (3, 2), (1, 4)):
        pull = draw.uniform(100, 1000, size=shape)
        w = draw.normal(size=shape)
        right = 2.0 * pull * w
        right[0, 0] += 3.0 * w[-1, -1]
        right[-1, -1] += 3.0 * w[0, 0]
        mistakes = {
            "it nudges upwards only: the loss is a curve, so nudge to both sides": right + 1e-6 * pull,
            "it divides by one nudge, but from down to up there are two": 2.0 * right,
            "it divides by 2, and not by the nudge": right * 1e-6,
            "the sign is wrong: it should be up minus down": -right,
        }
        said = mine.spelled((loss, w))
        result, after = mine.ask(nudged_slopes, said, pull, w)
        mine.kept(said, (loss, w), (loss, after))
        mine.compare(said, result, right, mistakes, near=1e-7)


@exercise("01-5", lines=2)
def highest_rate(mine, draw):
    """The learning rate above which a line with one weight diverges. The check trains with slightly less and more."""
    for size in (1, 2, 5, 50):
        x = draw.normal(draw.normal(), draw.uniform(0.5, 10), size)
        said = mine.spelled((x,))
        rate, after = mine.ask(called, said, [x])
        mine.kept(said, [x], after)
        if not isinstance(rate, float) or not 0 < rate < math.inf:
            raise Wrong(f"{said} gives {brief(rate)}, expected a positive float")
        for share, good in ((0.98, True), (1.02, False)):
            first, last = trained(x, share * rate)
            if (last < first) != good:
                what = "the loss should still fall" if good else "the loss should grow"
                seen = f"At {share} of this rate, 100 steps take the loss from {first:.3g} to {last:.3g}: {what}"
                raise Wrong(f"{said} gives {rate:.4g}. {seen}")
        mine.cases += 1


def trained(x, rate):
    """The mean of (w·x)² at w = 1, and after 100 steps of gradient descent."""
    w = 1.0
    with np.errstate(all="ignore"):
        for _ in range(100):
            w -= rate * 2.0 * np.mean(w * x * x)
        return np.mean(x * x), w * w * np.mean(x * x)


@exercise("01-6", lines=4)
def turn(mine, draw):
    """A kernel: each block rotates its numbers by one place, in place, whatever the order of its threads."""
    for blocks, threads, order in ((1, 1, None), (1, 8, None), (3, 32, None), (4, 5, 1), (2, 40, 2)):
        x = draw.normal(size=blocks * threads).astype("f4")
        said = f"{mine.name}, launched as {blocks} x {threads} threads,"
        by_block = x.reshape(blocks, threads)
        mistakes = {
            "it turns the other way": np.roll(by_block, 1, axis=1).ravel(),
            "the last number of each block stays": np.c_[by_block[:, 1:], by_block[:, -1]].ravel(),
            "it writes nothing": by_block.ravel(),
        }
        found = mine.ask(turned, said, x, blocks, threads, order)
        mine.compare(said, found, np.roll(by_block, -1, axis=1).ravel(), mistakes)
