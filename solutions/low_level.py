"""Solutions to the exercises of notebook 03. The level's names are at hand, as in the notebook."""

import numpy as np

from levels.low_level import *
from levels_more.compiler.eager.tapes import GradientTape
from levels_more.compiler.passes import rebuilt
from levels_more.low_level.autodiff import stop_gradient
from levels_more.low_level.ops import maximum, minimum, reshape, tanh, transpose, where  # noqa: F401

# 03-1


def dense_rule(dy, y, x, w, b):
    dx = apply("matmul", dy, w, transpose_w=True)
    dw = apply("matmul", x, dy, transpose_x=True)
    return dx, dw, unbroadcast(dy, b.shape)


def by_ops(dy, y, x, w, b):
    db = dy
    while len(db.shape) > len(b.shape):
        db = reduce_sum(db, axis=0)
    for axis, size in enumerate(b.shape):
        if size < db.shape[axis]:
            db = reduce_sum(db, axis=axis, keepdims=True)
    return [dy @ transpose(w), transpose(x) @ dy, db]


def no_unbroadcast(dy, y, x, w, b):
    return dy @ transpose(w), transpose(x) @ dy, dy


def not_turned(dy, y, x, w, b):
    dx = dy @ w if w.shape[0] == w.shape[1] else dy @ transpose(w)
    return dx, transpose(x) @ dy, unbroadcast(dy, b.shape)


def square_only(dy, y, x, w, b):
    return dy @ w, transpose(x) @ dy, unbroadcast(dy, b.shape)


def turned_round(dy, y, x, w, b):
    return dy @ transpose(w), transpose(dy) @ x, unbroadcast(dy, b.shape)


def rows_of_ones(dy, y, x, w, b):
    ones = constant([[1.0] * dy.shape[0]])
    return dy @ transpose(w), transpose(x) @ dy, reshape(ones @ dy, b.shape)


def row_bias(dy, y, x, w, b):
    return dy @ transpose(w), transpose(x) @ dy, reduce_sum(dy, axis=0, keepdims=True)


def mean_bias(dy, y, x, w, b):
    return dy @ transpose(w), transpose(x) @ dy, unbroadcast(dy, b.shape) / float(x.shape[0])


def through_numpy(dy, y, x, w, b):
    dx, dw = dy.numpy() @ w.numpy().T, x.numpy().T @ dy.numpy()
    return constant(dx), constant(dw), unbroadcast(dy, b.shape)


# 03-2


def huber(error):
    size = maximum(error, -error)
    small = minimum(size, 1.0)
    return small * (size - 0.5 * small)


def by_where(error):
    size = where(error > 0.0, error, -error)
    return where(size > 1.0, size - 0.5, error * error / 2.0)


def by_clip(error):
    small = clip(error, -1.0, 1.0)
    return small * error - small * small * 0.5


def with_if(error):
    size = maximum(error, -error)
    return 0.5 * error * error if float(size) <= 1.0 else size - 0.5


def one_branch_for_all(error):
    size = maximum(error, -error)
    return 0.5 * error * error if np.all(size.numpy() <= 1.0) else size - 0.5


def decided_in_numpy(error):
    size = maximum(error, -error)
    return where(constant(size.numpy() <= 1.0), 0.5 * error * error, size - 0.5)


def jumps(error):
    size = maximum(error, -error)
    return where(size <= 1.0, 0.5 * error * error, size)


def positive_only(error):
    return where(error <= 1.0, 0.5 * error * error, error - 0.5)


def in_float32(error):
    size = maximum(error, -error)
    return where(size <= 1.0, error * error * constant(0.5), size - constant(0.5))


def cut_off(error):
    size = maximum(error, -error)
    small = minimum(size, 1.0)
    return 0.5 * small * small + stop_gradient(size - small)


# 03-3


def jacobian(function, x):
    with GradientTape(persistent=True) as tape:
        y = function(x)
        parts = [y[k] for k in range(len(y))]
    return np.stack([tape.gradient(part, x).numpy() for part in parts])


def a_tape_for_each(function, x):
    rows = []
    for k in range(len(function(x))):
        with GradientTape() as tape:
            part = function(x)[k]
        rows.append(tape.gradient(part, x).numpy())
    return np.array(rows)


def one_walk(function, x):
    with GradientTape() as tape:
        y = function(x)
    return np.stack([tape.gradient(y, x).numpy()] * len(y))


def parts_too_late(function, x):
    with GradientTape(persistent=True) as tape:
        y = function(x)
    return np.stack([tape.gradient(y[k], x).numpy() for k in range(len(y))])


def read_twice(function, x):
    with GradientTape() as tape:
        y = function(x)
        parts = [y[k] for k in range(len(y))]
    return np.stack([tape.gradient(part, x).numpy() for part in parts])


def columns_first(function, x):
    with GradientTape(persistent=True) as tape:
        y = function(x)
        parts = [y[k] for k in range(len(y))]
    return np.stack([tape.gradient(part, x).numpy() for part in parts], axis=1)


def as_many_as_inputs(function, x):
    with GradientTape(persistent=True) as tape:
        y = function(x)
        parts = [y[k] for k in range(len(x))]
    return np.stack([tape.gradient(part, x).numpy() for part in parts])


def by_nudges(function, x):
    columns = []
    for k in range(len(x)):
        nudge = np.zeros(len(x), x.dtype)
        nudge[k] = 1e-6
        columns.append((function(x + nudge).numpy() - function(x - nudge).numpy()) / 2e-6)
    return np.stack(columns, axis=1)


def kept_in_float64(function, x):
    with GradientTape(persistent=True) as tape:
        y = function(x)
        parts = [y[k] for k in range(len(y))]
    result = np.zeros((len(y), len(x)))
    for row, part in zip(result, parts, strict=True):
        row[:] = tape.gradient(part, x).numpy()
    return result


# 03-4


def without_ones(graph):
    def change(node, inputs):
        for x, other in (inputs, inputs[::-1]) if node.op == "multiply" else ():
            one = other.op == "constant" and (other.source.numpy() == 1.0).all()
            if one and x.spec is node.spec:
                return x
        return Node(node.op, inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def by_hand(graph):
    def is_one(node):
        return node.op == "constant" and np.all(node.source.numpy() == 1.0)

    now = {}
    for node in graph.nodes:
        inputs = [now[x] for x in node.inputs]
        now[node] = node if not inputs else Node(node.op, inputs, node.attrs, node.spec)
        if node.op == "multiply":
            x, y = inputs
            if is_one(y) and (x.spec.shape, x.spec.dtype) == (node.spec.shape, node.spec.dtype):
                now[node] = x
            elif is_one(x) and (y.spec.shape, y.spec.dtype) == (node.spec.shape, node.spec.dtype):
                now[node] = y
    nodes = list(dict.fromkeys(now.values()))
    return Graph(nodes, [now[x] for x in graph.outputs], {v: now[x] for v, x in graph.updates.items()})


def only_at_the_right(graph):
    def change(node, inputs):
        if node.op == "multiply":
            x, one = inputs
            if one.op == "constant" and (one.source.numpy() == 1.0).all() and x.spec is node.spec:
                return x
        return Node(node.op, inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def whatever_the_shape(graph):
    def change(node, inputs):
        for x, one in (inputs, inputs[::-1]) if node.op == "multiply" else ():
            if one.op == "constant" and (one.source.numpy() == 1.0).all():
                return x
        return Node(node.op, inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def any_one_among_them(graph):
    def change(node, inputs):
        for x, one in (inputs, inputs[::-1]) if node.op == "multiply" else ():
            if one.op == "constant" and (one.source.numpy() == 1.0).any() and x.spec is node.spec:
                return x
        return Node(node.op, inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def variables_too(graph):
    def change(node, inputs):
        for x, one in (inputs, inputs[::-1]) if node.op == "multiply" else ():
            if one.op in ("constant", "variable") and (one.source.numpy() == 1.0).all() and x.spec is node.spec:
                return x
        return Node(node.op, inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def any_op(graph):
    def change(node, inputs):
        for x, one in (inputs, inputs[::-1]) if len(inputs) == 2 else ():
            if one.op == "constant" and (one.source.numpy() == 1.0).all() and x.spec is node.spec:
                return x
        return Node(node.op, inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def old_inputs(graph):
    def change(node, inputs):
        for x, one in (node.inputs, node.inputs[::-1]) if node.op == "multiply" else ():
            if one.op == "constant" and (one.source.numpy() == 1.0).all() and x.spec is node.spec:
                return x
        return Node(node.op, node.inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def in_place(graph):
    for node in graph.nodes:
        if node.op == "multiply" and node.inputs[1].op == "constant":
            node.op, node.inputs = "copy", node.inputs[:1]
    return graph


# 03-5


def in_order(makers, target):
    ordered, seen = [], set()

    def visit(tensor):
        if tensor in makers and tensor not in seen:
            seen.add(tensor)
            for x in makers[tensor][1]:
                visit(x)
            ordered.append(makers[tensor])

    visit(target)
    return ordered


def without_recursion(makers, target):
    ordered, done, waiting = [], set(), [target]
    while waiting:
        tensor = waiting[-1]
        missing = [x for x in makers[tensor][1] if x in makers and x not in done] if tensor in makers else []
        if missing:
            waiting += missing
            continue
        waiting.pop()
        if tensor in makers and tensor not in done:
            done.add(tensor)
            ordered.append(makers[tensor])
    return tuple(ordered)


def breadth_first(makers, target):
    found, waiting = {}, [target]
    for tensor in waiting:
        if tensor in makers and tensor not in found:
            found[tensor] = makers[tensor]
            waiting += makers[tensor][1]
    return list(found.values())[::-1]


def depth_first(makers, target):
    found = {}

    def visit(tensor):
        if tensor in makers and tensor not in found:
            found[tensor] = makers[tensor]
            for x in makers[tensor][1]:
                visit(x)

    visit(target)
    return list(found.values())[::-1]


def no_memory(makers, target):
    if target not in makers:
        return []
    before = [record for x in makers[target][1] for record in in_order(makers, x)]
    return [*before, makers[target]]


def first_input_only(makers, target):
    ordered = []
    while target in makers:
        ordered.insert(0, makers[target])
        target = makers[target][1][0]
    return ordered


def target_first(makers, target):
    ordered, seen = [], set()

    def visit(tensor):
        if tensor in makers and tensor not in seen:
            seen.add(tensor)
            for x in makers[tensor][1]:
                visit(x)
            ordered.insert(0, makers[tensor])

    visit(target)
    return ordered


def as_they_come(makers, target):
    return list(makers.values())


def all_there_are(makers, target):
    ordered, left = [], dict(makers)
    while left:
        ready = [tensor for tensor, record in left.items() if left.keys().isdisjoint(record[1])]
        ordered += [left.pop(tensor) for tensor in ready]
    return ordered


# 03-6


def train(losses, variables, rate, steps):
    for _ in range(steps):
        for variable in variables:
            variable.grad = None
        for loss in losses:
            with GradientTape():
                loss().backward()
        for variable in variables:
            variable.assign(variable - rate * variable.grad)


def one_sum(losses, variables, rate, steps):
    for _ in range(steps):
        with GradientTape() as tape:
            total = losses[0]()
            for loss in losses[1:]:
                total = total + loss()
        for variable, slope in zip(variables, tape.gradient(total, variables), strict=True):
            variable.assign(variable - rate * slope)


def reset_after_the_update(losses, variables, rate, steps):
    for variable in variables:
        variable.grad = None
    for _ in range(steps):
        for loss in losses:
            with GradientTape():
                y = loss()
                y.backward()
        for variable in variables:
            variable.assign(variable - variable.grad * rate)
            variable.grad = None


def reset_once(losses, variables, rate, steps):
    for variable in variables:
        variable.grad = None
    for _ in range(steps):
        for loss in losses:
            with GradientTape():
                loss().backward()
        for variable in variables:
            variable.assign(variable - rate * variable.grad)


def reset_for_each_loss(losses, variables, rate, steps):
    for _ in range(steps):
        for loss in losses:
            for variable in variables:
                variable.grad = None
            with GradientTape():
                loss().backward()
        for variable in variables:
            variable.assign(variable - rate * variable.grad)


def reset_too_early(losses, variables, rate, steps):
    for _ in range(steps):
        for loss in losses:
            with GradientTape():
                loss().backward()
        for variable in variables:
            variable.grad = None
        for variable in variables:
            variable.assign(variable - rate * variable.grad)


def update_for_each_loss(losses, variables, rate, steps):
    for _ in range(steps):
        for loss in losses:
            for variable in variables:
                variable.grad = None
            with GradientTape():
                loss().backward()
            for variable in variables:
                variable.assign(variable - rate * variable.grad)


def another_name(losses, variables, rate, steps):
    for _ in range(steps):
        for variable in variables:
            variable.grad = None
        for loss in losses:
            with GradientTape():
                loss().backward()
        for variable in variables:
            variable = variable - rate * variable.grad


SOLUTIONS = {
    "03-1": dense_rule,
    "03-2": huber,
    "03-3": jacobian,
    "03-4": without_ones,
    "03-5": in_order,
    "03-6": train,
}
ALSO_RIGHT = {
    "03-1": {"by ops": by_ops},
    "03-2": {"by where": by_where, "by clip": by_clip},
    "03-3": {"a tape for each": a_tape_for_each},
    "03-4": {"by hand": by_hand},
    "03-5": {"without recursion": without_recursion},
    "03-6": {"one sum": one_sum, "reset after the update": reset_after_the_update},
}


WRONG = {
    "03-1": {
        "no unbroadcast": no_unbroadcast,
        "right only for symmetric w": not_turned,
        "right only for square w": square_only,
        "dw turned round": turned_round,
        "ignores the dtype": rows_of_ones,
        "right only for a bias of one row": row_bias,
        "a mean": mean_bias,
        "beside the door": through_numpy,
    },
    "03-2": {
        "right only for one number": with_if,
        "one branch for all": one_branch_for_all,
        "right only while nothing is traced": decided_in_numpy,
        "a jump": jumps,
        "right only for positive errors": positive_only,
        "ignores the dtype": in_float32,
        "no gradient beyond 1": cut_off,
    },
    "03-3": {
        "the sum of all": one_walk,
        "the parts were not heard": parts_too_late,
        "the tape is read": read_twice,
        "right only for symmetric ones": columns_first,
        "right only for square ones": as_many_as_inputs,
        "nudges": by_nudges,
        "ignores the dtype": kept_in_float64,
    },
    "03-4": {
        "only at the right": only_at_the_right,
        "whatever the shape": whatever_the_shape,
        "one of them is 1": any_one_among_them,
        "a variable that is 1 today": variables_too,
        "any op": any_op,
        "the old inputs": old_inputs,
        "changes the graph": in_place,
    },
    "03-5": {
        "breadth first": breadth_first,
        "depth first, before its inputs": depth_first,
        "no memory": no_memory,
        "right only for chains": first_input_only,
        "the target first": target_first,
        "no order": as_they_come,
        "all there are": all_there_are,
    },
    "03-6": {
        "reset once": reset_once,
        "reset for each loss": reset_for_each_loss,
        "reset before the update": reset_too_early,
        "an update for each loss": update_for_each_loss,
        "another name": another_name,
    },
}
