"""The cases of `Function.__call__`."""

from contextlib import contextmanager

import numpy as np

from course.reader.cases import Wrong, cases
from course.reader.cases.interpreting import all_interpreted
from course.reader.cases.low_level import computed
from course.reader.cases.plain_data import describe


@cases("03-Function.__call__")
@all_interpreted
def function_call(mine, draw):
    """The results of calls, and how often Python ran; inside a tape and a trace; then four training steps of a line."""
    with mine.placed("Function.__call__", "low_level"), programs_told(mine):
        from levels.low_level import GradientTape, Variable, apply, constant, eager, function, reduce_mean, trace

        def calls(said, python, *arguments):
            """The function's results for each of these arguments, and how often Python ran."""
            runs = []
            results = []

            def counted(*args):
                runs.append(len(args))
                return python(*args)

            one = function(counted)
            for args in arguments:
                result = mine.call(said, one, *args)
                results.append(numbers_told(said, result))
            return results, len(runs)

        def numbers_told(said, result):
            """A tensor as its numbers; a list or a tuple of them as a text; None as it is."""
            if isinstance(result, list | tuple):
                return repr(type(result)(numbers_told(said, each) for each in result))
            if result is not None and not hasattr(result, "numpy"):
                raise Wrong(f"{said} gives {describe(result)}, expected what Python returned: a tensor, here")
            return result if result is None else result.numpy().tolist()

        two = constant(2.0, "f8")
        three = constant(3.0, "f8")
        x = [constant(draw.normal(size=(rows, 2))) for rows in (10, 10, 4, 10)]
        w = Variable(np.array(3.0))

        def doubled(x):
            return x + x

        for said, python, arguments in (
            ("x + x for x = 2, 3, 2", doubled, [(two,), (three,), (two,)]),
            ("x + x for 10 rows, 10, 4 and 10", doubled, [(each,) for each in x]),
            ("x + x in float64, float32 and float64", doubled, [(two,), (constant(2.0, "f4"),), (three,)]),
            ("x + x for NumPy arrays", doubled, [(np.array(2.0),), (np.array(3.0),)]),
            ("x + x for a tensor, and for a variable that holds 3", doubled, [(two,), (w,)]),
            ("x * by for by = 2.0, 3.0, 2.0", lambda x, by: x * by, [(two, 2.0), (two, 3.0), (three, 2.0)]),
            ("how for how = 1, True", lambda x, how: x if how is True else x + x, [(two, 1), (two, True)]),
            ("x and y exchanged", lambda x, y: x - y, [(two, three), (three, two)]),
            ("nothing is returned", lambda x: None, [(two,), (three,)]),
            ("a tuple is returned", lambda x: (x + x, x * x), [(two,), (three,)]),
            ("a list of one is returned", lambda x: [x * x], [(two,), (three,)]),
        ):
            results, count = calls(said, python, *arguments)
            yield said, {f"call {k + 1}": each for k, each in enumerate(results)} | {"times that Python ran": count}

        once = function(doubled)
        said = "x + x, before and inside an open tape"
        mine.call(said, once, two)
        with GradientTape() as tape:
            y = mine.call(said, once, two)
        yield said, {"": y, "ops on the tape": " ".join(op for op, *_ in tape.records) or "none"}
        said = "f(x) * 2.0 with f(x) = x + x, traced"
        graph, _ = mine.call(said, trace, lambda x: apply("multiply", once(x), 2.0), (two.spec,))
        yield said, ", ".join(node.op for node in graph.nodes if node.inputs)
        with eager():
            results, count = calls("inside `with eager():`", doubled, (two,), (three,))
        yield "inside `with eager():`, two calls", {"": results, "times that Python ran": count}

        weights = Variable(draw.normal(size=(2, 1)))

        def step(x):
            with GradientTape() as tape:
                loss = reduce_mean((x @ weights - 1.0) * (x @ weights - 1.0))
            weights.assign(weights - 0.1 * tape.gradient(loss, weights))
            return loss

        losses, count = calls("four steps of a line", step, *((each,) for each in x))
        yield "four steps of a line", {"losses": losses, "times that Python ran": count, "weights": weights}


@contextmanager
def programs_told(mine):
    """Inside this context, the built level's functions run graphs op by op, and raise Wrong if arguments do not fit.

    A compiled program that gets arguments of another shape would read and write other memory.
    """
    from levels.low_level import DOOR, apply, functions, gather
    from levels.low_level.replay import _stacked

    class Program:
        """A back end that checks its arguments, and runs the graph op by op."""

        def __init__(self, graph, batch, over):
            self.graph = graph

        def run(self, args):
            for node in self.graph.nodes:
                given = args[node.source] if node.op == "input" else node
                if getattr(given, "spec", None) is not node.spec or not hasattr(given, "spec"):
                    told = getattr(given, "spec", None) or describe(given)
                    raise Wrong(f"{mine.said}: the program that was made for {node.spec} is run on {told}")
            before = DOOR.top
            DOOR.top = DOOR.bottom
            try:
                known = computed(mine.said, self.graph, args, apply)
                results = [apply("multiply", known[node], 1.0) for node in self.graph.outputs]
                for variable, node in self.graph.updates.items():
                    if node.spec is not variable.spec:
                        raise Wrong(f"{mine.said}: a variable {variable.spec} gets a new value {node.spec}")
                    variable.set_value(known[node].read_value() if hasattr(known[node], "read_value") else known[node])
                return results
            finally:
                DOOR.top = before

        def over(self, args, batches):
            return _stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    before = functions.BACK_ENDS[:]
    functions.BACK_ENDS[:] = [Program]
    try:
        yield
    finally:
        functions.BACK_ENDS[:] = before
