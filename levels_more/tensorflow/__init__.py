"""TensorFlow's names on what the five notebooks build: `import levels_more.tensorflow as tf`.

Here is what small dense nets call; chapter 3 of "eat tensorflow2 in 30 days" runs with its import lines changed. What
differs: int32 is int64 here; random numbers are others, `tf.random.set_seed` repeats them, and a seed of one op changes
nothing; a function that cannot be traced runs op by op; a number of NumPy beside a float32 tensor is refused. A shape is a tuple: for `x.shape.as_list()` write
`list(x.shape)`, for `x.shape.rank` `len(x.shape)`. NumPy's functions of each number take arrays: `np.exp(x.numpy())`, or
`tf.exp(x)`; they leave tensors alone, because `array + x` is a tensor. A name that is missing says what to use.
"""

import builtins
import contextlib
import logging
from types import SimpleNamespace

import numpy as np

from levels import hardware, mid_level
from levels import low_level as low
from levels.low_level import Tensor  # noqa: F401
from levels_more.mid_level import feature_columns
from levels_more.tensorflow import checkpoint_manager, nested, summaries
from levels_more.tensorflow.custom_gradients import custom_gradient  # noqa: F401
from levels_more.tensorflow.data_pipeline import TensorStream
from levels_more.tensorflow.math_ops import ASSERTED
from levels_more.tensorflow.nested import function, known_now  # noqa: F401
from levels_more.tensorflow.variables import Assigned as Variable  # noqa: F401
from levels_more.tensorflow.variables import SortedModule as Module  # noqa: F401
from levels_more.tensorflow.variables import WatchingTape as GradientTape  # noqa: F401

from .functions import DTYPES, FUNCTIONS, NN, constant, dtype_of, shown
from .keras import initializers, losses, metrics, optimizers  # noqa: F401
from .rooms import missing, room

__version__ = "levels"
TensorShape, newaxis = tuple, None
convert_to_tensor, name_scope = constant, contextlib.nullcontext
get_logger = logging.getLogger


def TensorSpec(shape=None, dtype="float32", name=None):
    """A shape, in which None is any size, and a dtype, for `input_signature`."""
    return nested.TensorSpec(shape, dtype_of(dtype), name)


def print(*values, sep=" ", end="\n", output_stream=None, summarize=None):
    """Print tensors as their numbers."""
    known_now("tf.print")
    builtins.print(*map(shown, values), sep=sep, end=end, file=output_stream)


def device(name):
    """Inside this `with` block new tensors are placed there: "/CPU:0", "gpu:0"."""
    return low.device(name.lower().replace("device:", "").strip("/"))


def executing_eagerly():
    """Whether ops run at once: not while a function is traced."""
    return not nested.traced()


def is_tensor(x):
    """Whether x is a tensor or a variable."""
    return isinstance(x, low.Operators)


def _drawn(name):
    def draw(shape, *numbers, dtype="float32", seed=None, **options):
        if dtype_of(dtype).kind == "i":  # whole numbers, below maxval
            return FUNCTIONS["cast"](FUNCTIONS["floor"](draw(shape, *numbers, dtype="float64", **options)), "int64")
        return getattr(low, name)(tuple(shape), *numbers, dtype=dtype_of(dtype), **options)

    return draw


def _truncated(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None):
    values = np.reshape(mid_level.truncated_normal(tuple(shape), stddev), tuple(shape))
    return constant(mean + values, dtype)


def _devices(device_type=None):
    return [each for each in hardware.pool().values() if device_type in (None, each.kind.upper())]


def _eagerly(run_eagerly):
    nested.EAGER[0] = run_eagerly


def _formatted(template, inputs=(), placeholder="{}"):
    known_now("tf.strings.format")
    several = isinstance(inputs, (list, tuple))
    return template.replace(placeholder, "{}").format(*map(shown, inputs if several else [inputs]))


_listing = {"list_physical_devices": _devices, "list_logical_devices": _devices}
config = room("config", _listing, run_functions_eagerly=_eagerly, experimental=room("config.experimental", _listing))
_experimental = room("data.experimental", AUTOTUNE=-1, cardinality=TensorStream.cardinality)
data = room("data", AUTOTUNE=-1, Dataset=TensorStream, Options=SimpleNamespace, experimental=_experimental)
dtypes = room("dtypes", DTYPES, as_dtype=dtype_of, cast=FUNCTIONS["cast"])
errors = room("errors", InvalidArgumentError=(ValueError, TypeError, IndexError))  # for `except`: what levels raises
feature_column = room("feature_column", vars(feature_columns))
_LINEAR = "det diag diag_part eigh eigvalsh einsum eye global_norm inv matmul matvec norm qr solve svd tensordot trace"
linalg = room("linalg", {name: FUNCTIONS[name] for name in _LINEAR.split()})
debugging = room("debugging", {f"assert_{name}": check for name, check in ASSERTED.items()})
math = room("math", FUNCTIONS, NN)
nn = room("nn", NN)
random = room(
    "random",
    normal=_drawn("normal"),
    set_seed=low.set_seed,
    shuffle=lambda value, seed=None: low.shuffle(constant(value)),
    truncated_normal=_truncated,
    uniform=_drawn("uniform"),
)
strings = room(
    "strings",
    as_string=lambda x: str(shown(x)),
    format=_formatted,
    join=lambda inputs, separator="": separator.join(inputs),
    length=len,
)
summary = room(
    "summary", create_file_writer=summaries.FileWriter, scalar=summaries.scalar, histogram=summaries.histogram
)
train = room("train", checkpoint_manager.TRAIN)
UnconnectedGradients = room("UnconnectedGradients", NONE="none", ZERO="zero")


def __dir__():
    return sorted({*globals(), *FUNCTIONS, *DTYPES, *NN})


def __getattr__(name):
    for table in (FUNCTIONS, DTYPES, NN):
        if name in table:
            return table[name]
    if name.endswith("_initializer") and name.removesuffix("_initializer") in vars(initializers):
        return getattr(initializers, name.removesuffix("_initializer"))
    raise missing(__name__, name)
