"""What the checks of notebook 02 ask."""

import linecache
import tracemalloc
from types import SimpleNamespace

import numpy as np

from course.practice.asking import cases, question


@question
def kernel_ran(mine, said, compiled, out, inputs):
    """`out` and the inputs after kernel(out, *inputs), compiled for the dtype of `out`, and with every index checked, or not."""
    function = mine.function
    if compiled:
        function = mine.call(said, mine["compile_cpu"], function, out.dtype, boundscheck=True)
    mine.call(said, function, out, *inputs)
    return out, inputs


@question
def bytes_held(mine, said, out, inputs):
    """The most memory that kernel(out, *inputs) holds at a time, beside its arguments, while it runs as Python."""
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
    """out[k], from the scalar function of x[k] and y[k] made a loop."""
    like = SimpleNamespace(device=SimpleNamespace(kind="cpu"), dtype=x.dtype)
    loop = mine.call(mine.name, mine["element_loop"], mine.function, like, ["i", "i", "i"])
    loop = mine.call(mine.name, mine["compile_cpu"], loop, x.dtype)
    for k in range(len(x)):
        mine.call(said, loop, out[k : k + 1], x[k : k + 1], y[k : k + 1])
    return out


@question
def kinds_of_keys(mine, texts):
    """For each text that defines a function f, the number of the first one whose f has an equal key, or None for a None.

    A text is run as a cell of a notebook is: its functions know their module, and their source is found.
    """
    keys = []
    for k, text in enumerate(texts):
        scope, file = {"__name__": "__main__"}, f"<the definition {k} of f>"
        linecache.cache[file] = len(text), None, f"{text}\n".splitlines(keepends=True), file
        exec(compile(text, file, "exec"), scope)
        keys.append(mine.call(f"{mine.name}(f), f being `{text.splitlines()[-1]}`,", mine.function, scope["f"]))
    return [None if key is None else keys.index(key) for key in keys]


@cases("02-planned")
def planned(mine, draw):
    """Among plans that are only counted: which are made, which are found again."""
    for said, *calls in (
        ('two launches of "add" on one Spec', "add A", "add A"),
        ("two ops, one after the other", "add A", "multiply A", "add A", "multiply A"),
        ("two Specs", "add A", "add B", "add B", "add A"),
    ):
        made, plans = [], {}

        def plan(op, reads, attrs):
            made.append(SimpleNamespace(number=len(made)))  # noqa: B023
            return made[-1]  # noqa: B023

        names = {"PLANS": plans, "plan": plan, "_key_of": lambda op, reads, attrs: (op, *reads)}
        function, given = mine.among(**names), []
        for call in calls:
            op, read = call.split()
            given.append(mine.call(said, function, op, [read], {}).number)
        yield said, {"plans made": len(made), "plans kept": len(plans), "which each launch gets": given}


@cases("02-relu_grad")
def relu_grad(mine, draw):
    for dy, y in ((3.0, 0.0), (3.0, 2.0), (-3.0, 0.5), (3.0, np.nan), (np.nan, 0.0)):
        yield mine.on(dy=dy, y=y)
    rows = np.array([[3.0, 0.0], [3.0, 2.0], [-2.0, 1.0], [3.0, np.nan]])
    said = "in a program, which knows no numbers yet"
    yield said, in_a_program(mine, said, rows)


def in_a_program(mine, said, rows):
    """[function(*row) for each row], as a program computes it; the function is called once, while that is written."""
    from levels.hardware import Assembler, pool

    cpu, a = pool()["cpu:0"], Assembler("tried", "f8")
    x, y = a.array("x", "rows", rows.shape[1]), a.array("y", "rows", 1)
    with a.loop("rows") as r:
        mine.call(said, a.store, mine.call(said, mine.function, *(a.load(x, r, k) for k in range(x.shape[1]))), y, r, 0)
    x, y = cpu.put(rows), cpu.put(np.full((len(rows), 1), np.nan))
    mine.call(said, mine.call(said, a.assemble), x=x, y=y)
    return y


@cases("02-matmul_ikj")
def matmul_ikj(mine, draw):
    """As Python, and compiled, with every index checked."""
    x, w, out = np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), np.array([[4.0]])
    mine.call("[[1, 2]] @ [[3], [4]], and out holds a 4", mine.function, out, x, w)
    yield "[[1, 2]] @ [[3], [4]], and out holds a 4", out
    for m, k, n in ((3, 4, 2), (2, 3, 4), (1, 40, 1), (2, 0, 2)):
        said, out = f"x[{m}, {k}] @ w[{k}, {n}]", np.full((m, n), 7.0)
        mine.call(said, mine.function, out, draw.normal(size=(m, k)), draw.normal(size=(k, n)))
        yield said, out
    said, out = "compiled, x[3, 5] @ w[5, 4]", np.full((3, 4), 7.0)
    program = mine.call(said, mine["compile_cpu"], mine.function, out.dtype, boundscheck=True)
    mine.call(said, program, out, draw.normal(size=(3, 5)), draw.normal(size=(5, 4)))
    yield said, out
