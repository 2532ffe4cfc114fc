"""TensorFlow's names on what the five notebooks build: `import levels_more.tensorflow as tf`.

Programs for small dense nets run with only that line changed. A name that is missing says so.
"""

import contextlib
import functools
import math as python_math
import time
from types import SimpleNamespace

import numpy as np

from levels import hardware, mid_level
from levels import low_level as low
from levels.low_level import Tensor, constant  # noqa: F401
from levels.mid_level import feature_columns as feature_column  # noqa: F401

from . import data, keras
from .functions import DTYPES, FUNCTIONS, nn

convert_to_tensor = constant
math = SimpleNamespace(**FUNCTIONS)
random = SimpleNamespace(
    normal=lambda shape, mean=0.0, stddev=1.0, dtype="float32", seed=None: low.normal(shape, mean, stddev, dtype),
    uniform=lambda shape, minval=0.0, maxval=1.0, dtype="float32", seed=None: low.uniform(shape, minval, maxval, dtype),
    truncated_normal=lambda shape, mean=0.0, stddev=1.0, dtype="float32", seed=None: constant(
        mean + np.reshape(mid_level.truncated_normal(tuple(shape), stddev), shape), dtype
    ),
    shuffle=lambda value, seed=None: low.shuffle(value),
    set_seed=low.set_seed,
)
config = SimpleNamespace(
    list_physical_devices=lambda kind=None: [d for d in hardware.pool().values() if kind in (None, d.kind.upper())],
    run_functions_eagerly=lambda run_eagerly: None,
)
losses, metrics, optimizers, initializers = keras.losses, keras.metrics, keras.optimizers, keras.initializers
strings = SimpleNamespace(
    format=lambda template, inputs: template.format(*(map(_shown, inputs if isinstance(inputs, (list, tuple)) else [inputs])))
)


def _shown(x):
    """As TensorFlow prints it: the numbers alone."""
    return x.numpy() if isinstance(x, low.Operators) else x


def print(*values, sep=" ", end="\n", output_stream=None):
    """Print tensors as their numbers. While a function is traced they are not known yet, and nothing is printed."""
    import builtins

    if not any(type(x) is low.Symbol for x in values):
        builtins.print(*map(_shown, values), sep=sep, end=end, file=output_stream)


class Variable(low.Variable):
    """A tensor that `assign` replaces, of a dtype."""

    def __init__(self, initial_value, trainable=True, name=None, dtype=None, shape=None):
        value = initial_value() if callable(initial_value) else initial_value
        super().__init__(value if dtype is None else constant(value, dtype), name, trainable)


class TensorSpec:
    """A shape and a dtype, as `input_signature` takes them. (A function is traced for each shape, whatever this says.)"""

    def __init__(self, shape, dtype="float32", name=None):
        self.shape, self.dtype, self.name = tuple(shape or ()), np.dtype(dtype), name


def function(func=None, input_signature=None, jit_compile=None, autograph=True, reduce_retracing=False):
    """Traced once for each signature; with or without arguments, as a decorator, of functions and of methods."""
    return _Function(func) if func is not None else _Function


class _Function(low.Function):
    """A function that is a method of each object, too."""

    def __get__(self, owner, kind=None):
        if owner is None:
            return self
        name = f"_traced_{self.python.__name__}"
        if name not in vars(owner):
            vars(owner)[name] = _Function(functools.partial(self.python, owner))
        return vars(owner)[name]


class GradientTape(low.GradientTape):
    """Writes down every op while it is open, of constants, too."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        super().__init__(persistent)

    def watch(self, tensor):
        """Nothing to do: every tensor is watched."""

    def gradient(self, target, sources, unconnected_gradients=None):
        """As on level 3; a source that has no part in the target gives None."""
        several = isinstance(sources, (list, tuple))
        used = {id(x) for _, inputs, _, _ in self.records or () for x in inputs}
        taken = [x for x in (sources if several else [sources])]
        known = [x for x in taken if id(low.as_tensor(x)) in used or x is target]
        found = dict(zip(map(id, known), super().gradient(target, known), strict=True)) if known else {}
        return [found.get(id(x)) for x in taken] if several else found.get(id(sources))


class Module(low.Module):
    """Owns variables and modules, and has a name."""

    def __init__(self, name=None):
        self.name = name or type(self).__name__.lower()

    name_scope = property(lambda self: contextlib.nullcontext(self.name))
    submodules = property(lambda self: tuple(part for part in self.named(low.Module).values() if part is not self))

    @staticmethod
    def with_name_scope(method):
        """The method itself: names of variables have no prefix here."""
        return method


def device(name):
    """Inside this `with` block new tensors are placed there: "/CPU:0", "gpu:0"."""
    return low.device(name.strip("/").lower().removeprefix("device:"))


def timestamp():
    """Seconds since 1970."""
    return constant(np.float64(time.time()))


def __getattr__(name):
    for table in (FUNCTIONS, DTYPES):
        if name in table:
            return table[name]
    raise AttributeError(f"levels_more.tensorflow has no {name!r}; it knows the names that small programs use", name=name)
