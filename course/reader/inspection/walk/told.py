"""What the stages of the walk say, in words. Values are filled in, and a translation can take their place."""

from course.reader.language import later

TOLD = {
    "5a": later(
        "This `fit` has one batch of {rows} rows. Afterwards the weights have changed, and we have a loss. We "
        "follow one weight and one row: row {row} of the data, row {at} of the batch. `run_training` makes a "
        "`function` of `train_step`. A pass through the data is one call of its `over`."
    ),
    "5b": later(
        "A step has four parts: forward, loss, backward, update. The loss is the mean over the rows, and the "
        "gradient is the sum of the rows' parts. `fit` runs this code once, to trace it, on symbols that have a "
        "shape but no numbers. For the numbers of stages 5b, 4, 3a and 2 the step has been run again, op by op."
    ),
    "4": later(
        "Level 4 has three parts. The layer owns the weight, the loss measures the error, and the optimizer "
        "changes the weight: `descend` computes the new one, and `assign` gives it to the variable."
    ),
    "3a": later(
        "Each operator of a tensor, such as `@` or `*`, calls `apply`, the door: {count} ops in this step. The "
        "tape records the ops inside `with GradientTape()`. Its `gradient` goes back through this list and calls "
        "a rule for each, such as `_matmul_back_w`. **From here there are two ways.** The interpreter behind the "
        "tape decides which. The `Interpreter` launches the op at once (stage 2). In `fit` it is a `Trace`, which "
        "records the op as a node of a graph. The graph becomes a program (stage 3b)."
    ),
    "2": later(
        "`fit` comes this way only if its step cannot become a program. A plan is made once for each op and its "
        "shapes: it holds the shape of the result and what to launch. For `matmul`, which gives {shape}, that is "
        "a kernel of notebook 02. For the `multiply` of the update, which takes {shapes}, a loop is written "
        "around `x * y`. numba compiles both when they first run. Each op is a launch of its own, {count} in this "
        "step."
    ),
    "3b": later(
        "`fit` goes this way. Level 3 sorts the ops of the graph: those before the rows, for each row, sums over "
        "the rows, and those after them. It writes a program, once, as stages 1a to 1c show. Then each pass is "
        "one launch of it: `self.program.run` is given {steps} step, {rows} rows of data, and {count} addresses "
        "(the batches' row numbers, the losses, x, y, and {variables} variables). The results have the same bits "
        "as op by op."
    ),
    "1a": later(
        "Level 3's `StepWriter.write` runs once. It computes nothing, but calls level 1's assembler, which writes "
        "a loop over the steps, and in it a loop over the rows of a batch. In the program, our row is turn {turn} "
        "of {rows}. Each turn adds its part to the gradient. After the loop come the update, and the store of the "
        "new weights."
    ),
    "1b": later(
        "To write the program, level 3 calls the functions of the ops, such as `x * y` of stage 2, with registers "
        "instead of numbers. Each operator then writes a line of LLVM text. `fmul` computes {change}, the rate "
        "times the gradient. `fsub` computes {new}, the new weight. `store` writes it over the old one."
    ),
    "1c": later(
        "LLVM compiles the text to instructions, once, for the processor of this run ({processor}). Stage 3b "
        "calls their address. "
    ),
    "1c registers": later(
        "`%xmm6` is a register: it holds one number, and later another. The result comes last, so `vsubsd a, b, "
        "c` makes c = b - a. Parentheses are an address in memory. "
    ),
    "1c stack": later("Numbers for which no register is free lie on the stack, at `(%rsp)`. "),
    "1c merged": later(
        "These have no instruction of their own, because another instruction reads or computes them: {those}. "
    ),
    "1c end": later("Below this there is only hardware."),
}
