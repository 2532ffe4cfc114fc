"""What the checks of notebook 01 ask."""

from functools import partial

import numpy as np

from course.practice.asking import cases, question


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


@cases("01-through_relu")
def through_relu(mine, draw):
    """On floats, and in a program, where no `if` can choose."""
    yield mine.on("d = [2.0], h = [1.0, 0.0], w = [[3.0], [5.0]]", [2.0], [1.0, 0.0], [[3.0], [5.0]])
    for units, following in ((1, 1), (3, 2), (9, 20)):
        d, h = draw.normal(size=following).tolist(), draw.normal(size=units).tolist()
        said = f"{units} units that feed {following}"
        yield mine.on(said, d, [max(0.0, each) for each in h], draw.normal(size=(units, following)).tolist())
    cpu, a = mine["pool"]()["cpu:0"], mine["Assembler"]("through", "f8")
    x, y = a.array("x", "rows", 5), a.array("y", "rows", 1)
    said = "in a program, for 1 unit that feeds 2"
    with a.loop("rows") as r:
        d0, d1, h, w0, w1 = (a.load(x, r, k) for k in range(5))
        (result,) = mine.call(said, mine.function, [d0, d1], [h], [[w0, w1]])
        mine.call(said, a.store, result, y, r, 0)
    program = mine.call(said, a.assemble)
    rows = np.vstack([[1.0, 2.0, 0.0, 3.0, 4.0], draw.normal(size=(5, 5))])
    x, y = cpu.put(rows), cpu.put(np.full((6, 1), np.nan))
    mine.call(said, program, x=x, y=y)
    yield said, y
