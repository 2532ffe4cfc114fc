"""The nine stages of a walk, from `fit` down to the instruction: the text, code and numbers of each.

A stage is named by its level. Where a level has several stages, a letter follows: 5a, 5b, 4, 3a, 2, 3b, 1a, 1b, 1c.
"""

import re
from collections.abc import Callable

import numpy as np

from course.reader.inspection.walk.heard import nth_source, update_in
from course.reader.inspection.walk.parts import BACK, FORWARD, MEANS, Code, Number, Stage, excerpt, link

COMPILED = "in fit, written once"


def fit(walk):
    call = walk.compiled.last("Model.fit")
    model = call.known["self"]
    w = walk.weight
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
    one_pass = walk.compiled.last("one_pass")
    return Stage("5a", "fit", told, [walk.source(call, "run_training("), walk.source(one_pass, "step.over(")], numbers)


def train_step(walk):
    call = walk.eager.last("Model.train_step")
    tape = walk.eager.last("GradientTape.gradient")
    nth = nth_source(walk.eager)
    update = update_in(walk.eager)
    row = walk.row
    unit = 0
    k, u = walk.weight
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
    told += "of stages 5b, 4, 3a and 2 the step has been run again, op by op."
    marks = "self(x", "tape.gradient("
    return Stage("5b", "train_step", told, [walk.source(call, *marks)], numbers)


def layer(walk):
    call = walk.eager.calls["Dense.call"][0]
    update = update_in(walk.eager)
    name = next(each for each in ("squared_error", "cross_entropy") if each in walk.eager.calls)
    loss = walk.eager.last(name)
    row = walk.row
    k, u = walk.weight
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
    return Stage("4", "a layer", told, codes, numbers)


def op(walk):
    """The stage of the ops that passed the door."""
    from levels.low_level import VJPS

    numbers = []
    for quantity in (*FORWARD, *BACK):
        if quantity in walk.places:
            held, place = walk.places[quantity]
            made = walk.made.get(id(held))
            name = f"{made.op}(…)" if made else "a variable" if quantity in ("w", "rate") else "a tensor"
            numbers.append(Number(quantity, name + str([*place] or ""), walk.tensor(quantity)))
    told = f"Each operator of a tensor, such as `@` or `*`, calls `apply`, the door: {len(walk.ops)} ops in this step. The tape records "
    told += "the ops inside `with GradientTape()`. Its `gradient` goes back through this list and calls a rule for each, such as "
    told += "`_matmul_back_w`. **From here there are two ways.** The interpreter behind the tape decides which. The `Interpreter` launches the op "
    told += "at once (stage 2). In `fit` it is a `Trace`, which records the op as a node of a graph. The graph becomes a program (stage 3b)."
    ear = walk.compiled
    codes = [
        walk.source(walk.eager.last("apply"), "DOOR.top.do"),
        walk.source(VJPS["matmul"][1].__code__, "x, dy, transpose"),
    ]
    codes += [
        walk.source(walk.eager.last("Interpreter.do"), "plan.result"),
        walk.source(ear.last("Trace.do"), "self.add_node("),
    ]
    return Stage("3a", "an op", told, codes, numbers)


def start_of(walk, quantity):
    """The recorded call of `Plan.start`, op by op, that computed this quantity."""
    held, _ = walk.places[quantity]
    return next(call for call in walk.eager.calls["Plan.start"] if call.result is held)


def planned_again(walk, quantity):
    """The value of this quantity after the plan's program has run again on the same arrays."""
    call = start_of(walk, quantity)
    _, place = walk.places[quantity]
    plan = call.known["self"]
    reads = call.known["reads"]
    out = np.full(plan.spec.shape, np.nan, plan.spec.dtype)
    numbers = map(call.known["attrs"].get, plan.numbers)
    plan.compiled(out, *[x.data for x in reads], *numbers)
    return float(out[place])


def plan(walk):
    from levels.kernels import KERNELS
    from levels.kernels.elementwise import loop_source, places_of

    forward = start_of(walk, "sum").known
    back = start_of(walk, "change").known
    result = back["self"].spec.shape
    shapes = [x.spec.shape for x in back["reads"]]
    loop = loop_source("multiply", places_of(result, shapes)).split("\n")
    (multiply,) = (p for p in walk.index if (p.name, p.room) == ("multiply", "elementwise"))
    product = walk.source(KERNELS["matmul", "cpu"].__code__, "+= x[i, k] * w[k, j]")
    made = Code("the loop that is made for multiply", loop, {len(loop) - 1}, link(multiply))
    row, k = walk.places["x"][1]
    _, u = walk.weight
    at = k * result[1] + u
    nth = next(n for n, x in enumerate(back["reads"]) if x is walk.places["gradient"][0])
    numbers = [
        Number("x", f"x[{row}, {k}]", float(forward["reads"][0].data[row, k])),
        Number("w", f"w[{k}, {u}]", float(forward["reads"][1].data[k, u])),
        Number("sum", f"out[{row}, {u}]", planned_again(walk, "sum")),
        Number("rate", f"x{1 - nth}[0]", float(back["reads"][1 - nth].data.flat[0])),
        Number("gradient", f"x{nth}[{at}]", float(back["reads"][nth].data[k, u])),
        Number("change", f"out[{at}]", planned_again(walk, "change")),
    ]
    made_of = " and ".join(str([*shape]) if shape else "a single number" for shape in shapes)
    told = "`fit` comes this way only if its step cannot become a program. A plan is made once for each op and its shapes: it holds the shape "
    told += f"of the result and what to launch. For `matmul`, which gives {[*forward['self'].spec.shape]}, that is a kernel of notebook "
    told += f"02. For the `multiply` of the update, which takes {made_of}, a loop is written around `x * y`. numba compiles both when "
    told += f"they first run. Each op is a launch of its own, {len(walk.eager.calls['Plan.start'])} in this step."
    start = walk.source(start_of(walk, "change"), "self.compiled or")
    return Stage("2", "plan and launch", told, [product, made, walk.lines_of(multiply), start], numbers, "op by op")


def compiled_program(walk):
    """The stage of the step's graph as a row program, and of its launch."""
    call = walk.compiled.last("RowProgram.launch")
    known = call.known
    made = call.known["self"]
    steps, rows, _ = known["sizes"]
    kernel = walk.compiled.calls["Dense.call"][0].known["self"].kernel
    numbers = [
        Number("w", "the variable before", walk.compiled.before[kernel][walk.weight], words=True),
        Number("loss", "outs[0]", known["outs"][0].numpy().flat[0]),
        Number("new w", "the variable after", kernel.numpy()[walk.weight], words=True),
    ]
    when = {"before": "before the rows", "row": "for each row", "sum": "sums over the rows", "after": "after the rows"}
    optimizer = walk.compiled.last("Optimizer.apply_gradients").known["self"]
    nodes = {part: [] for part in when}
    counter = walk.program.graph.updates[optimizer.iterations]
    for x in walk.program.graph.ops:
        nodes[walk.program.parts[x]].append(f"{x.op} (it counts the steps)" if x is counter else x.op)
    listed = [f"{when[part]}: {', '.join(ops)}" for part, ops in nodes.items() if ops]
    parts = next(p for p in walk.index if p.name == "row_parts")
    graph = Code(
        "the ops of the graph, sorted", listed, {k for k, text in enumerate(listed) if "after" in text}, link(parts)
    )
    told = "`fit` goes this way. Level 3 sorts the ops of the graph: those before the rows, for each row, sums over "
    told += "the rows, and those after them. It writes a program, once, as stages 1a to 1c show. Then each pass is one launch of it: "
    told += f"`self.program.run` is given {steps} step, {rows:,} rows of data, and {len(made.program.words) - 2} addresses (the batches' "
    told += f"row numbers, the losses, x, y, and {len(made.variables)} variables). The results have the same bits as op by op."
    return Stage(
        "3b",
        "the program",
        told,
        [graph, walk.source(call, "self.program.run(")],
        numbers,
        "in fit, launched once a pass",
    )


def loop(walk):
    text = walk.program.text
    program = walk.program
    marks = "a.loop(self.batch", "self.add_row(", "self.totals(", 'self.compute("after")'
    write = walk.source(walk.compiled.last("StepWriter.write"), *marks)
    shown = ["…" if k is None else text[k].strip() for k in program.loop_lines()]
    marked = {k for k, line in enumerate(shown) if " = load i64" in line or "icmp" in line}
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
    told = "Level 3's `StepWriter.write` runs once. It computes nothing, but calls level 1's assembler, which writes a loop over the steps, and "
    told += f"in it a loop over the rows of a batch. In the program, our row is turn {walk.row + 1} of {len(walk.task.batches[0])}. Each "
    told += "turn adds its part to the gradient. After the loop come the update, and the store of the new weights."
    return Stage("1a", "the loop", told, [write, Code("the loop, as LLVM reads it", shown, marked)], numbers, COMPILED)


def llvm_text(walk):
    program = walk.program
    numbers = []
    for quantity in (*FORWARD, *BACK):
        if register := walk.registers.get(quantity):
            numbers.append(Number(quantity, program.line(register), program.values[register]))
    at = {quantity: program.at[register] for quantity, register in walk.registers.items() if register}
    codes = [
        Code("forward: x · w", *excerpt(program.text, [at["x·w"]])),
        Code("the update, and the store", *excerpt(program.text, [at["change"], at["new w"], store_line(walk)])),
        walk.lines_of(next(p for p in walk.index if (p.name, p.room) == ("arithmetic", "values")), "a.write("),
    ]
    change = walk.registers["change"]
    new = walk.registers["new w"]
    told = "To write the program, level 3 calls the functions of the ops, such as `x * y` of stage 2, with registers instead of numbers. "
    told += f"Each operator then writes a line of LLVM text. `fmul` computes {change}, the rate times the gradient. `fsub` computes "
    told += f"{new}, the new weight. `store` writes it over the old one."
    return Stage("1b", "LLVM text", told, codes, numbers, COMPILED)


def store_line(walk):
    """The index of the text's line that stores the new weight in memory."""
    wanted = re.compile(rf"store \w+ {re.escape(walk.registers['new w'])}, ptr %v")
    return next(k for k, line in enumerate(walk.program.text) if wanted.match(line))


def instruction(walk):
    from levels.hardware import program as hardware_program

    program = walk.program
    numbers = []
    for quantity in (*FORWARD, *BACK):
        register = walk.registers.get(quantity)
        if register in program.instructions:
            numbers.append(Number(quantity, program.instruction(register), program.values[register]))
    listing = [line for line, _ in program.listing]
    store = program.store_instruction(store_line(walk))
    at = {quantity: program.instructions.get(register) for quantity, register in walk.registers.items()}
    codes = []
    for title, marked in (
        ("forward: x · w", [at["x·w"]]),
        ("the update, and the store", [at["change"], at["new w"], store]),
    ):
        if found := [k for k in marked if k is not None]:
            codes.append(Code(title, *excerpt(listing, found)))
    codes.append(walk.source(hardware_program.Program.__init__.__code__, "machine_code("))
    told = f"LLVM compiles the text to instructions, once, for the processor of this run ({program.processor}). Stage 3b calls their "
    told += "address. "
    if any("%xmm" in line for line in listing):
        told += "`%xmm6` is a register: it holds one number, and later another. The result comes last, so `vsubsd a, b, c` makes "
        told += "c = b - a. Parentheses are an address in memory. "
    if any("(%rsp)" in line for line in listing):
        told += "Numbers for which no register is free lie on the stack, at `(%rsp)`. "
    merged = [MEANS[q] for q in (*FORWARD, *BACK) if walk.registers.get(q) and q not in {n.quantity for n in numbers}]
    if merged:
        told += f"These have no instruction of their own, because another instruction reads or computes them: {'; '.join(merged)}. "
    return Stage("1c", "the instruction", told + "Below this there is only hardware.", codes, numbers, COMPILED)


STAGES: list[Callable] = [fit, train_step, layer, op, plan, compiled_program, loop, llvm_text, instruction]
UP = {k: k - 1 for k in range(1, 9)} | {5: 3}  # from the program up to the op, because the plan runs only op by op
DOWN = {k: k + 1 for k in range(8)} | {3: 5}
ASIDE = 4  # the index of the stage that runs only op by op
