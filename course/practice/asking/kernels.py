"""What the checks of notebook 02 ask."""

import linecache
import tracemalloc

from course.practice.asking import question


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
    lower = mine.call(mine.name, mine["lowered_loop"], "cpu", mine.function, x.dtype, ((True, True),))
    loop = mine.call(mine.name, lower)
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
