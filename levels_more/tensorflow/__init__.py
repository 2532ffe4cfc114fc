"""TensorFlow's names on what the five notebooks build: `import levels_more.tensorflow as tf`.

Programs for small dense nets run with their import lines changed. What differs: int32 is int64 here, random numbers are
others for the same seed, and a function that cannot be traced runs op by op. A name that is missing says what to use.
"""

import builtins
import contextlib

from levels import hardware, mid_level
from levels import low_level as low
from levels.low_level import Tensor  # noqa: F401
from levels.mid_level import feature_columns
from levels_more import nested, summaries
from levels_more.nested import function, known_now  # noqa: F401
from levels_more.tensor_pipeline import TensorStream
from levels_more.watching import WatchingTape as GradientTape  # noqa: F401

from . import keras
from .functions import DTYPES, FUNCTIONS, NN, constant, dtype_of, shown
from .rooms import missing, room

__version__ = "levels"
TensorShape, newaxis, convert_to_tensor = tuple, None, constant


class Variable(low.Variable):
    """A tensor that `assign` replaces; the variable is what `assign` gives back."""

    def __init__(self, initial_value, trainable=True, name=None, dtype=None, shape=None):
        value = initial_value() if callable(initial_value) else initial_value
        super().__init__(constant(value, dtype), name, trainable)

    def assign(self, value, read_value=True):
        super().assign(value if isinstance(value, low.Operators) else constant(value, self.dtype))
        return self

    def assign_add(self, delta, read_value=True):
        """Name the sum."""
        return self.assign(self + delta)

    def assign_sub(self, delta, read_value=True):
        """Name the difference."""
        return self.assign(self - delta)

    def __reduce__(self):
        return Variable, (self.numpy(), self.trainable, self.name)


class Module(low.Module):
    """Owns variables and modules, in the order of their attributes' names, and has a name."""

    def __init__(self, name=None):
        self.name = type(self).__name__.lower() if name is None else name

    name_scope = property(lambda self: contextlib.nullcontext(self.name))
    submodules = property(lambda self: tuple(part for part in self.named(low.Module).values() if part is not self))
    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable))

    @property
    def variables(self):
        """All variables: its own, then those of its parts."""
        named = self.named(low.Variable)
        return tuple(named[path] for path in sorted(named, key=lambda path: (path.count("."), path)))

    @staticmethod
    def with_name_scope(method):
        """The method itself: the names of variables have no prefix here."""
        return method


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


def is_tensor(x):
    """Whether x is a tensor or a variable."""
    return isinstance(x, low.Operators)


def _initial(name):
    return lambda shape, *numbers, dtype="float32", seed=None, **options: getattr(low, name)(
        tuple(shape), *numbers, dtype=dtype_of(dtype), **options
    )


def _truncated(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None):
    values = mid_level.truncated_normal(tuple(shape), stddev)
    return mean + FUNCTIONS["reshape"](constant(values, dtype), shape)


def _devices(device_type=None):
    return [each for each in hardware.pool().values() if device_type in (None, each.kind.upper())]


def _eagerly(run_eagerly):
    nested.EAGER[0] = run_eagerly


def _text(inputs, separator=""):
    return separator.join(inputs)


def _formatted(template, inputs=(), **options):
    known_now("tf.strings.format")
    return template.format(*map(shown, inputs if isinstance(inputs, (list, tuple)) else [inputs]))


math = room("math", "`tf.math`: functions of tensors.", FUNCTIONS | NN)
linalg = room(
    "linalg", "`tf.linalg`: products and norms.", {name: FUNCTIONS[name] for name in ("eye", "matmul", "norm")}
)
nn = room("nn", "`tf.nn`: the functions of neural nets.", NN)
random = room("random", "`tf.random`: other numbers than TensorFlow's for the same seed.", {
    "normal": _initial("normal"), "uniform": _initial("uniform"), "truncated_normal": _truncated,
    "shuffle": lambda value, seed=None: low.shuffle(constant(value)), "set_seed": low.set_seed})  # fmt: skip
strings = room("strings", "`tf.strings`: Python's text.", {
    "format": _formatted, "join": _text, "length": len, "as_string": lambda x: str(shown(x))})  # fmt: skip
config = room("config", "`tf.config`.", {"list_physical_devices": _devices, "run_functions_eagerly": _eagerly})
data = room("data", "`tf.data`.", {
    "AUTOTUNE": -1, "Dataset": TensorStream, "experimental": room("data.experimental", "", {"AUTOTUNE": -1})})  # fmt: skip
summary = room("summary", "`tf.summary`: numbers for TensorBoard.", {
    "create_file_writer": summaries.FileWriter, "scalar": summaries.scalar, "histogram": summaries.histogram})  # fmt: skip
errors = room(
    "errors", "`tf.errors`: what levels raises.", {"InvalidArgumentError": (ValueError, TypeError, IndexError)}
)
feature_column = room("feature_column", "`tf.feature_column`.", vars(feature_columns))
losses, metrics, optimizers, initializers = keras.losses, keras.metrics, keras.optimizers, keras.initializers
for _name in ("constant", "ones", "random_normal", "random_uniform", "zeros"):
    globals()[f"{_name}_initializer"] = getattr(initializers, _name)


def __getattr__(name):
    for table in (FUNCTIONS, DTYPES, NN):
        if name in table:
            return table[name]
    raise missing(__name__, name)
