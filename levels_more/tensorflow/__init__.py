"""TensorFlow's names for what the five notebooks build: `import levels_more.tensorflow as tf`.

It has the names that the stored programs call, and related ones; chapter 3 of "eat tensorflow2 in 30 days" runs with
its import lines changed. What differs: int32 is int64 here; a functional model's `layers` do not begin with Keras'
InputLayer; random numbers differ, `tf.random.set_seed` repeats them, and the seed of an op is ignored; a function that
cannot be traced runs op by op; a float64 of NumPy beside a float32 tensor raises TypeError. A shape is a tuple: for
`x.shape.as_list()` write `list(x.shape)`, for `x.shape.rank` `len(x.shape)`. NumPy's elementwise functions take arrays
and refuse tensors, because `array + x` is left to the tensor: write `np.exp(x.numpy())`, or `tf.exp(x)`. The error for
a missing name says what to use instead.
"""

import builtins

import numpy as np

from levels.low_level import Tensor  # noqa: F401
from levels_more import low_level as low
from levels_more import mid_level
from levels_more.missing import module_api, small_room
from levels_more.tensorflow import data_pipeline, functions, keras  # noqa: F401
from levels_more.tensorflow.functions import DTYPES, FUNCTIONS, NN, constant, shown
from levels_more.tensorflow.nested import TensorSpec, function, require_numbers  # noqa: F401
from levels_more.tensorflow.variables import Variable  # noqa: F401
from levels_more.tensorflow.variables import SortedModule as Module  # noqa: F401
from levels_more.tensorflow.variables import GradientTape  # noqa: F401

__version__ = "2.21.0+levels"  # the version of TensorFlow beside which the stored programs run


def print(*values, sep=" ", end="\n"):
    """Print values, tensors as NumPy arrays. Raises TypeError while a function is traced."""
    require_numbers("tf.print")
    builtins.print(*map(shown, values), sep=sep, end=end)


def _truncated(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None):
    values = np.reshape(mid_level.truncated_normal(tuple(shape), stddev), tuple(shape))
    return constant(mean + values, dtype)


def _formatted(template, inputs=(), placeholder="{}"):
    require_numbers("tf.strings.format")
    several = isinstance(inputs, (list, tuple))
    return template.replace(placeholder, "{}").format(*map(shown, inputs if several else [inputs]))


_truncated.__qualname__, _formatted.__qualname__ = "truncated_normal", "strings.format"  # for errors
_quick = small_room("tensorflow.data.experimental", AUTOTUNE=-1)
data = small_room("tensorflow.data", AUTOTUNE=-1, Dataset=data_pipeline.Dataset, experimental=_quick)
math = small_room("tensorflow.math", FUNCTIONS, NN)
nn = small_room("tensorflow.nn", NN)
random = small_room(
    "tensorflow.random",
    normal=functions.normal,
    set_seed=low.set_seed,
    shuffle=lambda value, seed=None: low.shuffle(constant(value)),
    truncated_normal=_truncated,
    uniform=functions.uniform,
)
strings = small_room(
    "tensorflow.strings",
    format=_formatted,
    join=lambda inputs, separator="": separator.join(inputs),
    length=len,
)
for _name in ("linalg", "train", "summary", "config", "debugging", "dtypes", "errors", "feature_column"):
    globals()[_name] = small_room(f"tensorflow.{_name}")
__getattr__, __dir__ = module_api("tensorflow", globals(), FUNCTIONS, DTYPES, NN)
