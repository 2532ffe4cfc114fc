"""The questions of the checks of notebook 03, and the cases of its blanks."""

import operator

import numpy as np

from course.reader.cases import Wrong, cases, question
from course.reader.cases.drawn import drawn
from course.reader.cases.interpreting import all_interpreted, interpreted
from course.reader.cases.plain_data import describe
from course.reader.inspection.graphs import listed


def numbers(mine, said, result):
    """The array in a result. Raises Wrong if the result is no tensor."""
    if not isinstance(result, mine["Tensor"]):
        raise Wrong(
            f"{said} gives {describe(result)}, expected a tensor: only what is computed with ops has a gradient"
        )
    return result.numpy()


@question
def rule_of_a_layer(mine, said, arrays):
    """[(gradient, whether a tape recorded it)] in x, w and b, for the arrays dy, x, w and b."""
    dy, *given = (mine["constant"](x, x.dtype) for x in arrays)
    x, w, b = given
    with mine["GradientTape"]() as tape:  # compile here the kernels that the timed call below needs
        y = x @ w + b
    tape.gradient(y, given)
    with mine["GradientTape"]() as tape:
        result = mine.call(said, mine.function, dy, y, x, w, b)
    if not isinstance(result, list | tuple) or len(result) != 3:
        raise Wrong(f"{said} gives {describe(result)}, expected dx, dw, db")
    heard = {dy, *(record[3] for record in tape.records)}
    names = [f"{name}: {said}" for name in ("dx", "dw", "db")]
    return [(numbers(mine, name, g), g in heard) for name, g in zip(names, result, strict=True)]


@question
@interpreted()
def function_and_slope(mine, said, x):
    """f(x), and the gradient of its sum in x."""
    x = mine["constant"](x, x.dtype)
    with mine["GradientTape"]() as tape:
        y = mine.call(said, mine.function, x)
    found = numbers(mine, said, y)
    return found, mine.call(f"the gradient of {said}", tape.gradient, y, x).numpy()


@question
@interpreted()
def function_traced(mine, said, x):
    """f(x) as its graph computes it, op by op."""
    x = mine["constant"](x, x.dtype)
    graph, _ = mine.call(said, mine["trace"], mine.function, (x.spec,))
    (node,) = graph.outputs
    return computed(said, graph, [x], mine["apply"])[node].numpy()


def computed(said, graph, inputs, apply):
    """{node: its tensor or variable} of a graph for these inputs, op by op. Raises Wrong at a wrong order of nodes."""
    known = {node: node.source for node in graph.nodes if node.op in ("variable", "constant")}
    known |= {node: inputs[node.source] for node in graph.nodes if node.op == "input"}
    for node in graph.nodes:
        if not known.keys() >= {*node.inputs}:
            raise Wrong(f"{said} has `{node!r}`, which reads a node that is not in the list before it")
        if node.inputs:
            known[node] = apply(node.op, *(known[x] for x in node.inputs), **node.attrs)
    return known


@question
@interpreted()
def jacobian_of(mine, said, function, pull, x):
    """The Jacobian, in x, that is found for the function of that name: "line" or "bent"."""
    total = mine["reduce_sum"]
    tanh = mine["tanh"]
    x, pull = mine["constant"](x, x.dtype), mine["constant"](pull, x.dtype)

    def line(x):
        return total(pull * x, axis=1)

    def bent(x):
        return tanh(total(pull * x * x, axis=1))

    result = mine.call(said, mine.function, {"line": line, "bent": bent}[function], x)
    return result.numpy() if isinstance(result, mine["Tensor"]) else result


def products(constant, w):
    """{words: a function of x[3, 4] and y[1, 4]}. Some have a product that changes nothing. w is a variable."""
    ones, wide = constant(np.ones((1, 4))), constant(np.ones((3, 4)))
    mixed = constant(np.array([[1.0, 2.0, 1.0, 1.0]]))
    return {
        "x * 1.0 - y": lambda x, y: x * 1.0 - y,
        "1.0 * x - y": lambda x, y: 1.0 * x - y,
        "x * 1.0": lambda x, y: x * 1.0,
        "(x * 1.0) * (1.0 * y)": lambda x, y: (x * 1.0) * (1.0 * y),
        "((x * 1.0) * 1.0 + y) * 1.0": lambda x, y: ((x * 1.0) * 1.0 + y) * 1.0,
        "x * ones[1, 4] - y": lambda x, y: x * ones - y,
        "x * [[1.0, 2.0, 1.0, 1.0]]": lambda x, y: x * mixed,
        "y * ones[3, 4], whose result is larger than y": lambda x, y: y * wide,
        "x * 2.0": lambda x, y: x * 2.0,
        "x + 1.0": lambda x, y: x + 1.0,
        "1.0 / x": lambda x, y: 1.0 / x,
        "x * y": lambda x, y: x * y,
        "x * w, with a variable w that is 1.0 today": lambda x, y: x * w,
    }


@question
@interpreted()
def graph_passed(mine, said, program, shapes):
    """The graph that a pass makes from a program's: [(op, numbers of its inputs, what a leaf holds)], and its outputs.

    A leaf that is an input holds its number, a constant holds an array, and the variable w holds None.
    """
    w = mine["Variable"](np.ones((1, 1)), "w")
    signature = [mine["constant"](np.zeros(shape)).spec for shape in shapes]
    graph, _ = mine["trace"](products(mine["constant"], w)[program], signature)
    before = listed(graph)
    result = mine.call(said, mine.function, graph)
    if not isinstance(result, mine["Graph"]):
        raise Wrong(f"{said} gives {describe(result)}, expected a Graph")
    if listed(graph) != before:
        raise Wrong(f"{said} changes the graph that it is given: make another one")
    known = {}
    told = []
    for node in result.nodes:
        if not known.keys() >= {*node.inputs}:
            raise Wrong(f"{said} has `{node!r}`, which reads a node that is not in the list before it")
        leaf = node.source.numpy() if node.op == "constant" else node.source if node.op == "input" else None
        told.append((node.op, [known[x] for x in node.inputs], leaf))
        known[node] = len(known)
    return told, [known[node] for node in result.outputs]


OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}


@question
@interpreted()
def records_ordered(mine, said, steps, target, order):
    """The numbers of the records that a target was made from, in the order that the function gives.

    Each step is (op, input, input). An int is the number of a value: 0 for a variable, k + 1 for the result of step k.
    A float is a constant. The target is the number of a value. order: in which order the function gets the records.
    """
    with mine["GradientTape"]() as tape:
        values = [mine["Variable"](np.array(0.5))]
        for op, *inputs in steps:
            values.append(OPERATORS[op](*(values[x] if isinstance(x, int) else x for x in inputs)))
    records = tape.records
    result = mine.call(said, mine.function, {records[k][3]: records[k] for k in order}, values[target])
    if not isinstance(result, list | tuple):
        raise Wrong(f"{said} gives {describe(result)}, expected a list of records")
    known = {id(record): k for k, record in enumerate(records)}
    for record in result:
        if id(record) not in known:
            raise Wrong(f"{said} gives {describe(record)} among the records")
    return [known[id(record)] for record in result]


@question
@interpreted()
def trained(mine, said, parts, start, rate, steps):
    """The weights [w, b] after training on these parts (x, y), with one loss for each part."""
    mean = mine["reduce_mean"]
    total = mine["reduce_sum"]
    w, b = variables = [mine["Variable"](x) for x in start]
    tensors = [[mine["constant"](each, each.dtype) for each in part] for part in parts]

    def squared_error(x, y):
        error = total(x * w, axis=1, keepdims=True) + b - y
        return mean(error * error)

    losses = [lambda x=x, y=y: squared_error(x, y) for x, y in tensors]
    mine.call(said, mine.function, losses, list(variables), rate, steps)
    return [v.numpy() for v in variables]


def heard(tape, said, result, *given):
    """Raise Wrong if a result is a tensor that was neither given nor recorded on this tape."""
    made = [result] if isinstance(result, type(given[0])) else []
    for each in made:
        if all(each is not known for known in (*given, *(record[3] for record in tape.records))):
            raise Wrong(
                f"{said}: this was computed without ops, so no tape recorded it, and in a program it has no numbers: "
                "use the operators of tensors and functions such as `reduce_sum`"
            )


def tape_of(mine):
    """A tape of the notebook's own class, or of level 3's if the notebook has not defined one."""
    from levels.low_level import GradientTape

    return mine.first.__globals__.get("Tape", GradientTape)()


@cases("03-unbroadcast")
@all_interpreted
def unbroadcast(mine, draw):
    """A gradient of a result's shape, summed to the shape of an input that was broadcast."""
    shapes = (
        ((10, 4), (1, 4)),
        ((3, 4), (3, 4)),
        ((3, 4), (3, 1)),
        ((3, 4), (1, 1)),
        ((3, 4), (4,)),
        ((5, 3, 4), (3, 1)),
        ((3,), ()),
        ((3, 1), (1, 1)),
        ((2, 3, 4), (1, 3, 1)),
        ((2, 3, 4), (4,)),
        ((2, 3, 4), ()),
    )
    for have, wanted in shapes:
        told = f"a gradient of shape {have}, an input of shape {wanted}"
        whole = len(have) - len(wanted) > 1  # sums of whole numbers are exact, in one op or in several
        dx = mine["constant"](draw.integers(-9, 9, size=have).astype("f8") if whole else draw.normal(size=have))
        with tape_of(mine) as tape:
            try:
                _, found = mine.on(told, dx, wanted)
            except Wrong as wrong:
                if "not neighbours" in str(wrong):
                    wrong = Wrong(f"{told}: `reduce_sum` takes neighbouring axes; sum one axis after the other")
                raise wrong from None
        heard(tape, told, found, dx)
        idle = sum(inputs[0].spec.nbytes == y.spec.nbytes for _, inputs, _, y in tape.records)
        # a sum of a sum over rows gives the right numbers, but a row program has no place for it
        yield told, {"": found, "ops that add nothing up": idle}


@cases("03-hand_on")
@all_interpreted
def hand_on(mine, draw):
    """The gradient of x after some shares were added to it, and that of another tensor, which must not change."""
    constant = mine["constant"]
    some = [shares for _, *shares in drawn(draw, first=(), second=())]
    for shares in ((2.0,), (2.0, 2.0), (2.0, 2.0, 3.0), (0.1, 0.2, 0.3), (-0.0,), *some):  # 0.0 + -0.0 is 0.0
        x = constant(1.0, "f8")
        other = constant(1.0, "f8")
        gradients = {}
        gradients[other] = constant(5.0, "f8")
        told = " and ".join(map(str, shares))
        given = [constant(share, "f8") for share in shares]
        with tape_of(mine) as tape:
            for share in given:
                mine.on("a share", gradients, x, share)
        yield f"x gets {told}", float(gradients[x]) if x in gradients else "no gradient"
        yield f"x gets {told}: another tensor", float(gradients[other]) if other in gradients else "no gradient"
        heard(tape, f"x gets {told}", gradients.get(x), *given)
    gradients = {}
    for share in ([0.0, 1.0], [2.0, 3.0]):  # `if gradients.get(x)` has no truth value for two numbers
        mine.on("two shares of two numbers each", gradients, x, constant(share, "f8"))
    yield "x gets [0.0, 1.0] and [2.0, 3.0]", gradients.get(x)


@cases("03-needed_by")
def needed_by(mine, draw):
    """The names of the nodes that are left of small graphs, and their number for a long one. "add 2" has the op add."""
    node = mine["Node"]

    def graph(*rows):
        made = {}
        for name, *inputs in rows:
            made[name] = node(name.split()[0], [made[x] for x in inputs], {}, None)
        return made

    four = graph(("x",), ("exp", "x"), ("add", "x", "x"), ("mean", "add"))
    twice = graph(("x",), ("multiply 1", "x", "x"), ("multiply 2", "x", "x"), ("mean", "multiply 2"))
    deep = graph(("x",), ("w",), ("a", "x", "w"), ("b", "a"), ("dead", "b"), ("c", "b", "a"), ("end", "c"))
    given = [(four, ["mean"]), (four, []), (twice, ["mean"]), (deep, ["end"]), (deep, ["c", "dead"]), (deep, ["w"])]
    for _ in range(5):
        names = [f"{op} {k}" for k, op in enumerate(draw.choice(["add", "multiply"], size=9))]
        inputs = [draw.choice(names[:k], size=min(k, 2)).tolist() for k in range(9)]
        nodes = graph(*([name, *read] for name, read in zip(names, inputs, strict=True)))
        given.append((nodes, draw.choice(names, size=2, replace=False).tolist()))
    for nodes, wanted in given:
        told = f"of {', '.join(nodes)}, wanted {', '.join(wanted) or 'nothing'}"
        yield told, " ".join(left_of(mine, told, nodes, wanted)) or "none"
    long = [("x",), ("double 1", "x", "x"), *((f"double {k}", *[f"double {k - 1}"] * 2) for k in range(2, 2001))]
    told = "of x and 2,000 nodes, each the sum of the one before it and itself, wanted the last: how many are left"
    yield told, len(left_of(mine, told, graph(*long), ["double 2000"]))


def left_of(mine, told, nodes, wanted):
    """The names of the nodes that the function gives. Raises Wrong if it gives no list."""
    _, left = mine.on(told, [*nodes.values()], [nodes[name] for name in wanted])
    if not isinstance(left, list):
        raise Wrong(f"{told}: expected a list of nodes, yours is {describe(left)}")
    known = {each: name for name, each in nodes.items()}
    return [known.get(each) or describe(each) for each in left]
