"""What the checks of notebook 01 ask."""

import operator
import re
from contextlib import contextmanager
from functools import partial

import numpy as np

from course.practice.cases import KEPT, Wrong, cases, question
from course.practice.cases.plain_data import describe


@question
def centred(mine, said, x):
    """Two arrays x and y[rows, columns] after the program ran on them; y held no numbers."""
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
    """The slopes, and w afterwards."""
    return mine.call(said, mine.function, partial(loss, pull=pull), w), w


@question
def turned(mine, said, x, blocks, threads, order):
    """x after a launch."""

    def kernel(x):
        mine.function(x)

    mine.call(said, mine["launch_kernel"], kernel, blocks, threads, x, order=order)
    return x


class Register:
    """A stand-in for a register: it has a number, and takes part in + - * / alone."""

    def __init__(self, number):
        self.number = number

    def __add__(self, other):
        return Register(self.number + number_of(other))

    def __radd__(self, other):
        return Register(number_of(other) + self.number)

    def __sub__(self, other):
        return Register(self.number - number_of(other))

    def __rsub__(self, other):
        return Register(number_of(other) - self.number)

    def __mul__(self, other):
        return Register(self.number * number_of(other))

    def __rmul__(self, other):
        return Register(number_of(other) * self.number)

    def __truediv__(self, other):
        return Register(self.number / number_of(other))

    def __rtruediv__(self, other):
        return Register(number_of(other) / self.number)


def number_of(value):
    """The number of a register, or of a Python number."""
    return value.number if isinstance(value, Register | Operand) else value


@cases("01-line_slopes")
def line_slopes(mine, draw):
    """On floats, and on registers."""
    drawn = [
        (float(draw.normal()), draw.normal(size=k).tolist(), 1.0 / n) for k, n in ((1, 3), (2, 7), (3, 10), (2, 49))
    ]
    for error, row, g in [(2.0, [1.0, 5.0], 0.1), *drawn]:
        said, (dw, de) = mine.on(error=error, row=row, g=g)
        if not isinstance(dw, list | tuple):
            raise Wrong(
                f"{said} gives {describe(dw)} first; expected a list with one number for each number of the row"
            )
        yield said, {"de": de, "dw": list(dw)}
    error, row, g = (Register(0.3), [Register(0.7), Register(-1.1)], Register(0.7))
    said, (dw, de) = mine.on("on registers", error, row, g)
    yield said, {"de": number_of(de), "dw": list(map(number_of, dw))}


class Operand:
    """A stand-in for a number that will be in a register. It has a name, as the notebook's first registers have."""

    def __init__(self, number):
        self.number = number
        self.name = f"%{id(self)}"

    def __getattr__(self, name):
        raise Wrong(f"a register has no `{name}`: pass both registers to `arithmetic`, which writes the instruction")


class Instructions:
    """Stand-ins for `arithmetic` and `Register` that compute at once, and know what they were asked for."""

    KNOWN = {"fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fdiv": operator.truediv}

    def __init__(self, *operands):
        self.operands = {each.name: each for each in operands}
        self.by_hand = False  # whether a text was written, and not by `arithmetic`

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
    """What counts is the instruction that is asked for, whichever assembler there is by now.

    The notebook's first Register takes the text of an instruction, so that text is right. The whole assembler has
    values that write themselves in other ways, so it does not go on.
    """
    kept = ""
    for x, y in [(5.0, 3.0), *draw.normal(size=(4, 2)).tolist()]:
        said = f"{x:.4g} - {y:.4g}"
        x, y = Operand(x), Operand(y)
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
    for w, slope in draw.normal(size=(4, 2)).tolist():
        yield mine.on(w=w, slope=slope, learning_rate=float(draw.uniform()))
    said, w = mine.on("on registers", Register(0.3), Register(1.7), Register(0.01))
    yield said, number_of(w)


@cases("01-through_relu")
def through_relu(mine, draw):
    """On floats, and in a program, where no `if` can choose."""
    yield mine.on("d = [2.0], h = [1.0, 0.0], w = [[3.0], [5.0]]", [2.0], [1.0, 0.0], [[3.0], [5.0]])
    for units, following in ((1, 1), (3, 2), (9, 20)):
        d, h = draw.normal(size=following).tolist(), draw.normal(size=units).tolist()
        said = f"{units} units that feed {following}"
        yield mine.on(said, d, [max(0.0, each) for each in h], draw.normal(size=(units, following)).tolist())
    cpu, a = mine["pool"]()["cpu:0"], mine["Assembler"]("through", "f8")
    x, y = a.array("x", "rows", 5), a.array("y", "rows", 1)
    said = "in a program, for 1 unit that feeds 2"
    with a.loop("rows") as r:
        d0, d1, h, w0, w1 = (a.load(x, r, k) for k in range(5))
        (result,) = mine.call(said, mine.function, [d0, d1], [h], [[w0, w1]])
        mine.call(said, a.store, result, y, r, 0)
    program = mine.call(said, a.assemble)
    rows = np.vstack([[1.0, 2.0, 0.0, 3.0, 4.0], draw.normal(size=(5, 5))])
    rows[:, 2] = np.maximum(rows[:, 2], 0.0)  # what a relu gives
    x, y = cpu.put(rows), cpu.put(np.full((6, 1), np.nan))
    mine.call(said, program, x=x, y=y)
    yield said, y


@cases("01-dot")
def dot(mine, draw):
    """On floats, where the order counts, and on registers."""
    yield mine.on(p=[1.0, 2.0], q=[3.0, 5.0])
    yield mine.on(p=[1.5], q=[-2.0])
    yield mine.on("two empty lists", [], [])
    yield mine.on("two tuples", (1.0, 3.0, 5.0), (2.0, 4.0, 6.0))
    yield mine.on(p=[-0.0], q=[1.0])
    for p, q in draw.normal(size=(4, 2, 30)).tolist():
        yield mine.on("two lists of 30 numbers", p, q)
    yield mine.on("p = [1e16, 1.0, -1e16], q = [1.0, 1.0, 1.0]", [1e16, 1.0, -1e16], [1.0, 1.0, 1.0])
    yield mine.on("p = [inf, 1.0], q = [0.0, 1.0]", [np.inf, 1.0], [0.0, 1.0])
    numbers = draw.normal(size=3).tolist()
    for said, q in (("on registers", [*map(Register, numbers)]), ("on registers and numbers", numbers)):
        said, total = mine.on(said, [Register(0.3), Register(1.3), Register(-2.0)], q)
        yield said, number_of(total)


@cases("01-_slope_at_z")
def slope_at_z(mine, draw):
    """On floats; in a program, where no `if` can choose; in both tasks."""
    low, high = 1e-7, 1.0 - 1e-7
    yield mine.on(target=1.0, p=0.5, c=0.5, g=-1.0)
    yield mine.on(target=0.0, p=0.75, c=0.75, g=-1.0)
    rows = [(float(k % 2), p, p, -1.0 / (1 + 7 * k)) for k, p in enumerate(draw.uniform(size=20).tolist())]
    rows += [(1.0, 1e-9, low, -0.1), (0.0, 1.0 - 1e-9, high, -0.1), (1.0, low, low, -0.1), (0.0, high, high, -0.1)]
    for target, p, c, g in rows:
        said = "p is clipped" if c in (low, high) else "p is not clipped"
        yield mine.on(f"{said}: target = {target:g}, p = {p}, c = {c}, g = {g:.4g}", target, p, c, g)
    cpu, a = mine["pool"]()["cpu:0"], mine["Assembler"]("slope", "f8")
    x, y = a.array("x", "rows", 4), a.array("y", "rows", 1)
    said = "in a program"
    with a.loop("rows") as r:
        result = mine.call(said, mine.function, *(a.load(x, r, k) for k in range(4)))
        mine.call(said, a.store, result, y, r, 0)
    program = mine.call(said, a.assemble)
    x, y = cpu.put(np.array(rows)), cpu.put(np.full((len(rows), 1), np.nan))
    mine.call(said, program, x=x, y=y)
    yield said, y
    with guarded(mine):
        yield "20 steps of both tasks", mine.losses("_slope_at_z", "hardware")


# Functions that write programs. No machine runs what they wrote before it is known which memory that touches.

# a load or a store of one number, or of a slot
ACCESS = re.compile(r"(?:%\S+ = load|store) (<\d+ x \w+>|\w+)(?: [^,]+)?, ptr (%\S+)")


@contextmanager
def guarded(mine):
    """While this lasts, the built level writes its programs anew, and none is made that touches what is not its own.

    A program may touch the addresses that `_place_of` gave, each as one number of its array, and the slots of its sums.
    What lies in lanes is left to the assembler's own functions, where they get what `_place_of` gave. It gives
    `levels.hardware`. What is tried has to be placed inside of this.
    """
    from levels import hardware
    from levels.hardware import assembler, tasks

    own = {name: getattr(assembler, name) for name in ("_place_of", "_load_lanes", "_store_lanes", "Program")}
    places, trusted = {}, {}  # of each assembler: {address: (array, how)}, and lines that the course's functions wrote

    def place_of(a, array, indices):
        begin = len(a.lines)
        address, how = own["_place_of"](a, array, indices)
        places.setdefault(a, {})[address] = array, how
        trusted.setdefault(a, set()).update(a.lines[begin:])
        return address, how

    def load_lanes(a, array, address, how):
        return in_lanes("_load_lanes", a, (array, address, how))

    def store_lanes(a, register, array, address, how):
        return in_lanes("_store_lanes", a, (array, address, how), register)

    def in_lanes(name, a, place, *more):
        array, address, how = place
        if places.get(a, {}).get(address) != (array, how):
            raise Wrong(f"{mine.said}: give `{name}` the array, and the two that `_place_of` gave for it")
        begin = len(a.lines)
        value = own[name](a, *more, *place)
        trusted[a].update(a.lines[begin:])
        return value

    def program(a):
        kinds = {at: "" if how == "apart" else array.kind for at, (array, how) in places.get(a, {}).items()}
        kinds |= {f"%slot{k}": a.kind for k in range(len(a.slots))}
        for line in a.lines:
            if "ptr" in line and line not in trusted.get(a, ()):
                check_access(mine.said, line.strip(), kinds)
        return own["Program"](a)

    def write_anew():
        for written in (tasks.line_program, tasks.net_program, tasks._predict_program):
            written.cache_clear()

    try:
        write_anew()
        vars(assembler).update(_place_of=place_of, _load_lanes=load_lanes, _store_lanes=store_lanes, Program=program)
        yield hardware
    finally:
        vars(assembler).update(own)
        write_anew()


def check_access(said, line, kinds):
    """Raise Wrong for a line that touches other memory than these {address: the kind of number there, or "" in lanes}."""
    if re.match(r"%\S+ = store", line):
        raise Wrong(f"{said}: `{line}` is written as if a store set a register; `emit` appends a line as it is")
    found = ACCESS.fullmatch(line)
    if not found:
        raise Wrong(f"{said}: `{line}` is no load and no store of a number, such as `store double %v1, ptr %v0`")
    kind, at = found.groups()
    if not kinds.get(at):
        what = "several places, one for each lane" if at in kinds else "neither what `_place_of` gave nor a sum's slot"
        raise Wrong(f"{said}: `{line}` touches {at}, which is {what}")
    if kind != kinds[at]:
        raise Wrong(f"{said}: `{line}` touches a {kind}, but {kinds[at]} is the type of what is there")


# How numbers lie in the programs of the cases: (dtype, lanes, in words).
LAYOUTS = ("f8", 1, ""), ("f4", 1, ", in float32"), ("f4", 4, ", in 4 lanes")


def ran(mine, said, a, write, **given):
    """What `y` holds after a program ran: write(a, x=…, y=…) writes it. An array of whole numbers holds rows of x."""
    from levels.hardware import pool

    given = {name: array if array.dtype.kind == "i" else array.astype(a.dtype) for name, array in given.items()}
    rows = {name: len(given["x"]) if array.dtype.kind == "i" else None for name, array in given.items()}
    arrays = {name: a.array(name, *array.shape, rows_of=rows[name]) for name, array in given.items()}
    mine.call(said, write, a, **arrays)
    program = mine.call(said, a.assemble)
    held = {name: pool()["cpu:0"].put(array) for name, array in given.items()}
    mine.call(said, program, **held)
    return held["y"].numpy()


def in_a_loop(body):
    """write(a, …) of a program with body(a, i, …) in a loop over the rows of y, in all lanes."""

    def write(a, y, **arrays):
        with a.loop(y.shape[0], a.lanes) as i:
            body(a, i, y=y, **arrays)

    return write


def refused(mine, said, kind, function, *arguments):
    """Whether a call raises what it should, in words."""

    def tried():
        try:
            function(*arguments)
        except kind:
            return f"raises {kind.__name__}"
        return "is not refused"

    return mine.call(said, tried)


@cases("01-_Loads.load")
def load(mine, draw):
    """What a program copies that loads; what a load refuses; both tasks."""

    def one_column(a, i, x, y):
        a.store(a.load(x, i, 1), y, i)

    def one_place(a, i, x, y):
        a.store(a.load(x, 2, 0), y, i)

    def a_line(a, i, x, y):
        a.store(a.load(x, i), y, i)

    def picked(a, i, x, p, y):
        a.store(a.load(x, a.load(p, i), 1), y, i)

    x, rows = draw.normal(size=(6, 2)), np.array([2, 0, 0, 5, 1, 2, 4])
    with guarded(mine) as hardware:
        with mine.placed("_Loads.load", "hardware"):
            told, a = "y[i] = x[i, 1], for the rows [1, 2] and [3, 4] of x", hardware.Assembler("program", "f8")
            yield told, ran(mine, told, a, in_a_loop(one_column), x=np.array([[1.0, 2.0], [3.0, 4.0]]), y=np.zeros(2))
            for said, body, given in (
                ("y[i] = x[2, 0]", one_place, dict(x=x)),
                ("y[i] = x[i]", a_line, dict(x=x[:, 0])),
                ("y[i] = x[i, 1]", one_column, dict(x=x)),
                ("y[i] = x[p[i], 1], where p holds row numbers", picked, dict(x=x, p=rows)),
            ):
                for dtype, lanes, layout in LAYOUTS:
                    told, a = said + layout, hardware.Assembler("program", dtype, lanes)
                    yield told, ran(mine, told, a, in_a_loop(body), **given, y=np.zeros(len([*given.values()][-1])))
            a = hardware.Assembler("program", "f8")
            x, nine = a.array("x", 3, 2), a.array("p", 3, rows_of=9)
            told = "x[0, 2], of rows of two numbers"
            yield told, refused(mine, told, IndexError, a.load, x, 0, 2)
            told = "x[p[0], 1], where p holds row numbers below 9, and x has 3 rows"
            yield told, refused(mine, told, IndexError, lambda: a.load(x, a.load(nine, 0), 1))
        yield "20 steps of both tasks", mine.losses("_Loads.load", "hardware")


@cases("01-Assembler.store")
def store(mine, draw):
    """What a program stores, and where; what a store refuses; both tasks."""

    def one_column(a, i, x, y):
        a.store(a.load(x, i), y, i, 1)

    def a_line(a, i, x, y):
        a.store(a.load(x, i), y, i)

    def a_number(a, i, x, y):
        a.store(2.5, y, i)

    def a_total(a, x, y):
        total = a.sum()
        with a.loop(x.shape[0], a.lanes) as i:
            total += a.load(x, i)
        a.store(total.total(), y, 2)

    x = draw.normal(size=6)
    with guarded(mine) as hardware:
        with mine.placed("Assembler.store", "hardware"):
            told, a = "y[i, 1] = x[i], for x = [3, 5], where y is full of zeros", hardware.Assembler("program", "f8")
            yield told, ran(mine, told, a, in_a_loop(one_column), x=np.array([3.0, 5.0]), y=np.zeros((2, 2)))
            for said, write, y in (
                ("y[i] = x[i]", in_a_loop(a_line), np.zeros(6)),
                ("y[i] = 2.5", in_a_loop(a_number), np.zeros(6)),
                ("y[i, 1] = x[i]", in_a_loop(one_column), np.zeros((6, 2))),
                ("y[2] = the sum of x, behind the loop", a_total, np.zeros(3)),
            ):
                for dtype, lanes, layout in LAYOUTS:
                    told, a = said + layout, hardware.Assembler("program", dtype, lanes)
                    yield told, ran(mine, told, a, write, x=x, y=y)
            a = hardware.Assembler("program", "f8")
            rows, y = a.array("p", 3, rows_of=9), a.array("y", 3, 2)
            with a.loop(3) as i:
                inside = a.load(y, i, 0)
            for told, kind, *given in (
                ("y[0, 2] = 1.0, of rows of two numbers", IndexError, 1.0, y, 0, 2),
                ("p[0] = 1.0, where p holds row numbers", TypeError, 1.0, rows, 0),
                ("y[0, 0] = a value of a loop that has ended", ValueError, inside, y, 0, 0),
                ("y[0, 0] = an index", TypeError, a.index(1), y, 0, 0),
            ):
                yield told, refused(mine, told, kind, a.store, *given)
        yield "20 steps of both tasks", mine.losses("Assembler.store", "hardware")


@cases("01-_Sum.__iadd__")
def added(mine, draw):
    """Totals of small programs; both tasks."""

    def add(total, term, said="total += x[i]"):
        result = mine.call(said, operator.iadd, total, term)
        if result is not total:
            raise Wrong(f"`{said}` makes `total` {describe(result)}: `__iadd__` gives back the sum itself, `self`")

    def of_all(a, x, y):
        total = a.sum()
        with a.loop(x.shape[0], a.lanes) as i:
            add(total, a.load(x, i))
        a.store(total.total(), y, 0)

    def of_squares_too(a, x, y):
        total, squares = a.sum(), a.sum()
        with a.loop(x.shape[0], a.lanes) as i:
            v = a.load(x, i)
            add(total, v)
            add(squares, v * v, "squares += x[i] * x[i]")
        a.store(total.total(), y, 0)
        a.store(squares.total(), y, 1)

    def of_each_turn(a, x, y):
        with a.loop(2) as row:
            total = a.sum()
            with a.loop(x.shape[0], a.lanes) as i:
                add(total, a.load(x, i))
            a.store(total.total(), y, row)

    def of_ones(a, x, y):
        total = a.sum()
        with a.loop(x.shape[0], a.lanes):
            add(total, 1.0, "total += 1.0")
        a.store(total.total(), y, 0)

    def of_numbers(a, x, y):
        total = a.sum()
        for number in (1.0, 0.25):
            add(total, number, f"total += {number}")
        a.store(total.total(), y, 0)

    with guarded(mine) as hardware:
        with mine.placed("_Sum.__iadd__", "hardware"):
            for said, write, x in (
                ("total += x[i], for x = [1, 2, 3]", of_all, np.array([1.0, 2.0, 3.0])),
                ("total += x[i], for x = [-0.0]", of_all, np.array([-0.0])),
                ("total += x[i], for 30 numbers", of_all, draw.normal(size=30)),
                ("two sums in one loop", of_squares_too, draw.normal(size=30)),
                ("a new sum in each turn of an outer loop", of_each_turn, draw.normal(size=5)),
                ("total += 1.0, in a loop to 6", of_ones, np.zeros(6)),
                ("total += 1.0 and total += 0.25, without a loop", of_numbers, np.zeros(1)),
            ):
                for dtype, lanes, layout in LAYOUTS:
                    told, a = said + layout, hardware.Assembler("program", dtype, lanes)
                    yield told, ran(mine, told, a, write, x=x, y=np.zeros(2))
            a = hardware.Assembler("program", "f8")
            with a.loop(3):
                total = a.sum()
            told = "a sum of a loop that has ended"
            yield told, refused(mine, told, ValueError, operator.iadd, total, 1.0)
        yield "20 steps of both tasks", mine.losses("_Sum.__iadd__", "hardware")


@cases("01-_loop_lines")
def loop_lines(mine, draw):
    """How often written loops turn, on paper; then both tasks."""

    def loop(body, n, end, step=1):
        said = f"_loop_lines({n}, {end!r}, {step})"
        both = mine.call(said, mine.function, n, end, step)
        if not isinstance(both, tuple | list) or len(both) != 2 or not all(isinstance(each, list) for each in both):
            raise Wrong(f"{said} gives {describe(both)}; expected two lists: the lines before the body, those after it")
        before, after = both
        return [*before, *body, *after]

    rows, three = "%word.rows", loop(["turn %i0"], 0, "3")
    inner = loop(["turn %i3 %i8"], 8, "3")
    deep = loop(loop(loop(["turn %i1 %i2 %i3"], 3, "2"), 2, "2"), 1, "2")
    for said, lines, known, expected in (
        ("a loop to 3", three, {}, ["0", "1", "2"]),
        ("a loop to %word.rows, which is 2", loop(["turn %i5"], 5, rows), {rows: 2}, ["0", "1"]),
        ("a loop to %word.rows, which is 0", loop(["turn %i5"], 5, rows), {rows: 0}, []),
        ("a loop to 10 in steps of 4", loop(["turn %i17"], 17, "10", 4), {}, ["0", "4", "8"]),
        ("loops to 2 and to 1", loop(["turn %i0"], 0, "2") + loop(["turn %i9"], 9, "1"), {}, ["0", "1", "0"]),
        ("a loop to 3 in a loop to 2", loop(inner, 3, "2"), {}, ["0 0", "0 1", "0 2", "1 0", "1 1", "1 2"]),
        ("three loops to 2, one in another", deep, {}, [f"{k:03b}".replace("", " ").strip() for k in range(8)]),
    ):
        turns = Paper(said, lines, known).run()
        yield f"{said}: the counter in each turn", ", ".join(turns) or "no turn"
        if turns != expected:
            return  # a machine would not survive it
    with guarded(mine):
        yield "20 steps of both tasks", mine.losses("_loop_lines", "hardware")


INSTRUCTIONS = {"add": operator.add, "icmp slt": operator.lt, "icmp ult": operator.lt, "icmp sle": operator.le}
INSTRUCTIONS |= {"icmp sgt": operator.gt, "icmp sge": operator.ge, "icmp ne": operator.ne, "icmp eq": operator.eq}
JUMPS = 200  # that a program may make on paper


class Paper:
    """The lines of loops, run by hand: no machine waits for a loop without end. `turn %i0` stands for a body."""

    def __init__(self, said, lines, known):
        self.said, self.known, self.turns = said, dict(known), []
        self.blocks, names = {}, set()
        for line in ["start:", *lines, "ret void"]:
            if not isinstance(line, str):
                raise Wrong(f"{said}: a line is {describe(line)}; expected text")
            line = line.strip()
            name = re.match(r"(%\S+) =|(\S+):$", line)
            if name and name[0] in names:
                raise Wrong(f"{said}: `{line}` stands there twice; with n in its name it would belong to one loop")
            names.add(name and name[0])
            if line.endswith(":"):
                here = self.blocks[line[:-1]] = []
            else:
                here.append(line)

    def fail(self, why):
        raise Wrong(f"{self.said}: {why}")

    def run(self):
        """What the counters were, each time that a body was reached."""
        here, before = "start", ""
        for _ in range(JUMPS):
            *lines, last = self.blocks[here] or [""]
            for line in lines:
                self.step(line, before)
            if last == "ret void":
                return self.turns
            here, before = self.target(last, here), here
        self.fail(f"the loop does not end; its first turns have the counters {', '.join(self.turns[:3])}")

    def step(self, line, before):
        match line.replace(",", " ").replace("[", " ").replace("]", " ").split():
            case ["turn", *counters]:
                self.turns.append(" ".join(str(self.number(each, "the body")) for each in counters))
            case [name, "=", "phi", "i64", *ways]:
                ways = dict(zip(ways[1::2], ways[::2], strict=False))
                if f"%{before}" not in ways:
                    self.fail(f"`{line}` is reached by a jump from the block `{before}`, which it does not name")
                self.known[name] = self.number(ways[f"%{before}"], line)
            case [name, "=", *how, "i64", x, y] if " ".join(how) in INSTRUCTIONS:
                self.known[name] = INSTRUCTIONS[" ".join(how)](self.number(x, line), self.number(y, line))
            case ["br", *_]:
                self.fail(f"something stands between the jump `{line}` and the next block")
            case _:
                self.fail(f"`{line}` is no instruction of a loop; those are phi, icmp slt, add and br")

    def target(self, line, here):
        match line.replace(",", " ").split():
            case ["br", "label", target]:
                pass
            case ["br", "i1", condition, "label", yes, "label", no]:
                target = yes if self.number(condition, line) else no
            case _:
                self.fail(f"the block `{here}` ends with `{line}`; every block ends with a jump, `br …`")
        if target[1:] not in self.blocks:
            self.fail(f"`{line}` jumps to {target}, but there is no line `{target[1:]}:`")
        return target[1:]

    def number(self, text, where):
        if re.fullmatch(r"-?\d+", text):
            return int(text)
        if text not in self.known:
            self.fail(f"{text} is not set yet in `{where}`")
        return self.known[text]
