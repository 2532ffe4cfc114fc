"""The cases of notebook 03 at the depth *most*, from the door (`apply`) to the walk (`backward_pass`)."""

import operator

import numpy as np

from course.reader.cases import Wrong, cases
from course.reader.cases.at_most.functions import programs_told
from course.reader.cases.drawn import drawn
from course.reader.cases.interpreting import all_interpreted
from course.reader.cases.low_level import heard, tape_of
from course.reader.cases.plain_data import describe


@cases("03-apply")
@all_interpreted
def apply(mine, draw):
    """What the interpreter in the door is called with, and what `apply` returns; then both tasks."""
    with mine.placed("apply", "low_level"):
        from levels.low_level import constant, tensors

        class Told:
            """An interpreter that notes its arguments, and returns a fixed text."""

            def do(self, op, plan, inputs, attrs):
                self.told = {
                    "op": op,
                    "plan": type(plan).__name__,
                    "inputs": [type(x).__name__ for x in inputs],
                    "attrs": dict(attrs),
                }
                return "what the interpreter gave"

        x = constant(np.array([[1.0, 2.0]]))
        for said, op, inputs, attrs in (
            ("two tensors", "add", (x, x), {}),
            ("numbers beside a tensor", "multiply", (2.0, x), {}),
            ("an attribute", "clip", (x,), {"low": 0.0, "high": 1.0}),
        ):
            before = tensors.DOOR.top
            tensors.DOOR.top = Told()
            try:
                value = mine.call(said, tensors.apply, op, *inputs, **attrs)
                told = getattr(tensors.DOOR.top, "told", None)
            finally:
                tensors.DOOR.top = before
            if told is None:
                raise Wrong(
                    f"{said}, while another interpreter than `DOOR.bottom` stands in the door: its `do` was not called"
                )
            yield (
                said,
                {
                    "it gives": value if isinstance(value, str | None) else describe(value),
                    "the interpreter is given": told,
                },
            )
    with programs_told(mine):
        yield "3 steps of both tasks", mine.losses("apply", "low_level", 3)


@cases("03-GradientTape.do")
@all_interpreted
def tape_do(mine, draw):
    """The records on the tape; then both tasks."""
    with mine.placed("GradientTape.do", "low_level"):
        from levels.low_level import autodiff, constant

        x, y = (constant(draw.normal(size=(2, 3))) for _ in range(2))
        with autodiff.GradientTape() as tape:
            z = mine.call("x * y", operator.mul, x, y)
            if not isinstance(z, type(x)):
                raise Wrong(f"x * y gives {describe(z)}, expected a tensor (is there a `return` in every case?)")
            total = mine.call("x * y - x", operator.sub, z, x)
        names = {x: "x", y: "y", z: "z"}
        for record in tape.records:
            if len(record) != 4:
                raise Wrong(f"x * y - x: a record has {len(record)} parts, expected the four (op, inputs, attrs, y)")
        records = [
            f"{op}({', '.join(names.get(each) or describe(each) for each in inputs)}), attrs {attrs}"
            for op, inputs, attrs, _ in tape.records
        ]
        yield (
            "x * y - x",
            {"": total, "records": records, "its results": [record[3].numpy() for record in tape.records]},
        )
        with autodiff.GradientTape() as tape:
            tape.records = None  # as after `gradient`
            yield "a tape that was read already", mine.call("a tape that was read already", operator.mul, x, y)
        with autodiff.GradientTape() as outer, autodiff.GradientTape() as inner:
            mine.call("x * y, a tape inside another one", operator.mul, x, y)
        told = {"the inner tape": len(inner.records), "the outer tape": len(outer.records)}
        yield "x * y, a tape inside another one: records", told
    with programs_told(mine):
        yield "3 steps of both tasks", mine.losses("GradientTape.do", "low_level", 3)


@cases("03-_matmul_back_w")
@all_interpreted
def matmul_back_w(mine, draw):
    """The gradient in w, from drawn numbers."""
    constant = mine["constant"]

    def result(said, dy, x, w):
        dy, x, w = (constant(np.array(each), each.dtype) for each in (dy, x, w))
        y = mine["apply"]("matmul", x, w)
        with tape_of(mine) as tape:
            found = mine.call(said, mine.function, dy, y, x, w)
        heard(tape, said, found, dy, x, w)
        return found

    small = np.array([[1.0]]), np.array([[2.0, 3.0]]), np.array([[5.0], [7.0]])
    said = "y = x @ w, x = [[2, 3]], dy = [[1]]"
    yield said, result(said, *small)
    for rows, inner, units in ((4, 3, 2), (1, 5, 1), (2, 1, 3)):
        for said, dy, x, w in drawn(draw, "f8", "f4", dy=(rows, units), x=(rows, inner), w=(inner, units)):
            said = f"x of shape {x.shape} and w of shape {w.shape}; {said}"
            yield said, result(said, dy, x, w)


@cases("03-backward_pass")
@all_interpreted
def backward_pass(mine, draw):
    """The gradients of formulas, and how many ops the walk runs; ops without a rule; then both tasks."""
    total = mine["reduce_sum"]
    mean = mine["reduce_mean"]
    rules = mine["VJPS"]

    def gradients(said, formula, given, *sources, dtype="f8"):
        """{name: gradient} of the formula at the tensors of those names, and the number of ops that the walk runs."""
        tensors = {name: mine["constant"](np.array(value, dtype), dtype) for name, value in given.items()}
        with tape_of(mine) as tape:
            target = formula(**tensors)
        records = tape.records
        tensors |= {f"the result of op {k}": record[3] for k, record in enumerate(records)}
        wanted = [tensors[name] for name in sources]
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
    said = "h * h of h = v * v, in h, which is no variable"
    yield said, gradients(said, lambda v: (v * v) * (v * v), {"v": 3.0}, "the result of op 0", "v")
    said = "the target itself, and a value before it"
    yield said, gradients(said, lambda v: v * v, {"v": [3.0, 1.0]}, "the result of op 0", "v")
    for said, w in drawn(draw, w=(3,)):
        yield said, gradients(said, lambda w: w * 2.0 + w, {"w": w}, "w")
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
        rules["clip", "low", "high"] = (lambda dy, y, x, low, high: dy * 2.0,)
        said = "clip between -1 and 1, which has a row for its limits, in w"
        yield said, gradients(said, lambda w: mine["clip"](w, -1.0, 1.0), {"w": [0.5, 2.0]}, "w")
    finally:
        rules |= kept
        rules.pop(("clip", "low", "high"), None)
    with programs_told(mine):
        yield "3 steps of both tasks", mine.losses("backward_pass", "low_level", 3)


def squared(x, w, b, y):
    error = x * w + b - y
    return error * error


def means(total, mean):
    """A formula with an op whose rule needs an attribute."""

    def formula(x, w, b):
        each = mean(x @ w, axis=1)
        return total(each * each)

    return formula


def beside_exp(exp):
    """A formula with an op whose result is not used."""

    def formula(w, x):
        y = w * x
        exp(w)
        return y

    return formula
