"""The questions of the checks of notebook 02, and the cases of its blanks."""

import tracemalloc
from types import SimpleNamespace

import numpy as np

from course.practice.cases import Wrong, cases, question


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
    a = SimpleNamespace(spec="float64[3] on cpu:0", shape=(3,))
    b = SimpleNamespace(spec="float64[2, 3] on cpu:0", shape=(2, 3))
    add = ("add", [a], {})
    multiply = ("multiply", [a], {})
    by_rows, by_columns = (("reduce_sum", [b], {"axis": axis}) for axis in (0, 1))
    for said, *calls in (
        ('two launches of "add" on one Spec', add, add),
        ("two ops, one after the other", add, multiply, add, multiply),
        ("two Specs", add, ("add", [b], {}), ("add", [b], {}), add),
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
            given.append(mine.call(said, function, *call).number)
        yield said, {"plans made": len(made), "plans kept": len(plans), "which each launch gets": given}


def key_of(op, reads, attrs):
    """What a plan depends on, as the notebook's `_key_of` gives it."""
    return op, tuple(each.spec for each in reads), tuple(attrs.items())


@cases("02-relu_grad")
def relu_grad(mine, draw):
    for dy, y in ((3.0, 0.0), (3.0, 2.0), (-3.0, 0.5), (3.0, np.nan), (np.nan, 0.0)):
        yield mine.on(dy=dy, y=y)
    rows = np.array([[3.0, 0.0], [3.0, 2.0], [-2.0, 1.0], [3.0, np.nan]])
    said = "in a program, before there are any numbers"
    yield said, in_a_program(mine, said, rows)


def in_a_program(mine, said, rows):
    """[function(*row) for each row], computed by a program. The function is called once, to write the program."""
    from levels.hardware import Assembler, pool

    cpu = pool()["cpu:0"]
    a = Assembler("tried", "f8")
    x, y = a.array("x", "rows", rows.shape[1]), a.array("y", "rows", 1)
    with a.loop("rows") as r:
        mine.call(said, a.store, mine.call(said, mine.function, *(a.load(x, r, k) for k in range(x.shape[1]))), y, r, 0)
    x, y = cpu.put(rows), cpu.put(np.full((len(rows), 1), np.nan))
    mine.call(said, mine.call(said, a.assemble), x=x, y=y)
    return y


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
    x = np.array([[1.0, 2.0]])
    w = np.array([[3.0], [4.0]])
    out = np.array([[4.0]])
    mine.call("[[1, 2]] @ [[3], [4]], and out holds a 4", mine.function, out, x, w)
    yield "[[1, 2]] @ [[3], [4]], and out holds a 4", out
    for m, k, n in ((3, 4, 2), (2, 3, 4), (1, 40, 1), (2, 0, 2)):
        said = f"x of shape ({m}, {k}) @ w of shape ({k}, {n})"
        out = np.full((m, n), 7.0)
        mine.call(said, mine.function, out, draw.normal(size=(m, k)), draw.normal(size=(k, n)))
        yield said, out
    said = "compiled, x of shape (3, 5) @ w of shape (5, 4)"
    out = np.full((3, 4), 7.0)
    mine.patience = 6
    program = mine.call(said, compiler(), mine.function, out.dtype, boundscheck=True)
    mine.call(said, program, out, draw.normal(size=(3, 5)), draw.normal(size=(5, 4)))
    mine.patience = 1
    yield said, out
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
