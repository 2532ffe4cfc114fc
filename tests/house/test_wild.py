"""Random programs on what is hard: NaN, infinities, both zeros, empty arrays, a single row; every dtype; results of any shape.

Each runs op by op, as a function and over batches, on every back end: the same bits, and no crash.
"""

import collections

import numpy as np
import pytest
from back_ends import CHOICES, choose, kinds

from levels.support import cache
from levels_more import low_level as low
from levels_more.low_level import GradientTape, Variable, cast, constant, function, maximum, minimum, reduce_sum, where

SPECIAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 5e-324, -1e300, 1e17)
PLAIN = (0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, 1.0, -1.0, 2.0)  # whose sums and products are exact in float32, too
AXES = (0, 1, -1, None)
EXACT = {  # on any numbers, also where a program may fuse a product with a sum
    "add": lambda s, a, b: a + b,
    "subtract": lambda s, a, b: a - b,
    "multiply": lambda s, a, b: a * b,
    "beside a number": lambda s, a: (a + 2, 1 - a, a * -1)[int(s * 3)],
    "negative": lambda s, a: -a,
    "less": lambda s, a, b: a < b,
    "equal": lambda s, a, b: a == b,
    "among": lambda s, a: a >= 1,
    "absolute": lambda s, a: low.absolute(a),
    "maximum": lambda s, a, b: maximum(a, b),
    "minimum": lambda s, a, b: minimum(a, b),
    "where": lambda s, mask, a, b: where(mask, a, b),
    "masked": lambda s, a, b: where(a > b, a, b),
    "cast": lambda s, mask, a: cast(mask, a.dtype) if mask.dtype == bool or a.dtype.kind == "f" else a,
    "reduce_sum": lambda s, a: reduce_sum(a, AXES[int(s * 4)], s * 40 % 10 < 5),
    "reduce_max": lambda s, a: low.reduce_max(a, AXES[int(s * 4)], s * 40 % 10 < 5),
    "reduce_min": lambda s, a: low.reduce_min(a, AXES[int(s * 4)], s * 40 % 10 < 5),
    "concat": lambda s, a, b: low.concat([a, b], int(s * 2)),
    "slice": lambda s, a: a[:, int(s * 3) :],
    "steps": lambda s, a: a[..., ::-1] if s < 0.5 else a[::-1, ::-2],
    "none of them": lambda s, a: a[:, :0],
    "rows": lambda s, a: a[int(s * 2) :],
    "gather": lambda s, a: low.gather(a, [0] * int(s * 4)),
    "transpose": lambda s, a: low.transpose(a),
    "axes": lambda s, a: low.transpose(a, ((1, 2, 0), (2, 0, 1))[int(s * 2)]),
    "reshape": lambda s, a: low.reshape(a, (-1, 1)),
    "matmul": lambda s, a, b: a @ b,
    "turned": lambda s, a, b: low.apply("matmul", a, b, transpose_x=s < 0.6, transpose_w=s > 0.3),
    "outer": lambda s, a, b: a[:, :, None] * b[:, None, :],
    "two axes": lambda s, a: reduce_sum(a, ((0, 1), (1, 2), (-2, -1))[int(s * 3)], s * 30 % 10 < 5),
}
OF_ONE = "relu", "exp", "log", "sqrt", "tanh", "sin", "cos", "erf", "sigmoid", "softmax", "log_softmax", "elu"
FLOATS = {
    **EXACT,
    **{name: lambda s, a, *, name=name: getattr(low, name)(a) for name in OF_ONE},
    "divide": lambda s, a, b: a / b,
    "clip": lambda s, a: low.clip(a, -0.5, (0.0, 0.9)[s < 0.5]),
    "reduce_mean": lambda s, a: low.reduce_mean(a, AXES[int(s * 4)], s * 40 % 10 < 5),
    "hot": lambda s, a: low.one_hot(low.arg_max(a, 1), 8, a.dtype),
}
MASKED = {"where": 1, "cast": 1}  # how many of the first arguments are masks


class Wild:
    """A random step: x[rows, features] in its dtype, y[rows, 1] and whole numbers k[rows, 2] come in, variables change."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.dtype = ("f8", "f8", "f4", "i8")[seed % 4]
        features = int(rng.choice([0, 1, 1, 2, 3]))
        shapes = [(features, 2), (1, int(rng.integers(1, 4))), (), (1, 1)]
        self.data = [self.numbers(shape) for shape in ((7, features), (7, 1))]
        self.data.append(rng.integers(-3, 4, (7, 2)))
        self.start = [self.numbers(shape) for shape in shapes]
        self.batches = rng.integers(0, 7, (2, int(rng.choice([1, 1, 2, 3, 5, 21]))))
        self.empty = rng.random() < 0.2  # a call more, with no rows at all
        self.steps, self.updates, self.results = [], [], []
        self.write(rng.integers(4, 40))

    def numbers(self, shape):
        """Some of which are hard."""
        if self.dtype == "i8":
            return self.rng.integers(-9, 10, shape)
        hard = self.rng.choice(SPECIAL if self.dtype == "f8" else PLAIN, shape)
        easy = self.rng.uniform(-3, 3, shape) if self.dtype == "f8" else self.rng.choice((0.5, 1.0, -1.0, 2.0), shape)
        return np.where(self.rng.random(shape) < self.rng.choice([0.0, 0.2, 0.5]), hard, easy).astype(self.dtype)

    def write(self, length):
        """Draw ops, keep those that fit batches of every size, and choose what is returned and what is assigned."""
        counts = [len(self.batches[0]), 4] + [0] * self.empty
        pools = [[*(constant(each[:n]) for each in self.data), *map(constant, self.start)] for n in counts]
        ops = FLOATS if self.dtype == "f8" else EXACT
        for n in range(length):
            name, s = str(self.rng.choice([*ops])), float(self.rng.random())
            picks = [self.pick(pools[0], k < MASKED.get(name, 0)) for k in range(ops[name].__code__.co_argcount - 1)]
            if n == 0 and s < 0.5:  # few products fit, so this one does
                name, picks = "matmul", [0, 3]
            try:
                made = [ops[name](s, *(values[p] for p in picks)) for values in pools]
            except (ValueError, TypeError, IndexError):  # what does not fit
                continue
            if len({len(x.shape) for x in made}) == 1 and made[0].numpy().size < 400:
                self.steps.append((ops[name], picks, s))
                for values, x in zip(pools, made, strict=True):
                    values.append(x)
        last = len(pools[0]) - 1
        self.results = [last, *self.rng.integers(0, last + 1, self.rng.integers(1, 5)).tolist()]
        for v, start in enumerate(self.start):
            same = [k for k in range(3, last + 1) if all(x[k].spec == constant(start).spec for x in pools)]
            if self.rng.random() < 0.5:
                self.updates.append((v, int(self.rng.choice(same))))

    def pick(self, values, mask):
        """The number of a value, most often a late one, of the dtype that is wanted."""
        fitting = [k for k, x in enumerate(values) if (x.dtype == bool) == mask]
        late = fitting[-4:] if self.rng.random() < 0.6 else fitting
        return int(self.rng.choice(late)) if fitting else 0

    def values(self, x, y, k, variables):
        values = [x, y, k, *(v.value for v in variables)]
        for op, picks, s in self.steps:
            values.append(op(s, *(values[p] for p in picks)))
        return values

    def step(self, variables, single=False):
        """The step as a function: of what it returns, `single` gives one number each."""

        def step(x, y, k):
            values = self.values(x, y, k, variables)
            results = [values[n] for n in self.results]
            for v, n in self.updates:
                variables[v].assign(values[n])
            if single:
                results = [reduce_sum(cast(r, np.dtype("i8")) if r.dtype == bool else r) for r in results]
            return results

        return step

    def arguments(self, rows):
        return [constant(each[rows]) for each in self.data]

    def run(self, made):
        """All that comes out: of calls, then of `over`. `made` makes the step into what is called."""
        variables, compiled = [*map(Variable, self.start)], []
        compiled.append(made(self.step(variables)))
        for rows in [*self.batches, *([[]] * self.empty)]:
            yield from compiled[0](*self.arguments(np.array(rows, int)))
            yield from variables
        single, variables[:] = self.step(variables, single=True), [*map(Variable, self.start)]
        compiled.append(made(single))
        if hasattr(compiled[1], "over"):
            yield from compiled[1].over(*self.arguments(slice(None)), self.batches)
        else:
            steps = ([r.numpy() for r in single(*self.arguments(b))] for b in self.batches)
            yield from map(np.stack, zip(*steps, strict=True))
        yield from variables
        if sources := self.sources():
            compiled.append(made(self.slopes(variables, sources)))
            yield from compiled[2](*self.arguments(self.batches[0]))
        yield compiled

    def sources(self):
        """The numbers of the variables that a sum of all results has a gradient for."""
        found, variables = [], [*map(Variable, self.start)]
        for k in range(len(variables) * (self.dtype != "i8")):
            try:
                self.slopes(variables, [k])(*self.arguments(self.batches[0]))
                found.append(k)
            except ValueError:  # it was not used
                continue
        return found

    def slopes(self, variables, sources):
        """A function that gives the gradients of a sum of all results, for these variables."""

        def slopes(x, y, k):
            with GradientTape() as tape:
                values = self.values(x, y, k, variables)
                results = [values[n] for n in self.results]
                total = sum(reduce_sum(r) if r.dtype.kind == "f" else 0.0 for r in results)
            if type(total) is float:
                raise ValueError("no result is a number")
            return tape.gradient(total, [variables[v] for v in sources])

        return slopes


def bits(x):
    """Every bit, but not those of a NaN nor, in float32, the sign of a zero, which programs do not promise there."""
    array = np.asarray(x.numpy() if hasattr(x, "numpy") else x)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array) + (0.0 if array.dtype == np.float32 else -0.0)
    return array.dtype.str, array.shape, array.tobytes()


def agree(a, b):
    """The same bits; in float32, where a program may round a·b + c once, the same number but for a few last places."""
    if bits(a) == bits(b):
        return True
    a, b = (np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in (a, b))
    return a.dtype == b.dtype == np.float32 and a.shape == b.shape and np.allclose(a, b, 1e-6, 1e-6, equal_nan=True)


def check(seed, monkeypatch):
    """The back ends that this program was compiled for, under each choice of those that there are."""
    wild, found = Wild(seed), {}
    with np.errstate(all="ignore"):
        *expected, _ = wild.run(lambda step: step)
        for name in CHOICES:
            choose(monkeypatch, name)
            *ours, compiled = wild.run(function)
            found[name] = set().union(*map(kinds, compiled))
            for n, (a, b) in enumerate(zip(ours, expected, strict=True)):
                assert agree(a, b), f"seed {seed}, {found[name]}, {n}: {a} and {b}"
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.weekly)])
def test_random_programs_on_hard_numbers(seeds, every, monkeypatch, tmp_path):
    """A quarter of them, others in each run: each takes most of a second. Weekly all.

    Of 50 about 8 become rows and 40 fused; empty arrays are replayed.
    """
    monkeypatch.setattr(cache, "_CACHE", tmp_path)  # no other run will want them
    tried, found = seeds[::every], collections.Counter()
    for seed in tried:
        kinds_of = check(seed, monkeypatch)
        found.update(name for name in CHOICES if name in kinds_of[name])
    assert found["Replay"] == len(tried), found
    assert len(tried) < 50 or found["RowProgram"] and found["FusedProgram"] >= 25, found


def program_of(python, *args):
    """The program that `function` makes of this, for these arguments."""
    made = function(python)
    made(*args)
    ((program, _),) = made.programs.values()
    return program


def test_what_the_assembler_has_no_instruction_for_is_left_to_its_kernel():
    program = program_of(lambda x: low.relu(x * 2.0) ** (x * 0.5), constant(np.full((2, 3), 3.0, "f4")))
    assert isinstance(program, low.Replay) and "power" in program.why


@pytest.mark.parametrize(
    "python, args",
    [
        (lambda: constant(np.ones((2, 2))) * 2.0, ()),
        (lambda x: x * 2.0 + 1.0, (np.float32(3.0),)),
        (lambda x: (x * 2.0 + 1.0) * x, (np.ones((0, 3)),)),
        (lambda x: x + np.ones((5, 2)), (np.ones((5, 2)),)),
    ],
)
def test_odd_graphs_find_a_program(python, args):
    """No rows, no axes, nothing in it, and rows beside as many of a constant: each back end says so with NoProgram."""
    found = program_of(python, *args).run([constant(x) for x in args])[0]
    np.testing.assert_array_equal(found.numpy(), python(*map(constant, args)).numpy())
