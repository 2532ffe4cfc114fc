"""Random programs for an assembler of level 1. Each is refused, or does what a plain interpreter does on NumPy.

`Both` writes programs for level 1's Assembler. A test of a subclass of Assembler has a subclass of `Both`, and perhaps
one of `State`. The same seed gives the same program in each run.
"""

import collections
import contextlib
import ctypes
import inspect
import itertools
import math
import mmap
import operator
import sys
from fractions import Fraction
from random import Random
from typing import NamedTuple

import numpy as np
from fresh import printed

from course.author.build import ROOT
from levels.hardware import Assembler, Buffer, Device, pool, select

CPU, OTHER = pool()["cpu:0"], Device("cpu:1", 2**30, simulated=True)

DTYPES = ["f4", "f8"]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt]
ERRORS = (TypeError, ValueError, IndexError, MemoryError, LookupError, OverflowError)  # and no KeyError
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]
SHAPES = {"x": ("n",), "y": ("n", 4), "z": ("m", "n"), "u": (8,), "v": (4, 3), "w": ("m",)}  # floats
ROWS = {"r": (("m",), "n"), "s": (("n", 3), "n"), "t": (("n",), 4)}  # shape, and what the row numbers count
CONSTANTS = [0, 1, 2.0, -0.5, 3, True, np.float32(2), np.int64(-1), np.float64(0.25), Fraction(1, 2)]


def buffer_on(device, data):
    """A buffer that stands in memory of ours, so that we see what is written beside it."""
    return Buffer(device.spec(data.shape, data.dtype), data)


def refused(attempt):
    """Whether this is an error of the kinds that a reader may see; any other error goes on."""
    try:
        attempt()
    except ERRORS as error:
        assert type(error) is not KeyError
        return True
    return False


class State:
    """What the plain interpreter runs on: arrays, sizes, numbers, and what has been computed so far."""

    def __init__(self, a, arrays, sizes, numbers):
        self.a, self.arrays, self.sizes, self.numbers = a, arrays, sizes, numbers
        self.values, self.exact, self.steps = {}, True, 0

    def get(self, made):
        return self.values[made.key] if isinstance(made, Made) else np.float64(self.a.dtype.type(made))

    def counted(self, value):
        """The numbers of a value that count."""
        return value

    def checked(self, value, *divisors):
        """float32 programs may fuse and reorder: their numbers count while no rounding can happen in any order."""
        self.steps += 1
        if self.steps > 20_000:
            raise TimeoutError
        if self.a.dtype == np.float32:
            for v in map(self.counted, (value, *divisors)):
                self.exact &= bool((np.abs(v) <= 2**12).all() and (v * 16 == np.rint(v * 16)).all())
            self.exact &= all((np.abs(np.frexp(d)[0]) == 0.5).all() for d in divisors)
        return value

    def place(self, name, indices):
        """The place in the array; an index that leaves it is what must never happen."""
        place = tuple(int(self.values[i.key]) if isinstance(i, Made) else i for i in indices)
        assert all(0 <= i < size for i, size in zip(place, self.arrays[name].shape, strict=True)), f"{name} is left"
        return place

    def read(self, name, indices):
        return self.arrays[name][self.place(name, indices)]

    def write(self, name, indices, value):
        self.arrays[name][self.place(name, indices)] = value

    def grow(self, total, term):
        """Add a term to a sum."""
        self.values[total.key] = self.checked(self.get(total) + self.get(term))

    def turns(self, extent):
        """The values of a loop's counter."""
        return map(np.int64, range(self.sizes.get(extent, extent)))


class Made(NamedTuple):
    """An instruction's result: in the assembler, and its place in the interpreter's values.

    `of` is what an index counts.
    """

    kind: str
    thing: object
    key: int
    of: object = None


class Both:
    """Writes one random program twice: with the assembler, and as Python closures that run on NumPy.

    A subclass for another assembler changes the names from `assembler` to `elsewhere`. It may extend the methods that
    write an instruction.
    """

    assembler = Assembler
    state = State  # what the closures run on
    counts_indices = False  # whether `count` takes an index, too

    def begin(self, dtype):
        """The assembler for a new program."""
        return self.assembler("p", dtype)

    def loop_options(self):
        """What the assembler's `loop` is given besides the extent, and the interpreter's `turns`."""
        return []

    def wrong_loop(self):
        return self.a.loop(4, 1).__enter__()

    def wrong_assembler(self):
        return self.assembler("q", "f8", 4)

    def elsewhere(self, buffer):
        """A copy of this buffer on another device."""
        return OTHER.put(buffer.numpy())

    def __init__(self, random):
        self.random, self.keys = random, itertools.count()
        self.a = self.begin(random.choice(DTYPES))
        self.alive, self.blocks, self.ended = [[]], [[]], []
        self.arrays = {
            name: self.a.array(name, *SHAPES[name]) for name in sorted({"u", *random.sample(sorted(SHAPES), 3)})
        }
        self.arrays |= {
            name: self.a.array(name, *ROWS[name][0], rows_of=ROWS[name][1]) for name in random.sample(sorted(ROWS), 2)
        }
        self.note("value", self.a.number("lr"), lambda state: state.numbers["lr"])
        other = self.assembler("q", self.a.dtype)
        rows = other.array("rows", 1, rows_of=1)
        self.foreign = [other.number("lr"), other.sum(), other.load(rows, 0), other.number("k") < 1]
        self.sizes = sorted({size for array in self.arrays.values() for size in array.shape}, key=str)

    def note(self, kind, thing, run, of=None):
        key = next(self.keys)
        self.blocks[-1].append(lambda state: state.values.__setitem__(key, run(state)))
        self.alive[-1].append(Made(kind, thing, key, of))
        return self.alive[-1][-1]

    def all(self, kind):
        return [made for scope in self.alive for made in scope if made.kind == kind]

    def pick(self, kind):
        """Something of that kind that is alive, more often what is new."""
        found = self.all(kind)
        return found[-1 - int(self.random.random() ** 2 * len(found))]

    def operand(self):
        return self.random.choice(CONSTANTS) if self.random.random() < 0.2 else self.pick("value")

    def index_of(self, size):
        """An index for an axis of that size: mostly one that fits."""
        random, fitting = self.random, [i for i in self.all("index") if i.of == size]
        if random.random() < 0.03:
            return self.pick("index")
        if not isinstance(size, str) and (not fitting or random.random() < 0.3):
            return random.randrange(size)
        return random.choice(fitting or [0])

    def thing(self, operand):
        return operand.thing if isinstance(operand, Made) else operand

    def calculate(self):
        (x, y), random = (self.operand(), self.pick("value")), self.random
        x, y = random.choice([(x, y), (y, x)])
        how = random.choice(OPERATORS)

        def run(state):
            divisors = [state.get(y)] if how is operator.truediv else []
            return state.checked(how(state.get(x), state.get(y)), *divisors)

        self.note("value", how(self.thing(x), self.thing(y)), run)

    def compare(self):
        x, y, how = self.operand(), self.pick("value"), self.random.choice(COMPARISONS)
        self.note("condition", how(self.thing(x), self.thing(y)), lambda state: how(state.get(x), state.get(y)))
        self.choose()

    def choose(self):
        c, x, y = self.pick("condition"), self.operand(), self.operand()
        thing = select(c.thing, self.thing(x), self.thing(y))
        self.note("value", thing, lambda state: np.where(state.get(c), state.get(x), state.get(y)))

    def count(self):
        size = self.random.choice(self.sizes)
        self.note("value", self.a.count(size), lambda s: s.checked(np.float64(s.sizes.get(size, size))))

    def load(self, names=SHAPES):
        name = self.random.choice([name for name in self.arrays if name in names])
        indices = [self.index_of(size) for size in self.arrays[name].shape]

        def run(state):
            found = state.read(name, indices)
            return found if name in ROWS else state.checked(found.astype(np.float64))

        of = ROWS[name][1] if name in ROWS else None
        self.note("index" if of else "value", self.a.load(self.arrays[name], *map(self.thing, indices)), run, of)

    def load_row(self):
        self.load(ROWS)

    def store(self, value=None, name=None, *indices):
        value = self.operand() if value is None else value
        name = name or self.random.choice([name for name in self.arrays if name in SHAPES])
        indices = indices or [self.index_of(size) for size in self.arrays[name].shape]
        self.a.store(self.thing(value), self.arrays[name], *map(self.thing, indices))
        self.blocks[-1].append(lambda state: state.write(name, indices, state.get(value)))

    def sum(self):
        self.note("sum", self.a.sum(), lambda state: np.float64(0))

    def add(self, term=None):
        total, term = self.pick("sum"), self.operand() if term is None else term
        sum_ = total.thing
        sum_ += self.thing(term)
        self.blocks[-1].append(lambda state: state.grow(total, term))

    def total(self, made=None):
        made = made or self.pick("sum")
        return self.note("value", made.thing.total(), lambda state: state.get(made))

    def loop(self):
        if len(self.alive) > 3:
            return
        extent = self.random.choice([*self.sizes, 2])
        options = self.loop_options()
        with self.a.loop(extent, *options) as i:
            self.alive.append([])
            self.blocks.append([])
            self.note("index", i, lambda state: state.values["counter"], extent)
            self.statements(self.random.randint(2, 9))
        body = self.blocks.pop()
        self.ended += self.alive.pop()

        def run(state):
            for turn in state.turns(extent, *options):
                state.values["counter"] = turn
                for step in body:
                    step(state)

        self.blocks[-1].append(run)

    def mischief(self):
        """What must be refused, and leave the program as it was."""
        a, random = self.a, self.random
        floats = [array for name, array in self.arrays.items() if name in SHAPES]
        x, v = floats[0], self.pick("value").thing
        rows = next(array for name, array in self.arrays.items() if name in ROWS)
        i = self.pick("index").thing if self.all("index") else a.load(rows, *[0] * len(rows.shape))
        c, junk = v > 0, random.choice([None, "1", 1j, [1], np.ones(2), a, x, lambda: 0])
        number = random.choice([junk, i, c, 10**400, Fraction(10**400), *self.foreign])
        whole = random.choice([junk, 0.5, v, c, -1, 2**31, -(10**400), np.float64(1), *self.foreign[:3]])
        uncountable = [junk, v, -1, 2**31] if self.counts_indices else [junk, v, i, -1, 2**31]
        zeros = [0] * len(x.shape)
        wrong = [
            lambda: random.choice(OPERATORS + COMPARISONS)(v, number),
            lambda: select(c, number, v),
            lambda: select(v, 1.0, 2.0),
            lambda: bool(random.choice([v, i, c])),
            lambda: a.store(number, x, *zeros),
            lambda: a.store(1.0, rows, *[0] * len(rows.shape)),
            lambda: a.store(x, 1.0, *zeros),
            lambda: a.load(
                random.choice([v, "x", None, self.foreign[0], self.assembler("q", "f8").array("x", 9)]), *zeros
            ),
            lambda: a.load(x, *zeros, 0),
            lambda: a.load(x, *zeros[1:], whole),
            lambda: random.choice(OPERATORS + COMPARISONS)(i, random.choice([1, i, v, whole])),
            lambda: a.count(random.choice([*uncountable, *self.foreign])),
            lambda: a.loop(random.choice([0, -1, 2.5, 2**31, None, i, "no word"])).__enter__(),
            self.wrong_loop,
            lambda: a.array(random.choice([x.name, "lr", "two words", 3, None, []]), 3),
            lambda: a.array("new", *random.choice([(), (0,), (-1,), (2.5,), (None,), (2**31,), ("",)])),
            lambda: a.number(random.choice([x.name, "two words", 3, None])),
            lambda: self.assembler("q", random.choice(["i4", ">f8", "f2", "O", "no"])),
            self.wrong_assembler,
        ]
        if self.ended:
            kind, gone, *_ = random.choice(self.ended)
            uses = dict(value=lambda: gone + 1, index=lambda: a.load(x, *zeros[1:], gone), sum=lambda: gone.total())
            uses |= dict(condition=lambda: select(gone, 1.0, 2.0))
            wrong += [uses[kind]] * 8
        attempt = random.choice(wrong)
        assert refused(attempt), f"accepted: {inspect.getsource(attempt)}"

    def statements(self, n):
        for _ in range(n):
            if self.random.random() < 0.08:
                self.mischief()
            weights = dict(calculate=3, compare=1, choose=1, count=1, load=4, load_row=2, store=4)
            weights |= dict(sum=1, add=3, total=2, loop=3)
            name = self.random.choices(list(weights), weights.values())[0]
            refused(getattr(self, name))  # an IndexError too where there is nothing yet to pick
        for made in [made for made in self.alive[-1] if made.kind == "value"][-3:] if self.all("sum") else []:
            self.add(made)  # what nobody uses would not be noticed

    def write(self):
        """The whole program."""
        refused(self.random.choice([self.sum, self.loop]))
        self.sum()
        self.loop()
        self.statements(self.random.randint(3, 12))
        for k, made in enumerate(self.all("sum")[:8]):
            self.store(self.total(made), "u", k)
        return self.a.assemble()


def fenced(numbers, dtype, shape=-1):
    """These numbers in memory that ends where nothing may be read or written, on systems that can do this."""
    numbers = np.array(numbers, dtype)
    pages = -(-numbers.nbytes // mmap.PAGESIZE) or 1
    memory = np.frombuffer(mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE), np.uint8)
    if sys.platform != "win32":
        fence = ctypes.c_void_p(memory.ctypes.data + pages * mmap.PAGESIZE)
        assert ctypes.CDLL(None).mprotect(fence, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    data = memory[pages * mmap.PAGESIZE - numbers.nbytes : pages * mmap.PAGESIZE].view(dtype)
    data[:] = numbers
    return data.reshape(shape)


def memory_for(both, random):
    """Sizes, and random arrays for them, all in one piece of memory with a margin between them; some share a place."""
    sizes, dtype = {name: random.choice([0, 1, 2, 3, 5, 8, 9, 17]) for name in "nm"}, both.a.dtype
    numbers = [-2, -1, 0, 1, 2, 3]
    if dtype == "f8":
        numbers = random.choice([[0.1, -0.7, 1.3, 9.1, 1e-5], [0.1, 1e300, -0.0, math.inf, math.nan, 3, -1e-310]])
    shapes = {name: tuple(sizes.get(size, size) for size in array.shape) for name, array in both.arrays.items()}
    starts, end = {}, 0
    for name in filter(SHAPES.__contains__, random.sample(list(shapes), len(shapes))):
        shared = [start for other, start in starts.items() if math.prod(shapes[other]) >= math.prod(shapes[name])]
        end += 40  # the margin
        starts[name] = random.choice(shared) if shared and random.random() < 0.3 else end
        end = max(end, starts[name] + math.prod(shapes[name]))
    arena = fenced([random.choice(numbers) for _ in range(end)], dtype)

    def views(arena):
        return {k: arena[start : start + math.prod(shapes[k])].reshape(shapes[k]) for k, start in starts.items()}

    rows = {}
    for name in filter(ROWS.__contains__, shapes):
        limit = max(sizes.get(ROWS[name][1], ROWS[name][1]), 1)
        rows[name] = fenced([random.randrange(limit) for _ in range(math.prod(shapes[name]))], "i8", shapes[name])
    return sizes, arena, views, rows


def spoil(both, given, sizes, random):
    """Make a good call a wrong one, in one of many ways."""
    name, row = random.choice(list(both.arrays)), random.choice([name for name in both.arrays if name in ROWS])
    data, spoiled = given[name].data, given[row].data.copy()
    other = random.choice(["f2", ">i8", "u8", "?", "f4" if data.dtype != "f4" else "f8"])
    ways = [
        lambda: given.pop(name),
        lambda: given.update(new=1.0),
        lambda: CPU.free(given[name]),
        lambda: given.update({name: CPU.put(data.astype(other))}),
        lambda: given.update({name: CPU.put(data[None])}),
        lambda: given.update({name: both.elsewhere(given[name])}),
        lambda: given.update({name: random.choice([None, 3, "x", data, CPU, 10**400])}),
        lambda: given.update(
            lr=random.choice([None, "1", 1j, 10**400, -Fraction(10**400), [1.0], np.ones(1), given[name]])
        ),
    ]
    if data.size > 1:
        ways.append(
            lambda: setattr(given[name], "data", random.choice([np.repeat(data, 2, -1)[..., ::2], data.tolist()]))
        )
    if spoiled.size:
        limit = sizes.get(ROWS[row][1], ROWS[row][1])
        spoiled.flat[random.randrange(spoiled.size)] = random.choice([-1, limit, 2**62, -(2**63)])
        ways += [lambda: given.update({row: CPU.put(spoiled)})] * 3
    random.choice(ways)()


def fuzz(kind, seed, counts):
    """One random program, written by this kind of Both, and called a few times."""
    random = Random(seed)
    both = kind(random)
    if random.random() < 0.05:
        with contextlib.suppress(ZeroDivisionError), both.a.loop(4):
            raise ZeroDivisionError
        assert refused(both.a.assemble), "assembled with an open loop"
        return
    program = both.write()
    assert refused(both.a.assemble) and refused(lambda: both.a.load(next(iter(both.arrays.values())), 0, 0))
    for _ in range(4):
        sizes, arena, views, rows = memory_for(both, random)
        given = {name: buffer_on(CPU, data) for name, data in (views(arena) | rows).items()}
        given["lr"] = random.choice([*CONSTANTS, np.array(2.0)[()]])
        if random.random() < 0.25:
            spoil(both, given, sizes, random)
            assert refused(lambda: program(**given)), f"accepted: {given}"  # noqa: B023
            continue
        calls, mirror = [], arena.copy()
        state = both.state(both.a, views(mirror) | rows, sizes, {"lr": np.float64(both.a.dtype.type(given["lr"]))})
        if refused(lambda: calls.append(program.bind(**given))):  # noqa: B023
            counts["refused"] += 1
            continue
        if random.random() < 0.1:
            name = random.choice(list(both.arrays))
            random.choice([CPU.free, lambda buffer: setattr(buffer, "data", buffer.data.copy())])(given[name])
            assert refused(calls[0]), f"ran with {name} replaced"
            continue
        try:
            for _ in range(random.choice([1, 2])):  # in the interpreter first: it stops where memory would be left
                for step in both.blocks[0]:
                    step(state)
                calls.append(calls[0])
        except TimeoutError:
            continue
        for call in calls[1:]:
            call()
        counts["run"] += 1
        counts["compared"] += state.exact
        ours = np.zeros(len(arena), bool)  # where numbers may differ: float32 that had to round
        for view in views(ours).values():
            view[...] = not state.exact
        same = (arena == mirror) & ((np.signbit(arena) == np.signbit(mirror)) | (arena.dtype == np.float32))
        assert (same | ours | np.isnan(arena) & np.isnan(mirror)).all(), "differs from the interpreter"


def check(file, seeds, cache):
    """Run this file, which calls `main`, for these seeds: in a process of its own, because a crash would end pytest."""
    paths = [ROOT / "tests" / "support"]
    told = printed(file, seeds.start, seeds.stop, paths=paths, LEVELS_CACHE=str(cache))
    counts = dict(word.split("=") for word in told.splitlines()[-1].split())
    enough = int(counts["compared"]) > 15 and int(counts["refused"]) > 15  # of 50, about 60 calls and 45
    assert len(seeds) < 50 or enough, counts


def main(kind, first, last):
    """Try the programs of these seeds, written by this kind of Both."""
    counts = collections.Counter()
    for seed in range(first, last):
        print("seed", seed, flush=True)  # the last one to be seen, should the process die
        with np.errstate(all="ignore"):
            fuzz(kind, seed, counts)
    print(*(f"{name}={count}" for name, count in counts.items()))
