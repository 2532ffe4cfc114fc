"""The questions of the checks of notebook 02, and the cases of its blanks."""

import tracemalloc
from types import SimpleNamespace

import numpy as np

from course.reader.cases import KEPT, Wrong, cases, question
from course.reader.cases.drawn import drawn
from course.reader.cases.hardware import in_a_program
from course.reader.cases.plain_data import describe, held


def compiler():
    """The function compile_cpu(function, dtype), which level 2 imports from `levels/support`."""
    from levels.support.compiled import compile_cpu

    return compile_cpu


@question
def kernel_ran(mine, said, compiled, out, inputs):
    """`out` and the inputs after kernel(out, *inputs), as Python or compiled for the dtype of `out`, bounds checked."""
    function = mine.function
    if compiled:
        function = mine.call(said, compiler(), function, out.dtype, boundscheck=True)
    mine.call(said, function, out, *inputs)
    return out, inputs


@question
def bytes_held(mine, said, out, inputs):
    """The peak memory in bytes that kernel(out, *inputs) allocates, beside its arguments, while it runs as Python."""
    traced = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        mine.call(said, mine.function, out, *inputs)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not traced:
            tracemalloc.stop()


@question
def scalars_compiled(mine, said, x, y, out):
    """out[k] = function(x[k], y[k]): the scalar function is made into a loop and compiled."""
    like = SimpleNamespace(device=SimpleNamespace(kind="cpu"), dtype=x.dtype)
    loop = mine.call(mine.name, mine["element_loop"], mine.function, like, ["i", "i", "i"])
    loop = mine.call(mine.name, compiler(), loop, x.dtype)
    for k in range(len(x)):
        mine.call(said, loop, out[k : k + 1], x[k : k + 1], y[k : k + 1])
    return out


@cases("02-planned")
def planned(mine, draw):
    """Which plans are made, and which are found again. The plans are mocks, which only have a number."""
    a, b, c = (
        SimpleNamespace(spec=f"{np.dtype(dtype)}{list(shape)} on cpu:0", shape=shape, dtype=np.dtype(dtype))
        for shape, dtype in (((3,), "f8"), ((2, 3), "f8"), ((3,), "f4"))
    )
    add = ("add", [a], {})
    multiply = ("multiply", [a], {})
    by_rows, by_columns = (("reduce_sum", [b], {"axis": axis}) for axis in (0, 1))
    for said, *calls in (
        ('two launches of "add" on one Spec', add, add),
        ("two ops, one after the other", add, multiply, add, multiply),
        ("two Specs", add, ("add", [b], {}), ("add", [b], {}), add),
        ("one shape in float64, in float32, in float64", add, ("add", [c], {}), add),
        ("one input, and two", add, ("add", [a, a], {}), add),
        ("one op over axis 0, over axis 1, over axis 0", by_rows, by_columns, by_rows),
    ):
        made = []
        plans = {}

        def plan(op, reads, attrs):
            made.append(SimpleNamespace(number=len(made)))  # noqa: B023
            return made[-1]  # noqa: B023

        function = mine.among(PLANS=plans, plan=plan, _key_of=key_of)
        given = []
        for call in calls:
            result = mine.call(said, function, *call)
            if result is not None and not isinstance(result, SimpleNamespace):
                raise Wrong(f"{said} gives {describe(result)}, expected what `plan` gave")
            given.append(result.number)
        yield said, {"plans made": len(made), "plans kept": len(plans), "which each launch gets": given}


def key_of(op, reads, attrs):
    """What a plan depends on, as the notebook's `_key_of` gives it."""
    return op, tuple(each.spec for each in reads), tuple(attrs.items())


@cases("02-relu_grad")
def relu_grad(mine, draw):
    """On floats, and in a program. A function that cannot write one is right, but level 3 cannot use it."""
    for dy, y in ((3.0, 0.0), (3.0, 2.0), (-3.0, 0.5), (3.0, np.nan), (np.nan, 0.0)):
        yield mine.on(dy=dy, y=y)
    rows = []
    for _, dy, y in drawn(draw, dy=(), y=()):
        rows.append((dy, 0.0 if y <= 0.0 else y))  # what a relu gives
        yield mine.on(dy=dy, y=rows[-1][1])
    said = "in a program, before there are any numbers"
    try:
        result, kept = in_a_program(mine, said, np.array(rows)).numpy().tolist(), ""
    except Wrong:
        result = [[mine.function(dy, y)] for dy, y in rows]
        kept = (
            "Level 3 calls it to write a program, in which `y` has no number yet: "
            "an `if` cannot choose there, and `select(y <= 0.0, …, …)` can."
        )
    yield said, np.array(result)
    yield KEPT, kept


class AccessRecorder(np.ndarray):
    """An array that records which elements are read from it or its rows. places: their offsets, counted in elements."""

    def __array_finalize__(self, base):
        self.places, self.start = getattr(base, "places", None), getattr(base, "start", 0)

    def __getitem__(self, key):
        if self.places is not None:
            first = np.asarray(self)[*key, None] if isinstance(key, tuple) else np.asarray(self)[key, None]
            place = (first.__array_interface__["data"][0] - self.start) // self.itemsize
            if self.places[-1:] != [place]:
                self.places.append(place)
        return super().__getitem__(key)


def recorded(array):
    result = array.view(AccessRecorder)
    result.places = []
    result.start = array.__array_interface__["data"][0]
    return result


@cases("02-matmul_ikj")
def matmul_ikj(mine, draw):
    """As Python, and compiled with bounds checks. The order in which x is read shows the order of the loops."""
    said = "[[1, 2]] @ [[3], [4]], and out holds a 4"
    out = np.array([[4.0]])
    x = recorded(np.array([[1.0, 2.0]]))
    mine.call(said, mine.function, out, x, np.array([[3.0], [4.0]]))
    if out[0, 0] == 11.0 and not x.places:
        raise Wrong("`x @ w` leaves the loops to NumPy, which adds in an order of its own: write the three loops")
    if out[0, 0] == 4.0:
        raise Wrong(
            f"{said}: `out` was not changed: write into it, as in `out[i, j] = …`; `out = …` binds the name anew"
        )
    yield said, out
    for m, k, n in ((3, 4, 2), (2, 3, 4), (1, 40, 1), (2, 0, 2)):
        for said, x, w in drawn(draw, "f8", "f4", x=(m, k), w=(k, n)):
            said = f"x of shape ({m}, {k}) @ w of shape ({k}, {n}), and out holds NaN; {said}"
            out = np.full((m, n), np.nan, x.dtype)
            yield said, written(mine, said, mine.function, out, x, w)
    x = recorded(draw.normal(size=(2, 3)))
    mine.call("x of shape (2, 3)", mine.function, np.zeros((2, 2)), x, draw.normal(size=(3, 2)))
    rows = [place // 3 for place in x.places]
    if rows != sorted(rows) or len(x.places) > len({*x.places}):  # a column at a time, or a row more than once
        order = ", ".join(map(str, x.places[:8]))
        raise Wrong(
            "its numbers are right, but its loops are in another order: "
            f"of the six numbers of an x of shape (2, 3) it reads {order}, …. "
            "With `for i`, then `for k` and, innermost, `for j`, it reads x from the first number to the last, "
            "and goes along the rows of w"
        )
    said = "compiled, x of shape (3, 5) @ w of shape (5, 4)"
    out = np.full((3, 4), np.nan)
    mine.patience = 6
    program = mine.call(said, compiler(), mine.function, out.dtype, boundscheck=True)
    written(mine, said, program, out, draw.normal(size=(3, 5)), draw.normal(size=(5, 4)))
    mine.patience = 1
    yield said, out


def written(mine, said, kernel, out, *inputs):
    """`out` after kernel(out, *inputs). Raises Wrong if that has changed an input."""
    before = held(inputs)
    mine.call(said, kernel, out, *inputs)
    if held(inputs) != before:
        raise Wrong(f"{said}: the call changes its inputs: write only into `out`")
    return out
