"""The cases of notebook 03 at the depth *most*: the trace and the replay."""

import numpy as np

from course.reader.cases import Wrong, cases
from course.reader.cases.at_most.functions import programs_told
from course.reader.cases.interpreting import all_interpreted
from course.reader.cases.low_level import computed, numbers
from course.reader.cases.plain_data import describe


@cases("03-trace")
@all_interpreted
def trace(mine, draw):
    """What a traced function's graph computes; which interpreter stands in the door afterwards; then both tasks."""
    constant = mine["constant"]
    variable = mine["Variable"]
    door = mine["DOOR"]
    w, b = variable(np.array(3.0), "w"), variable(np.array(1.0), "b")
    c, ten = constant(10.0, "f8"), np.array(10.0)

    def assigning(*values, result=lambda x: w):
        def python(x):
            for value in values:
                w.assign(value(x))
            return result(x)

        return python

    def making(x):
        made = variable(ten, "made here")
        return x * made

    def swapping(x):
        before = w.value
        w.assign(b)
        b.assign(before)
        return x

    for said, python, *more in (
        ("x + x, x = 2", lambda x: x + x),
        ("x * w + b, w = 3, b = 1", lambda x: x * w + b),
        ("x * w and x - w in a tuple", lambda x: (x * w, x - w)),
        ("a list of one result", lambda x: [x * x]),
        ("nothing is returned", lambda x: None),
        ("w is assigned x * w, and returned", assigning(lambda x: x * w)),
        ("w is assigned twice", assigning(lambda x: x * w, lambda x: w + x)),
        ("w is assigned the number 10.0", assigning(lambda x: ten, result=lambda x: x)),
        ("w is assigned what it is", assigning(lambda x: w)),
        ("w and b are exchanged", swapping),
        ("x * 4.0, with 4.0 as the second argument", lambda x, by: x * by, 4.0),
        ("a tensor from outside is returned", lambda x: c),
        ("Python makes a variable", making),
    ):
        yield said, traced(mine, said, python, constant(2.0, "f8"), *more)
    before = door.top
    with mine["GradientTape"]() as tape:
        said = "x + x, while a tape is open"
        mine.call(said, mine.function, lambda x: x + x, [c.spec])
        again = door.top is tape
        door.top = tape  # a tape that is not in the door cannot be closed
    yield said, {"the tape stands in the door again": again, "ops on the tape": len(tape.records)}

    def wrong(x):
        raise KeyError("in Python")

    said = "Python raises an error"
    found = mine.refused(said, KeyError, mine.function, wrong, [c.spec])
    yield said, {"": found, "the door is as before": door.top is before}
    with programs_told(mine):
        yield "3 steps of both tasks", mine.losses("trace", "low_level", 3)


def traced(mine, said, python, x, *more):
    """What the graph of a function computes for x, and what else `trace` returns."""
    result = mine.call(said, mine.function, python, (x.spec, *more))
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Wrong(f"{said} gives {describe(result)}, expected two: a graph, and what Python returned")
    graph, returned = result
    if not isinstance(graph, mine["Graph"]):
        raise Wrong(f"{said} gives {describe(graph)} first, expected a Graph")
    for node in (*graph.outputs, *graph.updates.values()):
        if not isinstance(node, mine["Node"]):
            raise Wrong(f"{said}: {describe(node)} stands among the results and new values, expected nodes")
    known = computed(said, graph, [x, *more], mine["apply"])
    return {
        "the results": [float(known[node].numpy()) for node in graph.outputs],
        "the new values": ", ".join(f"{v.name} {float(known[node].numpy()):g}" for v, node in graph.updates.items())
        or "none",
        "what Python returned": describe(returned),
    }


@cases("03-Replay.run")
@all_interpreted
def replay_run(mine, draw):
    """The results of graphs, their variables and locks afterwards; then five training steps of a line."""
    constant = mine["constant"]
    variable = mine["Variable"]
    trace = mine["trace"]
    x, y = constant(2.0, "f8"), constant(5.0, "f8")
    w, b = variable(np.array(3.0), "w"), variable(np.array(1.0), "b")

    def swapping(x, y):
        before = w.value
        w.assign(b)
        b.assign(before)
        return w + x

    def adding(x, y):
        w.assign(w + x)
        return w * y

    for said, python in {
        "x + x, x = 2, y = 5": lambda x, y: x + x,
        "y alone is read": lambda x, y: y * y,
        "x * w + b, w = 3, b = 1": lambda x, y: x * w + b,
        "x * w and x - y in a tuple": lambda x, y: (x * w, x - y),
        "nothing is returned": lambda x, y: None,
        "1.0 - x": lambda x, y: 1.0 - x,
        "clip(x * y, 0.0, 7.0)": lambda x, y: mine["clip"](x * y, 0.0, 7.0),
        "w becomes w + x, and w * y is returned": adding,
        "w and b are exchanged": swapping,
        "x itself is returned": lambda x, y: x,
    }.items():
        w.assign(np.array(3.0))
        b.assign(np.array(1.0))
        replay, held = listening(mine, mine["dce"](trace(python, (x.spec, y.spec))[0]))
        with mine["GradientTape"]() as tape:
            results = mine.call(said, replay.run, [x, y])
        if not isinstance(results, list | tuple):
            raise Wrong(f"{said} gives {describe(results)}, expected a list of tensors")
        again = mine.call(said + ", a second time", replay.run, [x, y])
        yield (
            said,
            {
                "": [numbers(mine, said, each) for each in results],
                "a second time": [numbers(mine, said, each) for each in again],
                "w and b then": [float(w.numpy()), float(b.numpy())],
                "results that are the argument x itself": sum(each is x for each in results),
                "ops that passed the door": len(tape.records),
                "the lock is held while an op runs": all(held),
                "the lock is held afterwards": replay.lock.locked(),
            },
        )
    replay, _ = listening(mine, trace(lambda x, y: x + y, (x.spec, y.spec))[0])

    said = "x + y, but y is missing among the arguments"
    found = mine.refused(said, IndexError, replay.run, [x])
    yield said, {"": found, "the lock is held afterwards": replay.lock.locked()}
    rows, target = constant(draw.normal(size=(4, 2))), constant(draw.normal(size=(4, 1)))
    weights = variable(draw.normal(size=(2, 1)), "weights")

    def step(rows, target):
        with mine["GradientTape"]() as tape:
            error = rows @ weights - target
            loss = mine["reduce_mean"](error * error)
        weights.assign(weights - 0.1 * tape.gradient(loss, weights))
        return loss

    said = "five steps of a line"
    replay, _ = listening(mine, trace(step, (rows.spec, target.spec))[0])
    losses = [mine.call(said, replay.run, [rows, target])[0] for _ in range(5)]
    yield said, {"the losses": [*map(float, losses)], "the weights": weights}


def listening(mine, graph):
    """A Replay of this graph with the reader's `run`, and a list of whether the lock is held, one entry for each op."""
    replay = mine.inside("Replay")(graph)
    held = []

    class Plan:
        """A plan that notes whether the lock is held when it runs."""

        def __init__(self, plan):
            self.plan = plan
            self.spec = plan.spec

        def result(self, *how):
            held.append(replay.lock.locked())
            return self.plan.result(*how)

    class Lock:
        """A lock that raises Wrong if an ordinary lock would wait for ever."""

        taken = False

        def acquire(self, *_):
            if self.taken:
                raise Wrong(f"{mine.said}: the lock is taken again, and was never freed: write `with self.lock:`")
            self.taken = True

        def release(self):
            self.taken = False

        def locked(self):
            return self.taken

        def __enter__(self):
            self.acquire()

        def __exit__(self, *_):
            self.release()

    replay.plans = [(node, Plan(plan)) for node, plan in replay.plans]
    replay.lock = Lock()
    return replay, held
