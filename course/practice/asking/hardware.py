"""What the checks of notebook 01 ask."""

from functools import partial

import numpy as np

from course.practice.asking import question


@question
def centred(mine, said, x):
    """Two arrays x and y[rows, columns] after the program ran on them; y held no numbers."""
    cpu = mine["pool"]()["cpu:0"]
    a = mine["Assembler"]("centre", "f8")
    mine.call(said, mine.function, a, a.array("x", "rows", x.shape[1]), a.array("y", "rows", x.shape[1]))
    program = mine.call(said, a.assemble)
    x, y = cpu.put(x), cpu.put(np.full(x.shape, np.nan))
    mine.call(said, program, x=x, y=y)
    return x.numpy(), y.numpy()


def loss(w, pull):
    return float((pull * w * w).sum() + 3.0 * w[0, 0] * w[-1, -1])


@question
def nudged_slopes(mine, said, pull, w):
    """The slopes, and w afterwards."""
    return mine.call(said, mine.function, partial(loss, pull=pull), w), w


@question
def turned(mine, said, x, blocks, threads, order):
    """x after a launch."""

    def kernel(x):
        mine.function(x)

    mine.call(said, mine["launch_kernel"], kernel, blocks, threads, x, order=order)
    return x
