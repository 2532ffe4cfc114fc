"""The questions of the checks of notebook 01, and the cases of its blanks."""

import operator
from functools import partial

import numpy as np

from course.reader.cases import KEPT, Wrong, cases, question
from course.reader.cases.drawn import drawn
from course.reader.cases.plain_data import describe


@question
def centred(mine, said, x):
    """The arrays x and y, both [rows, columns], after the program ran on them. Before, y was full of NaN."""
    cpu = mine["pool"]()["cpu:0"]
    a = mine["Assembler"]("centre", "f8")
    mine.call(said, mine.function, a, a.array("x", "rows", x.shape[1]), a.array("y", "rows", x.shape[1]))
    program = mine.call(said, a.assemble)
    x, y = cpu.put(x), cpu.put(np.full(x.shape, np.nan))
    mine.call(said, program, x=x, y=y)
    return x.numpy(), y.numpy()


def loss(w, pull):
    return float((pull * w * w).sum() + 3.0 * w[0, 0] * w[-1, -1])


@question
def nudged_slopes(mine, said, pull, w):
    """The slopes, and w after the call."""
    return mine.call(said, mine.function, partial(loss, pull=pull), w), w


@question
def turned(mine, said, x, blocks, threads, order):
    """The array x after a launch of the function as a kernel."""

    def kernel(x):
        mine.function(x)

    mine.call(said, mine["launch_kernel"], kernel, blocks, threads, x, order=order)
    return x


class Register:
    """A mock register. It holds a number, and supports only + - * / and the unary minus."""

    def __init__(self, number):
        self.number = number

    def __neg__(self):
        return Register(-self.number)


def computing(function):
    """Two methods of a mock register: for function(register, other), and for function(other, register)."""
    return (
        lambda self, other: Register(function(self.number, number_of(other))),
        lambda self, other: Register(function(number_of(other), self.number)),
    )


Register.__add__, Register.__radd__ = computing(operator.add)
Register.__sub__, Register.__rsub__ = computing(operator.sub)
Register.__mul__, Register.__rmul__ = computing(operator.mul)
Register.__truediv__, Register.__rtruediv__ = computing(operator.truediv)


def number_of(value):
    """The number in a mock register; a Python number as it is."""
    return value.number if isinstance(value, Register | Operand) else value


def in_a_program(mine, said, rows):
    """[function(*row) for each row], computed by a program. The function is called once, to write the program.

    The assembler is the notebook's own, or level 1's if the notebook has none.
    """
    names = mine.first.__globals__
    if "Assembler" not in names:
        from levels import hardware

        names = vars(hardware)
    cpu = names["pool"]()["cpu:0"]
    a = names["Assembler"]("tried", "f8")
    x, y = a.array("x", "rows", rows.shape[1]), a.array("y", "rows", 1)
    with a.loop("rows") as r:
        result = mine.call(said, mine.function, *(a.load(x, r, k) for k in range(rows.shape[1])))
        mine.call(said, a.store, result, y, r, 0)
    program = mine.call(said, a.assemble)
    x, y = cpu.put(rows), cpu.put(np.full((len(rows), 1), np.nan))
    mine.call(said, program, x=x, y=y)
    return y


@cases("01-line_slopes")
def line_slopes(mine, draw):
    """On floats, and on registers."""
    given = [(2.0, [1.0, 5.0], 0.1)]
    for inputs, rows in ((1, 3), (2, 7), (3, 10), (2, 49)):
        for _, error, row in drawn(draw, error=(), row=(inputs,)):
            given.append((error, row.tolist(), 1.0 / rows))
    for error, row, g in given:
        said, both = mine.on(error=error, row=row, g=g)
        dw, de = pair(said, both)
        yield said, {"de": de, "dw": list(dw)}
    said, both = mine.on("on registers", Register(0.3), [Register(0.7), Register(-1.1)], Register(0.7))
    dw, de = pair(said, both)
    yield said, {"de": number_of(de), "dw": list(map(number_of, dw))}


def pair(said, both):
    """What `line_slopes` gives. Raises Wrong unless it is a list and a number."""
    if both is None:
        raise Wrong(f"{said} gives None: is there a `return` in every case?")
    is_pair = isinstance(both, list | tuple) and len(both) == 2
    if not is_pair or isinstance(both, list) and not isinstance(both[0], list | tuple):
        one = "one list" if isinstance(both, list) else describe(both)
        raise Wrong(f"{said} gives {one}; expected two things: a list with the slopes of the weights, and `de`")
    if not isinstance(both[0], list | tuple):
        raise Wrong(
            f"{said} gives {describe(both[0])} first; expected a list with one number for each number of the row"
        )
    return both


class Operand:
    """A mock of the notebook's first registers. It has a name, as they do, and holds a number."""

    def __init__(self, number):
        self.number = number
        self.name = f"%{id(self)}"

    def __getattr__(self, name):
        raise Wrong(f"a register has no `{name}`: pass both registers to `arithmetic`, which writes the instruction")


Operand.__name__ = "Register"  # its name in Python's messages


class Instructions:
    """Mocks of `arithmetic` and `Register` that compute at once and check which instruction is requested."""

    KNOWN = {"fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fdiv": operator.truediv}

    def __init__(self, *operands):
        self.operands = {each.name: each for each in operands}
        self.by_hand = False  # whether the text of an instruction was written without `arithmetic`

    def arithmetic(self, name, x, y):
        if name not in self.KNOWN:
            raise Wrong(f"LLVM has no instruction {name!r} for two floats; it has {', '.join(self.KNOWN)}")
        return Operand(self.KNOWN[name](number_of(x), number_of(y)))

    def register(self, text):
        match str(text).replace(",", " , ").split():
            case [name, "double", x, ",", y] if {x, y} <= self.operands.keys():
                self.by_hand = True
                return self.arithmetic(name, self.operands[x], self.operands[y])
        raise Wrong(f"{text!r} is not an instruction on x and y; such an instruction reads `fadd double %x, %y`")


@cases("01-subtract")
def subtract(mine, draw):
    """The cases test which instruction is requested, whichever assembler the notebook has defined by now.

    The notebook's first Register takes the text of an instruction, so a solution that writes the text is right. The
    whole assembler has values of other kinds, so the notebook does not use that solution from here on.
    """
    kept = ""
    for x, y in [(5.0, 3.0), *draw.normal(size=(4, 2)).tolist()]:
        said = f"{x:.4g} - {y:.4g}"
        x = Operand(x)
        y = Operand(y)
        asked = Instructions(x, y)
        taken = mine.among(arithmetic=asked.arithmetic, Register=asked.register)
        yield said, number_of(mine.call(said, taken, x, y))
        if asked.by_hand:
            kept = 'Later there are other kinds of registers, and `arithmetic("fsub", x, y)` works for all of them.'
    yield KEPT, kept


@cases("01-flat")
def flat(mine, draw):
    """On whole numbers, and on registers."""
    yield mine.on("x[1, 2] of width 3", 1, 3, 2)
    for row, width in draw.integers(0, 50, size=(4, 2)).tolist():
        column = int(draw.integers(0, width + 1))
        yield mine.on(row=row, width=width + 1, column=column)
    said, place = mine.on("on registers", Register(4), Register(7), Register(5))
    yield said, number_of(place)


@cases("01-descend")
def descend(mine, draw):
    """On floats, and on registers."""
    yield mine.on(w=1.0, slope=2.0, learning_rate=0.5)
    for _, w, slope, rate in drawn(draw, w=(), slope=(), rate=()):
        yield mine.on(w=w, slope=slope, learning_rate=rate)
    said, w = mine.on("on registers", Register(0.3), Register(1.7), Register(0.01))
    yield said, number_of(w)


@cases("01-through_relu")
def through_relu(mine, draw):
    """On floats, and while a program is written, when no `if` can depend on a number."""
    yield mine.on("d = [2.0], h = [1.0, 0.0], w = [[3.0], [5.0]]", [2.0], [1.0, 0.0], [[3.0], [5.0]])
    for units, following in ((1, 1), (3, 2), (9, 20)):
        for said, d, h, w in drawn(draw, d=(following,), h=(units,), w=(units, following)):
            h = np.where(h <= 0.0, 0.0, h)  # what a relu gives
            said = f"{units} units that feed {following}; {said}"
            yield mine.on(said, *(each.tolist() for each in (d, h, w)))
    rows = np.vstack([[1.0, 2.0, 0.0, 3.0, 4.0], *(row for _, row in drawn(draw, row=(5,)))])
    rows[:, 2] = np.where(rows[:, 2] <= 0.0, 0.0, rows[:, 2])
    own = mine.function
    mine.function = lambda d0, d1, h, w0, w1: own([d0, d1], [h], [[w0, w1]])[0]
    said = "in a program, for 1 unit that feeds 2"
    yield said, in_a_program(mine, said, rows)
