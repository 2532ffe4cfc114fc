"""A model as one page for any browser: its numbers, the code that runs it, and input controls. It needs no network."""

import base64
import gzip
import html
import json
import numbers
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levels.mid_level import Dense
from levels_more import needed
from levels_more.checks import expect, file_name
from levels_more.compiler.reads import of_levels
from levels_more.high_level.model import Model, Sequential
from levels_more.mid_level.layers import ACTIVATIONS
from levels_more.saving.files import replace
from levels_more.saving.model import check_built, specs_of
from levels_more.saving.onnx import onnx_model

with needed():
    import onnx

TEMPLATE = Path(__file__).with_name("page.html")
PLAIN = "linear", "relu", "sigmoid", "tanh", "softmax"  # the activations that the page's own JavaScript computes
FAR = 1e38  # the limit for the values of inputs: it is below the largest float32, 3.4e38
LARGEST = 100_000  # numbers at most for the page's own JavaScript; for more, onnxruntime-web is quicker
WEB = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
SHORT = {"Elu", "Erf"}  # ops that onnxruntime has for float32 only
LAST = {"Sigmoid": "probability", "Softmax": "classes"}  # last op -> kind of output; others: "numbers"


def export_page(
    model: Model,
    path: str | os.PathLike,
    inputs: dict[str, tuple[float, float]] | None = None,
    outputs: Sequence[str] | None = None,
    picture: tuple[int, int, float] | None = None,
) -> None:
    """Write a model as one HTML file, which predicts in a browser without a network and without `levels`.

    model: built, from one table of numbers [rows, n] to one [rows, k]. A Sequential of Dense layers with up to 100,000
    numbers is computed by the page itself, in float64: its sums equal those of a float64 model to the last bit; exp is
    the browser's. Any other needs onnxruntime-web, which is then part of the page; the error for lack of it says how
    to install it.

    inputs: {name: (low, high)}, the columns in order and the range of each control; the default is x1, x2, …, from -10
    to 10.
    outputs: the names of the k numbers; for a single sigmoid two names, for the answers 0 and 1.
    picture: (rows, columns, ink), if the inputs are the pixels of a picture, from 0 to ink: the user then draws it.

    With two inputs the page shows the plane, with the prediction at each point. It contains neither the loss nor the
    optimizer. Raises TypeError or ValueError for a model or an argument that does not fit, and for a layer that has
    no form in ONNX; FileNotFoundError if onnxruntime-web is needed and not installed.
    """
    expect(isinstance(model, Model), "export_page: model", model, "a Model")
    check_built(model, "export_page")
    path = file_name("export_page: path", path)
    made = onnx_model(model)
    web = []
    data = page_data(model, made, inputs, outputs, picture)
    if plain(model) and data["numbers"] <= LARGEST:
        data["layers"] = [written_layer(layer) for layer in model.layers]
    else:
        check_runs(model, made)
        data["onnx"] = packed(made.SerializeToString())
        web = [f'<script type="text/plain" id="{name}">{packed(read)}</script>\n' for name, read in onnxruntime_web()]
    data = json.dumps(data).replace("<", "\\u003c")  # so that no name can end the script
    page = TEMPLATE.read_text(encoding="utf-8").replace("DATA = {}", f"DATA = {data}", 1)
    page = page.replace("<!-- onnxruntime-web -->\n", "".join(web), 1)
    replace(path, page.replace("TITLE", html.escape(model.name), 1).encode())


def page_data(model, made, inputs, outputs, picture):
    """The page's data about a model, except its weights. Raises TypeError or ValueError if an argument does not fit."""
    columns, units = table_of(model, made)
    last = made.graph.node[-1].op_type if made.graph.node else ""
    kind = LAST.get(last, "numbers") if last != "Sigmoid" or units == 1 else "numbers"
    return {
        "name": model.name,
        "numbers": sum(weights.size for weights in model.get_weights()),
        "kind": kind,
        "inputs": checked_inputs(inputs, columns),
        "outputs": checked_outputs(outputs, 2 if kind == "probability" else units, kind),
        "picture": checked_picture(picture, columns),
        "float32": specs_of(model)[0].dtype == np.float32,
    }


def table_of(model, made):
    """(columns of the input, columns of the output). Raises ValueError unless each is one table of floats."""
    shapes = [
        [d.dim_value or -1 for d in t.type.tensor_type.shape.dim] for t in (*made.graph.input, *made.graph.output)
    ]
    floats = all(spec.dtype in ("float32", "float64") for spec in specs_of(model))
    whole = made.graph.output[0].type.tensor_type.elem_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
    if not (len(shapes) == 2 and all(len(s) == 2 and s[0] == -1 and s[1] > 0 for s in shapes) and floats and not whole):
        told = ", ".join(f"{spec.dtype}{['rows', *spec.shape[1:]]}" for spec in specs_of(model))
        gives = ", ".join(str(shape).replace("-1", "rows") for shape in shapes[len(made.graph.input) :])
        raise ValueError(
            f"export_page: {model.name} takes {told} and gives {gives}; a page maps one table of numbers, "
            "[rows, n], to one [rows, k]"
        )
    return shapes[0][1], shapes[1][1]


def check_runs(model, made):
    """Raise ValueError for an op that onnxruntime does not have in the model's dtype."""
    missing = sorted(SHORT & {node.op_type for node in made.graph.node})
    if missing and specs_of(model)[0].dtype == np.float64:
        raise ValueError(
            f"export_page: onnxruntime has {', '.join(missing)} for float32 alone, and {model.name} takes float64; "
            "build it for float32"
        )


def checked_inputs(inputs, columns):
    """[{name, low, high}] of all columns. Raises TypeError or ValueError for inputs that do not fit."""
    given = {f"x{k + 1}": (-10, 10) for k in range(columns)} if inputs is None else inputs
    expect(isinstance(given, dict), "export_page: inputs", given, "a dict {name: (low, high)}")
    if len(given) != columns:
        raise ValueError(
            f"export_page: {len(given)} inputs are named, {', '.join(map(str, given))}; the model has {columns}"
        )
    for name, ends in given.items():
        fits = isinstance(name, str) and isinstance(ends, (tuple, list)) and len(ends) == 2
        fits = fits and all(isinstance(end, numbers.Real) for end in ends) and -FAR < ends[0] < ends[1] < FAR
        if not fits:
            raise ValueError(
                f"export_page: inputs has {name!r}: {ends!r}; expected a name and (low, high), low below high"
            )
    return [{"name": name, "low": float(low), "high": float(high)} for name, (low, high) in given.items()]


def checked_outputs(outputs, number, kind):
    """The names of the outputs. Raises TypeError unless they are a list of names, ValueError unless of this number."""
    names = outputs
    if outputs is None:
        names = [f"y{k + 1}" for k in range(number)] if kind == "numbers" else [str(k) for k in range(number)]
    fits = isinstance(names, (tuple, list)) and all(isinstance(name, str) for name in names)
    expect(fits, "export_page: outputs", names, "a list of names")
    if len(names) != number:
        raise ValueError(f"export_page: outputs has {len(names)} names; the model has {number} ({kind})")
    return list(names)


def checked_picture(picture, columns):
    """{rows, columns, ink} or None. Raises ValueError unless rows · columns is the number of the model's inputs."""
    if picture is None:
        return None
    fits = isinstance(picture, (tuple, list)) and len(picture) == 3 and isinstance(picture[2], numbers.Real)
    fits = fits and all(isinstance(n, numbers.Integral) and n > 0 for n in picture[:2]) and 0 < picture[2] < FAR
    if not fits or picture[0] * picture[1] != columns:
        raise ValueError(
            f"export_page: picture is {picture!r}; expected (rows, columns, ink) with {columns} pixels in all"
        )
    return dict(zip(("rows", "columns", "ink"), map(float, picture), strict=True))


def plain(model):
    """Whether a model is a Sequential of only Dense layers, with activations that the page computes itself."""
    return type(model) is Sequential and all(
        isinstance(layer, Dense) and of_levels(type(layer)) and activation_of(layer) in PLAIN for layer in model.layers
    )


def activation_of(layer):
    """The name of a layer's activation; "linear" if it has none, "" for a function that has no name in ACTIVATIONS."""
    names = [name for name, function in ACTIVATIONS.items() if function is layer.activation]
    return names[0] if names else "linear" if layer.activation is None else ""


def written_layer(layer):
    """{inputs, units, activation, kernel, bias} of a Dense layer, its numbers as text."""
    kernel = layer.kernel.numpy()
    bias = np.zeros(layer.units, kernel.dtype) if layer.bias is None else layer.bias.numpy()
    inputs, units = kernel.shape
    numbers = {name: packed_numbers(array) for name, array in (("kernel", kernel), ("bias", bias))}
    return {"inputs": inputs, "units": units, "activation": activation_of(layer)} | numbers


def packed_numbers(array):
    """An array as text: the bytes of little-endian float32 or float64, in base64."""
    return base64.b64encode(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()).decode()


def packed(data):
    """Bytes as text: compressed by gzip, in base64. Every browser can unpack it."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def onnxruntime_web():
    """[(name, bytes), …] of the files of onnxruntime-web. Raises FileNotFoundError if no node_modules has them."""
    here = Path.cwd()
    for folder in (here, *here.parents, TEMPLATE.parents[1]):
        files = [folder / "node_modules" / "onnxruntime-web" / "dist" / name for name in WEB]
        if all(file.is_file() for file in files):
            return [(file.name, file.read_bytes()) for file in files]
    raise FileNotFoundError(
        f"export_page: this model is more than Dense layers with {', '.join(PLAIN)} and {LARGEST:,} numbers. "
        f"To run it, the page needs onnxruntime-web, and {here.as_posix()} has no node_modules with it; install it:  "
        "npm install onnxruntime-web@1.30.0"
    )
