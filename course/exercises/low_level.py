"""The checks of notebook 03: a gradient rule, a loss without `if`, a Jacobian, a pass, an order, gradients reset."""

from contextlib import contextmanager

import numpy as np

from course.exercises.trying import Wrong, exercise, form

NEAR = {"f8": 1e-9, "f4": 1e-4}  # how near a result must come, as a share of the largest number


@contextmanager
def interpreted():
    """Kernels run as Python: a few numbers in many shapes are done before a compiler has begun."""
    from levels.kernels import COMPILERS, PLANS

    plans, compiler = dict(PLANS), COMPILERS["cpu"]
    COMPILERS["cpu"] = lambda function, *_: function
    try:
        yield
    finally:
        COMPILERS["cpu"] = compiler
        PLANS.clear()
        PLANS.update(plans)


def numbers(mine, said, result):
    """The array in a result that must be a tensor."""
    if not isinstance(result, mine["Tensor"]):
        raise Wrong(f"{said} gives {form(result)}, expected a tensor: only what passes the door can be differentiated")
    return result.numpy()


def nudged(loss, arrays, k, nudge=1e-3):
    """The slope of loss(*arrays) in each number of arrays[k]."""
    result = np.zeros(arrays[k].shape)
    for at in np.ndindex(result.shape):
        ends = []
        for step in (nudge, -nudge):
            moved = [x.copy() for x in arrays]
            moved[k][at] += step
            ends.append(loss(*moved))
        result[at] = (ends[0] - ends[1]) / (2 * nudge)
    return result


def values_of(said, graph, inputs, apply):
    """What the outputs of a graph are, op by op, for these inputs."""
    known = {node: node.attrs["of"] for node in graph.nodes if node.op in ("variable", "constant")}
    known |= {node: inputs[node.attrs["of"]] for node in graph.nodes if node.op == "input"}
    for node in graph.nodes:
        if not known.keys() >= {*node.inputs}:
            raise Wrong(f"{said} has `{node!r}`, which reads a node that is not in the list before it")
        if node.inputs:
            known[node] = apply(node.op, *(known[x] for x in node.inputs), **node.attrs)
    return [known[node].numpy() for node in graph.outputs]


@exercise("03-1", lines=3)
def dense_rule(mine, draw):
    """The gradients of x @ w + b in x, w and b, from that of the result."""
    cases = ((3, 2, 4, (1, 4)), (3, 3, 3, (3,)), (5, 1, 2, ()), (2, 4, 3, (2, 3)), (4, 2, 3, (4, 1)), (1, 2, 5, (1, 1)))
    for dtype, some in (("f8", cases), ("f4", cases[:1])):
        for rows, inputs, units, bias in some:
            shapes = (rows, units), (rows, inputs), (inputs, units), bias
            dy, *given = arrays = [np.asarray(draw.normal(size=shape)) for shape in shapes]
            tensors = [mine["constant"](x, dtype) for x in arrays]
            with mine["GradientTape"]() as tape:  # what follows needs the same kernels: they are compiled here
                y = tensors[1] @ tensors[2] + tensors[3]
            tape.gradient(y, tensors[1:])
            said = f"{mine.name}, for x{[rows, inputs]}, w{[inputs, units]} and b{[*bias]},"
            with mine["GradientTape"]() as tape:
                result = mine.call(said, mine.function, tensors[0], y, *tensors[1:])
            if not isinstance(result, list | tuple) or len(result) != 3:
                raise Wrong(f"{said} gives {form(result)}, expected dx, dw, db")
            heard = {tensors[0], *(record[3] for record in tape.records)}
            x, w, b = given
            mistakes = {
                "dx": {"it multiplies by w: turn w round": dy @ w} if inputs == units else {},
                "dw": {"dw is turned round": (x.T @ dy).T, "it divides by the rows: that is a mean": x.T @ dy / rows},
                "db": {"dy went through as it is: where b was repeated, its shares are added up": dy}
                | {
                    "it divides by the rows: that is a mean": dy.mean(axis=0).reshape(bias)
                    if bias == (1, units)
                    else ()
                },
            }
            for k, (name, gradient) in enumerate(zip(mistakes, result, strict=True)):
                found = numbers(mine, f"{name}: {said}", gradient)
                expected = nudged(lambda x, w, b: np.sum(dy * (x @ w + b)), given, k).astype(dtype)  # noqa: B023
                mine.compare(f"{name}: {said}", found, np.asarray(expected), mistakes[name], NEAR[dtype])
                if gradient not in heard:
                    raise Wrong(f"{name}: {said} was computed beside the door: no tape heard of it")


@exercise("03-2", lines=3)
@interpreted()
def huber(mine, draw):
    """error²/2 where |error| ≤ 1, beyond it |error| - 1/2: its numbers, its gradient, and its trace."""
    for dtype in NEAR:
        for shape in ((), (7,), (3, 4)) if dtype == "f8" else ((7,),):
            fixed = np.resize([3.0, -0.5, 1.0, -1.0, 0.0, 0.25, -4.0], shape)
            for error in (fixed, draw.normal(size=shape), draw.uniform(-4, 4, size=shape)):
                x = mine["constant"](error, dtype)
                e, slope = x.numpy(), np.clip(x.numpy(), -1, 1)
                right = np.where(abs(e) <= 1, e * e / 2, abs(e) - np.asarray(0.5, dtype))
                mistakes = {
                    "negative errors are not seen": np.where(e <= 1, e * e / 2, e - 0.5),
                    "the half is missing": np.where(abs(e) <= 1, e * e, abs(e) - 0.5),
                    "large errors count with their square": e * e / 2,
                    "there is a jump at 1: take 1/2 away": np.where(abs(e) <= 1, e * e / 2, abs(e)),
                    "it takes the mean": np.mean(right),
                }
                said = f"{mine.name}, for {form(e)} such as {e.flat[0]:.3g},"
                with mine["GradientTape"]() as tape:
                    y = mine.call(said, mine.function, x)
                mine.compare(said, numbers(mine, said, y), right, mistakes, NEAR[dtype])
                gradient = mine.call(f"the gradient of {said}", tape.gradient, y, x).numpy()
                mine.compare(f"the gradient of {said}", gradient, slope, {}, NEAR[dtype])
            said = f"{mine.name}, traced for {form(e)},"
            graph, _, _ = mine.call(said, mine["trace"], mine.function, (x.spec,))
            (found,) = values_of(said, graph, [x], mine["apply"])
            why = {"it holds what was computed for other numbers": right}
            mine.compare(said, found, right, why, NEAR[dtype])


@exercise("03-3", lines=4)
@interpreted()
def jacobian(mine, draw):
    """J[i, j], the slope of result i in input j, of functions from n numbers to m."""
    constant, total, tanh = mine["constant"], mine["reduce_sum"], mine["tanh"]
    for dtype in NEAR:
        for m, n in ((2, 3), (3, 3), (4, 2), (1, 3), (5, 1)):
            a, x = draw.normal(size=(m, n)), constant(draw.normal(size=n), dtype)
            pull = constant(a, dtype)

            def line(x, pull=pull):
                return total(pull * x, axis=1)

            def bent(x, pull=pull):
                return tanh(total(pull * x * x, axis=1))

            inside = 2.0 * a * x.numpy() * (1.0 - np.tanh(a @ x.numpy().astype("f8") ** 2)[:, None] ** 2)
            for function, right in ((line, a), (bent, inside)):
                said = f"{mine.name}({function.__name__}, x), from {n} numbers to {m} in {x.dtype},"
                result = mine.call(said, mine.function, function, x)
                result = result.numpy() if isinstance(result, mine["Tensor"]) else result
                mistakes = {
                    "rows and columns are exchanged": right.T,
                    "each row is the sum of all": np.tile(right.sum(axis=0), (m, 1)),
                }
                mine.compare(said, result, right.astype(dtype), mistakes, NEAR[dtype])


def products(mine):
    """{program: (function of x[3, 4] and y[1, 4], how many ops may stay)}"""
    constant, variable = mine["constant"], mine["Variable"](np.ones((1, 1)), "w")
    ones, wide = constant(np.ones((1, 4))), constant(np.ones((3, 4)))
    mixed = constant(np.array([[1.0, 2.0, 1.0, 1.0]]))
    return {
        "x * 1.0 - y": (lambda x, y: x * 1.0 - y, 1),
        "1.0 * x - y": (lambda x, y: 1.0 * x - y, 1),
        "x * 1.0": (lambda x, y: x * 1.0, 0),
        "(x * 1.0) * (1.0 * y)": (lambda x, y: (x * 1.0) * (1.0 * y), 1),
        "((x * 1.0) * 1.0 + y) * 1.0": (lambda x, y: ((x * 1.0) * 1.0 + y) * 1.0, 1),
        "x * ones[1, 4] - y": (lambda x, y: x * ones - y, 1),
        "x * [[1.0, 2.0, 1.0, 1.0]]": (lambda x, y: x * mixed, 1),
        "y * ones[3, 4], whose result is larger than y": (lambda x, y: y * wide, 1),
        "x * 2.0": (lambda x, y: x * 2.0, 1),
        "x + 1.0": (lambda x, y: x + 1.0, 1),
        "1.0 / x": (lambda x, y: 1.0 / x, 1),
        "x * y": (lambda x, y: x * y, 1),
        "x * w, with a variable w that is 1.0 today": (lambda x, y: x * variable, 1),
    }


@exercise("03-4", lines=8)
@interpreted()
def without_ones(mine, draw):
    """A pass that leaves products with 1.0 out: the number of ops, and the same bits as before."""
    x, y = (mine["constant"](draw.normal(size=shape)) for shape in ((3, 4), (1, 4)))
    for text, (program, ops) in products(mine).items():
        said = f"{mine.name}, for the graph of {text},"
        graph, _, _ = mine["trace"](program, (x.spec, y.spec))
        before, right = repr(graph), values_of(said, graph, [x, y], mine["apply"])
        result = mine.call(said, mine.function, graph)
        if not isinstance(result, mine["Graph"]):
            raise Wrong(f"{said} gives {form(result)}, expected a Graph")
        if repr(graph) != before:
            raise Wrong(f"{said} changes the graph that it is given: make another one")
        found = values_of(said, result, [x, y], mine["apply"])
        for one, other in zip(found, right, strict=True):
            mine.compare(said, one, other, {"a factor other than 1.0 was left out": x.numpy()})
        if len(result.ops) != ops:
            what = "a product with 1.0 stays" if len(result.ops) > ops else "an op is lost"
            raise Wrong(f"{said} has {len(result.ops)} ops, expected {ops}: {what}")


def tangles(mine, draw):
    """[(words, records, target)]: programs in which tensors are used more than once, or not at all."""
    variable, found = mine["Variable"], []

    def doubled(u, times):
        for _ in range(times):
            u = u + u * 0.5
        return u

    def at_random(u):
        made = [u, u * 2.0]
        for _ in range(12):
            p, q = (made[int(k)] for k in draw.integers(len(made), size=2))
            made.append(p * q if draw.random() < 0.5 else p + q)
        return made[-1]

    def with_a_side_road(u):
        z = u * u + u
        _ = u * 3.0, z - 1.0  # nobody asks for these
        return z

    programs = {
        "u * u + u": lambda v: (lambda u: u * u + u)(v * 2.0),
        "u + u * u": lambda v: (lambda u: u + u * u)(v * 2.0),
        "u * u + u, and two ops that are not used,": lambda v: with_a_side_road(v * 2.0),
        **{"a random program": at_random, "another": at_random, "a third": at_random},
        "60 times u + u * 0.5": lambda v: doubled(v, 60),
    }
    for words, program in programs.items():
        with mine["GradientTape"](persistent=True) as tape:
            target = program(variable(np.array(0.5)))
        found.append((words, tape.records, target))
    return found


@exercise("03-5", lines=10)
@interpreted()
def in_order(mine, draw):
    """The records that a target was made from, each after those that made its inputs."""
    for words, records, target in tangles(mine, draw):
        said = f"{mine.name}, for {words}"
        makers = {record[3]: record for record in records}
        needed = {target}
        for record in reversed(records):
            needed.update(record[1] if record[3] in needed else ())
        wanted = [k for k, record in enumerate(records) if record[3] in needed]
        shuffled = {records[k][3]: records[k] for k in draw.permutation(len(records))}
        result = mine.call(said, mine.function, shuffled, target)
        if not isinstance(result, list | tuple):
            raise Wrong(f"{said} gives {form(result)}, expected a list of records")
        numbers = {id(record): k for k, record in enumerate(records)}
        given = [numbers.get(id(record)) for record in result]
        if None in given:
            raise Wrong(f"{said} gives {form(result[given.index(None)])} among the records")
        for k, number in enumerate(given):
            if number in given[:k]:
                raise Wrong(f"{said} gives the record of `{records[number][0]}` twice: remember which you have seen")
            early = [x for x in records[number][1] if x in makers and numbers[id(makers[x])] not in given[:k]]
            if early and numbers[id(makers[early[0]])] in given:
                first, then = records[number][0], makers[early[0]][0]
                raise Wrong(f"{said} places `{first}` before the `{then}` that makes its input")
        if sorted(given) != wanted:
            what = "records are missing" if len(given) < len(wanted) else "some did not go into the target"
            raise Wrong(f"{said} gives {len(given)} records, expected {len(wanted)}: {what}")
        mine.cases += 1


def descended(parts, weights, rate, steps, resets):
    """The weights [w, b] after training on these parts (x, y); `resets` says when gradients start anew."""
    w, b, dw, db = *weights, 0.0, 0.0
    for _ in range(steps):
        if resets == "each step":
            dw, db = 0.0, 0.0
        for x, y in parts:
            if resets == "each loss":
                dw, db = 0.0, 0.0
            error = 2.0 * (np.sum(x * w, axis=1, keepdims=True) + b - y) / len(x)
            dw, db = dw + np.sum(error * x, axis=0, keepdims=True), db + np.sum(error, axis=0, keepdims=True)
            if resets == "each update":
                w, b, dw, db = w - rate * dw, b - rate * db, 0.0, 0.0
        w, b = w - rate * dw, b - rate * db
    return np.concatenate([w, b], axis=1)


@exercise("03-6", lines=8)
@interpreted()
def train(mine, draw):
    """SGD with `backward`: the gradients of a step's losses are added, those of earlier steps are not."""
    mean, total = mine["reduce_mean"], mine["reduce_sum"]

    def squared_error(x, y, w, b):
        error = total(x * w, axis=1, keepdims=True) + b - y
        return mean(error * error)

    for dtype in NEAR:
        for count, features, steps in ((1, 1, 1), (1, 2, 5), (3, 2, 1), (3, 1, 4), (2, 3, 6)):
            parts = [(draw.normal(size=(n, features)), draw.normal(size=(n, 1))) for n in range(3, 3 + count)]
            start = draw.normal(size=(1, features)), draw.normal(size=(1, 1))
            w, b = variables = [mine["Variable"](x.astype(dtype)) for x in start]
            tensors = [[mine["constant"](each, dtype) for each in part] for part in parts]
            losses = [lambda x=x, y=y, w=w, b=b: squared_error(x, y, w, b) for x, y in tensors]
            right, never, each_loss, each_update = (
                descended(parts, start, 0.05, steps, when)
                for when in ("each step", "never", "each loss", "each update")
            )
            said = f"{mine.name}(losses[{count}], variables, 0.05, {steps}), in {w.dtype},"
            mine.call(said, mine.function, losses, list(variables), 0.05, steps)
            mistakes = {
                "the variables never change: `assign` them": np.concatenate(start, axis=1),
                "gradients of earlier steps are still in `grad`": never,
                "only the last loss of a step counts": each_loss,
                "each loss makes an update of its own": each_update,
                "it walks uphill": descended(parts, start, -0.05, steps, "each step"),
            }
            found = np.concatenate([v.numpy() for v in variables], axis=1)
            mine.compare(said, found, right.astype(dtype), mistakes, NEAR[dtype])
