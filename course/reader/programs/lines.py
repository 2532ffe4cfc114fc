"""Lines of code that a library answers, and the tables of stored answers: corners, and differences between libraries.

`corners.toml` holds lines for the libraries that `levels_more` spells: each runs on the real library and, with only its
imports changed, here. `differences.toml` holds questions, each with a line for several libraries and one for `levels`.
What the libraries answered is stored beside them, with their versions: corners.json and differences.json. To ask them
again: `python3 -m course programs --corners` and `--differences`.

A line may be several statements; what the last one gives is the answer, as text: "[0.0, nan] float32".
"""

import ast
import json
import math
import os
import re
import sys
import tomllib
import warnings
from typing import NamedTuple

import numpy as np

from course.reader.programs import FOLDER, here

CORNERS = FOLDER / "corners.toml"
DIFFERENCES = FOLDER / "differences.toml"
OURS = "levels"
FAILED = re.compile(r"(?!True$|False$|None$)[A-Z]\w*$")  # the name of an error
NUMBER = re.compile(r"-?\b(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)\b")
# What each library's lines begin with. `slope(f, x, …)` is the gradient of the sum of f(x, …) for each argument.
TORCH = """
import math
import torch
import torch.nn.functional as F
nan, inf = math.nan, math.inf
def slope(f, *given, dtype=torch.float32):
    xs = [torch.tensor(x, dtype=dtype, requires_grad=True) for x in given]
    f(*xs).sum().backward()
    return xs[0].grad if len(xs) == 1 else [x.grad for x in xs]
"""
TENSORFLOW = """
import math
import numpy as np
import tensorflow as tf
nan, inf = math.nan, math.inf
def slope(f, *given, dtype=tf.float32):
    xs = [tf.constant(np.array(x), dtype) for x in given]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = tf.reduce_sum(f(*xs))
    found = tape.gradient(y, xs)
    return found[0] if len(xs) == 1 else found
"""
NUMPY = """
import math
import numpy as np
nan, inf = math.nan, math.inf
"""
JAX = """
import math
import jax, jax.numpy as jnp
import numpy as np
nan, inf = math.nan, math.inf
def slope(f, *given, dtype=jnp.float32):
    xs = [jnp.array(x, dtype) for x in given]
    found = jax.grad(lambda *xs: f(*xs).sum(), tuple(range(len(xs))))(*xs)
    return found[0] if len(xs) == 1 else list(found)
"""
KERAS = """
import math
import keras
import numpy as np
from keras import ops
nan, inf = math.nan, math.inf
def trained(model, x, y, **options):
    x, y = np.array(x, "float32"), np.array(y, "float32")
    return model.fit(x, y, verbose=0, shuffle=False, **options).history
"""
ONNX = """
import math
import numpy as np, onnx, onnxruntime
from onnx import helper
nan, inf = math.nan, math.inf
def op(name, *given, outputs=1, **attributes):
    named = {f"x{n}": np.asarray(x) for n, x in enumerate(given)}
    kind = helper.np_dtype_to_tensor_dtype
    takes = [helper.make_tensor_value_info(n, kind(x.dtype), x.shape) for n, x in named.items()]
    gives = [onnx.ValueInfoProto(name=f"y{n}") for n in range(outputs)]
    node = helper.make_node(name, [*named], [each.name for each in gives], **attributes)
    graph = helper.make_graph([node], "g", takes, gives)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = onnxruntime.InferenceSession(model.SerializeToString()).run(None, named)
    return found[0] if outputs == 1 else found
"""
SKLEARN = """
import math
import numpy as np
import sklearn
nan, inf = math.nan, math.inf
"""
LEVELS = """
import math
import numpy as np
from levels_more import low_level as low
from levels_more import mid_level as mid
from levels_more import high_level as high
nan, inf = math.nan, math.inf
def slope(f, *given, dtype="float32"):
    xs = [low.constant(np.array(x), dtype) for x in given]
    with low.GradientTape() as tape:
        xs = [x * 1.0 for x in xs]
        y = low.reduce_sum(f(*xs))
    found = tape.gradient(y, xs)
    return found[0] if len(xs) == 1 else found
def trained(model, x, y, **options):
    return model.fit(np.array(x, "float32"), np.array(y, "float32"), verbose=0, shuffle=False, **options).history
"""
BEGINS = {
    "numpy": NUMPY,
    "torch": TORCH,
    "tensorflow": TENSORFLOW,
    "jax": JAX,
    "keras on tensorflow": KERAS,
    "keras on torch": KERAS,
    "keras on jax": KERAS,
    "onnxruntime": ONNX,
    "sklearn": SKLEARN,
    OURS: LEVELS,
}
SPELLED = "torch", "tensorflow"  # the libraries of corners.toml


class Row(NamedTuple):
    """A question of differences.toml."""

    key: str
    about: str  # "slopes", "losses", …
    asked: str
    guess: dict  # library: what was expected before it was asked
    decided: dict  # library: the place in its source where it is decided
    ours: str  # what `levels` does, and why
    lines: dict  # library: the line of code
    answers: dict  # library: {version: answer}, the newest last
    by_processor: bool  # whether the digits depend on the processor


def stored(table):
    """Return what is stored beside a table, {} if nothing is."""
    file = table.with_suffix(".json")
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def rows():
    """Return the Rows of differences.toml, with their stored answers."""
    answers = stored(DIFFERENCES)
    found = []
    for key, row in tomllib.loads(DIFFERENCES.read_text(encoding="utf-8")).items():
        lines = dict(row["line"])
        if "keras" in lines:
            lines |= dict.fromkeys((each for each in BEGINS if each.startswith("keras ")), lines.pop("keras"))
        guess = row["guess"] if isinstance(row["guess"], dict) else dict.fromkeys(lines, row["guess"])
        told = row["about"], row["asked"], guess, row.get("decided", {}), row["ours"], lines
        found.append(Row(key, *told, answers.get(key, {}), row.get("by_processor", False)))
    return found


def corners(library):
    """Return the lines of a library in corners.toml, and {line: why the answer here is another}."""
    table = tomllib.loads(CORNERS.read_text(encoding="utf-8"))
    lines = []
    for group in table[library]:
        for name in group.get("for", "-").split():
            lines += [line.replace("FUNCTION", name) for line in group["lines"]]
    return lines, table["apart"][library]


def begun(library, ours=False):
    """Return the names that the lines of a library begin with; `ours`: those of levels_more's spelling of it."""
    text = BEGINS[library]
    space = {"__name__": "lines"}
    exec(here(text) if ours else text, space)
    return space


def answer_to(line, space):
    """Return the answer to a line, as text. An error is answered by its name."""
    tree = ast.parse(line)
    last = ast.Expression(tree.body.pop().value)
    names = dict(space)
    try:
        exec(compile(tree, "line", "exec"), names)
        return text_of(eval(compile(last, "line", "eval"), names))
    except Exception as error:
        return type(error).__name__


def text_of(found):
    """Return a result as text: numbers as short as their dtype allows, and the dtype of tensors behind them."""
    if isinstance(found, dict):
        return "{" + ", ".join(f"{name}: {text_of(each)}" for name, each in found.items()) + "}"
    if hasattr(found, "detach"):
        found = found.detach()
    if hasattr(found, "dtype"):
        dtype = re.findall(r"[a-z]+[0-9]*", str(found.dtype))[-1]  # of "torch.float32", or "<dtype: 'float32'>"
        return f"{_numbers(_listed(found), dtype)} {dtype}"
    if isinstance(found, list | tuple):
        return f"[{', '.join(map(text_of, found))}]"
    return str(found)


def _listed(found):
    """Return a tensor as nested lists of Python's numbers."""
    found = found.numpy() if hasattr(found, "numpy") and not str(found.dtype).endswith("bfloat16") else found
    return found.tolist()


def _numbers(listed, dtype):
    """Return nested lists of numbers as text. Those of float32 and float16 get as many digits as they need."""
    if isinstance(listed, list):
        return f"[{', '.join(_numbers(each, dtype) for each in listed)}]"
    if isinstance(listed, float) and dtype in ("float32", "float16"):
        return repr(float(str(np.dtype(dtype).type(listed))))
    return repr(listed)


def agree(found, wanted):
    """Whether two answers are the same: errors of any kind, or numbers, NaN and signed zeros, to their last digits.

    TensorFlow's int32 counts as int64, the only whole numbers of levels.
    """
    if FAILED.match(found) or FAILED.match(wanted):
        return bool(FAILED.match(found) and FAILED.match(wanted))
    if NUMBER.sub("#", found).replace("int32", "int64") != NUMBER.sub("#", wanted).replace("int32", "int64"):
        return False
    near = 5e-7 if "float32" in wanted else 2e-15
    pairs = zip(NUMBER.findall(found), NUMBER.findall(wanted), strict=True)
    return all(_alike(float(one), float(other), near) for one, other in pairs)


def _alike(one, other, near):
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if not one or not other or math.isinf(one):
        return (one, math.copysign(1.0, one)) == (other, math.copysign(1.0, other))
    return abs(one - other) <= near * abs(other)


def version_here(library):
    """Return the version of a library that this process has imported, "" for `levels`."""
    first, _, beneath = library.partition(" on ")
    versions = [getattr(sys.modules.get(name), "__version__", "").partition("+")[0] for name in (first, beneath)]
    return f"{versions[0]} on {versions[1]}" if beneath else versions[0]


def answer():
    """Print the JSON of the answers to lines, {key: line} in stdin. The library is the argument, as in BEGINS."""
    library = sys.argv[1]
    if " on " in library:
        os.environ["KERAS_BACKEND"] = library.partition(" on ")[2]
    warnings.simplefilter("ignore")
    space = begun(library)
    if library == "keras on torch":
        space["torch"] = sys.modules["torch"]
    answers = {key: answer_to(line, space) for key, line in json.load(sys.stdin).items()}
    print(json.dumps({"version": version_here(library), "answers": answers}))
