"""The checks of notebook 03: a gradient rule, a loss without `if`, a Jacobian, a pass, an order, gradients reset."""

import numpy as np

from course.reader.cases import Wrong
from course.reader.cases.low_level import (
    function_and_slope,
    function_traced,
    graph_passed,
    jacobian_of,
    products,
    records_ordered,
    rule_of_a_layer,
    trained,
)
from course.reader.cases.plain_data import describe
from course.reader.exercises.judge import exercise

NEAR = {"f8": 1e-9, "f4": 1e-4}  # the tolerance, relative to the largest expected number


def nudged(loss, arrays, k, nudge=1e-3):
    """The slope of loss(*arrays) in each number of arrays[k], by nudging it up and down."""
    result = np.zeros(arrays[k].shape)
    for at in np.ndindex(result.shape):
        ends = []
        for step in (nudge, -nudge):
            moved = [x.copy() for x in arrays]
            moved[k][at] += step
            ends.append(loss(*moved))
        result[at] = (ends[0] - ends[1]) / (2 * nudge)
    return result


@exercise("03-1", lines=3)
def dense_rule(mine, draw):
    """The gradients of x @ w + b in x, w and b, from the gradient in the result."""
    cases = ((3, 2, 4, (1, 4)), (3, 3, 3, (3,)), (5, 1, 2, ()), (2, 4, 3, (2, 3)), (4, 2, 3, (4, 1)), (1, 2, 5, (1, 1)))
    for dtype, some in (("f8", cases), ("f4", cases[:1])):
        for rows, inputs, units, bias in some:
            shapes = (rows, units), (rows, inputs), (inputs, units), bias
            dy, *given = arrays = [np.asarray(draw.normal(size=shape)) for shape in shapes]
            said = f"{mine.name}, for x{[rows, inputs]}, w{[inputs, units]} and b{[*bias]},"
            result = mine.ask(rule_of_a_layer, said, [x.astype(dtype) for x in arrays])
            x, w, b = given
            mistakes = {
                "dx": {"it multiplies by w: transpose w": dy @ w} if inputs == units else {},
                "dw": {"dw is transposed": (x.T @ dy).T, "it divides by the rows: that is a mean": x.T @ dy / rows},
                "db": {"it passes dy on unchanged: where b was repeated, the shares have to be added up": dy}
                | {
                    "it divides by the rows: that is a mean": dy.mean(axis=0).reshape(bias)
                    if bias == (1, units)
                    else ()
                },
            }
            for k, (name, (found, heard)) in enumerate(zip(mistakes, result, strict=True)):
                expected = nudged(lambda x, w, b: np.sum(dy * (x @ w + b)), given, k).astype(dtype)  # noqa: B023
                mine.compare(f"{name}: {said}", found, np.asarray(expected), mistakes[name], NEAR[dtype])
                if heard is not True:
                    raise Wrong(f"{name}: {said} was computed without ops, so no tape recorded it")


@exercise("03-2", lines=3)
def huber(mine, draw):
    """error²/2 if |error| ≤ 1, else |error| - 1/2. The check compares its numbers, its gradient, and its trace."""
    for dtype in NEAR:
        for shape in ((), (7,), (3, 4)) if dtype == "f8" else ((7,),):
            fixed = np.resize([3.0, -0.5, 1.0, -1.0, 0.0, 0.25, -4.0], shape)
            for error in (fixed, draw.normal(size=shape), draw.uniform(-4, 4, size=shape)):
                e = np.asarray(error, dtype)
                right = np.where(abs(e) <= 1, e * e / 2, abs(e) - np.asarray(0.5, dtype))
                mistakes = {
                    "it treats a negative error below -1 as a small one": np.where(e <= 1, e * e / 2, e - 0.5),
                    "the factor 1/2 is missing": np.where(abs(e) <= 1, e * e, abs(e) - 0.5),
                    "it squares large errors, too": e * e / 2,
                    "there is a jump at 1: subtract 1/2": np.where(abs(e) <= 1, e * e / 2, abs(e)),
                    "it takes the mean": np.mean(right),
                }
                said = f"{mine.name}, for {describe(e)} such as {e.flat[0]:.3g},"
                found, gradient = mine.ask(function_and_slope, said, e)
                mine.compare(said, found, right, mistakes, NEAR[dtype])
                mine.compare(f"the gradient of {said}", gradient, np.clip(e, -1, 1), {}, NEAR[dtype])
            said = f"{mine.name}, traced for {describe(e)},"
            why = {"the program holds numbers that were computed before, for another input": right}
            mine.compare(said, mine.ask(function_traced, said, e), right, why, NEAR[dtype])


@exercise("03-3", lines=4)
def jacobian(mine, draw):
    """J[i, j], the slope of result i in input j, of functions from n numbers to m."""
    for dtype in NEAR:
        for m, n in ((2, 3), (3, 3), (4, 2), (1, 3), (5, 1)):
            a = draw.normal(size=(m, n))
            x = draw.normal(size=n).astype(dtype)
            inside = 2.0 * a * x * (1.0 - np.tanh(a @ x.astype("f8") ** 2)[:, None] ** 2)
            for function, right in (("line", a), ("bent", inside)):
                said = f"{mine.name}({function}, x), from {n} numbers to {m} in {x.dtype},"
                mistakes = {
                    "rows and columns are exchanged": right.T,
                    "each row is the sum of all": np.tile(right.sum(axis=0), (m, 1)),
                }
                result = mine.ask(jacobian_of, said, function, a.astype(dtype), x)
                mine.compare(said, result, right.astype(dtype), mistakes, NEAR[dtype])


UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
STAY = {  # {program in `products`: how many ops it must keep}, if that is not 1
    "x * 1.0": 0
}


def values_of(said, graph, inputs, variable):
    """Run a graph (nodes, outputs) op by op in NumPy. Return the values of its outputs, and the number of its ops."""
    nodes, outputs = graph
    known = []
    ops = 0
    for op, read, leaf in nodes:
        if read:
            given = [known[k] for k in read]
            if op not in UFUNCS or np.broadcast(*given).size > 100:
                raise Wrong(f"{said} has a `{op}` that is not in the graph it was given")
            known.append(UFUNCS[op](*given))
            ops += 1
        else:
            known.append(inputs[leaf] if op == "input" else variable if op == "variable" else leaf)
    return [known[k] for k in outputs], ops


@exercise("03-4", lines=8)
def without_ones(mine, draw):
    """A pass that removes products with 1.0. The check compares the number of ops, and the values exactly."""
    x, y = (draw.normal(size=shape) for shape in ((3, 4), (1, 4)))
    variable = np.ones((1, 1))
    for text, program in products(np.asarray, variable).items():
        said = f"{mine.name}, for the graph of {text},"
        (found,), ops = values_of(said, mine.ask(graph_passed, said, text, [x.shape, y.shape]), [x, y], variable)
        mine.compare(said, found, program(x, y), {"a factor other than 1.0 was left out": x})
        if ops != STAY.get(text, 1):
            what = "a product with 1.0 stays" if ops > STAY.get(text, 1) else "an op is lost"
            raise Wrong(f"{said} has {ops} ops, expected {STAY.get(text, 1)}: {what}")


def tangles(draw):
    """{words: (steps, target)} for `records_ordered`. Some values are used more than once, and some not at all."""
    twice = ("multiply", 0, 2.0)
    doubled = [twice]
    for _ in range(60):
        doubled += [("multiply", len(doubled), 0.5), ("add", len(doubled), len(doubled) + 1)]

    def at_random():
        steps = [twice]
        for made in range(2, 14):
            inputs = draw.integers(made, size=2).tolist()
            steps.append(("multiply" if draw.random() < 0.5 else "add", *inputs))
        return steps, len(steps)

    square = [twice, ("multiply", 1, 1), ("add", 2, 1)]
    return {
        "u * u + u": (square, 3),
        "u + u * u": ([twice, ("multiply", 1, 1), ("add", 1, 2)], 3),
        "u * u + u, and two ops that are not used,": ([*square, ("multiply", 1, 3.0), ("subtract", 3, 1.0)], 3),
        **{words: at_random() for words in ("a random program", "another", "a third")},
        "60 times u + u * 0.5": (doubled, len(doubled)),
    }


@exercise("03-5", lines=10)
def in_order(mine, draw):
    """The records that a target was made from, in topological order: each after those that made its inputs."""
    for words, (steps, target) in tangles(draw).items():
        said = f"{mine.name}, for {words}"
        makers = [[x - 1 for x in inputs if isinstance(x, int) and x > 0] for _, *inputs in steps]  # of a step's inputs
        needed = {target - 1}
        for k in reversed(range(len(steps))):
            needed.update(makers[k] if k in needed else ())
        given = mine.ask(records_ordered, said, steps, target, draw.permutation(len(steps)).tolist())
        for at, k in enumerate(given):
            if k in given[:at]:
                raise Wrong(f"{said} gives the record of `{steps[k][0]}` twice: remember which you have seen")
            early = [maker for maker in makers[k] if maker not in given[:at]]
            if early and early[0] in given:
                raise Wrong(f"{said} places `{steps[k][0]}` before the `{steps[early[0]][0]}` that makes its input")
        if sorted(given) != sorted(needed):
            what = "records are missing" if len(given) < len(needed) else "some did not go into the target"
            raise Wrong(f"{said} gives {len(given)} records, expected {len(needed)}: {what}")
        mine.cases += 1


def descended(parts, weights, rate, steps, resets):
    """The weights [w, b] after training on these parts (x, y); `resets` says when gradients are set to 0."""
    w = np.concatenate(weights, axis=1)
    dw = 0.0
    for _ in range(steps):
        if resets == "each step":
            dw = 0.0
        for x, y in parts:
            if resets == "each loss":
                dw = 0.0
            rows = np.hstack([x, np.ones_like(y)])
            error = 2.0 * (np.sum(rows * w, axis=1, keepdims=True) - y) / len(x)
            dw = dw + np.sum(error * rows, axis=0, keepdims=True)
            if resets == "each update":
                w = w - rate * dw
                dw = 0.0
        w = w - rate * dw
    return w


@exercise("03-6", lines=8)
def train(mine, draw):
    """SGD with `backward`: the gradients of a step's losses are added, those of earlier steps are not."""
    for dtype in NEAR:
        for count, features, steps in ((1, 1, 1), (1, 2, 5), (3, 2, 1), (3, 1, 4), (2, 3, 6)):
            parts = [(draw.normal(size=(n, features)), draw.normal(size=(n, 1))) for n in range(3, 3 + count)]
            start = draw.normal(size=(1, features)), draw.normal(size=(1, 1))
            right, never, each_loss, each_update = (
                descended(parts, start, 0.05, steps, when)
                for when in ("each step", "never", "each loss", "each update")
            )
            said = f"{mine.name}(losses[{count}], variables, 0.05, {steps}), in {np.dtype(dtype)},"
            mistakes = {
                "the variables never change: `assign` them": np.concatenate(start, axis=1),
                "gradients of earlier steps are still in `grad`": never,
                "only the last loss of a step counts": each_loss,
                "it makes an update for each loss": each_update,
                "it goes uphill": descended(parts, start, -0.05, steps, "each step"),
            }
            given = [[each.astype(dtype) for each in part] for part in parts]
            found = mine.ask(trained, said, given, [each.astype(dtype) for each in start], 0.05, steps)
            mine.compare(said, np.concatenate(found, axis=1), right.astype(dtype), mistakes, NEAR[dtype])
