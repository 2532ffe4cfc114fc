"""What the checks of notebook 02 ask."""

from course.asking import question


@question
def kernel_ran(mine, said, compiled, out, inputs):
    """`out` and the inputs after kernel(out, *inputs), compiled for the dtype of `out`, and with every index checked, or not."""
    function = mine.function
    if compiled:
        function = mine.call(said, mine["compile_cpu"], function, out.dtype, boundscheck=True)
    mine.call(said, function, out, *inputs)
    return out, inputs


@question
def scalars_compiled(mine, said, x, y, out):
    """out[k], from the scalar function of x[k] and y[k] made a loop."""
    loop = mine.call(mine.name, mine["compiled_loop"], "cpu", mine.function, x.dtype, ((True, True),))
    for k in range(len(x)):
        mine.call(said, loop, out[k : k + 1], x[k : k + 1], y[k : k + 1])
    return out


@question
def kinds_of_keys(mine, texts):
    """For each text that defines a function f, the number of the first one whose f has an equal key, or None for a None."""
    keys = []
    for text in texts:
        scope = {}
        exec(text, scope)
        keys.append(mine.call(f"{mine.name}(f), f being `{text.splitlines()[-1]}`,", mine.function, scope["f"]))
    return [None if key is None else keys.index(key) for key in keys]
