"""What stands on a page: the source of a function, highlighted; and a trained model as a page of its own, for any browser."""

import inspect
import json
import textwrap
from pathlib import Path

from IPython.display import Markdown

from course.setup import files

TEMPLATE = Path(__file__).with_name("page.html")
ACTIVATIONS = ("linear", "relu", "sigmoid", "tanh")  # those that the page knows


def source(*objects):
    """The source of functions, methods and classes, as highlighted code. Raises TypeError for what has none."""
    texts = [textwrap.dedent(inspect.getsource(getattr(each, "py_func", each))) for each in objects]  # numba's have one
    return Markdown("```python\n" + "\n\n".join(texts) + "```")


def take_home(model, path):
    """Write a classifier of points in the plane as one HTML page, which needs no network and no `levels`. Returns its path.

    model: a built Sequential of Dense layers, from 2 inputs to 1 sigmoid. The page computes in float64, so it says what
    `predict` says up to the rounding of exp, and of float32 if these are the model's numbers. Raises ValueError for any
    other model.
    """
    data = {"name": model.name, "layers": layers_of(model), "numbers": sum(w.size for w in model.get_weights())}
    data = json.dumps(data).replace("<", "\\u003c")  # so that no name can end the script
    return files.write(path, TEMPLATE.read_text(encoding="utf-8").replace("MODEL = {}", f"MODEL = {data}", 1))


def layers_of(model):
    """[{kernel[inputs][units], bias[units], activation}] of a model that the page can run."""
    kinds = [f"{type(layer).__name__} {activation_of(layer)}" for layer in model.layers]
    runs = type(model).__name__ == "Sequential" and {*kinds} <= {f"Dense {name}" for name in ACTIVATIONS}
    shapes = [w.shape for w in model.get_weights()]
    if not runs or kinds[-1:] != ["Dense sigmoid"] or not shapes or (shapes[0][0], model.layers[-1].units) != (2, 1):
        raise ValueError(
            f"take_home: this is a {type(model).__name__} of {', '.join(kinds)}, with weights {shapes}; the page runs a built "
            f"Sequential of Dense layers ({', '.join(ACTIVATIONS)}), from 2 inputs to 1 sigmoid"
        )
    return [
        {
            "kernel": layer.kernel.numpy().tolist(),
            "bias": layer.bias.numpy()[0].tolist() if layer.bias is not None else [0.0] * layer.units,
            "activation": activation_of(layer),
        }
        for layer in model.layers
    ]


def activation_of(layer):
    """The name of its activation, "linear" where it has none."""
    from levels.mid_level import ACTIVATIONS as table

    given = getattr(layer, "activation", None)
    return next((name for name, function in table.items() if function is given), getattr(given, "__name__", "linear"))
