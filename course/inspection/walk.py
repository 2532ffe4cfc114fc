"""The walk: one step of `fit`, followed down to the multiply that changes a weight, with its numbers, and up again.

The step is taken twice, compiled and op by op. Python says what it calls (`sys.setprofile`), and the program says what
each of its registers holds (`probe.py`). So no number of the walk is written by hand. As HTML it needs no script and no
kernel: the stages are the choices of a radio group, and where styles are stripped they stand beneath each other as tables.
"""

import html
import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from course.figures import HUES, LEVELS
from course.inspection import probe
from course.inspection.source_index import cell_of, place_of, places

KEYS = 'data-lm-suppress-shortcuts="true"'  # what has this keeps its keys, which JupyterLab would take for itself
STYLE = Path(__file__).with_name("walk.css")
FORWARD = "x", "w", "b", "x·w", "sum", "output", "prediction", "target", "error", "share", "loss"
BACK = "slope", "before", "x·slope", "after", "gradient", "rate", "change", "new w"
MEANS = {
    "x": "x, the input",
    "w": "w, the weight",
    "b": "b, the bias",
    "x·w": "x · w",
    "sum": "sum of the products",
    "output": "output of the unit, with b",
    "prediction": "prediction",
    "target": "target",
    "error": "error",
    "share": "loss of the row",
    "loss": "loss of the batch",
    "slope": "slope at the sum of the products",
    "x·slope": "x · slope, the row's part",
    "gradient": "gradient, of all rows",
    "rate": "learning rate",
    "change": "rate · gradient",
    "new w": "w, the new weight",
    "before": "sum before this turn",
    "after": "sum after this turn",
}


# What is heard while the step runs.


class Call(NamedTuple):
    """A call of one of the levels' functions that has returned: its code, its variables then, its result."""

    code: Any
    known: dict
    result: Any


HEARD = {"Model.fit", "Trainable.train_step", "Sequential.call", "Dense.call", "squared_error", "cross_entropy"}
HEARD |= {
    "Training.one_pass",
    "Optimizer.apply_gradients",
    "Trace.do",
    "GradientTape.gradient",
    "descend",
    "apply",
    "Run.do",
    "Plan.start",
    "_write",
    "RowProgram.launch",
}


class Ear:
    """Hears a training of one step. Of what a step calls, the calls of the last `train_step` are kept."""

    def __init__(self):
        self.calls, self.before = {}, {}  # a name -> its calls; a variable -> its numbers before the program ran

    def hear(self, frame, event, result):
        name = frame.f_code.co_qualname
        if name not in HEARD or event not in ("call", "return") or not ours(frame):
            return
        if event == "return":
            self.calls.setdefault(name, []).append(Call(frame.f_code, dict(frame.f_locals), result))
        elif name == "Trainable.train_step":
            self.calls = {}
        elif name == "RowProgram.launch":
            self.before = {v: v.numpy() for v in frame.f_locals["self"].variables}

    def last(self, name):
        return self.calls[name][-1]


def ours(frame):
    """Whether this function is one of the levels, or of the notebook that runs."""
    return frame.f_globals.get("__name__", "").split(".")[0] in ("levels", "__main__")


def listened(run):
    """An Ear that has heard `run()`."""
    ear, before = Ear(), sys.getprofile()
    sys.setprofile(ear.hear)
    try:
        run()
    finally:
        sys.setprofile(before)
    return ear


@contextmanager
def core_alone():
    """Without the plans, back ends, passes and walks back that `levels_more` may have added: what is shown is the five."""
    from levels.kernels import PLANS
    from levels.kernels.registry import PLAN_FINISHERS
    from levels.low_level.autodiff import WALKS
    from levels.low_level.functions import BACK_ENDS, PASSES

    own = (
        (PLAN_FINISHERS, 0),
        (WALKS, 0),
        (PASSES, 1),
        (BACK_ENDS, 1),
    )  # the tables, and how many entries are the core's
    before, plans = [[*table] for table, _ in own], {**PLANS}
    PLANS.clear()
    for table, count in own:
        del table[count:]
    try:
        yield
    finally:
        PLANS.clear()
        PLANS.update(plans)
        for (table, _), entries in zip(own, before, strict=True):
            table[:] = entries


# Where the numbers of one row and one weight are, among the ops of a step: those that ran, or the nodes of a graph.


class Op(NamedTuple):
    op: str
    inputs: list
    attrs: dict
    y: Any


def holder(x):
    """What holds the numbers of a tensor: the tensor or, while a step is traced, its node."""
    return getattr(x, "node", x)


def nth_source(ear):
    """Which of the tape's sources the kernel of the first layer is."""
    kernel = ear.calls["Dense.call"][0].known["self"].kernel
    return next(k for k, v in enumerate(ear.last("GradientTape.gradient").known["sources"]) if v is kernel)


def update_in(ear):
    """The call of the optimizer's rule for the kernel of the first layer."""
    kernel = ear.calls["Dense.call"][0].known["self"].kernel
    return next(call for call in ear.calls["descend"] if call.known["w"] is kernel)


def followed(ear, ops, row, weight):
    """{quantity: (what holds it, its place)} of a row and a weight of the first layer, and {id of a result: its Op}."""
    made = {id(op.y): op for op in ops}
    layer, step, tape = ear.calls["Dense.call"][0], ear.last("Trainable.train_step"), ear.last("GradientTape.gradient")
    x = holder(layer.known["x"])
    product = next(op for op in ops if op.op == "matmul" and op.inputs[0] is x and not any(op.attrs.values()))
    nth, update = nth_source(ear), holder(update_in(ear).result)
    gradient, loss = holder(tape.result[nth]), holder(step.result)
    change = next(op for op in ops if op.op == "multiply" and any(x is gradient for x in op.inputs))
    (rate,) = (x for x in change.inputs if x is not gradient)
    share = made[id(loss)].inputs[0]
    squared = made[id(share)]
    column = row, weight[1]
    found = {
        "x": (x, (row, weight[0])),
        "w": (product.inputs[1], weight),
        "sum": (product.y, column),
        "output": (holder(layer.result), column),
        "prediction": (holder(ear.last("Sequential.call").result), (row, 0)),
        "target": (holder(step.known["y"]), (row, 0)),
        "share": (share, (row, 0)),
        "loss": (loss, ()),
        "slope": (made[id(gradient)].inputs[1], column),
        "gradient": (gradient, weight),
        "rate": (rate, ()),
        "change": (change.y, weight),
        "new w": (update, weight),
    }
    if squared.op == "multiply" and squared.inputs[0] is squared.inputs[1]:
        found["error"] = squared.inputs[0], (row, 0)
    return found, made


# The stages.


class Number(NamedTuple):
    """A number of the walk at one stage: which one, how that stage calls it, and what it is."""

    quantity: str
    here: str
    value: float
    words: bool = False  # `here` is no code


class Code(NamedTuple):
    """Lines of code, those that are marked, and a link to the cell that wrote them."""

    title: str
    lines: list
    marked: set
    link: str = ""


class Stage(NamedTuple):
    """A rung of the walk."""

    level: int
    name: str
    told: str
    codes: list
    numbers: list
    way: str = ""  # op by op, or compiled: after stage 4 the road forks

    def value(self, quantity):
        return next(number.value for number in self.numbers if number.quantity == quantity)


class Walk:
    """The stages of a task's first step, for one row of its batch and one weight of the first layer.

    The weight is that of the first input, at the first unit whose output changes this row's loss.
    """

    def __init__(self, task, trainer, row=0):
        from levels.low_level import eager

        given = task.x, task.y, task.weights, task.batches[:1], task.learning_rate
        self.task, self.row, self.index = task, row, places()
        with core_alone():
            self.compiled = listened(lambda: trainer(*given))
            with eager():
                self.eager = listened(lambda: trainer(*given))
        if "_write" not in self.compiled.calls:
            raise ValueError("walk: the step has become no program by rows, so there is nothing to follow")

        self.ops = [Op(*map(call.known.get, Op._fields[:3]), call.result) for call in self.eager.calls["Run.do"]]
        slopes, _ = followed(self.eager, self.ops, row, (0, 0))[0]["slope"]
        self.weight = 0, int(np.flatnonzero(slopes.numpy()[row])[0])
        self.places, self.made = followed(self.eager, self.ops, row, self.weight)
        self.program = probe.Probe(self.compiled, row)
        nodes = [Op(node.op, node.inputs, node.attrs, node) for node in self.program.graph.ops]
        self.nodes, _ = followed(self.compiled, nodes, row, self.weight)
        self.registers = self.program.registers(self.nodes)
        self.stages = [make(self) for make in STAGES]

    @property
    def loss(self):
        return float(self.stages[0].value("loss"))

    def tensor(self, quantity):
        """A number that an op made, op by op."""
        held, place = self.places[quantity]
        return float(held.numpy()[place])

    def source(self, call, *marks, title=""):
        """The code of a call, with the lines marked in which one of these texts stands."""
        return self.lines_of(place_of(getattr(call, "code", call), self.index), *marks, title=title)

    def lines_of(self, place, *marks, title=""):
        lines = place.source.split("\n")
        marked = {k for k, line in enumerate(lines) if any(mark in line for mark in marks)}
        return Code(title, lines, marked, link(place))

    def __repr__(self):
        lines = [f"{self.task.title}: the loss of the first batch is {short(self.loss)}, the same bits on each stage"]
        for k, stage in enumerate(self.stages, 1):
            lines.append(f"{k}  {stage.name}")
        return "\n".join(lines)


def link(place):
    """A link to the cell that wrote this, which Jupyter follows from the notebook that runs."""
    words = f"{place.name}, written in {place.notebook}"
    return f'<a href="{place.notebook}.ipynb#cell-id={cell_of(place)}">{html.escape(words)}</a>'


def short(number):
    return f"{number:,}" if isinstance(number, int) else f"{number:.6g}"


COMPILED = "in fit, written once"


def fit(walk):
    call = walk.compiled.last("Model.fit")
    model, w = call.known["self"], walk.weight
    rows = walk.task.batches[0]
    numbers = [
        Number("x", f"x[{rows[walk.row]}, {w[0]}]", walk.task.x[rows[walk.row], w[0]]),
        Number("w", f"weights[0][{w[0]}, {w[1]}]", walk.task.weights[0][w]),
        Number("target", f"y[{rows[walk.row]}, 0]", walk.task.y[rows[walk.row], 0]),
        Number("loss", "history.losses[0]", call.result.losses[0]),
        Number("rate", "SGD(learning_rate)", walk.task.learning_rate),
        Number("new w", f"model.get_weights()[0][{w[0]}, {w[1]}]", model.get_weights()[0][w]),
    ]
    told = f"This `fit` has one batch of {len(rows)} rows. Afterwards the weights have changed, and we have a loss. We follow one "
    told += f"weight and one row: row {rows[walk.row]} of the data, row {walk.row} of the batch. `run_training` makes a `function` "
    told += "of `train_step`. A pass through the data is one call of its `over`."
    one_pass = walk.compiled.last("Training.one_pass")
    return Stage(5, "fit", told, [walk.source(call, "run_training("), walk.source(one_pass, "step.over(")], numbers)


def train_step(walk):
    call, tape = walk.eager.last("Trainable.train_step"), walk.eager.last("GradientTape.gradient")
    nth, update = nth_source(walk.eager), update_in(walk.eager)
    (row, unit), (k, u) = (walk.row, 0), walk.weight
    numbers = [
        Number("x", f"x[{row}, {k}]", call.known["x"].numpy()[row, k]),
        Number("w", f"variables[{nth}][{k}, {u}]", walk.tensor("w")),
        Number("prediction", f"self(x)[{row}, 0]", walk.eager.last("Sequential.call").result.numpy()[row, unit]),
        Number("target", f"y[{row}, 0]", call.known["y"].numpy()[row, 0]),
        Number("loss", "loss", call.result.numpy()[()]),
        Number("gradient", f"tape.gradient(…)[{nth}][{k}, {u}]", tape.result[nth].numpy()[k, u]),
        Number("new w", f"`variables[{nth}][{k}, {u}]` after the step", update.result.numpy()[k, u], words=True),
    ]
    told = "A step has four parts: forward, loss, backward, update. The loss is the mean over the rows, and the gradient is the sum "
    told += "of the rows' parts. `fit` runs this code once, to trace it, on symbols that have a shape but no numbers. For the numbers "
    told += "of stages 2 to 5 the step has been run again, op by op."
    marks = "self(x", "tape.gradient("
    return Stage(5, "train_step", told, [walk.source(call, *marks)], numbers)


def layer(walk):
    call, update = walk.eager.calls["Dense.call"][0], update_in(walk.eager)
    name = next(each for each in ("squared_error", "cross_entropy") if each in walk.eager.calls)
    loss = walk.eager.last(name)
    row, (k, u) = walk.row, walk.weight
    numbers = [
        Number("x", f"x[{row}, {k}]", call.known["x"].numpy()[row, k]),
        Number("w", f"self.kernel[{k}, {u}]", walk.tensor("w")),
        Number("b", f"self.bias[0, {u}]", walk.task.weights[1][0, u]),
        Number("output", f"call(x)[{row}, {u}]", call.result.numpy()[row, u]),
    ]
    if "error" in loss.known:
        numbers.append(Number("error", f"error[{row}, 0]", loss.known["error"].numpy()[row, 0]))
    numbers += [
        Number("share", f"{name}(…)[{row}, 0]", loss.result.numpy()[row, 0]),
        Number("rate", "rate", float(update.known["rate"])),
        Number("gradient", f"dw[{k}, {u}]", update.known["dw"].numpy()[k, u]),
        Number("new w", f"descend(…)[{k}, {u}]", update.result.numpy()[k, u]),
    ]
    told = "Level 4 has three parts. The layer owns the weight, the loss measures the error, and the optimizer changes the weight: "
    told += "`descend` computes the new one, and `assign` gives it to the variable."
    apply_gradients = walk.source(walk.eager.last("Optimizer.apply_gradients"), ".assign(value)")
    codes = [walk.source(call, "affine("), walk.source(loss, "error *", "log(")]
    codes += [walk.source(update, "rate * dw"), apply_gradients]
    return Stage(4, "a layer", told, codes, numbers)


def op(walk):
    """The ops that passed the door."""
    from levels.low_level import VJPS

    numbers = []
    for quantity in (*FORWARD, *BACK):
        if quantity in walk.places:
            held, place = walk.places[quantity]
            made = walk.made.get(id(held))
            name = f"{made.op}(…)" if made else "a variable" if quantity in ("w", "rate") else "a tensor"
            numbers.append(Number(quantity, name + str([*place] or ""), walk.tensor(quantity)))
    told = f"Each operator of a tensor, such as `@` or `*`, passes the door `apply`, {len(walk.ops)} ops in this step. The tape writes "
    told += "down the ops inside `with GradientTape()`. Its `gradient` goes back through this list and calls a rule for each, such as "
    told += "`_matmul_back_w`. **Here the road forks:** what stands at the door, behind the tape, decides. A `Run` launches the op "
    told += "at once (stage 5). In `fit` it is a `Trace`, which notes the op as a node of a graph. The graph becomes a program (stage 6)."
    ear = walk.compiled
    codes = [
        walk.source(walk.eager.last("apply"), "DOOR.stands.do"),
        walk.source(VJPS["matmul"][1].__code__, "x, dy, transpose"),
    ]
    codes += [walk.source(walk.eager.last("Run.do"), "plan.result"), walk.source(ear.last("Trace.do"), "self.noted")]
    return Stage(3, "an op", told, codes, numbers)


def start_of(walk, quantity):
    """The launch, op by op, that made this quantity."""
    held, _ = walk.places[quantity]
    return next(call for call in walk.eager.calls["Plan.start"] if call.result is held)


def planned_again(walk, quantity):
    """The number that the plan's program writes when it runs once more on the same arrays."""
    call, (_, place) = start_of(walk, quantity), walk.places[quantity]
    plan, reads = call.known["self"], call.known["reads"]
    out = np.full(plan.spec.shape, np.nan, plan.spec.dtype)
    plan.run(out, *[x.data for x in reads], *map(call.known["attrs"].get, plan.numbers))
    return float(out[place])


def plan(walk):
    from levels.kernels import KERNELS
    from levels.kernels.elementwise import loop_source, places_of

    forward, back = start_of(walk, "sum").known, start_of(walk, "change").known
    result, shapes = back["self"].spec.shape, [x.spec.shape for x in back["reads"]]
    loop = loop_source("multiply", places_of(result, shapes)).split("\n")
    (multiply,) = (p for p in walk.index if (p.name, p.room) == ("multiply", "elementwise"))
    product = walk.source(KERNELS["matmul", "cpu"].__code__, "+= x[i, k] * w[k, j]")
    made = Code("the loop that is made for multiply", loop, {len(loop) - 1}, link(multiply))
    (row, k), (_, u) = walk.places["x"][1], walk.weight
    at, nth = k * result[1] + u, next(n for n, x in enumerate(back["reads"]) if x is walk.places["gradient"][0])
    numbers = [
        Number("x", f"x[{row}, {k}]", float(forward["reads"][0].data[row, k])),
        Number("w", f"w[{k}, {u}]", float(forward["reads"][1].data[k, u])),
        Number("sum", f"out[{row}, {u}]", planned_again(walk, "sum")),
        Number("rate", f"x{1 - nth}[0]", float(back["reads"][1 - nth].data.flat[0])),
        Number("gradient", f"x{nth}[{at}]", float(back["reads"][nth].data[k, u])),
        Number("change", f"out[{at}]", planned_again(walk, "change")),
    ]
    made_of = " and ".join(str([*shape]) if shape else "a single number" for shape in shapes)
    told = "`fit` comes this way only if a step fits no program. A plan is made once for each op and these shapes: it knows the shape "
    told += f"of the result and what to launch. For `matmul`, which gives {[*forward['self'].spec.shape]}, that is a kernel of notebook "
    told += f"02. For the `multiply` of the update, which takes {made_of}, a loop is written around `x * y`. numba compiles both when "
    told += f"they first run. Each op is a launch of its own, {len(walk.eager.calls['Plan.start'])} in this step."
    start = walk.source(start_of(walk, "change"), "self.compiled or")
    return Stage(2, "plan and launch", told, [product, made, walk.lines_of(multiply), start], numbers, "op by op")


def compiled_program(walk):
    """The graph of the step, as a program by rows, and its launch."""
    call = walk.compiled.last("RowProgram.launch")
    known, made = call.known, call.known["self"]
    steps, rows, _ = known["sizes"]
    kernel = walk.compiled.calls["Dense.call"][0].known["self"].kernel
    numbers = [
        Number("w", "the variable before", walk.compiled.before[kernel][walk.weight], words=True),
        Number("loss", "outs[0]", known["outs"][0].numpy().flat[0]),
        Number("new w", "the variable after", kernel.numpy()[walk.weight], words=True),
    ]
    when = {"before": "before the rows", "row": "for each row", "sum": "sums over the rows", "after": "after the rows"}
    optimizer, nodes = walk.compiled.last("Optimizer.apply_gradients").known["self"], {part: [] for part in when}
    counter = walk.program.graph.updates[optimizer.iterations]
    for x in walk.program.graph.ops:
        nodes[walk.program.parts[x]].append(f"{x.op} (it counts the steps)" if x is counter else x.op)
    listed = [f"{when[part]}: {', '.join(ops)}" for part, ops in nodes.items() if ops]
    parts = next(p for p in walk.index if p.name == "row_parts")
    graph = Code(
        "the ops of the graph, sorted", listed, {k for k, text in enumerate(listed) if "after" in text}, link(parts)
    )
    told = "This is the way of `fit`. Level 3 sorts the ops of the graph: what is done before the rows, for each row, as a sum over "
    told += "the rows, and after them. It writes a program, once, as stages 7 to 9 show. Then each pass is one launch of it: "
    told += f"`self.program.run` is given {steps} step, {rows:,} rows of data, and {len(made.program.words) - 2} addresses (the batches' "
    told += f"row numbers, the losses, x, y, and {len(made.variables)} variables). The results have the same bits as op by op."
    return Stage(
        3, "the program", told, [graph, walk.source(call, "self.program.run(")], numbers, "in fit, launched once a pass"
    )


def loop(walk):
    text, program = walk.program.text, walk.program
    marks = "a.loop(batch", "operator.iadd", 'compute("after")', "graph.updates.values()"
    write = walk.source(walk.compiled.last("_write"), *marks)
    first, last = min(write.marked) - 3, max(write.marked) + 1
    cut = Code(write.title, write.lines[first:last], {k - first for k in write.marked}, write.link)
    shown = ["…" if k is None else text[k].strip() for k in program.loop_lines()]
    marked = {k for k, line in enumerate(shown) if "phi" in line or "icmp" in line}
    before, after = program.running(walk.registers["x·slope"])
    slot = program.line(walk.registers["gradient"]).split()[-1]
    numbers = [
        Number("x", "of this turn's row", program.values[walk.registers["x"]], words=True),
        Number("share", "added to the loss", program.values[walk.registers["share"]], words=True),
        Number("before", f"the running sum, `{slot}`", before, words=True),
        Number("x·slope", "is added to it", program.values[walk.registers["x·slope"]], words=True),
        Number("after", f"the running sum, `{slot}`", after, words=True),
        Number("gradient", "the sum after all turns", program.values[walk.registers["gradient"]], words=True),
    ]
    told = "Level 3's `_write` runs once. It computes nothing, but calls level 1's assembler, which writes a loop over the steps, and "
    told += f"in it a loop over the rows of a batch. In the program, our row is turn {walk.row + 1} of {len(walk.task.batches[0])}. Each "
    told += "turn adds its part to the gradient. After the loop come the update, and the store of the new weights."
    return Stage(1, "the loop", told, [cut, Code("the loop, as LLVM reads it", shown, marked)], numbers, COMPILED)


def excerpt(lines, marked, around=1):
    """Lines with those around them, marked; and "…" where lines are left out between them."""
    shown, marks = [], set()
    near = sorted({k for at in marked for k in range(at - around, at + around + 1)} & {*range(len(lines))})
    for n, k in enumerate(near):
        if n and k != near[n - 1] + 1:
            shown.append("…")
        if k in marked:
            marks.add(len(shown))
        shown.append(lines[k].strip())
    return shown, marks


def llvm_text(walk):
    program, numbers = walk.program, []
    for quantity in (*FORWARD, *BACK):
        if register := walk.registers.get(quantity):
            numbers.append(Number(quantity, program.line(register), program.values[register]))
    at = {quantity: program.at[register] for quantity, register in walk.registers.items() if register}
    codes = [
        Code("forward: x · w", *excerpt(program.text, [at["x·w"]])),
        Code("the update, and the store", *excerpt(program.text, [at["change"], at["new w"], store_line(walk)])),
        walk.lines_of(next(p for p in walk.index if (p.name, p.room) == ("arithmetic", "values")), "a.write("),
    ]
    change, new = walk.registers["change"], walk.registers["new w"]
    told = "To write the program, level 3 calls `x * y` of stage 5 and its like on registers instead of numbers. Then `*` writes a line "
    told += f"of LLVM's language. `fmul` makes {change}, the rate times the gradient; `fsub` makes {new}, the new weight; and `store` "
    told += "writes it over the old one."
    return Stage(1, "LLVM text", told, codes, numbers, COMPILED)


def store_line(walk):
    """The line of the text that writes the new weight to memory."""
    wanted = re.compile(rf"  store \w+ {re.escape(walk.registers['new w'])}, ptr %v")
    return next(k for k, line in enumerate(walk.program.text) if wanted.match(line))


def instruction(walk):
    from levels.hardware import program as hardware_program

    program, numbers = walk.program, []
    for quantity in (*FORWARD, *BACK):
        register = walk.registers.get(quantity)
        if register in program.instructions:
            numbers.append(Number(quantity, program.instruction(register), program.values[register]))
    listing, store = [line for line, _ in program.listing], program.store_instruction(store_line(walk))
    at = {quantity: program.instructions.get(register) for quantity, register in walk.registers.items()}
    codes = []
    for title, marked in (
        ("forward: x · w", [at["x·w"]]),
        ("the update, and the store", [at["change"], at["new w"], store]),
    ):
        if found := [k for k in marked if k is not None]:
            codes.append(Code(title, *excerpt(listing, found)))
    made = walk.source(hardware_program.Program.__init__.__code__, "machine_code(")
    codes.append(Code(made.title, made.lines[-3:], {k - len(made.lines) + 3 for k in made.marked}, made.link))
    told = f"LLVM makes instructions of the text, once, for the processor of this run ({program.processor}). Their address is what "
    told += "stage 6 calls. "
    if any("%xmm" in line for line in listing):
        told += "`%xmm6` is a register: it holds one number, and later another. The result stands last, so `vsubsd a, b, c` makes "
        told += "c = b - a. Parentheses are an address in memory. "
    if any("(%rsp)" in line for line in listing):
        told += "Numbers for which no register is free lie on the stack, at `(%rsp)`. "
    merged = [MEANS[q] for q in (*FORWARD, *BACK) if walk.registers.get(q) and q not in {n.quantity for n in numbers}]
    if merged:
        told += f"These have no instruction of their own, as another one reads or makes them: {'; '.join(merged)}. "
    return Stage(1, "the instruction", told + "Below this there is only hardware.", codes, numbers, COMPILED)


STAGES: list[Callable] = [fit, train_step, layer, op, plan, compiled_program, loop, llvm_text, instruction]
UP = {k: k - 1 for k in range(1, 9)} | {5: 3}  # from the program to the op: the plan is on another road
DOWN = {k: k + 1 for k in range(8)} | {3: 5}
ASIDE = 4  # what runs only op by op


# How it is shown.


class Walks:
    """Walks of several tasks on one page, of which one is seen at a time."""

    def __init__(self, *walks):
        self.walks = walks

    def __repr__(self):
        return "\n\n".join(map(repr, self.walks))

    def _repr_html_(self):
        parts = [part(walk, f"walk-{k}" if k else "walk", k == 0) for k, walk in enumerate(self.walks)]
        return f'<style>{STYLE.read_text(encoding="utf-8")}</style>\n<div class="walk">{"".join(parts)}</div>'


def down(*walks):
    """One page of walks, each given as (task, the function that trains it)."""
    return Walks(*(Walk(*given) for given in walks))


def part(walk, key, opened):
    """The walk of one task."""
    loss = f"Loss of the batch <b>{short(walk.loss)}</b> <code>{walk.loss.hex()}</code>, the same bits on each stage that shows it"
    rungs = "".join(rung(walk, key, k) for k in range(len(walk.stages)))
    head = f"<summary {KEYS}>{html.escape(walk.task.title)}</summary><p class='loss'>{loss}</p>"
    name = f"The stages of {walk.task.title}, from fit down to the instruction"
    ladder = f'<div class="stages" role="radiogroup" aria-label="{html.escape(name)}">{rungs}</div>'
    return f'<details class="task" name="walk"{" open" * opened}>{head}{ladder}</details>'


def rung(walk, key, k):
    """The name of a stage, as a choice, and what is seen when it is chosen."""
    stage, n = walk.stages[k], k + 1
    checked = " checked" * (k == 0)
    choice = f'<input type="radio" name="{key}" id="{key}-{n}" aria-label="{n} {stage.name}" {KEYS}{checked}>'
    look = f'style="--hue:{HUES[stage.level - 1]}"'
    aside = " aside" * (k == ASIDE)
    label = f'<label class="rung{aside}" for="{key}-{n}" {look}>{choice} {n} · {stage.name}</label>\n'
    ways = [("up", "up to", UP.get(k)), ("down", "over to" if k == ASIDE else "down to", DOWN.get(k))]
    ways = [
        f'<label class="{sort}" for="{key}-{to + 1}">{words} {walk.stages[to].name}</label>\n'
        for sort, words, to in ways
        if to is not None
    ]
    if k == ASIDE - 1:
        ways.append(f'<label class="side" for="{key}-{n + 1}">or op by op, stage {n + 1}</label>\n')
    where = f"level {stage.level}, {LEVELS[stage.level - 1].replace('_', ' ')}" + f" · {stage.way}" * bool(stage.way)
    title = f"<b>{n} · {stage.name}</b> <small>{where}</small>"
    codes = "".join(map(code, stage.codes))
    tables = table("forward", FORWARD, stage) + table("back and update", BACK, stage)
    head = f'<div class="head"><p>{title}</p><p class="ways">{"".join(ways)}</p></div>'
    body = f'<p>{spelled(stage.told)}</p><div class="both"><div>{codes}</div><div>{tables}</div></div>'
    return f'{label}<div class="stage" {look}>{head}{body}</div>'


def spelled(text):
    """Text with `code` and **bold** as HTML."""
    parts = html.escape(text).split("`")
    text = "".join(f"<code>{each}</code>" if k % 2 else each for k, each in enumerate(parts))
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)


def code(shown):
    lines = []
    for k, text in enumerate(shown.lines):
        indent = len(text) - len(text.lstrip())
        inner = f"<b>{html.escape(text)}</b>" if k in shown.marked else html.escape(text)
        lines.append(f'<code style="--indent:{indent}ch">{inner}\n</code>')
    head = ": ".join(filter(None, [html.escape(shown.title), shown.link]))
    return f"<p class='from'>{head}</p><pre>{''.join(lines)}</pre>"


def table(way, quantities, stage):
    """The numbers of a stage that are found on the way forward, or on the way back."""
    rows = [
        f"<tr><th scope='row'>{MEANS.get(number.quantity, number.quantity)}</th>"
        f"<td>{spelled(number.here if number.words else f'`{number.here}`')}</td><td>{short(number.value)}</td></tr>"
        for quantity in quantities
        for number in stage.numbers
        if number.quantity == quantity
    ]
    head = f"<tr><th scope='col'>{way}</th><th scope='col'>here</th><th scope='col'>number</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>" * bool(rows)
