"""Time the core alone, without `levels_more`: a step of both tasks on each level, as a ratio to a NumPy addition.

`python3 -m course.author.bench.core` prints a table. One unit is `v + v` for three numbers, timed in turns with each
row, on this thread's clock, so that two versions of the core can be compared: run both, in turns, and divide.
"""

import statistics
import time

import numpy as np

from course.reader import tasks

UNIT = np.ones(3)
LOOPS = 20_000  # additions for each measurement of the unit
ROUNDS = 7


def unit():
    """Return the seconds for one addition."""
    start = time.thread_time()
    for _ in range(LOOPS):
        UNIT + UNIT
    return (time.thread_time() - start) / LOOPS


def ratio(run, steps):
    """Return the time of a step of `run`, in additions: the median of ROUNDS measurements, each beside its own unit."""
    run()  # compiles
    found = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        run()
        found.append((time.thread_time() - start) / steps / unit())
    return statistics.median(found)


def trained(level, name, steps, single=False):
    """Return a function that trains `steps` steps of a task on one level; `single`: in float32."""
    task = tasks.linear() if name == "linear_regression" else tasks.rings()
    dtype = "f4" if single else "f8"
    x, y, *weights = [array.astype(dtype) for array in (task.x, task.y, *task.weights)]
    train = getattr(level.tasks, name)
    return lambda: train(x, y, weights, task.batches[:steps], task.learning_rate)


def op_by_op(low_level, name):
    """Return a function that trains 100 steps of a task on level 3, with nothing compiled."""
    run = trained(low_level, name, 100)

    def eagerly():
        with low_level.eager():
            run()

    return eagerly


def called(low_level, name):
    """Return a function that calls a compiled step of a task, a `function`, for 200 batches."""
    task = tasks.linear() if name == "linear_regression" else tasks.rings()
    variables = [low_level.Variable(w) for w in task.weights]
    batches = [[low_level.constant(array[rows]) for array in (task.x, task.y)] for rows in task.batches[:200]]

    @low_level.function
    def step(rows, target):
        with low_level.GradientTape() as tape:
            if name == "linear_regression":
                error = rows @ variables[0] + variables[1] - target
                loss = low_level.reduce_mean(error * error)
            else:
                p = low_level.tasks.dnn(rows, variables)
                c = low_level.clip(p, 1e-7, 1.0 - 1e-7)
                each = target * low_level.log(c) + (1.0 - target) * low_level.log(1.0 - c)
                loss = -low_level.reduce_mean(each)
        for w, dw in zip(variables, tape.gradient(loss, variables), strict=True):
            w.assign(w - task.learning_rate * dw)
        return loss

    return lambda: [step(*batch) for batch in batches]


def rows():
    """Yield (what is timed, a function, its steps)."""
    from levels import hardware, high_level, kernels, low_level, mid_level

    for name, title in (("linear_regression", "line"), ("dnn_classifier", "net")):
        yield f"1 {title}", trained(hardware, name, 4000), 4000
        yield f"1 {title}, float32", trained(hardware, name, 4000, True), 4000
        yield f"2 {title}", trained(kernels, name, 200), 200

        yield f"3 {title}, eager", op_by_op(low_level, name), 100
        yield f"3 {title}, a call of a function", called(low_level, name), 200
        yield f"3 {title}, over", trained(low_level, name, 4000), 4000
        yield f"4 {title}", trained(mid_level, name, 4000), 4000
        yield f"5 {title}, fit", trained(high_level, name, 4000), 4000


if __name__ == "__main__":
    for title, run, steps in rows():
        print(f"{title:32} {ratio(run, steps):9.3g}", flush=True)
