"""The numbers on which every level trains: data, splits, starting weights and the order of the rows.

The numbers are files in `data/`, with 17 digits each, because `cos` and `log` may differ between machines. The
functions that made them are at the end of this module. The order of the rows is not a file: it ranks draws of
`random.Random(seed).random()`, which Python promises never to change.
"""

import csv
import json
import math
import random
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "data"
ROWS = {"linear.csv": 500, "rings.csv": 5000, "penguins.csv": 344}
MEASURES = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")


class Task(NamedTuple):
    """The arguments of a task function, in float64, and a held-out test split."""

    x: np.ndarray  # [n, features]
    y: np.ndarray  # [n, 1]
    x_test: np.ndarray
    y_test: np.ndarray
    weights: list  # the starting weights: [w, b] or [w1, b1, w2, b2, w3, b3]
    batches: np.ndarray  # [steps, batch]: the rows of x for each step
    learning_rate: float
    names: tuple  # of the columns of x
    title: str


@cache
def linear():
    """Return the task of the line: 400 points, y = 2·x1 - 3·x2 + 3 + noise; 200 epochs in batches of 10."""
    return _points("linear", "The line", epochs=200, batch=10, learning_rate=0.0005)


@cache
def rings():
    """Return the task of two rings of 2,000 points each, y = 0 inside and 1 outside; 600 epochs in batches of 100."""
    return _points("rings", "Two rings", epochs=600, batch=100, learning_rate=0.01)


@cache
def penguins_mass():
    """Return the task to predict body mass in kg from three measures (standardised) of 342 penguins."""
    rows = [row for row in penguins() if None not in row[:4]]
    table = [[*row[:3], row[3] / 1000.0] for row in rows]
    return _penguins("penguins_mass", "Penguins: body mass in kg", table, test=72, epochs=100, batch=10, rate=0.02)


@cache
def penguins_sex():
    """Return the task to predict male (1) or female (0) from four measures (standardised) of 333 penguins."""
    rows = [row for row in penguins() if None not in row]
    table = [[*row[:4], 1.0 if row[4] == "male" else 0.0] for row in rows]
    return _penguins("penguins_sex", "Penguins: sex", table, test=73, epochs=200, batch=20, rate=0.1)


FOR = {"linear_regression": linear, "dnn_classifier": rings}  # the first data set of each task function


def penguins():
    """Return the four measures and the sex of each penguin, as rows; None for NA."""
    number = [lambda text: None if text == "NA" else float(text)] * 4
    return read("penguins.csv", (*MEASURES, "sex"), (*number, lambda text: None if text == "NA" else text))


def python_draws(shape, seed):
    """Return an array of what `random.Random(seed).random()` returns, call by call, in a twentieth of the time.

    NumPy's `RandomState` is the same generator (Matsumoto and Nishimura, 1998) and makes its floats by the same rule.
    """
    _, (*key, position), _ = random.Random(seed).getstate()
    generator = np.random.RandomState()
    generator.set_state(("MT19937", key, position))
    return generator.random_sample(shape)


def shuffled(n, seed):
    """Return the numbers 0 … n-1 in the order of n random draws, as an array [n]."""
    return np.argsort(python_draws(n, seed))


def batch_order(n, batch, epochs, seed):
    """Return row numbers [steps, batch]. Each epoch visits every row once, in a new order.

    No two draws of an epoch are equal, so that there is only one order, and NumPy's quickest sort finds it.
    """
    return np.argsort(python_draws((epochs, n), seed), axis=1).reshape(-1, batch)


def standardise(train, test):
    """Return train and test, each column minus its mean and divided by its standard deviation, both over `train`."""
    columns = train.T.tolist()
    mean = [math.fsum(c) / len(c) for c in columns]
    spread = [math.sqrt(math.fsum((v - m) ** 2 for v in c) / len(c)) for c, m in zip(columns, mean, strict=True)]
    return (train - mean) / spread, (test - mean) / spread


def read(file, names, converters=None):
    """Return rows of a CSV file in `data/`, converted. Raises FileNotFoundError, or ValueError if it is damaged."""
    path = DATA / file
    converters = converters or (float,) * len(names)
    cure = f"restore it with: git checkout -- data/{file}"
    if not path.exists():
        raise FileNotFoundError(f"data/{file} is missing; {cure}")
    with path.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines, strict=True)
        rows = []
        try:
            if missing := set(names) - set(reader.fieldnames or ()):
                raise ValueError(f"it has no column {', '.join(sorted(missing))}")
            for row in reader:
                values = [convert(row[name]) for name, convert in zip(names, converters, strict=True)]
                finite = all(math.isfinite(v) for v in values if isinstance(v, float))
                if None in row or None in row.values() or not finite:
                    raise ValueError(f"it has {list(row.values())}")
                rows.append(values)
        except (csv.Error, TypeError, ValueError) as error:  # also a UnicodeDecodeError
            raise ValueError(f"data/{file}, line {reader.line_num}: {error}; {cure}") from None
    if len(rows) != ROWS[file]:
        raise ValueError(f"data/{file} has {len(rows)} rows, expected {ROWS[file]}; {cure}")
    return rows


def _weights(name):
    """Return a task's starting weights, from `data/starting_weights.json`. Raises ValueError if it cannot be read."""
    file = "starting_weights.json"
    try:
        return [np.array(w) for w in json.loads((DATA / file).read_text(encoding="utf-8"))[name]]
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"data/{file} cannot be read ({error}); restore it with: git checkout -- data/{file}"
        ) from None


def _points(name, title, epochs, batch, learning_rate):
    rows = read(f"{name}.csv", ("x1", "x2", "y", "split"), (float, float, float, str))
    parts = [np.array([row[:3] for row in rows if row[3] == split]) for split in ("train", "test")]
    (x, y), (x_test, y_test) = ((np.ascontiguousarray(p[:, :2]), p[:, 2:].copy()) for p in parts)
    batches = batch_order(len(x), batch, epochs, seed=1)
    return Task(x, y, x_test, y_test, _weights(name), batches, learning_rate, ("x1", "x2"), title)


def _penguins(name, title, table, test, epochs, batch, rate):
    table = np.array(table)[shuffled(len(table), seed=1)]
    x, x_test = standardise(table[test:, :-1], table[:test, :-1])
    y = table[test:, -1:].copy()
    y_test = table[:test, -1:].copy()
    batches = batch_order(len(x), batch, epochs, seed=1)
    return Task(x, y, x_test, y_test, _weights(name), batches, rate, MEASURES[: x.shape[1]], title)


# Functions that made the files. `python3 -m course.reader.tasks` writes them again.


def normal(draw):
    """Return a normal number from two uniform ones (Box and Muller, 1958, doi.org/10.1214/aoms/1177706645)."""
    return math.sqrt(-2.0 * math.log(1.0 - draw())) * math.cos(2.0 * math.pi * draw())


def make_linear(train=400, test=100, seed=1):
    """Yield rows x1, x2, y, split: x uniform in (-10, 10)², y = 2·x1 - 3·x2 + 3 + noise of standard deviation 2."""
    draw = random.Random(seed).random
    for i in range(train + test):
        x1 = 20.0 * draw() - 10.0
        x2 = 20.0 * draw() - 10.0
        yield x1, x2, 2.0 * x1 - 3.0 * x2 + 3.0 + 2.0 * normal(draw), "train" if i < train else "test"


def make_rings(train=4000, test=1000, seed=1):
    """Yield rows x1, x2, y, split: radius 5 (y = 0) or 8 (y = 1) plus normal noise cut at two sigma, uniform angle."""
    draw = random.Random(seed).random
    for i in range(train + test):
        inside = i % 2 == 0
        angle = 2.0 * math.pi * draw()
        noise = normal(draw)
        while abs(noise) > 2.0:
            noise = normal(draw)
        radius = (5.0 if inside else 8.0) + noise
        yield (
            radius * math.cos(angle),
            radius * math.sin(angle),
            0.0 if inside else 1.0,
            "train" if i < train else "test",
        )


def make_weights(sizes, seed=1):
    """Return [w, b, …]: w[in, out] normal, variance 2 / in (He et al., 2015, arxiv.org/abs/1502.01852), b[1, out] 0."""
    draw = random.Random(seed).random
    pairs = zip(sizes, sizes[1:])  # noqa: B905 - the second is one shorter
    return [
        part
        for inputs, units in pairs
        for part in (
            [[normal(draw) * math.sqrt(2.0 / inputs) for _ in range(units)] for _ in range(inputs)],
            [[0.0] * units],
        )
    ]


STARTS = {  # layer sizes and seed. With seed 1, at step 1,794, the penguins' net is so close to the kink of a relu that
    # float32 rounding decides the side; with seed 7, forty runs with random rounding agree to 1e-6.
    "linear": ((2, 1), 1),
    "penguins_mass": ((3, 1), 1),
    "rings": ((2, 4, 8, 1), 1),
    "penguins_sex": ((4, 4, 8, 1), 7),
}


def make_files():
    """Write the synthetic data and all starting weights into `data/`."""
    for name, make in (("linear", make_linear), ("rings", make_rings)):
        with (DATA / f"{name}.csv").open("w", newline="\n", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("x1", "x2", "y", "split"), *make()])
    weights = {name: make_weights(*start) for name, start in STARTS.items()}
    (DATA / "starting_weights.json").write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    make_files()
