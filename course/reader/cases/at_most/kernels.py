"""The cases of the functions of notebook 02 that a reader writes at the depth *most* only."""

from contextlib import contextmanager

import numpy as np

from course.reader.cases import Solution, Wrong, cases
from course.reader.cases.drawn import drawn
from course.reader.cases.interpreting import interpreted
from course.reader.cases.kernels import compiler
from course.reader.cases.plain_data import describe


@contextmanager
def as_python():
    """Inside this context, the built level's kernels run as Python, with new plans. Its own are restored afterwards."""
    from levels.kernels import PLANS

    with interpreted():
        PLANS.clear()
        yield


def compiled(mine, said, function, out, *arguments):
    """Compile a kernel with bounds checks and run it: a wrong index reads and writes nothing outside its arrays."""
    mine.patience = 6
    program = mine.call(said, compiler(), function, out.dtype, boundscheck=True)
    mine.call(said, program, out, *arguments)
    mine.patience = 1


def in_memory(*rows, dtype="f8"):
    """Buffers on cpu:0 that hold these numbers."""
    from levels.hardware import pool

    return [pool()["cpu:0"].put(np.array(row, dtype)) for row in rows]


@cases("02-launch")
def launch(mine, draw):
    """What launches of the built level return, and what `out` holds afterwards; then both tasks."""
    with as_python(), mine.placed("launch", "kernels"):
        from levels.kernels import counted, registry

        def launched(said, *arguments, **attrs):
            try:
                return mine.call(said, registry.launch, *arguments, **attrs)
            except Wrong as wrong:
                if "may overwrite no input" in str(wrong) and 'launch("sgd", w' in said:
                    raise Wrong(f"{said}: an op of UPDATES reads `out` first, and then the inputs") from None
                raise

        x, y, out, w, longer = in_memory([1, 2], [10, 20], [7, 7], [1, 2], [7, 7, 7])
        said = 'launch("add", None, x, y) of x = [1, 2] and y = [10, 20]'
        yield said, launched(said, "add", None, x, y)
        said, (rows,) = 'launch("reduce_sum", None, x, axis=1) of x = [[1, 2], [3, 4]]', in_memory([[1, 2], [3, 4]])
        yield said, launched(said, "reduce_sum", None, rows, axis=1)
        said = 'launch("add", out, x, y) of x = [1, 2] and y = [10, 20]'
        given = launched(said, "add", out, x, y)
        yield said, {"": given, "then out holds": out, "it gives `out` itself": given is out}
        said = 'launch("sgd", None, w, dw, rate=0.5) of w = [1, 2] and dw = [10, 20]'
        yield said, {"": launched(said, "sgd", None, w, y, rate=0.5), "then w holds": w}
        said = 'launch("sgd", w, dw, rate=0.5) of w = [1, 2] and dw = [10, 20]'
        given = launched(said, "sgd", w, y, rate=0.5)
        yield said, {"": given, "then w holds": w, "it gives `w` itself": given is w}
        said, plans = 'launch("subtract", None, x, y) and launch("subtract", out, x, y)', len(registry.PLANS)
        launches, nbytes = counted(lambda: [launched(said, "subtract", each, x, y) for each in (None, out)])
        counts = {"launches that `counted` finds": launches, "bytes": nbytes}
        yield said, {"new plans in PLANS": len(registry.PLANS) - plans} | counts
        said = 'launch("add", out, x, y) with room for three numbers in out, and two numbers in x and y'
        yield said, mine.refused(said, Exception, registry.launch, "add", longer, x, y)
        said = 'launch("ad", None, x, y)'
        yield said, mine.refused(said, Exception, registry.launch, "ad", None, x, y)
    with as_python():
        yield "20 steps of both tasks", mine.losses("launch", "kernels")


SHAPES = (  # of a result, and of the inputs that give it
    ((2, 3), (2, 3), (2, 3)),
    ((2, 3), (2, 3), (1, 1)),
    ((10, 4), (10, 4), (1, 4)),
    ((10, 4), (10, 1), (1, 4)),
    ((10, 4), (10, 4), (4,)),
    ((10, 4), (4,), (10, 4)),
    ((10, 4), (1, 4)),
    ((2, 3, 4), (3, 1), (2, 1, 4)),
    ((2, 3), (), (1, 3), (2, 1)),
    ((1, 4), (1, 4), (4,)),
    ((1, 1), (1,), (1, 1)),
    ((), (), ()),
    ((5,), (5,), ()),
    ((0, 3), (0, 3), (1, 3)),
    ((2, 1, 3, 2, 2, 3), (2, 1, 1, 2, 1, 3), (2, 3)),
)


@cases("02-places_of")
def places_of(mine, draw):
    """The places for many shapes; then both tasks."""
    for shape, *shapes in SHAPES:
        told = f"a result of shape {shape}, from {' and '.join(map(str, shapes))}"
        yield mine.on(told, shape, shapes)
    with as_python():
        yield "20 steps of both tasks", mine.losses("places_of", "kernels")


@cases("02-loop_source")
def loop_source(mine, draw):
    """What the loop in the written source computes; then both tasks."""
    row = np.array([1.0, 2.0])
    other = np.array([10.0, 20.0])
    matrix = np.array([[10.0, 20.0], [30.0, 40.0]])

    def add(x, y):
        return x + y

    def minus(x, y, z):
        return x - y - z

    yield looped(mine, add, ["i", "i", "i"], [row, other])
    yield looped(mine, add, ["i", "i", "0"], [row, other[:1]])
    yield looped(mine, add, ["i, j", "i, j", "0, j"], [matrix, row[None]])
    yield looped(mine, add, ["i, j", "i, 0", "j"], [matrix[:, :1], row])
    yield looped(mine, minus, ["i", "i", "0", "i"], [other, row[:1], row])
    types = []

    def sgd(w, dw, rate):
        types.append(type(rate).__name__)
        return w - rate * dw

    said, value = looped(mine, sgd, ["i", "i", "i"], [row.astype("f4"), other.astype("f4")], rate=0.1)
    yield said, {"": value, "the class of the rate that it is called with": types[-1] if types else "it is not called"}

    def clip(x, low, high):
        return min(max(x, low), high)

    yield looped(mine, clip, ["i", "i"], [draw.normal(size=5)], low=-0.5, high=0.25)
    told = {}

    def backwards(places, line):
        told.update(places)
        return ["for i in reversed(range(len(out))):", f"    {line}"]

    said, value = looped(mine, add, ["i", "i", "i"], [row, other], around=backwards)
    places = "; ".join(f"{array}: {place}" for array, place in told.items()) or "it is not called"
    yield said, {"": value, "the places that `around` is given": places}
    x, dx = draw.normal(size=(2, 3)).astype("f4"), draw.normal(size=(1, 3)).astype("f4")
    yield looped(mine, lambda w, dw, rate: w - rate * dw, ["i, j", "i, j", "0, j"], [x, dx], compile_it=True, rate=0.1)
    with as_python():
        yield "20 steps of both tasks", mine.losses("loop_source", "kernels")


def looped(mine, function, places, arrays, around=None, compile_it=False, **numbers):
    """(a case in words, `out` after the loop that the function writes has run on these arrays and numbers)"""
    name = "scalar" if compile_it else function.__name__
    given = [name, places, *([[*numbers]] if numbers else [])]
    said = f"the loop of {mine.name}({', '.join(map(repr, given))}{', around=…' if around else ''})"
    text = mine.call(said, mine.function, *given, **({"around": around} if around else {}))
    if not isinstance(text, str):
        raise Wrong(f"{said}: expected a text, yours is {describe(text)}" + " (is there a `return`?)" * (text is None))
    try:
        code = compile(text, "<the loop>", "exec")
    except SyntaxError as error:
        where = f"line {error.lineno} of the text, `{(error.text or '').strip()}`,"
        raise Wrong(f"{said}: {where} is no Python: {error.msg}") from None
    dtype = arrays[0].dtype
    scope = {"__name__": "__main__", name: function, "number": dtype.type}
    mine.call(said, exec, code, scope)
    if not callable(loop := scope.get("loop")):
        raise Wrong(f"{said}: the text has no function called `loop`; it begins with `{text.strip().splitlines()[0]}`")
    if compile_it:
        said += ", compiled"
    elif arrays[0].size < 5:
        said += f" on {' and '.join(str(x.tolist()) for x in arrays)}"
    out = np.full(np.broadcast_shapes(*(x.shape for x in arrays)), 7.0, dtype)
    run = compiled if compile_it else Solution.call
    try:
        run(mine, said, loop, out, *arrays, *numbers.values())
    except Wrong as wrong:
        raise Wrong(f"{wrong}; the text is {text!r}") from None
    return said, out


@cases("02-dnn_backward")
def dnn_backward(mine, draw):
    """The six gradients, and the number of launches for them, on the built level; then the tasks."""
    names = ["dw1", "db1", "dw2", "db2", "dw3", "db3"]
    with as_python(), mine.placed("dnn_backward", "kernels"):
        from levels.kernels import counted, tasks

        def gradients(said, dz, inputs, weights):
            dz, *arrays = in_memory(dz, *inputs, *weights, dtype=np.asarray(dz).dtype)
            found = mine.call(said, tasks.dnn_backward, dz, arrays[:3], arrays[3:])
            if not isinstance(found, list | tuple) or len(found) != 6:
                hint = " (is there a `return`?)" if found is None else ""
                raise Wrong(f"{said}: expected [{', '.join(names)}], yours is {describe(found)}{hint}")
            return dict(zip(names, found, strict=True))

        for h2, relu in ((3, ""), (0, ", where relu gave 0")):
            said = f"one row, one unit per layer: x = 4, h1 = 2, h2 = {h2}{relu}, dz = 1, w2 = 10, w3 = 5"
            inputs = [[[4.0]], [[2.0]], [[h2]]]
            yield said, gradients(said, [[1.0]], inputs, [[[1.0]], [[0.0]], [[10.0]], [[0.0]], [[5.0]], [[0.0]]])
        for rows, dtype in ((3, "f8"), (1, "f8"), (10, "f4")):
            said = f"{rows} rows, 2 features, 4, 8 and 1 units, {np.dtype(dtype)}"
            shapes = [(2, 4), (1, 4), (4, 8), (1, 8), (8, 1), (1, 1)]
            weights = [draw.normal(size=shape) for shape in shapes]
            inputs = [draw.normal(size=(rows, size)) for size in (2, 4, 8)]
            inputs[1:] = [np.maximum(h, 0.0) for h in inputs[1:]]
            arrays = [each.astype(dtype) for each in (draw.normal(size=(rows, 1)), *inputs, *weights)]
            yield said, gradients(said, arrays[0], arrays[1:4], arrays[4:])
        for said, dz, h1, h2 in drawn(draw, special=(np.inf, np.nan), dz=(3, 1), h1=(3, 4), h2=(3, 8)):
            yield said, gradients(said, dz, [inputs[0][:3], *(np.where(h < 0.0, 0.0, h) for h in (h1, h2))], weights)
        said = "the launches of one backward pass"
        yield said, counted(lambda: gradients(said, arrays[0], arrays[1:4], arrays[4:]))[0]
    with as_python():
        yield "20 steps of both tasks", mine.losses("dnn_backward", "kernels")
