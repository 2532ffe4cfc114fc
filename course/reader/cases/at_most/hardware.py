"""The cases of the functions of notebook 01 that a reader writes at the depth *most* only."""

import operator

import numpy as np

from course.reader.cases import Wrong, cases
from course.reader.cases.at_most.programs import DTYPES, guarded, in_a_loop, ran
from course.reader.cases.drawn import drawn
from course.reader.cases.hardware import Register, in_a_program, number_of
from course.reader.cases.plain_data import describe


@cases("01-dot")
def dot(mine, draw):
    """On floats, for which the order of the additions matters, and on registers."""
    yield mine.on(p=[1.0, 2.0], q=[3.0, 5.0])
    yield mine.on(p=[1.5], q=[-2.0])
    yield mine.on("two empty lists", [], [])
    yield mine.on("two tuples", (1.0, 3.0, 5.0), (2.0, 4.0, 6.0))
    yield mine.on(p=[-0.0], q=[1.0])
    yield mine.on("p = [1e16, 1.0, -1e16], q = [1.0, 1.0, 1.0]", [1e16, 1.0, -1e16], [1.0, 1.0, 1.0])
    for said, p, q in drawn(draw, p=(30,), q=(30,)):
        yield mine.on(f"two lists of 30 numbers; {said}", p.tolist(), q.tolist())
    numbers = draw.normal(size=3).tolist()
    for said, q in (("on registers", [*map(Register, numbers)]), ("on registers and numbers", numbers)):
        said, total = mine.on(said, [Register(0.3), Register(1.3), Register(-2.0)], q)
        yield said, number_of(total)


@cases("01-_slope_at_z")
def slope_at_z(mine, draw):
    """On floats; while a program is written, when no `if` can depend on a number; in both tasks."""
    low = 1e-7
    high = 1.0 - 1e-7
    yield mine.on(target=1.0, p=0.5, c=0.5, g=-1.0)
    yield mine.on(target=0.0, p=0.75, c=0.75, g=-1.0)
    rows = [(float(k % 2), p, p, -1.0 / (1 + 7 * k)) for k, p in enumerate(draw.uniform(size=20).tolist())]
    rows += [(1.0, 1e-9, low, -0.1), (0.0, 1.0 - 1e-9, high, -0.1), (1.0, low, low, -0.1), (0.0, high, high, -0.1)]
    for target, p, c, g in rows:
        said = "p is on a bound" if p in (low, high) else "p is clipped" if p != c else "p is not clipped"
        yield mine.on(f"{said}: target = {target:g}, p = {p}, c = {c}, g = {g:.4g}", target, p, c, g)
    yield "in a program", in_a_program(mine, "in a program", np.array(rows))
    with guarded(mine):
        yield "20 steps of both tasks", mine.losses("_slope_at_z", "hardware")


# Functions that write programs. A program runs only after a check of which memory it touches.


@cases("01-Assembler.store")
def store(mine, draw):
    """What programs store, and where; what a store refuses; both tasks."""

    def one_column(a, i, x, y):
        a.store(a.load(x, i), y, i, 1)

    def a_total(a, x, y):
        total = a.sum()
        with a.loop(x.shape[0]) as i:
            total += a.load(x, i)
        a.store(total.total(), y, 2)

    x = draw.normal(size=6)
    with guarded(mine) as hardware:
        with mine.placed("Assembler.store", "hardware"):
            told = "y[i, 1] = x[i], for x = [3, 5], where y is full of zeros"
            a = hardware.Assembler("program", "f8")
            yield told, ran(mine, told, a, in_a_loop(one_column), x=np.array([3.0, 5.0]), y=np.zeros((2, 2)))
            for said, write, y in (
                ("y[i] = x[i]", in_a_loop(lambda a, i, x, y: a.store(a.load(x, i), y, i)), np.zeros(6)),
                ("y[i] = 2.5", in_a_loop(lambda a, i, x, y: a.store(2.5, y, i)), np.zeros(6)),
                ("y[i, 1] = x[i]", in_a_loop(one_column), np.zeros((6, 2))),
                ("y[2] = the sum of x, behind the loop", a_total, np.zeros(3)),
            ):
                for dtype, in_words in DTYPES:
                    told = said + in_words
                    a = hardware.Assembler("program", dtype)
                    yield told, ran(mine, told, a, write, x=x, y=y)
            a = hardware.Assembler("program", "f8")
            rows = a.array("p", 3, rows_of=9)
            y = a.array("y", 3, 2)
            with a.loop(3) as i:
                inside = a.load(y, i, 0)
            for told, kind, *given in (
                ("y[0, 2] = 1.0, of rows of two numbers", IndexError, 1.0, y, 0, 2),
                ("p[0] = 1.0, where p holds row numbers", TypeError, 1.0, rows, 0),
                ("y[0, 0] = a value of a loop that has ended", ValueError, inside, y, 0, 0),
                ("y[0, 0] = an index", TypeError, hardware.index_of(a, 1), y, 0, 0),
            ):
                yield told, mine.refused(told, (kind, TypeError, ValueError), a.store, *given)
        yield "20 steps of both tasks", mine.losses("Assembler.store", "hardware")


@cases("01-Sum.__iadd__")
def added(mine, draw):
    """The totals that small programs compute; both tasks."""

    def add(total, term, said="total += x[i]"):
        result = mine.call(said, operator.iadd, total, term)
        if result is not total:
            raise Wrong(f"`{said}` makes `total` {describe(result)}: `__iadd__` gives back the sum itself, `self`")

    def of_all(a, x, y):
        total = a.sum()
        with a.loop(x.shape[0]) as i:
            add(total, a.load(x, i))
        a.store(total.total(), y, 0)

    def of_squares_too(a, x, y):
        total = a.sum()
        squares = a.sum()
        with a.loop(x.shape[0]) as i:
            v = a.load(x, i)
            add(total, v)
            add(squares, v * v, "squares += x[i] * x[i]")
        a.store(total.total(), y, 0)
        a.store(squares.total(), y, 1)

    def of_each_turn(a, x, y):
        with a.loop(2) as row:
            total = a.sum()
            with a.loop(x.shape[0]) as i:
                add(total, a.load(x, i))
            a.store(total.total(), y, row)

    def of_ones(a, x, y):
        total = a.sum()
        with a.loop(x.shape[0]):
            add(total, 1.0, "total += 1.0")
        a.store(total.total(), y, 0)

    def of_numbers(a, x, y):
        total = a.sum()
        for number in (1.0, 0.25):
            add(total, number, f"total += {number}")
        a.store(total.total(), y, 0)

    with guarded(mine) as hardware:
        with mine.placed("Sum.__iadd__", "hardware"):
            for said, write, x in (
                ("total += x[i], for x = [1, 2, 3]", of_all, np.array([1.0, 2.0, 3.0])),
                ("total += x[i], for x = [-0.0]", of_all, np.array([-0.0])),
                ("total += x[i], for 30 numbers", of_all, draw.normal(size=30)),
                ("two sums in one loop", of_squares_too, draw.normal(size=30)),
                ("a new sum in each turn of an outer loop", of_each_turn, draw.normal(size=5)),
                ("total += 1.0, in a loop to 6", of_ones, np.zeros(6)),
                ("total += 1.0 and total += 0.25, without a loop", of_numbers, np.zeros(1)),
            ):
                for dtype, in_words in DTYPES:
                    told = said + in_words
                    a = hardware.Assembler("program", dtype)
                    yield told, ran(mine, told, a, write, x=x, y=np.zeros(2))
            a = hardware.Assembler("program", "f8")
            with a.loop(3):
                total = a.sum()
            told = "a sum of a loop that has ended"
            yield told, mine.refused(told, (TypeError, ValueError), operator.iadd, total, 1.0)
        yield "20 steps of both tasks", mine.losses("Sum.__iadd__", "hardware")
