"""What the checks of notebook 03 ask."""

import functools
import operator
from contextlib import contextmanager

import numpy as np

from course.inspection.graphs import listed
from course.practice.cases import Wrong, cases, question
from course.practice.cases.plain_data import describe


@contextmanager
def interpreted():
    """Kernels run as Python: a few numbers in many shapes are done before a compiler has begun.

    And a kernel that is given arrays of a wrong shape raises an IndexError, and writes nowhere else.
    """
    from levels.kernels import KINDS, PLANNERS, PLANS

    plans, compiler = dict(PLANS), KINDS["cpu"].compiler
    PLANS.clear()
    others = {key: PLANNERS.pop(key) for key in [*PLANNERS] if key[1:] == ("cpu",)}  # of levels_more: they compile
    KINDS["cpu"].compiler = lambda function, *_: function
    try:
        yield
    finally:
        KINDS["cpu"].compiler = compiler
        PLANNERS.update(others)
        PLANS.clear()
        PLANS.update(plans)


def all_interpreted(cases_of):
    """Decorate the cases of a blank: kernels run as Python from the first case to the last."""

    @functools.wraps(cases_of)
    def cases_in_python(mine, draw):
        with interpreted():
            yield from cases_of(mine, draw)

    return cases_in_python


def numbers(mine, said, result):
    """The array in a result that must be a tensor."""
    if not isinstance(result, mine["Tensor"]):
        raise Wrong(
            f"{said} gives {describe(result)}, expected a tensor: only what is computed with ops has a gradient"
        )
    return result.numpy()


@question
def rule_of_a_layer(mine, said, arrays):
    """[(gradient, whether a tape heard of it)] in x, w and b, for the arrays dy, x, w and b."""
    dy, *given = (mine["constant"](x, x.dtype) for x in arrays)
    x, w, b = given
    with mine["GradientTape"]() as tape:  # what follows needs the same kernels: they are compiled here
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
    graph, _, _ = mine.call(said, mine["trace"], mine.function, (x.spec,))
    (found,) = values_of(said, graph, [x], mine["apply"])
    return found


def values_of(said, graph, inputs, apply):
    """What the outputs of a graph are, op by op, for these inputs."""
    known = computed(said, graph, inputs, apply)
    return [known[node].numpy() for node in graph.outputs]


def computed(said, graph, inputs, apply):
    """{node: its tensor, or the variable that it is} for these inputs of a graph, op by op."""
    known = {node: node.attrs["of"] for node in graph.nodes if node.op in ("variable", "constant")}
    known |= {node: inputs[node.attrs["of"]] for node in graph.nodes if node.op == "input"}
    for node in graph.nodes:
        if not known.keys() >= {*node.inputs}:
            raise Wrong(f"{said} has `{node!r}`, which reads a node that is not in the list before it")
        if node.inputs:
            known[node] = apply(node.op, *(known[x] for x in node.inputs), **node.attrs)
    return known


@question
@interpreted()
def jacobian_of(mine, said, function, pull, x):
    """The Jacobian, in x, of the function of that name."""
    total, tanh = mine["reduce_sum"], mine["tanh"]
    x, pull = mine["constant"](x, x.dtype), mine["constant"](pull, x.dtype)

    def line(x):
        return total(pull * x, axis=1)

    def bent(x):
        return tanh(total(pull * x * x, axis=1))

    result = mine.call(said, mine.function, {"line": line, "bent": bent}[function], x)
    return result.numpy() if isinstance(result, mine["Tensor"]) else result


def products(constant, w):
    """{words: a function of x[3, 4] and y[1, 4]}, some with a product that changes nothing; w is a variable."""
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
    """The graph that a pass makes of a program's, as [(op, numbers of its inputs, what a leaf holds)], and its outputs.

    A leaf holds its number where it is an input, an array where it is a constant, and None where it is the variable w.
    """
    w = mine["Variable"](np.ones((1, 1)), "w")
    signature = [mine["constant"](np.zeros(shape)).spec for shape in shapes]
    graph, _, _ = mine["trace"](products(mine["constant"], w)[program], signature)
    before, result = listed(graph), mine.call(said, mine.function, graph)
    if not isinstance(result, mine["Graph"]):
        raise Wrong(f"{said} gives {describe(result)}, expected a Graph")
    if listed(graph) != before:
        raise Wrong(f"{said} changes the graph that it is given: make another one")
    known, told = {}, []
    for node in result.nodes:
        if not known.keys() >= {*node.inputs}:
            raise Wrong(f"{said} has `{node!r}`, which reads a node that is not in the list before it")
        of = node.attrs.get("of")
        leaf = of.numpy() if node.op == "constant" else of if node.op == "input" else None
        told.append((node.op, [known[x] for x in node.inputs], leaf))
        known[node] = len(known)
    return told, [known[node] for node in result.outputs]


OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}


@question
@interpreted()
def records_ordered(mine, said, steps, target, order):
    """The numbers of the records that a target was made from, as the function orders them.

    Each step is (op, input, input). A whole number is the number of a value, 0 that of a variable and k + 1 that of
    step k; a float is itself. The target is such a number. The function is told of the records in this order.
    """
    with mine["GradientTape"](persistent=True) as tape:
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
    """The weights [w, b] after training on these parts (x, y), with a loss for each."""
    mean, total = mine["reduce_mean"], mine["reduce_sum"]
    w, b = variables = [mine["Variable"](x) for x in start]
    tensors = [[mine["constant"](each, each.dtype) for each in part] for part in parts]

    def squared_error(x, y):
        error = total(x * w, axis=1, keepdims=True) + b - y
        return mean(error * error)

    losses = [lambda x=x, y=y: squared_error(x, y) for x, y in tensors]
    mine.call(said, mine.function, losses, list(variables), rate, steps)
    return [v.numpy() for v in variables]


def heard(tape, said, result, *given):
    """Raise Wrong for a tensor that is none of those given and that no op made while this tape listened."""
    made = [result] if isinstance(result, type(given[0])) else []
    for each in made:
        if all(each is not known for known in (*given, *(record[3] for record in tape.records))):
            raise Wrong(
                f"{said}: this was computed without ops, so no tape recorded it, and in a program it has no numbers: "
                "use the operators of tensors and functions such as `reduce_sum`"
            )


def tape_of(mine):
    """The notebook's own tape, or level 3's where the notebook has not built one."""
    from levels.low_level import GradientTape

    return mine.first.__globals__.get("_Tape", GradientTape)()


@cases("03-unbroadcast")
@all_interpreted
def unbroadcast(mine, draw):
    """A gradient as large as the result, and the shape of an input that was repeated."""
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
    )
    for have, wanted in shapes:
        dx = mine["constant"](draw.normal(size=have))
        with mine["_Tape"]() as tape:
            told, found = mine.on(f"a gradient of shape {have}, an input of shape {wanted}", dx, wanted)
        heard(tape, told, found, dx)
        idle = sum(inputs[0].spec.nbytes == y.spec.nbytes for _, inputs, _, y in tape.records)
        # the right numbers, but a sum over rows and then one of its result: no program by rows has a place for that
        yield told, {"": found, "ops that add nothing up": idle}


@cases("03-hand_on")
@all_interpreted
def hand_on(mine, draw):
    """What x has after some shares, and what another tensor keeps."""
    constant = mine["constant"]
    for shares in ((2.0,), (2.0, 2.0), (2.0, 2.0, 3.0), (0.0, -1.0), (0.1, 0.2, 0.3), (-0.0,)):  # 0.0 + -0.0 is 0.0
        x, other, gradients = constant(1.0, "f8"), constant(1.0, "f8"), {}
        gradients[other] = constant(5.0, "f8")
        told, given = " and ".join(map(str, shares)), [constant(share, "f8") for share in shares]
        with tape_of(mine) as tape:
            for share in given:
                mine.on("a share", gradients, x, share)
        yield f"x gets {told}", float(gradients[x]) if x in gradients else None
        yield f"x gets {told}: another tensor", float(gradients[other]) if other in gradients else None
        heard(tape, f"x gets {told}", gradients.get(x), *given)
    gradients = {}
    for share in ([0.0, 1.0], [2.0, 3.0]):  # `if gradients.get(x)` asks of two numbers at once whether they are true
        mine.on("two shares of two numbers each", gradients, x, constant(share, "f8"))
    yield "x gets [0.0, 1.0] and [2.0, 3.0]", gradients.get(x)


@cases("03-needed_by")
def needed_by(mine, draw):
    """The names of the nodes that are left of small graphs."""
    node, spec = mine["Node"], None

    def graph(*rows):
        made = {}
        for name, *inputs in rows:
            made[name] = node(name, [made[x] for x in inputs], {}, spec)
        return made

    four = graph(("x",), ("exp", "x"), ("add", "x", "x"), ("mean", "add"))
    deep = graph(("x",), ("w",), ("a", "x", "w"), ("b", "a"), ("dead", "b"), ("c", "b", "a"), ("end", "c"))
    for nodes, wanted in ((four, ["mean"]), (four, []), (deep, ["end"]), (deep, ["c", "dead"]), (deep, ["w"])):
        told = f"of {', '.join(nodes)}, wanted {', '.join(wanted) or 'nothing'}"
        yield (
            told,
            " ".join(getattr(each, "op", describe(each)) for each in left_of(mine, told, nodes, wanted)) or "none",
        )
    long = [("x",), *((f"double {k}", f"double {k - 1}", f"double {k - 1}") for k in range(1, 2001))]
    nodes = graph(*[(name, *("x" if each == "double 0" else each for each in inputs)) for name, *inputs in long])
    told = (
        "of x and 2,000 nodes, each the sum of the one before it and itself, wanted the last: the number that is left"
    )
    yield told, len(left_of(mine, told, nodes, ["double 2000"]))


def left_of(mine, told, nodes, wanted):
    """The list of nodes that the function gives. Raises Wrong where it gives none, or changes the lists that it got."""
    given = [*nodes.values()], [nodes[name] for name in wanted]
    before = [list(each) for each in given]
    _, left = mine.on(told, *given)
    if not isinstance(left, list):
        raise Wrong(f"{told}: expected a list of nodes, yours is {describe(left)}")
    for name, now, then in zip(("nodes", "wanted"), given, before, strict=True):
        if now != then:
            raise Wrong(f"{told}: the right nodes, but the list `{name}` that is given has changed: work on a copy")
    return left


@cases("03-apply")
@all_interpreted
def apply(mine, draw):
    """What the interpreter that stands in the door is given, and what the door gives back; then both tasks."""
    with mine.placed("apply", "low_level"):
        from levels.low_level import constant, tensors

        class Told:
            """An interpreter that tells what it is given, and gives a value of its own."""

            def do(self, op, plan, inputs, attrs):
                self.told = {
                    "op": op,
                    "plan": type(plan).__name__,
                    "inputs": [type(x).__name__ for x in inputs],
                    "attrs": dict(attrs),
                }
                return "the value"

        x = constant(np.array([[1.0, 2.0]]))
        for said, op, inputs, attrs in (
            ("two tensors", "add", (x, x), {}),
            ("numbers beside a tensor", "multiply", (2.0, x), {}),
            ("an attribute", "clip", (x,), {"low": 0.0, "high": 1.0}),
        ):
            before, tensors.DOOR.stands = tensors.DOOR.stands, Told()
            try:
                value = mine.call(said, tensors.apply, op, *inputs, **attrs)
                told = getattr(tensors.DOOR.stands, "told", "the interpreter in `DOOR.stands` was not asked")
            finally:
                tensors.DOOR.stands = before
            yield (
                said,
                {
                    "it gives": value if isinstance(value, str | None) else describe(value),
                    "the interpreter is given": told,
                },
            )
    with programs_told(mine):
        yield "3 steps of both tasks", mine.losses("apply", "low_level", 3)


@cases("03-_Tape.do")
@all_interpreted
def tape_do(mine, draw):
    """What stands on the tape; then both tasks."""
    with mine.placed("_Tape.do", "low_level"):
        from levels.low_level import autodiff, constant

        x, y = (constant(draw.normal(size=(2, 3))) for _ in range(2))
        with autodiff._Tape() as tape:
            z = mine.call("x * y", operator.mul, x, y)
            total = mine.call("x * y - x", operator.sub, z, x)
        names = {x: "x", y: "y", z: "z"}
        records = [
            f"{op}({', '.join(names.get(each) or describe(each) for each in inputs)}), attrs {attrs}"
            for op, inputs, attrs, _ in tape.records
        ]
        yield (
            "x * y - x",
            {"": total, "records": records, "its results": [record[3].numpy() for record in tape.records]},
        )
        with autodiff._Tape() as tape:
            tape.records = None  # as after `gradient`
            yield "a tape that was read already", mine.call("a tape that was read already", operator.mul, x, y)
        with autodiff._Tape() as outer, autodiff._Tape() as inner:
            mine.call("x * y, a tape inside another one", operator.mul, x, y)
        told = {"the inner tape": len(inner.records), "the outer tape": len(outer.records)}
        yield "x * y, a tape inside another one: records", told
    with programs_told(mine):
        yield "3 steps of both tasks", mine.losses("_Tape.do", "low_level", 3)


# At the depth *most*.


@cases("03-_matmul_back_w")
@all_interpreted
def matmul_back_w(mine, draw):
    """The gradient of w for each way to read x and w, from drawn numbers."""
    constant = mine["constant"]

    def result(said, dy, x, w, **how):
        dy, x, w = (constant(np.array(each), each.dtype) for each in (dy, x, w))
        y = mine["apply"]("matmul", x, w, **how)
        with tape_of(mine) as tape:
            found = mine.call(said, mine.function, dy, y, x, w, **how)
        heard(tape, said, found, dy, x, w)
        return found

    small = np.array([[1.0]]), np.array([[2.0, 3.0]]), np.array([[5.0], [7.0]])
    said = "y = x @ w, x = [[2, 3]], dy = [[1]]"
    yield said, result(said, *small)
    for rows, inner, units in ((4, 3, 2), (1, 5, 1), (2, 1, 3)):
        for dtype in ("f8", "f4"):
            for transpose_x in (False, True):
                for transpose_w in (False, True):
                    shape_x = (inner, rows) if transpose_x else (rows, inner)
                    shape_w = (units, inner) if transpose_w else (inner, units)
                    x, w, dy = (draw.normal(size=s).astype(dtype) for s in (shape_x, shape_w, (rows, units)))
                    x.flat[0], dy.flat[-1] = -0.0, 0.0
                    of = "transposed" if transpose_x else "as it is", "transposed" if transpose_w else "as it is"
                    said = f"x of shape {shape_x}, read {of[0]}, and w of shape {shape_w}, read {of[1]}, {dtype}"
                    yield said, result(said, dy, x, w, transpose_x=transpose_x, transpose_w=transpose_w)
    x, w, dy = np.array([[np.inf, 1.0], [2.0, np.nan]]), np.ones((2, 1)), np.array([[1.0], [-1.0]])
    yield "an x that holds inf and NaN", result("an x that holds inf and NaN", dy, x, w)


@cases("03-walk_back")
@all_interpreted
def walk_back(mine, draw):
    """The gradients of formulas, and how many ops the walk runs; what has no rule; then both tasks."""
    total, mean, rules = mine["reduce_sum"], mine["reduce_mean"], mine["VJPS"]

    def gradients(said, formula, given, *sources, dtype="f8"):
        """{name: gradient} of the formula at the tensors of those names, and the number of ops that the walk runs."""
        tensors = {name: mine["constant"](np.array(value, dtype), dtype) for name, value in given.items()}
        with tape_of(mine) as tape:
            target = formula(**tensors)
        records, wanted = tape.records, [tensors[name] for name in sources]
        with tape_of(mine) as walk:
            found = mine.call(said, mine.function, records, target, wanted)
        if not isinstance(found, list | tuple):
            raise Wrong(f"{said} gives {describe(found)}, expected a list with a gradient for each source")
        if len(found) != len(sources):
            raise Wrong(f"{said} gives {describe(found)}, expected {len(sources)} gradients")
        return dict(zip(sources, found, strict=True)) | {"ops of the walk": len(walk.records)}

    def cases_of(formulas):
        for said, (formula, given, *sources) in formulas.items():
            said = f"{said}, in {' and '.join(sources)}"
            yield said, gradients(said, formula, given, *sources)

    line = {"x": 3.0, "w": 2.0, "b": 1.0, "y": 5.0}
    ten = {"x": draw.normal(size=(10, 4)), "w": draw.normal(size=(4, 2)), "b": draw.normal(size=(1, 2))}
    yield from cases_of(
        {
            "e * e, e = 2": (lambda e: e * e, {"e": 2.0}, "e"),
            "e * e of e = x * w + b - y, x = 3, w = 2, b = 1, y = 5": (squared, line, "w", "b"),
            "e * e of e = x * w + b - y ": (squared, line, "x"),
            "u * u + u of u = w * 2": (lambda w: (w * 2.0) * (w * 2.0) + w * 2.0, {"w": 3.0}, "w"),
            "u + u * u, u used three times": (lambda u: u + u * u, {"u": draw.normal()}, "u"),
            "w * x, beside exp(w) that nobody reads": (beside_exp(mine["exp"]), {"w": 3.0, "x": 2.0}, "w"),
            "x + b of ten rows, the b of shape (1, 2) shared by all": (
                lambda x, w, b: total(x @ w + b),
                ten,
                "w",
                "b",
            ),
            "the sum of the squared means over axis 1": (means(total, mean), ten, "w"),
            "clip between -1 and 1": (lambda w: mine["clip"](w * w, -1.0, 1.0), {"w": [0.5, 2.0]}, "w"),
            "a target of three numbers": (lambda w: w * w * w, {"w": [1.0, -0.0, np.inf]}, "w"),
            "w / x / w": (lambda w, x: w / x / w, {"w": draw.normal(size=3), "x": draw.normal(size=3)}, "x", "w"),
        }
    )
    said = "ten rows in float32, in w and b"
    yield said, gradients(said, lambda x, w, b: mean((x @ w + b) * (x @ w)), ten, "w", "b", dtype="f4")

    kept = {op: rules[op] for op in ("exp", "multiply")}
    try:
        rules["multiply"] = None, kept["multiply"][1]
        said = "a * w of a = w + 1, where the rule for the first factor is None, in w"
        yield said, gradients(said, lambda w: (w + 1.0) * w, {"w": 3.0}, "w")
        rules["multiply"] = kept["multiply"]
        del rules["exp"]
        said = "w * x, beside exp(w) that nobody reads, where exp has no rule, in w"
        yield said, gradients(said, beside_exp(mine["exp"]), {"w": 3.0, "x": 2.0}, "w")

        def refused(*arguments):
            try:
                mine.function(*arguments)
            except LookupError as error:
                return f"raises {type(error).__name__}" + ", which names exp" * ("exp" in str(error))

        said, w = "exp(w) * w, where exp has no rule", mine["constant"](3.0, "f8")
        with tape_of(mine) as tape:
            y = mine["exp"](w) * w
        yield said, mine.call(said, refused, tape.records, y, [w])
    finally:
        rules |= kept
    with programs_told(mine):
        yield "3 steps of both tasks", mine.losses("walk_back", "low_level", 3)


def squared(x, w, b, y):
    error = x * w + b - y
    return error * error


def means(total, mean):
    """A formula with an attribute that its rule needs."""

    def formula(x, w, b):
        each = mean(x @ w, axis=1)
        return total(each * each)

    return formula


def beside_exp(exp):
    """A formula with an op whose result nobody reads."""

    def formula(w, x):
        y = w * x
        exp(w)
        return y

    return formula


@cases("03-trace")
@all_interpreted
def trace(mine, draw):
    """What a traced function's graph computes; who stands in the door afterwards; then both tasks."""
    constant, variable, door = mine["constant"], mine["Variable"], mine["DOOR"]
    w, b = variable(np.array(3.0), "w"), variable(np.array(1.0), "b")
    c, ten = constant(10.0, "f8"), np.array(10.0)

    def assigning(*values, result=lambda x: w):
        def python(x):
            for value in values:
                w.assign(value(x))
            return result(x)

        return python

    def making(x):
        made = variable(ten, "made here")
        return x * made

    def swapping(x):
        before = w.value
        w.assign(b)
        b.assign(before)
        return x

    for said, python, *more in (
        ("x + x, x = 2", lambda x: x + x),
        ("x * w + b, w = 3, b = 1", lambda x: x * w + b),
        ("x * w and x - w in a tuple", lambda x: (x * w, x - w)),
        ("a list of one result", lambda x: [x * x]),
        ("nothing is returned", lambda x: None),
        ("w is assigned x * w, and returned", assigning(lambda x: x * w)),
        ("w is assigned twice", assigning(lambda x: x * w, lambda x: w + x)),
        ("w is assigned the number 10.0", assigning(lambda x: ten, result=lambda x: x)),
        ("w is assigned what it is", assigning(lambda x: w)),
        ("w and b are exchanged", swapping),
        ("x * 4.0, with 4.0 as the second argument", lambda x, by: x * by, 4.0),
        ("a tensor from outside is returned", lambda x: c),
        ("Python makes a variable", making),
    ):
        yield said, traced(mine, said, python, constant(2.0, "f8"), *more)
    before = door.stands
    with mine["GradientTape"]() as tape:
        said = "x + x, while a tape is open"
        mine.call(said, mine.function, lambda x: x + x, [c.spec])
        yield said, {"the tape stands in the door again": door.stands is tape, "ops on the tape": len(tape.records)}
    door.stands = before

    def wrong(x):
        raise KeyError("in Python")

    def trial():
        try:
            mine.function(wrong, [c.spec])
        except KeyError:
            return "raises KeyError"

    said = "Python raises an error"
    found = mine.call(said, trial)
    yield said, {"": found, "who stood in the door stands there again": door.stands is before}
    with programs_told(mine):
        yield "3 steps of both tasks", mine.losses("trace", "low_level", 3)


def traced(mine, said, python, x, *more):
    """What the graph of a function computes for x, and what else `trace` tells of it."""
    result = mine.call(said, mine.function, python, (x.spec, *more))
    if not isinstance(result, tuple | list) or len(result) != 3:
        raise Wrong(f"{said} gives {describe(result)}, expected a graph, what Python returned, and a list of variables")
    graph, returned, made = result
    if not isinstance(graph, mine["Graph"]):
        raise Wrong(f"{said} gives {describe(graph)} first, expected a Graph")
    for node in (*graph.outputs, *graph.updates.values()):
        if not isinstance(node, mine["Node"]):
            raise Wrong(f"{said}: {describe(node)} stands among the results and new values, expected nodes")
    known = computed(said, graph, [x, *more], mine["apply"])
    return {
        "the results": [float(known[node].numpy()) for node in graph.outputs],
        "the new values": ", ".join(f"{v.name} {float(known[node].numpy()):g}" for v, node in graph.updates.items())
        or "none",
        "what Python returned": describe(returned),
        "the variables that Python made": ", ".join(v.name for v in made) or "none",
    }


@cases("03-Replay.run")
@all_interpreted
def replay_run(mine, draw):
    """What a graph gives, and what its variables are then; its lock; then five steps of a line."""
    constant, variable, trace = mine["constant"], mine["Variable"], mine["trace"]
    x, y = constant(2.0, "f8"), constant(5.0, "f8")
    w, b = variable(np.array(3.0), "w"), variable(np.array(1.0), "b")

    def swapping(x, y):
        before = w.value
        w.assign(b)
        b.assign(before)
        return w + x

    def adding(x, y):
        w.assign(w + x)
        return w * y

    for said, python in {
        "x + x, x = 2, y = 5": lambda x, y: x + x,
        "y alone is read": lambda x, y: y * y,
        "x * w + b, w = 3, b = 1": lambda x, y: x * w + b,
        "x * w and x - y in a tuple": lambda x, y: (x * w, x - y),
        "nothing is returned": lambda x, y: None,
        "1.0 - x": lambda x, y: 1.0 - x,
        "clip(x * y, 0.0, 7.0)": lambda x, y: mine["clip"](x * y, 0.0, 7.0),
        "w becomes w + x, and w * y is returned": adding,
        "w and b are exchanged": swapping,
        "x itself is returned": lambda x, y: x,
    }.items():
        w.assign(np.array(3.0))
        b.assign(np.array(1.0))
        replay, held = listening(mine, mine["dce"](trace(python, (x.spec, y.spec))[0]))
        with mine["GradientTape"]() as tape:
            results = mine.call(said, replay.run, [x, y])
        if not isinstance(results, list | tuple):
            raise Wrong(f"{said} gives {describe(results)}, expected a list of tensors")
        again = mine.call(said + ", a second time", replay.run, [x, y])
        yield (
            said,
            {
                "": [numbers(mine, said, each) for each in results],
                "a second time": [numbers(mine, said, each) for each in again],
                "w and b then": [float(w.numpy()), float(b.numpy())],
                "results that are the argument x itself": sum(each is x for each in results),
                "ops that passed the door": len(tape.records),
                "the lock is held while an op runs": all(held),
                "the lock is held afterwards": replay.lock.locked(),
            },
        )
    replay, _ = listening(mine, trace(lambda x, y: x + y, (x.spec, y.spec))[0])

    def trial():
        try:
            replay.run([x])
        except IndexError:
            return "raises IndexError"

    said = "x + y, but y is missing among the arguments"
    yield said, {"": mine.call(said, trial), "the lock is held afterwards": replay.lock.locked()}
    rows, target = constant(draw.normal(size=(4, 2))), constant(draw.normal(size=(4, 1)))
    weights = variable(draw.normal(size=(2, 1)), "weights")

    def step(rows, target):
        with mine["GradientTape"]() as tape:
            error = rows @ weights - target
            loss = mine["reduce_mean"](error * error)
        weights.assign(weights - 0.1 * tape.gradient(loss, weights))
        return loss

    said, (replay, _) = "five steps of a line", listening(mine, trace(step, (rows.spec, target.spec))[0])
    losses = [mine.call(said, replay.run, [rows, target])[0] for _ in range(5)]
    yield said, {"the losses": [*map(float, losses)], "the weights": weights}


def listening(mine, graph):
    """A Replay of this graph with the reader's `run`, and a list that tells of each op whether the lock is held."""
    replay, held = mine.inside("Replay")(graph), []

    class Plan:
        """A plan that looks at the lock when it runs."""

        def __init__(self, plan):
            self.plan, self.spec = plan, plan.spec

        def result(self, *how):
            held.append(replay.lock.locked())
            return self.plan.result(*how)

    class Lock:
        """A lock that says so where an ordinary one would wait for ever."""

        taken = False

        def acquire(self, *_):
            if self.taken:
                raise Wrong(f"{mine.said}: the lock is taken again, and was never freed: write `with self.lock:`")
            self.taken = True

        def release(self):
            self.taken = False

        def locked(self):
            return self.taken

        def __enter__(self):
            self.acquire()

        def __exit__(self, *_):
            self.release()

    replay.plans = [(node, Plan(plan)) for node, plan in replay.plans]
    replay.lock = Lock()
    return replay, held


@cases("03-Function.__call__")
@all_interpreted
def function_call(mine, draw):
    """What calls of a function give, and how often Python ran; inside a tape and a trace; then five steps of a line."""
    with mine.placed("Function.__call__", "low_level"), programs_told(mine):
        from levels.low_level import GradientTape, Variable, apply, constant, eager, function, reduce_mean, trace

        def calls(said, python, *arguments):
            """What the function gives for each of these arguments, and how often Python ran."""
            runs, results = [], []

            def counted(*args):
                runs.append(len(args))
                return python(*args)

            one = function(counted)
            for args in arguments:
                result = mine.call(said, one, *args)
                results.append(numbers_told(said, result))
            return results, len(runs)

        def numbers_told(said, result):
            """A tensor as its numbers; a list or a tuple of them as a text; None as it is."""
            if isinstance(result, list | tuple):
                return repr(type(result)(numbers_told(said, each) for each in result))
            if result is not None and not hasattr(result, "numpy"):
                raise Wrong(f"{said} gives {describe(result)}, expected what Python returned: a tensor, here")
            return result if result is None else result.numpy().tolist()

        two, three = constant(2.0, "f8"), constant(3.0, "f8")
        x = [constant(draw.normal(size=(rows, 2))) for rows in (10, 10, 4, 10)]
        w = Variable(np.array(3.0))

        def doubled(x):
            return x + x

        for said, python, arguments in (
            ("x + x for x = 2, 3, 2", doubled, [(two,), (three,), (two,)]),
            ("x + x for 10 rows, 10, 4 and 10", doubled, [(each,) for each in x]),
            ("x + x in float64, float32 and float64", doubled, [(two,), (constant(2.0, "f4"),), (three,)]),
            ("x + x for NumPy arrays", doubled, [(np.array(2.0),), (np.array(3.0),)]),
            ("x + x for a tensor, and for a variable that holds 3", doubled, [(two,), (w,)]),
            ("x * by for by = 2.0, 3.0, 2.0", lambda x, by: x * by, [(two, 2.0), (two, 3.0), (three, 2.0)]),
            ("how for how = 1, True", lambda x, how: x if how is True else x + x, [(two, 1), (two, True)]),
            ("x and y exchanged", lambda x, y: x - y, [(two, three), (three, two)]),
            ("nothing is returned", lambda x: None, [(two,), (three,)]),
            ("a tuple is returned", lambda x: (x + x, x * x), [(two,), (three,)]),
            ("a list of one is returned", lambda x: [x * x], [(two,), (three,)]),
        ):
            results, count = calls(said, python, *arguments)
            yield said, {f"call {k + 1}": each for k, each in enumerate(results)} | {"times that Python ran": count}

        once = function(doubled)
        said = "x + x, before and inside an open tape"
        mine.call(said, once, two)
        with GradientTape() as tape:
            y = mine.call(said, once, two)
        yield said, {"": y, "ops on the tape": " ".join(op for op, *_ in tape.records) or "none"}
        said = "f(x) * 2.0 with f(x) = x + x, traced"
        graph, _, _ = mine.call(said, trace, lambda x: apply("multiply", once(x), 2.0), (two.spec,))
        yield said, ", ".join(node.op for node in graph.nodes if node.inputs)
        with eager():
            results, count = calls("inside `with eager():`", doubled, (two,), (three,))
        yield "inside `with eager():`, two calls", {"": results, "times that Python ran": count}

        weights = Variable(draw.normal(size=(2, 1)))

        def step(x):
            with GradientTape() as tape:
                loss = reduce_mean((x @ weights - 1.0) * (x @ weights - 1.0))
            weights.assign(weights - 0.1 * tape.gradient(loss, weights))
            return loss

        losses, count = calls("four steps of a line", step, *((each,) for each in x))
        yield "four steps of a line", {"losses": losses, "times that Python ran": count, "weights": weights}


@contextmanager
def programs_told(mine):
    """The built level's functions run their graphs op by op, and say so where a program is run on other arguments.

    A program that is compiled would read and write the memory behind the numbers that it is given.
    """
    from levels.low_level import DOOR, RUN, apply, functions, gather
    from levels.low_level.replay import _stacked

    class Program:
        """A back end that tells what it is given."""

        def __init__(self, graph, batch, over):
            self.graph = graph

        def run(self, args):
            for node in self.graph.nodes:
                given = args[node.attrs["of"]] if node.op == "input" else node
                if getattr(given, "spec", None) is not node.spec or not hasattr(given, "spec"):
                    told = getattr(given, "spec", None) or describe(given)
                    raise Wrong(f"{mine.said}: the program that was made for {node.spec} is run on {told}")
            before, DOOR.stands = DOOR.stands, RUN
            try:
                known = computed(mine.said, self.graph, args, apply)
                results = [apply("multiply", known[node], 1.0) for node in self.graph.outputs]
                for variable, node in self.graph.updates.items():
                    if node.spec is not variable.spec:
                        raise Wrong(f"{mine.said}: a variable {variable.spec} gets a new value {node.spec}")
                    variable.replace(known[node].newest() if hasattr(known[node], "newest") else known[node])
                return results
            finally:
                DOOR.stands = before

        def over(self, args, batches):
            return _stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    before = functions.BACK_ENDS[:]
    functions.BACK_ENDS[:] = [(Program, lambda graph: 1)]
    try:
        yield
    finally:
        functions.BACK_ENDS[:] = before
