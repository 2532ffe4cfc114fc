"""Record the calls of a step while it runs, and find the numbers of one row and one weight among its ops."""

import sys
from contextlib import contextmanager
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A finished call of a function of the levels: its code, its local variables when it returned, and its result."""

    code: Any
    known: dict
    result: Any


HEARD = {"Model.fit", "Model.train_step", "Sequential.call", "Dense.call", "squared_error", "cross_entropy"}
HEARD |= {
    "one_pass",
    "Optimizer.apply_gradients",
    "Trace.do",
    "GradientTape.gradient",
    "descend",
    "apply",
    "Interpreter.do",
    "Plan.run",
    "StepWriter.write",
    "RowProgram.launch",
}


class Ear:
    """Records the calls of HEARD in a training of one step. Each `train_step` discards the calls before it."""

    def __init__(self):
        # {name: its calls}; {variable: its value before the program ran}
        self.calls = {}
        self.before = {}

    def hear(self, frame, event, result):
        name = frame.f_code.co_qualname
        if name not in HEARD or event not in ("call", "return") or not ours(frame):
            return
        if event == "return":
            self.calls.setdefault(name, []).append(Call(frame.f_code, dict(frame.f_locals), result))
        elif name == "Model.train_step":
            self.calls = {}
        elif name == "RowProgram.launch":
            self.before = {v: v.numpy() for v in frame.f_locals["self"].variables}

    def last(self, name):
        return self.calls[name][-1]


def ours(frame):
    """Whether a frame runs code of the levels or of the notebook."""
    return frame.f_globals.get("__name__", "").split(".")[0] in ("levels", "__main__")


def listened(run):
    """Run `run()`, and return the Ear that recorded it."""
    ear = Ear()
    before = sys.getprofile()
    sys.setprofile(ear.hear)
    try:
        run()
    finally:
        sys.setprofile(before)
    return ear


@contextmanager
def core_alone():
    """Inside this `with` block: no plans, back ends or passes of `levels_more`, only the core."""
    from levels.kernels import PLANS
    from levels.kernels.registry import PLAN_FINISHERS
    from levels.low_level.functions import BACK_ENDS, PASSES
    from levels.low_level.graph import dce
    from levels.low_level.row_program import RowProgram

    own = (PLAN_FINISHERS, []), (PASSES, [dce]), (BACK_ENDS, [RowProgram])  # with the core's entries
    before = [[*table] for table, _ in own]
    plans = {**PLANS}
    PLANS.clear()
    for table, entries in own:
        table[:] = entries
    try:
        yield
    finally:
        PLANS.clear()
        PLANS.update(plans)
        for (table, _), entries in zip(own, before, strict=True):
            table[:] = entries


# Where the numbers of one row and one weight are among the ops of a step (ops that ran, or nodes of a graph).


class Op(NamedTuple):
    op: str
    inputs: list
    attrs: dict
    y: Any


def holder(x):
    """The object that identifies a tensor's value: the tensor itself or, while a step is traced, its node."""
    return getattr(x, "node", x)


def nth_source(ear):
    """The index of the first layer's kernel among the tape's sources."""
    kernel = ear.calls["Dense.call"][0].known["self"].kernel
    return next(k for k, v in enumerate(ear.last("GradientTape.gradient").known["sources"]) if v is kernel)


def update_in(ear):
    """The call of `descend`, the optimizer's rule, for the kernel of the first layer."""
    kernel = ear.calls["Dense.call"][0].known["self"].kernel
    return next(call for call in ear.calls["descend"] if call.known["w"] is kernel)


def followed(ear, ops, weight):
    """{quantity: (its holder, its index)} of row 0 and a weight of the first layer, and {id of a result: its Op}."""
    made = {id(op.y): op for op in ops}
    layer = ear.calls["Dense.call"][0]
    step = ear.last("Model.train_step")
    tape = ear.last("GradientTape.gradient")
    x = holder(layer.known["x"])
    product = next(op for op in ops if op.op == "matmul" and op.inputs[0] is x and not any(op.attrs.values()))
    nth = nth_source(ear)
    update = holder(update_in(ear).result)
    gradient, loss = holder(tape.result[nth]), holder(step.result)
    change = next(op for op in ops if op.op == "multiply" and any(x is gradient for x in op.inputs))
    (rate,) = (x for x in change.inputs if x is not gradient)
    total, _ = made[id(loss)].inputs  # the loss is a sum, divided by the count
    (share,) = made[id(total)].inputs
    squared = made[id(share)]
    column = 0, weight[1]
    found = {
        "x": (x, (0, weight[0])),
        "w": (product.inputs[1], weight),
        "sum": (product.y, column),
        "output": (holder(layer.result), column),
        "prediction": (holder(ear.last("Sequential.call").result), (0, 0)),
        "target": (holder(step.known["y"]), (0, 0)),
        "share": (share, (0, 0)),
        "loss": (loss, ()),
        "slope": (made[id(gradient)].inputs[1], column),
        "gradient": (gradient, weight),
        "rate": (rate, ()),
        "change": (change.y, weight),
        "new w": (update, weight),
    }
    if squared.op == "multiply" and squared.inputs[0] is squared.inputs[1]:
        found["error"] = squared.inputs[0], (0, 0)
    return found, made
