"""The nine stages of a walk, from `fit` down to the instruction: the text, code and numbers of each.

A stage is named by its level. Where a level has several stages, a letter follows: 5a, 5b, 4, 3a, 2, 3b, 1a, 1b, 1c.
"""

import re
from collections.abc import Callable

import numpy as np

from course.reader.inspection.walk.heard import nth_source, update_in
from course.reader.inspection.walk.parts import BACK, FORWARD, MEANS, Code, Number, Stage, excerpt, link
from course.reader.inspection.walk.told import TOLD
from course.reader.language import later, say

COMPILED = later("in fit, written once")


def fit(walk):
    call = walk.compiled.last("Model.fit")
    model = call.known["self"]
    w = walk.weight
    rows = walk.task.batches[0]
    row = rows[0]
    numbers = [
        Number("x", f"x[{row}, {w[0]}]", walk.task.x[row, w[0]]),
        Number("w", f"weights[0][{w[0]}, {w[1]}]", walk.task.weights[0][w]),
        Number("target", f"y[{row}, 0]", walk.task.y[row, 0]),
        Number("loss", "history.losses[0]", call.result.losses[0]),
        Number("rate", "SGD(learning_rate)", walk.task.learning_rate),
        Number("new w", f"model.get_weights()[0][{w[0]}, {w[1]}]", model.get_weights()[0][w]),
    ]
    told = say(TOLD["5a"], rows=len(rows), row=row, at=0)
    one_pass = walk.compiled.last("one_pass")
    return Stage("5a", "fit", told, [walk.source(call, "run_training("), walk.source(one_pass, "step.over(")], numbers)


def train_step(walk):
    call = walk.eager.last("Model.train_step")
    tape = walk.eager.last("GradientTape.gradient")
    nth = nth_source(walk.eager)
    update = update_in(walk.eager)
    k, u = walk.weight
    numbers = [
        Number("x", f"x[0, {k}]", call.known["x"].numpy()[0, k]),
        Number("w", f"variables[{nth}][{k}, {u}]", walk.tensor("w")),
        Number("prediction", "self(x)[0, 0]", walk.eager.last("Sequential.call").result.numpy()[0, 0]),
        Number("target", "y[0, 0]", call.known["y"].numpy()[0, 0]),
        Number("loss", "loss", call.result.numpy()[()]),
        Number("gradient", f"tape.gradient(…)[{nth}][{k}, {u}]", tape.result[nth].numpy()[k, u]),
        Number(
            "new w",
            say("`{name}` after the step", name=f"variables[{nth}][{k}, {u}]"),
            update.result.numpy()[k, u],
            words=True,
        ),
    ]
    told = say(TOLD["5b"])
    marks = "self(x", "tape.gradient("
    return Stage("5b", "train_step", told, [walk.source(call, *marks)], numbers)


def layer(walk):
    call = walk.eager.calls["Dense.call"][0]
    update = update_in(walk.eager)
    name = next(each for each in ("squared_error", "cross_entropy") if each in walk.eager.calls)
    loss = walk.eager.last(name)
    k, u = walk.weight
    numbers = [
        Number("x", f"x[0, {k}]", call.known["x"].numpy()[0, k]),
        Number("w", f"self.kernel[{k}, {u}]", walk.tensor("w")),
        Number("b", f"self.bias[0, {u}]", walk.task.weights[1][0, u]),
        Number("output", f"call(x)[0, {u}]", call.result.numpy()[0, u]),
    ]
    if "error" in loss.known:
        numbers.append(Number("error", "error[0, 0]", loss.known["error"].numpy()[0, 0]))
    numbers += [
        Number("share", f"{name}(…)[0, 0]", loss.result.numpy()[0, 0]),
        Number("rate", "rate", float(update.known["rate"])),
        Number("gradient", f"dw[{k}, {u}]", update.known["dw"].numpy()[k, u]),
        Number("new w", f"descend(…)[{k}, {u}]", update.result.numpy()[k, u]),
    ]
    told = say(TOLD["4"])
    apply_gradients = walk.source(walk.eager.last("Optimizer.apply_gradients"), ".assign(value)")
    codes = [walk.source(call, "affine("), walk.source(loss, "error *", "log(")]
    codes += [walk.source(update, "rate * dw"), apply_gradients]
    return Stage("4", say("a layer"), told, codes, numbers)


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
    told = say(TOLD["3a"], count=len(walk.ops))
    ear = walk.compiled
    codes = [
        walk.source(walk.eager.last("apply"), "DOOR.top.do"),
        walk.source(VJPS["matmul"][1].__code__, "x, dy, transpose"),
    ]
    codes += [
        walk.source(walk.eager.last("Interpreter.do"), "plan.result"),
        walk.source(ear.last("Trace.do"), "self.add_node("),
    ]
    return Stage("3a", say("an op"), told, codes, numbers)


def run_of(walk, quantity):
    """The recorded call of `Plan.run`, op by op, that computed this quantity."""
    held, _ = walk.places[quantity]
    return next(call for call in walk.eager.calls["Plan.run"] if call.result is held)


def planned_again(walk, quantity):
    """The value of this quantity after the plan's program has run again on the same arrays."""
    call = run_of(walk, quantity)
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

    forward = run_of(walk, "sum").known
    back = run_of(walk, "change").known
    result = back["self"].spec.shape
    shapes = [x.spec.shape for x in back["reads"]]
    loop = loop_source("multiply", places_of(result, shapes)).split("\n")
    (multiply,) = (p for p in walk.index if (p.name, p.room) == ("multiply", "elementwise"))
    product = walk.source(KERNELS["matmul", "cpu"].__code__, "+= x[i, k] * w[k, j]")
    made = Code(say("the loop that is made for multiply"), loop, {len(loop) - 1}, link(multiply))
    k, u = walk.weight
    at = k * result[1] + u
    nth = next(n for n, x in enumerate(back["reads"]) if x is walk.places["gradient"][0])
    numbers = [
        Number("x", f"x[0, {k}]", float(forward["reads"][0].data[0, k])),
        Number("w", f"w[{k}, {u}]", float(forward["reads"][1].data[k, u])),
        Number("sum", f"out[0, {u}]", planned_again(walk, "sum")),
        Number("rate", f"x{1 - nth}[0]", float(back["reads"][1 - nth].data.flat[0])),
        Number("gradient", f"x{nth}[{at}]", float(back["reads"][nth].data[k, u])),
        Number("change", f"out[{at}]", planned_again(walk, "change")),
    ]
    made_of = say(" and ").join(str([*shape]) if shape else say("a single number") for shape in shapes)
    told = say(TOLD["2"], shape=[*forward["self"].spec.shape], shapes=made_of, count=len(walk.eager.calls["Plan.run"]))
    start = walk.source(run_of(walk, "change"), "self.compiled or")
    return Stage(
        "2", say("plan and launch"), told, [product, made, walk.lines_of(multiply), start], numbers, say("op by op")
    )


def compiled_program(walk):
    """The stage of the step's graph as a row program, and of its launch."""
    call = walk.compiled.last("RowProgram.launch")
    known = call.known
    made = call.known["self"]
    steps, rows, _ = known["sizes"]
    kernel = walk.compiled.calls["Dense.call"][0].known["self"].kernel
    numbers = [
        Number("w", say("the variable before"), walk.compiled.before[kernel][walk.weight], words=True),
        Number("loss", "outs[0]", known["outs"][0].numpy().flat[0]),
        Number("new w", say("the variable after"), kernel.numpy()[walk.weight], words=True),
    ]
    when = {"before": say("before the rows"), "row": say("for each row")}
    when |= {"sum": say("sums over the rows"), "after": say("after the rows")}
    optimizer = walk.compiled.last("Optimizer.apply_gradients").known["self"]
    nodes = {part: [] for part in when}
    counter = walk.program.graph.updates[optimizer.iterations]
    for x in walk.program.graph.ops:
        nodes[walk.program.parts[x]].append(say("{op} (it counts the steps)", op=x.op) if x is counter else x.op)
    listed = [f"{when[part]}: {', '.join(ops)}" for part, ops in nodes.items() if ops]
    parts = next(p for p in walk.index if p.name == "row_parts")
    graph = Code(
        say("the ops of the graph, sorted"),
        listed,
        {k for k, text in enumerate(listed) if text.startswith(when["after"])},
        link(parts),
    )
    told = say(
        TOLD["3b"], steps=steps, rows=f"{rows:,}", count=len(made.program.words) - 2, variables=len(made.variables)
    )
    return Stage(
        "3b",
        say("the program"),
        told,
        [graph, walk.source(call, "self.program.run(")],
        numbers,
        say("in fit, launched once a pass"),
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
        Number("x", say("of this turn's row"), program.values[walk.registers["x"]], words=True),
        Number("share", say("added to the loss"), program.values[walk.registers["share"]], words=True),
        Number("before", say("the running sum, `{slot}`", slot=slot), before, words=True),
        Number("x·slope", say("is added to it"), program.values[walk.registers["x·slope"]], words=True),
        Number("after", say("the running sum, `{slot}`", slot=slot), after, words=True),
        Number("gradient", say("the sum after all turns"), program.values[walk.registers["gradient"]], words=True),
    ]
    told = say(TOLD["1a"], turn=1, rows=len(walk.task.batches[0]))
    codes = [write, Code(say("the loop, as LLVM reads it"), shown, marked)]
    return Stage("1a", say("the loop"), told, codes, numbers, say(COMPILED))


def llvm_text(walk):
    program = walk.program
    numbers = []
    for quantity in (*FORWARD, *BACK):
        if register := walk.registers.get(quantity):
            numbers.append(Number(quantity, program.line(register), program.values[register]))
    at = {quantity: program.at[register] for quantity, register in walk.registers.items() if register}
    codes = [
        Code(say("forward: x · w"), *excerpt(program.text, [at["x·w"]])),
        Code(say("the update, and the store"), *excerpt(program.text, [at["change"], at["new w"], store_line(walk)])),
        walk.lines_of(next(p for p in walk.index if (p.name, p.room) == ("arithmetic", "values")), "a.write("),
    ]
    change = walk.registers["change"]
    new = walk.registers["new w"]
    told = say(TOLD["1b"], change=change, new=new)
    return Stage("1b", say("LLVM text"), told, codes, numbers, say(COMPILED))


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
        (say("forward: x · w"), [at["x·w"]]),
        (say("the update, and the store"), [at["change"], at["new w"], store]),
    ):
        if found := [k for k in marked if k is not None]:
            codes.append(Code(title, *excerpt(listing, found)))
    codes.append(walk.source(hardware_program.Program.__init__.__code__, "machine_code("))
    told = say(TOLD["1c"], processor=program.processor)
    if any("%xmm" in line for line in listing):
        told += say(TOLD["1c registers"])
    if any("(%rsp)" in line for line in listing):
        told += say(TOLD["1c stack"])
    merged = [
        say(MEANS[q]) for q in (*FORWARD, *BACK) if walk.registers.get(q) and q not in {n.quantity for n in numbers}
    ]
    if merged:
        told += say(TOLD["1c merged"], those="; ".join(merged))
    told += say(TOLD["1c end"])
    return Stage("1c", say("the instruction"), told, codes, numbers, say(COMPILED))


STAGES: list[Callable] = [fit, train_step, layer, op, plan, compiled_program, loop, llvm_text, instruction]
UP = {k: k - 1 for k in range(1, 9)} | {5: 3}  # from the program up to the op, because the plan runs only op by op
DOWN = {k: k + 1 for k in range(8)} | {3: 5}
ASIDE = 4  # the index of the stage that runs only op by op
