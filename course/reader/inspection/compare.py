"""The levels side by side: the code of each for the same task, and what a step costs."""

import collections
import importlib
import inspect
import re
import statistics
import sys
import time
import timeit
from typing import Any, NamedTuple

import numpy as np

from course.reader import reference
from course.reader.figures import LEVELS
from course.reader.inspection.comparison import Comparison, Row, here, score_of
from course.reader.inspection.marks import line_counts, read
from course.reader.notebooks.names import level_of
from course.reader.notebooks.running import WATCHED


def by_level(tasks):
    """{level: task function}, lowest level first. 0 is plain Python. A notebook's function has the notebook's level.

    Raises ValueError for two functions of one level, and for a function on no level (or in no notebook)."""
    found = {}
    for task in tasks:
        package, *rooms = task.__module__.split(".")
        if package == "levels":
            place = rooms[0]
        elif package == "course":
            place = rooms[-1]
        else:
            place = level_of(WATCHED[0]) if WATCHED else None
        if place not in ("reference", *LEVELS):
            raise ValueError(
                f"{task.__module__}.{task.__name__} is on no level; the levels are reference, {', '.join(LEVELS)}"
            )
        level = ("reference", *LEVELS).index(place)
        if level in found:
            raise ValueError(f"two functions are on level {level}, {place}; pass one per level")
        found[level] = task
    return dict(sorted(found.items()))


def by_op(train, task):
    """Train once, and print the time of a step's launches for each op. It times the `launch` in train's globals."""
    names = train.__globals__
    spent = {}
    launch = names["launch"]

    def timed(op, *given, **attrs):
        start = time.perf_counter()
        result = launch(op, *given, **attrs)
        spent.setdefault(op, []).append((time.perf_counter() - start) * 1e6)
        return result

    names["launch"] = timed
    try:
        start = time.thread_time()  # excludes the time in which other programs use the core
        train(task.x, task.y, task.weights, task.batches, task.learning_rate)
        whole = (time.thread_time() - start) / len(task.batches) * 1e6
    finally:
        names["launch"] = launch
    counts = {op: round(len(times) / len(task.batches)) for op, times in spent.items()}
    typical = {op: statistics.median(times) for op, times in spent.items()}
    for op, count in counts.items():
        print(f"{op:10} {count} x {typical[op]:.1f} µs")
    total = sum(counts[op] * typical[op] for op in counts)
    print(f"{sum(counts.values())} launches {total:.1f} µs, a whole step {whole:.1f} µs of processor time")


class Version(NamedTuple):
    """A row of the comparison before it has run: the function as written, the function that runs it, and its task."""

    name: str
    level: int
    written: Any
    train: Any
    task: Any

    def run(self, steps=None):
        x, y, _, _, weights, batches, rate, *_ = self.task
        return self.train(x, y, weights, batches[:steps], rate)


def versions(task, functions, last):
    """The versions of these functions, and level 1's Fit of the steps before the `last` ones (None if there are none).

    Versions that run op by op take only the last steps, and start from the weights of that Fit."""
    way = len(task.batches) - last
    end = task
    before = None
    if way > 0:
        machine_code = functions.get(1) or ground(functions[max(functions)].__name__)
        before = Version("", 1, machine_code, machine_code, task).run(way)
        end = task._replace(weights=before.weights, batches=task.batches[-last:])
    kinds = {
        0: [("0 plain Python", in_plain_python, end)],
        1: [("1 float64", unchanged, task), ("1 float32", unchanged, in_float32(task))],
        2: [("2", unchanged, end)],
        3: [("3 eager", op_by_op, end), ("3 compiled", unchanged, task)],
        4: [("4", unchanged, task)],
        5: [("5", unchanged, task)],
    }
    todo = [Version(name, k, f, how(f), given) for k, f in functions.items() for name, how, given in kinds[k]]
    return todo, before


def unchanged(train):
    return train


def near(train, name):
    """Look up a name in the task function's module (in a notebook, the notebook), or else in its level's package."""
    module = inspect.getmodule(train)
    return getattr(module if hasattr(module, name) else importlib.import_module(module.__package__), name)


def ground(name):
    """Look up a name of level 1: in `levels.hardware` or, if level 1's own notebook runs, in the notebook."""
    here = WATCHED and level_of(WATCHED[0]) == LEVELS[0]
    return getattr(sys.modules["__main__"] if here else importlib.import_module("levels.hardware"), name)


def in_float32(task):
    """The same task with its numbers rounded to float32."""
    x, y, x_test, y_test = (array.astype("f4") for array in task[:4])
    return task._replace(x=x, y=y, x_test=x_test, y_test=y_test, weights=[w.astype("f4") for w in task.weights])


def in_plain_python(train):
    """Wrap a function of `reference` so that it has the signature of a level's and uses the course's exp and log."""
    Fit, exp, log = map(ground, ("Fit", "exp", "log"))
    own = {"exp": exp, "log": log} if "exp" in inspect.signature(train).parameters else {}

    def answer(row, weights):
        *hidden, w, b = weights
        for w_, b_ in zip(hidden[::2], hidden[1::2], strict=True):
            row = [0.0 if z <= 0.0 else z for z in reference.layer(row, w_, b_)]
        (z,) = reference.layer(row, w, b)
        return [1.0 / (1.0 + exp(0.0 - z)) if hidden else z]

    def run(x, y, weights, batches, learning_rate):
        losses, weights = train(x, y, weights, batches, learning_rate, **own)
        return Fit(np.array(losses), weights, lambda x: np.array([answer(row, weights) for row in x.tolist()]))

    return run


def op_by_op(train):
    """Wrap a function of level 3 so that it runs op by op, with nothing compiled."""
    tape_of = near(train, "GradientTape")

    def run(*arguments):
        with tape_of() as tape:  # (under a tape, and not just in `eager()`, levels_more compiles no backward walk)
            tape.records = collections.deque(maxlen=0)  # it keeps nothing
            return train(*arguments)

    return run


def measure(task, *functions, last=None, repeats=3):
    """Train on one task in all versions, measure their times in turns on one thread, and return a Comparison.

    functions: the task's function on any levels (for plain Python, that of `reference`). The rows 0, 2 and 3 eager run
    op by op: they take only the `last` steps themselves (None: all), starting from weights trained by level 1.
    `traffic` defines a launch, and `predicted` the predicted time. Raises ValueError like `by_level`.
    """
    todo, before = versions(task, by_level(functions), min(last or len(task.batches), len(task.batches)))
    costs = [traffic(version) for version in todo]  # compiles what is compiled on first use, before the times are taken
    fits, times = run_in_turns(todo, repeats)
    rows = []
    for version, (launches, nbytes) in zip(todo, costs, strict=True):
        name = version.name
        fit = fits[version.name]
        one, whole = times[version.name]
        own = len(fit.losses)
        guess = predicted(version, launches, nbytes, small_launch(version) or one)
        losses = fit.losses if own == len(task.batches) else np.concatenate([before.losses, fit.losses])
        code = read(version.written)
        what = name, version.level, code, *line_counts(code)
        rows.append(Row(*what, launches, nbytes, guess, whole / own, losses, own, score_of(version, fit)))
    return Comparison(task.title, rows, here())


LONG = 0.1  # seconds: a run of many steps that takes as long is timed once, because it is a mean already


def run_in_turns(todo, repeats):
    """{name: Fit} and {name: (median seconds of a run of one step, of a run of all steps)} of all versions."""
    from levels.support.measure import seconds

    fits = {}
    times = {version.name: ([], []) for version in todo}
    for _ in range(repeats):
        for version in todo:
            one, all_steps = times[version.name]
            if all_steps and all_steps[-1] > LONG:
                continue
            one.append(seconds(lambda: version.run(1), 1))  # noqa: B023 - called at once
            all_steps.append(seconds(lambda: fits.update({version.name: version.run()}), 1))  # noqa: B023
    return fits, {name: tuple(map(statistics.median, both)) for name, both in times.items()}


def traffic(version):
    """The launches of a step, and the bytes that they read and write.

    In rows 2 and 3 eager each launch runs a kernel. In plain Python a launch is one operation with two operands and a
    result, 8 bytes each. A program runs all steps in one launch, and reads the rows of each batch and their numbers.
    """
    x = version.task.x
    steps, batch = version.task.batches.shape
    if version.level == 0:
        operations = batch * operations_a_row(version)
        return operations, operations * 3 * 8
    if version.level >= 2:
        here = version.level == 2
        counted = near(version.written, "counted") if here else importlib.import_module("levels.kernels").counted
        version.run(1)  # in the first run a quicker kernel may replace a plan already counted
        one, few = counted(lambda: version.run(1))
        two, more = counted(lambda: version.run(2))
        if two > one:
            return two - one, more - few
    return 1 / steps, batch * ((x.shape[1] + 1) * x.itemsize + 8)


def operations_a_row(version):
    """The additions, subtractions, multiplications and divisions per row, in level 1's program for the task."""
    one_row = {"linear_regression": "line_row", "dnn_classifier": "net_row"}[version.written.__name__]
    return operations(program_of(ground(one_row), version.task))


def program_of(one_row, task, dtype="f8"):
    """Level 1's program that trains a task. `one_row` writes what a row does: level 1's `line_row` or `net_row`."""
    a = ground("Assembler")("train", dtype)
    ground("write_steps")(a, one_row, [w.shape for w in task.weights])
    return a.assemble()


def operations(program):
    """The additions, subtractions, multiplications and divisions in the innermost loop of a program of level 1."""
    inner = program.text.split("%next")[0].split("\nbody")[-1]
    return len(re.findall(r"= f(?:add|sub|mul|div) ", inner))


def program_cost(train, program, task, fit, predicted):
    """Print what a task costs on level 1: its lines, and of a step the launches, operations, bytes and microseconds.

    `predicted` is in seconds, and `fit` is what `train` returned. The measured time has no checks and no copies.
    """
    steps, batch = task.batches.shape
    lines, _ = line_counts(read(train))
    flops = batch * operations(program)
    nbytes = batch * ((task.x.shape[1] + 1) * task.x.itemsize + 8)
    measured = step_time(program, task)
    print(f"{task.title}: {lines} lines, last loss {fit.losses[-1]:.4g}")
    print("launches per step   operations   bytes per step   µs predicted   µs measured")
    row = f"{f'1 in {steps:,}':>17}   {flops:10,}   {nbytes:14,}"
    print(f"{row}   {predicted * 1e6:12.3g}   {measured * 1e6:11.3g}")


def step_time(program, task, batch=None, steps=5000):
    """Seconds per step of level 1's training program, in one call of `steps` steps, without its checks and copies."""
    from levels.support.measure import seconds

    cpu = ground("pool")()["cpu:0"]
    rows = task.batches[:steps, :batch]
    numbers = dict(x=task.x, y=task.y) | {f"w{k}": w for k, w in enumerate(task.weights)}
    given = {name: cpu.put(array.astype(program.dtype)) for name, array in numbers.items()}
    given |= dict(batches=cpu.put(rows), losses=cpu.alloc((len(rows),), program.dtype))
    return seconds(program.bind(rate=0.0005, **given)) / len(rows)


def small_launch(version):
    """The least seconds of a small launch in a version that has many launches per step; None for other versions."""
    if version.level == 0:
        two = [1.0, 1.0]
        run, launches = lambda: reference.dot(two, two), 4  # two products, two sums
    elif version.level == 2:
        launch, cpu = near(version.written, "launch"), ground("pool")()["cpu:0"]
        one, out = cpu.put(np.ones((1, 1))), cpu.alloc((1, 1), "f8")
        run, launches = lambda: launch("add", out, one, one), 1
    elif version.name == "3 eager":
        ten = near(version.written, "constant")(np.ones((10, 1)))
        run, launches = lambda: ten + ten, 1
    else:
        return None
    return min(timeit.repeat(run, number=1000, repeat=5)) / 1000 / launches


def predicted(version, launches, nbytes, price):
    """Predict the seconds of a step: launches · price + max(flops / peak, bytes / bandwidth), as on level 1.

    The price is the time of a small launch. For a program with one launch it is the time of a run of a single step:
    checks, tracing, assembling. The peak is that of one lane of float64: a row uses no more.
    """
    from levels.support.measure import lane_peak

    flops = version.task.batches.shape[1] * operations_a_row(version)
    return launches * price + max(flops / lane_peak(), nbytes / ground("pool")()["cpu:0"].bandwidth)
