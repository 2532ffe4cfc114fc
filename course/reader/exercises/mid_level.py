"""The checks of notebook 04: a layer, a loss, an optimizer, a metric, and columns that are standardised."""

import numpy as np

from course.reader.cases import Wrong, called
from course.reader.cases.mid_level import (
    layer_at_first,
    layer_with_weights,
    loss_of,
    metric_of,
    slope_of_a_layer,
    slope_of_a_loss,
    steps_taken,
)
from course.reader.cases.plain_data import describe
from course.reader.exercises.judge import exercise


@exercise("04-1", lines=5)
def scale(mine, draw):
    """A layer that multiplies each column by a separate trainable number, which is 1 at first."""
    for dtype in ("f8", "f4"):
        for rows, columns in ((3, 2), (4, 4), (1, 5), (7, 1)):
            x, more = (draw.normal(size=(n, columns)).astype(dtype) for n in (rows, rows + 2))
            w = draw.normal(size=columns).astype(dtype)
            said = f"{mine.name}() of x, {x.dtype}[{rows}, {columns}],"
            found, shapes = mine.ask(layer_at_first, said, x)
            mistakes = {"its numbers start at 0": 0.0 * x, "it adds its numbers": x + 1.0}
            mine.compare(said, found, x, mistakes)
            if shapes not in ([(columns,)], [(1, columns)]):
                has = f"variables of shapes {', '.join(map(str, shapes))}" if shapes else "no variable"
                raise Wrong(f"{said} has {has} to train: expected one, with a number for each column")
            said = f"{said} its numbers set to others,"
            *found, second = mine.ask(layer_with_weights, said, x, more, w.reshape(shapes[0]))
            for batch, result in zip((x, more), found, strict=True):  # the second one has more rows
                mistakes = {"it makes new numbers in every call": batch, "it adds its numbers": batch + w}
                mine.compare(said, result, batch * w, mistakes)
            slope = mine.ask(slope_of_a_layer, said, x, w.reshape(shapes[0]))
            mine.compare(f"the gradient of {said}", np.ravel(slope), np.sum(x, axis=0), near=1e-4)
            said = f"a second {mine.name}(), called first after the first one's numbers were set to others,"
            mistakes = {"two layers share their numbers: make them in build": x * w}
            mine.compare(said, second, x, mistakes)


@exercise("04-2", lines=4)
def huber(mine, draw):
    """The mean of error²/2 where |error| ≤ 1, and of |error| - 1/2 elsewhere."""
    for dtype in ("f8", "f4"):
        for shape in ((6, 1), (3, 3), (1, 1), (50, 2)):
            true, errors = np.rint(4.0 * draw.normal(size=(2, *shape))).astype(dtype)
            predicted = true + errors / 2  # exact; after the first shape some errors are 0 or 1
            predicted += np.asarray(0.25 * (shape == (6, 1)), dtype)
            weight = draw.uniform(size=shape[0]).astype(dtype)
            error = predicted - true
            near = 20 * np.finfo(dtype).eps
            size = abs(error)
            right = np.where(size <= 1, error**2 / 2, size - 0.5)
            kinds = {
                "it is half the squared error everywhere": error**2 / 2,
                "the half before the square is missing: the two parts do not meet at 1": np.where(
                    size <= 1, error**2, size - 0.5
                ),
                "it does not subtract one half from the size of a large error: the two parts do not meet at 1": np.where(
                    size < 1, error**2 / 2, size
                ),
                "it treats a large negative error as a small one: use the absolute value": np.where(
                    error <= 1, error**2 / 2, error - 0.5
                ),
            }
            said = f"{mine.name}() of y_true and y_pred, both {true.dtype}{list(shape)}"
            mistakes = {kind: each.mean() for kind, each in kinds.items()} | {"it is a sum, not a mean": right.sum()}
            mine.compare(said, mine.ask(loss_of, said, true, predicted), right.mean(), mistakes, near)
            slope = mine.ask(slope_of_a_loss, said, true, predicted)
            mine.compare(f"the gradient of {said}", slope, np.clip(error, -1, 1) / error.size, (), near)
            said = f"{said}, with weights"
            found = mine.ask(loss_of, said, true, predicted, weight)
            mine.compare(said, found, (right * weight[:, None]).mean(), (), near)


@exercise("04-3", lines=5)
def sign_descent(mine, draw):
    """Subtract the rate times the sign of m, a running mean of the gradients: m ← 0.9·m + 0.1·dw."""
    for dtype, near in (("f8", 1e-12), ("f4", 1e-5)):
        shapes = ((3, 2), (1, 2), (4,))
        steps = []
        w = [draw.normal(size=shape).astype(dtype) for shape in shapes]
        for step in range(1, 7):
            size = 10.0 ** draw.integers(-3, 3)
            dw = [(size * draw.normal(size=shape)).astype(dtype) for shape in shapes]
            dw[0][0] = 0.0  # a gradient of 0 in every step: these weights may not move
            steps.append((f"{mine.name}(0.125) in step {step}", 0.125 if step < 5 else 0.5, dw))
        m = [np.zeros_like(x) for x in w]
        found = mine.ask(steps_taken, 0.125, w, steps)
        for (said, rate, dw), after in zip(steps, found, strict=True):
            for k, old in enumerate(m):
                m[k] = np.asarray(0.9 * old + 0.1 * dw[k], dtype)
                mistakes = {
                    "it only uses the sign of this step's gradient": w[k] - rate * np.sign(dw[k]),
                    "it takes m as it was before this step": w[k] - rate * np.sign(old),
                    "it goes uphill": w[k] + rate * np.sign(m[k]),
                    "it also uses the size of m": w[k] - rate * m[k],
                    "it moves where m is 0": w[k] - rate * np.where(m[k] > 0, 1.0, -1.0),
                    "it divides 0 by 0": np.where(m[k] == 0, np.nan, w[k] - rate * np.sign(m[k])),
                    "it keeps the first rate": w[k] - 0.125 * np.sign(m[k]),
                }
                w[k] = np.asarray(w[k] - rate * np.sign(m[k]), dtype)
                said_of = f"{said}, for a variable of shape {shapes[k]},"
                mine.compare(said_of, after[k], w[k], mistakes, near)


@exercise("04-4", lines=5)
def f1(mine, draw):
    """F1 = 2·right / (called + true), from the sums over all batches."""
    for dtype, threshold in (("f8", 0.5), ("f4", 0.5), ("f4", 0.25)):
        rounds = []
        expected = []
        for rare in (0.5, 0.1, 0.9, 0.0):  # the metric is reset before each
            rounds.append([])
            sums = np.zeros(3)
            unweighted = np.zeros(3)
            batches = []
            for rows in (40, 3, 1, 10):
                shape = (rows, 1) if rows > 1 else (rows,)
                true = (draw.uniform(size=shape) < rare).astype(dtype)
                p = (0.6 * draw.uniform(size=shape) + 0.4 * true).astype(dtype) if rare else np.zeros_like(true)
                weight = draw.integers(1, 4, size=rows).astype(dtype) if dtype == "f8" else np.ones(rows, dtype)
                said_so = p > threshold
                parts = np.array([said_so, true, said_so * true], dtype="f8").reshape(3, rows)
                sums = sums + parts @ weight
                unweighted = unweighted + parts.sum(axis=1)
                batches.append(f1_of(*(parts @ weight)))
                said = f"{mine.name}({threshold}) after {len(batches)} batches, the last of {rows} rows,"
                rounds[-1].append((said, true, p, weight) if dtype == "f8" else (said, true, p))
                called, true, right = sums
                mistakes = {
                    "it is the mean of the batches' F1: add up the three sums, and divide at the end": np.mean(batches),
                    "it only uses the last batch": batches[-1],
                    "it ignores the weights of the rows": f1_of(*unweighted),
                    "it is right / (called + true), but F1 is twice as much": f1_of(*sums) / 2,
                }
                if called and true:
                    mistakes["it is the precision"] = right / called
                    mistakes["it is the recall"] = right / true
                    mistakes["it is the plain mean of precision and recall"] = (right / called + right / true) / 2
                expected.append((said, float(f1_of(*sums)), mistakes))
        found = [result for results in mine.ask(metric_of, threshold, rounds) for result in results]
        for result, (said, right, mistakes) in zip(found, expected, strict=True):
            mine.compare(said, result, right, mistakes, near=1e-6)


def f1_of(called, true, right):
    return 2 * right / (called + true) if called + true else 0.0


@exercise("04-5", lines=3)
def standardised(mine, draw):
    """Two tables, standardised by the first one's column means and deviations; a constant column is divided by 1."""
    for dtype, near in (("f8", 1e-9), ("f4", 1e-3)):
        for rows, tests, columns in ((20, 5, 3), (4, 4, 4), (50, 1, 2), (9, 30, 1)):
            x = (draw.normal(size=(rows, columns)) * [3, 0.5, 1, 2][:columns] + [50, 1, -7, 0][:columns]).astype(dtype)
            test = (x[:1] + draw.uniform(2, 3) + draw.normal(size=(tests, columns))).astype(dtype)
            if columns > 1:
                x[:, -1] = 4.0
                test[:, -1] = 4.0
                test[0, -1] = 5.0
            both = np.concatenate([x, test])
            said = f"{mine.name}(x {list(x.shape)}, x_test {list(test.shape)})"
            result, after = mine.ask(called, said, [x, test])
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise Wrong(f"{said} gives {describe(result)}, expected two arrays, x and x_test")
            if not all(map(np.array_equal, after, (x, test))):
                raise Wrong(f"{said} changes its argument: work on a copy")
            for name, table, mine_gives in zip(("x", "x_test"), (x, test), result, strict=True):
                mistakes = {
                    "it subtracts the mean of the whole table, not the mean of each column": by(x, table, axis=None),
                    "it standardises x_test by its own mean and deviation": by(test, table),
                    "the means are those of both tables together: the test rows must not take part": by(both, table),
                    "it standardises each row, not each column": by(table, table, axis=1),
                    "it divides by the variance, not by its root": by(x, table, power=2),
                    "it divides by n - 1 in the variance, but np.std divides by n": by(x, table, ddof=1),
                    "a constant column is divided by 0": by(x, table, constant=0.0),
                }
                mine.compare(f"{said}, for {name},", mine_gives, by(x, table), mistakes, near)


def by(x, table, axis=0, power=1, ddof=0, constant=1.0):
    """The table, standardised by the means and deviations of x. A deviation of 0 is replaced by `constant`."""
    with np.errstate(all="ignore"):
        mean = x.mean(axis=axis, keepdims=True)
        spread = x.std(axis=axis, ddof=ddof, keepdims=True) ** power
        return ((table - mean) / np.where(spread > 0, spread, constant)).astype(table.dtype)
