"""The checks of notebook 05: when to stop, a callback, dead relus, rows that are held out, softmax, a convolution."""

import itertools

import numpy as np

from course.reader.cases import Wrong, called
from course.reader.cases.high_level import callback_told, fitted, rule_of_softmax, units_counted
from course.reader.cases.plain_data import describe
from course.reader.exercises.judge import exercise
from course.reader.exercises.low_level import nudged


@exercise("05-1", lines=5)
def fit_until(mine, draw):
    """Train until an epoch's mean loss is below a bound, for at most `most` epochs; return the number of epochs."""
    for rows, optimizer, rate in ((30, "SGD", 0.02), (45, "Adam", 0.1)):
        x = draw.uniform(0.5, 1.5, size=(rows, 1)) * draw.choice([-1.0, 1.0], size=(rows, 1))
        x[-5:] *= 0.01  # the last batch of an epoch has almost no loss
        y = 3.0 * x
        # losses[k - 1] is the loss of epoch k; weights[k] are those after it.
        losses, weights = epochs_of(x, y, STEPS[optimizer](rate))
        for epochs, most in ((4, 8), (1, 8), (6, 6), (8, 3)):
            before = losses[epochs - 2] if epochs > 1 else 2 * losses[0]
            bound = float(before - 0.02 * (before - losses[epochs - 1]))  # just below the loss of the epoch before
            right = min(epochs, most)
            listed = ", ".join(f"{loss:.4g}" for loss in losses[:6])
            said = f"{mine.name}(model, x, y, {bound:.5g}, {most}), where the losses would be {listed}, …,"
            result, left = mine.ask(fitted, said, x, y, optimizer, rate, bound, most)
            mistakes = {
                "it stops too early: is it the mean loss of an epoch, as fit reports it?": weights[right - 1],
                "it looks at the loss of the last step, not at the epoch's mean": weights[1],
                "it stops an epoch late": weights[min(right + 1, 8)],
                "it continues after `most` epochs": weights[epochs],
                "it continues to train after the bound is reached": weights[most],
            }
            mine.compare(f"{said} and leaves weights [w, b] that", left, weights[right], mistakes, near=1e-9)
            mine.compare(said, result, right, {"it counts the epochs from 0": right - 1})


def sgd(rate):
    """From a gradient [w, b] to what a step of SGD subtracts."""
    return lambda slope: rate * slope


def adam(rate):
    """From a gradient [w, b] to what Adam's next step subtracts (https://arxiv.org/abs/1412.6980, Algorithm 1)."""
    m, v, steps = np.zeros((2, 1)), np.zeros((2, 1)), itertools.count(1)

    def step(slope):
        t = next(steps)
        m[:] = 0.9 * m + 0.1 * slope
        v[:] = 0.999 * v + 0.001 * slope**2
        return rate * (m / (1.0 - 0.9**t)) / (np.sqrt(v / (1.0 - 0.999**t)) + 1e-7)

    return step


STEPS = {"SGD": sgd, "Adam": adam}


def epochs_of(x, y, step):
    """The mean losses of eight epochs in batches of ten rows; the weights [w, b], 0 at first, before and after each."""
    now = np.zeros((2, 1))
    losses = []
    weights = [np.zeros((2, 1))]
    for _ in range(8):
        total = 0.0
        for k in range(0, len(x), 10):
            rows = np.hstack([x[k : k + 10], np.ones_like(x[k : k + 10])])
            error = rows @ now - y[k : k + 10]
            total += np.sum(error**2)
            now = now - step(2.0 * rows.T @ error / len(error))
        losses.append(total / len(x))
        weights.append(now)
    return losses, weights


@exercise("05-2", lines=9)
def averaged(mine, draw):
    """A callback that, after training, sets the model's weights to the means of its weights after each epoch."""
    shapes = ((2, 3), (1, 3), (3, 1), (1, 1))
    ever = []
    trainings = [[weights_like(shapes, draw) for _ in range(1 + epochs)] for epochs in (3, 1, 5, 0)]
    x, y = draw.normal(size=(2, 20, 2)).astype("f4")
    found = mine.ask(callback_told, trainings, x, y[:, :1])
    for seen, after_it in zip(trainings, found, strict=True):
        said = f"{mine.name}(), told of {len(seen) - 1} epochs,"
        ever += seen[1:]
        for k, (variable, _) in enumerate(zip(after_it, shapes, strict=True)):
            after = [np.array(weights[k], "f8") for weights in seen[1:]] or [seen[0][k]]
            halves = after[0]
            for weight in after[1:]:
                halves = (halves + weight) / 2
            mistakes = {
                "it includes the weights before the first epoch": np.mean([seen[0][k], *after], axis=0),
                "the model has the weights of the last epoch": after[-1],
                "it takes the weights before each epoch, not after it": np.mean(
                    [w[k] for w in seen[:-1] or seen], axis=0
                ),
                "it includes earlier trainings: start again in on_train_begin": np.mean(
                    [weights[k] for weights in ever], axis=0
                ),
                "each epoch weighs as much as all epochs before it together": halves,
                "one number is the mean of all weights": np.full(shapes[k], np.mean(after)),
            }
            mistakes = {mistake: wrong.astype("f4") for mistake, wrong in mistakes.items()}
            mine.compare(
                f"{said} variable {k} of the model", variable, np.mean(after, axis=0).astype("f4"), mistakes, 1e-5
            )


def weights_like(shapes, draw):
    return [draw.normal(size=shape).astype("f4") for shape in shapes]


@exercise("05-3", lines=5)
def dead_units(mine, draw):
    """For each layer of a Sequential, how many of its units give 0 for all rows of x."""
    for rows, sizes, dtype in (
        (5, (2, 4, 8, 1), "f8"),
        (6, (3, 6, 6, 1), "f4"),
        (9, (1, 5, 2), "f8"),
        (4, (4, 4, 4), "f8"),
    ):
        activations = ["relu"] * (len(sizes) - 2) + ["sigmoid"]
        x = draw.uniform(0.5, 1.5, size=(rows, sizes[0])).astype(dtype)
        x[0] *= 0.01
        weights = []
        values = x
        zeros = []  # for each layer, where its result is 0: [rows, units]
        for k, (inputs, units) in enumerate(zip(sizes, sizes[1:], strict=False)):
            w = draw.uniform(0.1, 1.0, size=(inputs, units)).astype(dtype)  # positive: the bias decides
            bias = draw.choice([-100.0, -0.2, 0.1], size=(1, units)).astype(dtype)
            bias[0, 0] = -100.0 if units > 1 else 0.1
            bias[0, -1] = 0.1  # at least one unit passes the signal on
            values = values @ w + bias
            values = np.maximum(values, 0) if activations[k] == "relu" else 1 / (1 + np.exp(-values))
            weights += [w, bias]
            zeros.append(values == 0)
        right = [int(each.all(axis=0).sum()) for each in zeros]
        said = f"{mine.name}(model, x) for layers of {', '.join(map(str, sizes[1:]))} units"
        result, after = mine.ask(units_counted, said, activations, weights, x)
        if not np.array_equal(after, x):
            raise Wrong(f"{said} changes x: work on a copy")
        mistakes = {
            "it counts a unit that gives 0 for one row only": [int(each.any(axis=0).sum()) for each in zeros],
            "it counts every 0, not every unit": [int(each.sum()) for each in zeros],
            "it counts rows, not units: units lie along axis 1": [int(each.all(axis=1).sum()) for each in zeros],
            "the last layer is left out": right[:-1],
        }
        mine.compare(said, result, right, mistakes)


@exercise("05-4", lines=3)
def held_out(mine, draw):
    """(x, y, x_test, y_test): a share of the rows, drawn at random by a seed, is held out for the test."""
    for rows, share in ((1000, 0.25), (8, 0.5), (400, 0.125), (10, 0.25)):
        x = np.arange(2.0 * rows).reshape(rows, 2)  # row r holds 2·r and 2·r + 1
        y = x[:, :1] // 2
        last = int(rows * share)
        seed = int(draw.integers(1000))
        said = f"{mine.name}(x, y, {share}, seed), x of {rows} rows,"
        runs = []
        for s in (seed, seed, seed + 1):
            result, after = mine.ask(called, said, [x, y, share, s])
            if not isinstance(result, tuple | list) or len(result) != 4:
                raise Wrong(f"{said} gives {describe(result)}, expected four arrays: x, y, x_test, y_test")
            if not all(map(np.array_equal, after, (x, y, share, s))):
                raise Wrong(f"{said} changes its argument: work on a copy")
            check_parts(mine, said, result, rows, last)
            runs.append(result[3][:, 0])
        if not np.array_equal(runs[0], runs[1]):
            raise Wrong(f"{said} holds out other rows when it is called with the same seed again")
        if rows >= 400:
            check_pattern(said, runs[0].astype(int), rows)
        if rows >= 400 and np.array_equal(np.sort(runs[0]), np.sort(runs[2])):
            raise Wrong(f"{said} holds out the same rows, whatever the seed")
        mine.cases += 1


def check_parts(mine, said, result, rows, last):
    """Raise Wrong unless the four arrays hold each row exactly once, and each x with its y."""
    for name, array, shape in zip(
        ("x", "y", "x_test", "y_test"), result, ((rows - last, 2), (rows - last, 1), (last, 2), (last, 1)), strict=True
    ):
        if np.shape(array) != shape:
            raise Wrong(f"{said} gives {name} of shape {np.shape(array)}, expected {shape}")
    for a, b, what in ((result[0], result[1], "trained on"), (result[2], result[3], "held out")):
        if not np.array_equal(np.asarray(a)[:, :1] // 2, b):
            raise Wrong(
                f"{said} separates x from its y in the rows that are {what}: select both with the same row numbers"
            )
    found, counts = np.unique(np.concatenate([result[1], result[3]]), return_counts=True)
    if len(found) < rows:
        twice = f"row {int(found[counts > 1][0])} comes {counts.max()} times"
        raise Wrong(f"{said} loses {rows - len(found)} rows, and {twice}: each row belongs to exactly one part")


def check_pattern(said, held, rows):
    """Raise Wrong if the rows were not drawn at random: far too many pairs of them have the same distance.

    In a block that distance is 1. Distances wrap around, so that the first row follows the last. Among rows drawn at
    random, about `expected` pairs have each distance, plus or minus `spread`.
    """
    share = len(held) / rows
    expected = len(held) * (len(held) - 1) / (rows - 1)
    spread = rows**0.5 * share * (1 - share)
    apart = np.bincount((held[:, None] - held).ravel() % rows, minlength=rows)
    apart[0] = 0
    if apart.max() > expected + 8 * spread:
        seen = f"{apart.max()} of the {len(held)} have another one {apart.argmax()} further on,"
        seen += f" about {expected:.0f} should"
        raise Wrong(f"{said} holds out rows in a pattern, not drawn at random from all: {seen}")


@exercise("05-5", lines=2)
def softmax_rule(mine, draw):
    """The gradient in the input of softmax along the last axis, from the gradient in its result."""
    for dtype, shapes in (("f8", ((2, 3), (4, 4), (1, 1), (2, 3, 5))), ("f4", ((2, 3),))):
        for shape in shapes:
            dy, x = draw.normal(size=(2, *shape))
            y = softmax(x)
            said = f"{mine.name}, for x{[*shape]},"
            found, heard = mine.ask(rule_of_softmax, said, dy.astype(dtype), x.astype(dtype))
            mistakes = {
                "each number has its own slope only, y·(1 - y): all share one sum": dy * y * (1.0 - y),
                "the sum runs over the wrong axis": y * (dy - (dy * y).sum(axis=0, keepdims=True)),
                "the sum is of dy, not of dy·y": y * (dy - dy.sum(axis=-1, keepdims=True)),
                "the sum is that of all rows: each row has its own": y * (dy - (dy * y).sum()),
                "the factor y in front is missing": dy - (dy * y).sum(axis=-1, keepdims=True),
                "the sign is turned": y * ((dy * y).sum(axis=-1, keepdims=True) - dy),
            }
            near = {"f8": 1e-6, "f4": 1e-4}[dtype]
            right = nudged(lambda x: np.sum(dy * softmax(x)), [x], 0, 1e-5)  # noqa: B023 - called at once
            mine.compare(said, found, np.asarray(right, dtype), mistakes, near)
            if heard is not True:
                raise Wrong(f"{said} was computed without ops, so no tape recorded it")


def softmax(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


@exercise("05-6", lines=3)
def patch_places(mine, draw):
    """int64 [positions, size·size]: the numbers of the pixels, counted row by row, under each position of a window."""
    for height, width, size in ((3, 4, 2), (8, 8, 3), (5, 2, 1), (4, 4, 4), (2, 7, 2), (6, 3, 3)):
        picture = np.arange(height * width).reshape(height, width)
        windows = np.lib.stride_tricks.sliding_window_view(picture, (size, size))
        right = windows.reshape(-1, size * size).copy()
        by_columns = windows.transpose(1, 0, 2, 3).reshape(right.shape)
        turned = windows.transpose(0, 1, 3, 2).reshape(right.shape)
        mistakes = {
            "it goes down the columns: the window moves along the rows first": by_columns,
            "the pixels of each window go down its columns": turned,
            "it counts from 1": right + 1,
            "a row of the picture has `height` pixels: it has `width`": right // width * height + right % width,
        }
        mine.gives((height, width, size), right, mistakes)
