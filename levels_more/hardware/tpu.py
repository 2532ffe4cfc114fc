"""A TPU, simulated cycle by cycle: a systolic array of cells that multiply and add, and the instructions for it."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from levels.hardware import Device
from levels.support.checks import numeric_array
from levels.support.measure import MEASURES
from levels_more.checks import expect, several, word
from levels_more.hardware.benchmark import amount
from levels_more.hardware.devices import MAKERS


def systolic(x, w):
    """Send x[m, k] through an array that holds w[k, n], cycle by cycle. Returns the sums [m, n], float32.

    In cycle r + i + j, cell (i, j) adds w[i, j] · x[r, i] to the sum of row r, which moves down. So each sum is added
    up in the order of i, and leaves the array at the bottom.
    """
    m, k = x.shape
    n = w.shape[1]
    last = m + k + n - 3  # the number of the last cycle, counted from 0
    r, i = np.ogrid[:m, :k]
    row, j = np.ogrid[:m, :n]
    entering = np.zeros((k, last + n), np.float32)
    sums = np.zeros((last + k, n), np.float32)
    entering[i, last - r - i] = x  # skewed: each row of the array gets its numbers a cycle after the row above
    for place in range(last, -1, -1):
        sums[place : place + k] += w * entering[:, place : place + n]
    return sums[last - row - j, j]


def bfloat16(x):
    """float32 numbers rounded to bfloat16, returned as float32: to nearest, ties to even.

    Any shape; NaN stays NaN. The format: Jouppi et al., 2020, https://doi.org/10.1145/3360307
    """
    x = numeric_array(x)
    expect(x.dtype.kind == "f", "bfloat16: x", x, "float numbers")
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32)
    last = bits >> np.uint32(16) & np.uint32(1)  # the last bit that stays
    rounded = bits + np.uint32(0x7FFF) + last & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), np.float32(np.nan), rounded.view(np.float32))


SIDE = 128  # rows and columns of the array


def _tiles(size):
    """The indices of the tiles that cover a size."""
    return range(-(-size // SIDE))


def _span(tile):
    """The slice of the rows or columns of a tile."""
    return slice(SIDE * tile, SIDE * tile + SIDE)


class _Chip:
    """The chip while a program runs: arrays by name, a waiting tile of weights, sums by column; when each is ready."""

    def __init__(self, given):
        self.given = given
        self.made = {}
        self.written = {}
        self.waiting = None
        self.sums = {}
        self.free, self.ready = Counter(), Counter()  # the cycle from which a unit is free, an array is ready
        # of the systolic array: cycles in use so far, and when it is empty
        self.busy = 0
        self.drained = 0
        self.products = 0  # multiplications of its cells so far

    def array(self, name):
        """The array of that name. Raises LookupError if nothing has written it."""
        if name not in self.made and name not in self.given:
            raise LookupError(f"{name} was never written; there are {', '.join([*self.given, *self.made])}")
        return np.hstack(self.made[name]) if name in self.made else self.given[name]

    def reserve(self, unit, cycles, *ready):
        """Reserve a unit for `cycles`, once it is free and its operands are ready: (unit, first cycle, cycle after)."""
        start = max(self.free[unit], *ready)
        self.free[unit] = start + cycles
        return unit, start, start + cycles


class ReadWeights(NamedTuple):
    """Load a tile of w[inputs, units] into the cells, from above, one row per cycle. `row` and `column` count tiles.

    Running it raises ValueError if another tile still waits, LookupError if w has no such tile.
    """

    w: str
    row: int
    column: int

    def execute(self, chip):
        w = chip.array(self.w)
        if chip.waiting:
            raise ValueError(f"{chip.waiting[0]} still waits in the cells; put a Multiply in between")
        if self.row not in _tiles(w.shape[0]) or self.column not in _tiles(w.shape[1]):
            raise LookupError(f"{self.w} is {w.shape}, and has no such tile of {SIDE} x {SIDE}")
        done = chip.reserve("weights", SIDE, chip.ready[self.w])
        chip.waiting = self, bfloat16(w[_span(self.row), _span(self.column)]), w.shape, done[-1]
        return done


class Multiply(NamedTuple):
    """Multiply the columns of x[rows, inputs] that belong to the waiting tile by it; add to the sums of its column.

    Running it raises LookupError if no tile waits, ValueError for shapes that do not fit.
    """

    x: str

    def execute(self, chip):
        x = chip.array(self.x)
        if not chip.waiting:
            raise LookupError("no weights wait in the cells; put a ReadWeights before it")
        (_, row, column), tile, (inner, units), ready = chip.waiting
        if x.shape[1] != inner:
            raise ValueError(f"x is {x.shape} and w is {(inner, units)}: inner sizes {x.shape[1]} and {inner} differ")
        sums, filled, _ = chip.sums.get(column, (0.0, (len(x), units), 0))
        if filled != (len(x), units):
            raise ValueError(f"sums of column {column} are {filled}, these {(len(x), units)}; Activate those first")
        product = systolic(bfloat16(x[:, _span(row)]), tile)
        _, start, entered = chip.reserve("array", len(x), ready, chip.ready[self.x])
        done = entered + 2 * SIDE - 2  # the rows of the next Multiply can enter before that
        chip.sums[column] = sums + product, filled, done
        chip.waiting = None
        chip.free["weights"] = start
        chip.busy += done - max(start, chip.drained)
        chip.drained = done
        chip.products += len(x) * tile.size
        return "array", start, done


_ACTIVATIONS = {
    "identity": lambda z: z,
    "relu": lambda z: np.where(z <= 0, np.float32(0), z),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
}


class Activate(NamedTuple):
    """Add the bias b[1, units] to the sums of a column of tiles and append function(sums) to the columns of y.

    Running it raises LookupError for an unknown function or missing sums, ValueError for shapes that do not fit.
    """

    column: int
    function: str
    b: str | None
    y: str

    def execute(self, chip):
        if self.function not in _ACTIVATIONS:
            raise LookupError(f"there is no activation {self.function!r}; there are {', '.join(_ACTIVATIONS)}")
        if self.column not in chip.sums:
            raise LookupError(f"the sums of column {self.column} were never written; put a Multiply before it")
        sums, (_, units), ready = chip.sums.pop(self.column)
        if self.b is not None:
            b = chip.array(self.b)
            if b.shape != (1, units):
                raise ValueError(f"{self.b} is {b.shape}; expected {(1, units)}")
            sums = sums + b[:, _span(self.column)]
        columns = chip.made.setdefault(self.y, [])
        if len(columns) != self.column:
            raise ValueError(f"{self.y} has {len(columns)} columns of tiles; activate the next, or name another array")
        columns.append(_ACTIVATIONS[self.function](sums))
        done = chip.reserve("activation", len(sums), ready, chip.ready[self.b])
        chip.ready[self.y] = done[-1]
        return done


class Write(NamedTuple):
    """Write an array to the host's memory, 128 numbers per cycle. Running it raises LookupError if there is none."""

    y: str

    def execute(self, chip):
        y = chip.written[self.y] = chip.array(self.y)
        return chip.reserve("host", len(y) * len(_tiles(y.shape[1])), chip.ready[self.y])


def dense_program(inputs, units, function="identity", x="x", w="w", b=None, y="y"):
    """The instructions for y = function(x @ w + b), with w[inputs, units] in tiles, for any number of rows."""
    program = []
    sizes = {"inputs": inputs, "units": units}
    for name, value in sizes.items():
        whole = isinstance(value, int | np.integer) and value is not True and 0 < value < 2**31
        expect(whole, f"dense_program: {name}", value, "a whole number from 1 to 2³¹ - 1")
    activations = ", ".join(_ACTIVATIONS)
    expect(word("dense_program: function", function) in _ACTIVATIONS, "dense_program: function", function, activations)
    for column in _tiles(units):
        for row in _tiles(inputs):
            program += [ReadWeights(w, row, column), Multiply(x)]
        program.append(Activate(column, function, b, y))
    return program


def run_program(name, program, arrays):
    """Run instructions on {name: float32[rows, columns]}. Returns the chip and [(unit, start, end, instruction)].

    Raises TypeError for unsuitable arrays. For an instruction that cannot be run, raises TypeError, ValueError or
    LookupError with its number.
    """
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype != np.float32 or array.ndim != 2 or not array.size:
            found = f"{getattr(array, 'dtype', type(array).__name__)}{list(getattr(array, 'shape', ()))}"
            raise TypeError(
                f"{name}: {key} is {found}; expected float32[rows, columns], not empty; try .astype('float32')"
            )
    chip = _Chip(arrays)
    timeline = []
    several(f"{name}: the program", program, "a list of instructions")
    for number, instruction in enumerate(program):
        where = f"{name}, instruction {number}, {instruction}"
        if not isinstance(instruction, ReadWeights | Multiply | Activate | Write):
            raise TypeError(f"{where}: expected ReadWeights, Multiply, Activate or Write")
        try:
            with np.errstate(all="ignore"):  # infinities and NaN pass through the array without a warning
                timeline.append((*instruction.execute(chip), instruction))
        except (LookupError, TypeError, ValueError) as error:
            raise type(error)(f"{where}: {error}") from None
    return chip, timeline


class Tpu(Device):
    """One core of a TPU v2, simulated cycle by cycle: bfloat16 into the array, float32 out of it (Jouppi et al., 2020).

    `cycles` counts those of all its programs. `timeline` lists the instructions of the last one, as `run_program` does.
    """

    # cells in a row and in a column; cycles per second
    size = SIDE
    clock = 700e6
    dtypes = tuple(map(np.dtype, ("float32", "int64", "bool")))

    def __init__(self, name):
        super().__init__(name, memory=8 * 2**30, simulated=True)
        self.cycles = 0
        self.busy = 0
        self.products = 0
        self.timeline = []

    def spec(self, shape, dtype):
        """The Spec of a buffer on this device. Raises TypeError for a dtype that it does not have."""
        if np.dtype(dtype or "none") not in self.dtypes:  # (NumPy takes None for float64)
            names = ", ".join(map(str, self.dtypes))
            raise TypeError(f"{self.name} has {names}, and no {np.dtype(dtype)}; convert first: x.astype('float32')")
        return super().spec(shape, dtype)

    def facts(self):
        """This device's rows in the pool's table: {row name: text}."""
        return {
            "array": f"{self.size} x {self.size} cells",
            "clock": f"{amount(self.clock, 'Hz')}, published",
            "peak of one": f"{amount(self.peak, 'flop/s')}, published",
            "bandwidth": f"{amount(self.bandwidth, 'B/s')}, published",
            "a launch": "not modelled",
        }

    def run(self, program, **arrays):
        """Run instructions on float32 arrays [rows, columns]; count cycles. Returns what they wrote, {name: array}."""
        chip, self.timeline = run_program(self.name, program, arrays)
        self.cycles += max((end for _, _, end, _ in self.timeline), default=0)
        self.busy = self.busy + chip.busy
        self.products = self.products + chip.products
        return chip.written

    def matmul(self, x, w):
        """x[m, k] @ w[k, n], float32, not empty, rounded to bfloat16: sums of 128 products, added in order of k."""
        program = (
            dense_program(*w.shape) if isinstance(w, np.ndarray) and w.ndim == 2 and w.size else []
        )  # otherwise `run` raises the error
        return self.run([*program, Write("y")], x=x, w=w)["y"]

    @property
    def utilisation(self):
        """The share of the cells that did useful work, over the cycles in which the array was in use."""
        return self.products / (self.busy * SIDE * SIDE) if self.busy else 0.0


MAKERS["tpu"] = Tpu
# a simulator has no speed: these figures were published, half a chip's 46 Tflop/s and 700 GB/s
MEASURES["tpu", "peak"] = lambda device: 2 * SIDE * SIDE * device.clock
MEASURES["tpu", "bandwidth"] = lambda device: 350e9
