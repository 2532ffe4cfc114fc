"""The levels side by side: what each takes to write and to run for the same answer, and its code."""

import collections
import importlib
import inspect
import re
import statistics
import sys
import textwrap
import time
import timeit
from typing import Any, NamedTuple

import numpy as np

from course import reference
from course.builder.cells import code_lines
from course.builder.names import level_of
from course.builder.session import WATCHED
from course.figures import LEVELS, accuracy, r_squared
from course.inspection.comparison import Comparison, Row
from course.inspection.marks import functions_of, read


def by_level(tasks):
    """{level: task function}, from the ground up: 0 is plain Python, and a function of no module that of the notebook.

    Raises ValueError for two functions of one level, and for one of no module where no notebook runs."""
    found = {}
    for task in tasks:
        package, *rooms = task.__module__.split(".")
        place = rooms[0] if package in ("levels", "course") else level_of(WATCHED[0]) if WATCHED else None
        if place not in ("reference", *LEVELS):
            raise ValueError(
                f"{task.__module__}.{task.__name__} is on no level; the levels are reference, {', '.join(LEVELS)}"
            )
        level = ("reference", *LEVELS).index(place)
        if level in found:
            raise ValueError(f"two functions are on level {level}, {place}; pass one per level")
        found[level] = task
    return dict(sorted(found.items()))


def lines(*functions):
    """Lines of code of these functions: no blank line, no comment, no docstring."""
    return sum(code_lines(textwrap.dedent(inspect.getsource(function))) for function in functions)


def lines_of(task):
    """Lines of code of a task function and of all that it calls in its module, without the checks of its arguments."""
    return sum(code_lines(source) for name, source in functions_of(task).items() if not name.startswith("check_"))


def microseconds(train, task, steps=1000, repeats=5):
    """The median time of a step, over runs of that many steps."""
    task, times = task._replace(batches=task.batches[:steps]), []
    for _ in range(repeats):
        start = time.perf_counter()
        train(task.x, task.y, task.weights, task.batches, task.learning_rate)
        times.append(time.perf_counter() - start)
    return statistics.median(times) / len(task.batches) * 1e6


def cost(train, task, launches, nbytes, predicted, steps=1000):
    """Print what one step costs: launches, bytes, microseconds predicted (`predicted` is in seconds) and measured."""
    measured = microseconds(train, task, steps)
    print("launches per step   bytes per step   µs predicted   µs measured")
    print(f"{launches:17.4g}   {nbytes:14,.0f}   {predicted * 1e6:12.3g}   {measured:11.3g}")


def by_op(train, task):
    """Train once, and print what the launches of a step took, op by op: those that the function knows as `launch`."""
    names, spent = train.__globals__, {}
    launch = names["launch"]

    def timed(op, *given, **attrs):
        start = time.perf_counter()
        result = launch(op, *given, **attrs)
        spent.setdefault(op, []).append((time.perf_counter() - start) * 1e6)
        return result

    names["launch"] = timed
    try:
        start = time.thread_time()  # without the time that other programs have the core
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
    """One of the rows before it has run: the function as written, what calls it, and the task it is given."""

    name: str
    level: int
    written: Any
    train: Any
    task: Any

    def run(self, steps=None):
        x, y, _, _, weights, batches, rate, *_ = self.task
        return self.train(x, y, weights, batches[:steps], rate)


def versions(task, functions, last):
    """The versions of these functions, and level 1's Fit of the steps before the `last` ones (None: there are none).

    Versions that go op by op take the last steps alone, from where level 1 has come by then."""
    way, end, before = len(task.batches) - last, task, None
    if way > 0:
        machine_code = functions.get(1) or ground(functions[max(functions)].__name__)
        before = Version("", 1, machine_code, machine_code, task).run(way)
        end = task._replace(weights=before.weights, batches=task.batches[-last:])
    kinds = {
        0: [("0 plain Python", in_plain_python, end)],
        1: [("1 scalar", unchanged, task), ("1 SIMD", unchanged, in_float32(task))],
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
    """A name of the level on which a task function stands: of the open notebook, or of the level as it is built."""
    module = inspect.getmodule(train)
    return getattr(module if hasattr(module, name) else importlib.import_module(module.__package__), name)


def ground(name):
    """A name of level 1: as it is built, or, in the notebook that builds it, of the notebook."""
    here = WATCHED and level_of(WATCHED[0]) == LEVELS[0]
    return getattr(sys.modules["__main__"] if here else importlib.import_module("levels.hardware"), name)


def in_float32(task):
    """The same numbers, rounded to float32."""
    x, y, x_test, y_test = (array.astype("f4") for array in task[:4])
    return task._replace(x=x, y=y, x_test=x_test, y_test=y_test, weights=[w.astype("f4") for w in task.weights])


def in_plain_python(train):
    """A function of `reference` that is called like those of the levels, and has the course's own exp and log."""
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
    """The same function of level 3, with nothing compiled."""
    eager = near(train, "eager")

    def run(*arguments):
        with eager() as door:
            door.records = collections.deque(maxlen=0)  # hears each op and keeps none: no walk back becomes a program
            return train(*arguments)

    return run


def measure(task, *functions, last=None, repeats=3):
    """Train on one task in all versions and take the time, in turns and on one thread: a Comparison.

    functions: the task's function on any levels, that of `reference` for plain Python among them. The rows 0, 2 and 3
    eager go op by op. They take only the `last` steps themselves (None: all), from the weights that level 1 hands them.
    `traffic` says what a launch is, `predicted` how a time is predicted. Raises ValueError like `by_level`.
    """
    todo, before = versions(task, by_level(functions), min(last or len(task.batches), len(task.batches)))
    costs = [traffic(version) for version in todo]  # what is compiled on first use is compiled here
    fits, times = run_in_turns(todo, repeats)
    rows = []
    for version, (launches, nbytes) in zip(todo, costs, strict=True):
        name, fit, (one, whole) = version.name, fits[version.name], times[version.name]
        own = len(fit.losses)
        guess = predicted(version, launches, nbytes, small_launch(version) or one)
        losses = fit.losses if own == len(task.batches) else np.concatenate([before.losses, fit.losses])
        what = name, version.level, read(version.written), lines_of(version.written)
        rows.append(Row(*what, launches, nbytes, guess, whole / own, losses, own, score_of(version, fit)))
    return Comparison(task.title, rows)


def run_in_turns(todo, repeats):
    """{name: Fit} of all versions, and {name: the median seconds of a run of one step, and of all}."""
    seconds, fits, times = ground("seconds"), {}, {version.name: ([], []) for version in todo}
    for _ in range(repeats):
        for version in todo:
            one, all_steps = times[version.name]
            one.append(seconds(lambda: version.run(1), 1))  # noqa: B023 - called at once
            all_steps.append(seconds(lambda: fits.update({version.name: version.run()}), 1))  # noqa: B023
    return fits, {name: tuple(map(statistics.median, both)) for name, both in times.items()}


def traffic(version):
    """The launches of a step, and the bytes that they read and write.

    On levels 2 and 3 eager a launch is a kernel's. In plain Python it is an operation on two numbers, 8 bytes each,
    that gives a third. A program takes all steps in one launch, and reads the rows of each batch and their row numbers.
    """
    x, (steps, batch) = version.task.x, version.task.batches.shape
    if version.level == 0:
        operations = batch * operations_a_row(version)
        return operations, operations * 3 * 8
    if version.level >= 2:
        here = version.level == 2
        counted = near(version.written, "counted") if here else importlib.import_module("levels.kernels").counted
        version.run(1)  # in a first run a quicker kernel may take the place of a plan that has counted
        (one, few), (two, more) = counted(lambda: version.run(1)), counted(lambda: version.run(2))
        if two > one:
            return two - one, more - few
    return 1 / steps, batch * ((x.shape[1] + 1) * x.itemsize + 8)


def operations_a_row(version):
    """Additions, subtractions, multiplications and divisions of a row, as level 1's inner loop has them."""
    program = {"linear_regression": "line_program", "dnn_classifier": "net_program"}[version.written.__name__]
    shapes = tuple(w.shape for w in version.task.weights)
    return operations(ground(program)(np.dtype("f8"), shapes))


def operations(program):
    """Additions, subtractions, multiplications and divisions in the innermost loop of a program of level 1."""
    inner = program.text.split("\nagain")[0].split("\nbody")[-1]
    return len(re.findall(r"= f(?:add|sub|mul|div) ", inner))


def step_time(program, task, batch=None, steps=5000):
    """Seconds of a step of level 1's training program: one call for so many steps, without its checks and copies."""
    cpu, rows = ground("pool")()["cpu:0"], task.batches[:steps, :batch]
    names = ("w", "b") if len(task.weights) == 2 else ("w1", "b1", "w2", "b2", "w3", "b3")
    numbers = dict(x=task.x, y=task.y) | dict(zip(names, task.weights, strict=True))
    given = {name: cpu.put(array.astype(program.dtype)) for name, array in numbers.items()}
    given |= dict(batches=cpu.put(rows), losses=cpu.alloc((len(rows),), program.dtype))
    return ground("seconds")(program.bind(rate=0.0005, **given)) / len(rows)


def small_launch(version):
    """The least seconds of a small launch, where a step has many of them; else None."""
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
    """Seconds of a step: launches · price of one + max(flops / peak, bytes / bandwidth), as on level 1.

    The price is that of a small launch, and of a program's only one that of a run of a single step: checks, tracing and
    assembling. The peak is that of float32; in float64 a row takes one lane of it.
    """
    from levels.support.machine import host_lanes

    x, lanes = version.task.x, host_lanes()
    flops = version.task.batches.shape[1] * operations_a_row(version) * (lanes if x.dtype == np.float64 else 1)
    return launches * price + ground("pool")()["cpu:0"].roofline(flops, nbytes)


def score_of(version, fit):
    """How good the answers are on rows that no step has seen."""
    x, y = version.task.x_test, version.task.y_test
    if version.written.__name__ == "linear_regression":
        return f"R² {r_squared(y, fit.predict(x)):.3f}"
    return f"{accuracy(y, fit.predict(x)):.1%} right"
