"""Layers by Keras' rules: one computes in float32 unless told otherwise, a bias is [units]; and what weights start from."""

import inspect
import math

import numpy as np

from levels import mid_level
from levels.low_level import DOOR, RUN, Operators, Variable, apply, constant, reduce_sum
from levels.mid_level import INITIALIZERS, at_least, known
from levels_more.checks import as_python, dtype_of
from levels_more.high_level import functional
from levels_more.high_level.introspection import get_config
from levels_more.low_level.ops import cast
from levels_more.mid_level import layers
from levels_more.tensorflow import constraints, more_layers
from levels_more.tensorflow.keras_rules import by_rules, classes_of
from levels_more.tensorflow.nested import numbers
from levels_more.tensorflow.variables import Assigned

FLOAT = ["float32"]  # what layers compute in that do not say it


def set_floatx(dtype):
    """Layers made from now on compute in this dtype, "float32" or "float64"."""
    FLOAT[0] = str(dtype_of("set_floatx: dtype", dtype, "float32 float64"))


def _fitting(x, dtype):
    """Floats x in a layer's dtype; lists of tensors, and what stands for numbers, as they are."""
    if isinstance(x, dict):
        return {name: _fitting(each, dtype) for name, each in x.items()}
    if isinstance(x, (list, tuple)) and len(x):
        several = isinstance(x[0], (Operators, np.ndarray, functional.Placeholder))
        return [_fitting(each, dtype) for each in x] if several else _fitting(constant(list(x)), dtype)
    x = numbers(x) if isinstance(x, np.ndarray) and x.dtype.kind in "iuf" else x
    return cast(x, dtype) if isinstance(x, Operators) and x.dtype.kind == "f" and x.dtype != dtype else x


def Input(shape=None, batch_size=None, dtype=None, name=None, input_shape=None):
    """A place for rows of that shape [sizes], in the dtype of layers unless one is said."""
    return functional.Input(tuple(input_shape if shape is None else shape), dtype or FLOAT[0], name)


class Layer(mid_level.Layer):
    """A layer of Keras: it has a dtype, float32 unless said, and takes floats in it."""

    activity_regularizer = None

    def __init__(
        self,
        *args,
        dtype=None,
        trainable=True,
        input_shape=None,
        input_dim=None,
        activity_regularizer=None,
        **options,
    ):
        super().__init__(*args, **options)
        given = activity_regularizer
        self.activity_regularizer = given and known("regularizer", layers.REGULARIZERS, given)
        self.dtype, self.input_size = np.dtype(dtype or FLOAT[0]), as_python(input_shape)
        if input_dim is not None:
            self.input_size = (at_least(1, f"{type(self).__name__}: input_dim", input_dim),)
        if not trainable:  # True would thaw the parts that a model is made of
            self.trainable = False

    def __call__(self, inputs, training=None):
        """What `call` gives for inputs [batch, …]."""
        before = vars(self).get("penalties", ())
        kept = [penalty for penalty in before if not hasattr(penalty, "of_call")]
        if len(kept) < len(before):  # another list would have a step traced anew
            self.penalties = kept
        y = super().__call__(_fitting(inputs, self.dtype or FLOAT[0]), training)
        if self.activity_regularizer is not None and isinstance(y, Operators):
            rows = reduce_sum(apply("spread", 1.0, y, count=1.0)) / float(max(1, math.prod(y.spec.shape[1:])))
            self.add_loss(self.activity_regularizer(y) / rows)
        return y

    def build(self, input_shape):
        super().build(tuple(input_shape))

    def add_weight(self, shape=(), initializer=None, dtype=None, trainable=True, regularizer=None, name=None):
        """A new variable of this shape, in the layer's dtype, with a penalty where a regularizer is given."""
        front, DOOR.stands = DOOR.stands, RUN  # a function of yours may draw its numbers by ops
        try:
            found = super().add_weight(tuple(shape), initializer or "glorot_uniform", trainable)
        finally:
            DOOR.stands = front
        found = Assigned(found.newest(), trainable, name, dtype)
        if regularizer is not None:
            self.penalties = [*vars(self).get("penalties", ()), lambda: regularizer(found)]
        return found

    def add_loss(self, loss):
        """Add a number to what is minimised, until the layer is called again."""
        kept = lambda: loss  # noqa: E731
        kept.of_call = True
        vars(self).setdefault("penalties", []).append(kept)

    def set_weights(self, weights):
        """Give all variables these arrays, in their dtypes. Raises ValueError where one of them does not fit."""
        given = [*weights]
        dtypes = [v.dtype for v in self.variables] if len(given) == len(self.variables) else [None] * len(given)
        super().set_weights([np.asarray(w, dtype) for w, dtype in zip(given, dtypes, strict=True)])

    def get_config(self):
        """{name: the argument that it was made with}. What is given by its place has the name in the class of levels."""
        found = get_config(self)
        made = [inspect.getfullargspec(kind.__init__) for kind in type(self).__mro__ if "__init__" in vars(kind)]
        names = next(each.args[1:] for each in made if not each.varargs)
        return dict(zip(names, found.pop("args", ()), strict=False)) | found

    @classmethod
    def from_config(cls, config):
        """A layer of these arguments."""
        return cls(**config)


class Dense(Layer, layers.Dense):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[units]); constraints hold after each step of an optimizer."""

    def __init__(self, *args, kernel_constraint=None, bias_constraint=None, **options):
        super().__init__(*args, **options)
        given = kernel_constraint, bias_constraint
        self.constraints = [each and known("constraint", constraints.WORDS, each) for each in given]

    def build(self, input_shape):
        super().build(input_shape)
        if self.use_bias:
            self.bias = self.add_weight((self.units,), self.initializers[1], name="bias")
        for variable, constraint in zip((self.kernel, self.bias), self.constraints, strict=True):
            if constraint:
                variable.constraint = constraint() if isinstance(constraint, type) else constraint


class _Drawing(Layer):
    """What draws random numbers: its state is none of the layer's weights."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.state = _State(self.state, trainable=False)


class ActivityRegularization(Layer):
    """x as it is; (l1·Σ|x| + l2·Σx²) / rows is added to the loss."""

    def __init__(self, l1=0.0, l2=0.0, **options):
        super().__init__(activity_regularizer=layers.L1L2(l1, l2), **options)

    def call(self, x):
        """x[batch, …] -> x"""
        return x


class _State(Variable):
    apart = True  # for `Module.named`: no weight


def draw(name, shape, first=None, second=None, *, value=0.0, mean=0.0, stddev=0.05, minval=-0.05, maxval=0.05):
    """Numbers [as many as the shape has] for starting weights, by the name of an initializer and Keras' arguments of it."""
    if name == "constant":
        return np.broadcast_to(np.asarray(value if first is None else first), shape).ravel()
    if name == "identity":
        return (1.0 if first is None else first) * np.eye(*shape).ravel()
    values = np.array(known("initializer", INITIALIZERS, name)(shape))
    if name == "random_uniform":
        low, high = minval if first is None else first, maxval if second is None else second
        return low + (high - low) * (values + 0.05) / 0.1
    if name in ("random_normal", "truncated_normal"):
        return (mean if first is None else first) + values * ((stddev if second is None else second) / 0.05)
    return values


def bent(name):
    """An activation by name, as a layer's class."""
    return lambda **options: LAYERS["Activation"](name, **options)


def drawn_by(name):
    """An initializer: called with Keras' arguments of it, it gives a function of a shape, whose numbers are a tensor."""

    def make(*given, seed=None, **options):
        given, options = as_python(given), {option: as_python(x) for option, x in options.items()}

        def drawn(shape, dtype=None):
            return numbers(np.reshape(draw(name, tuple(shape), *given, **options), tuple(shape)), dtype or FLOAT[0])

        return drawn

    return make


_PLAIN = (
    "Activation Add Average BatchNormalization Concatenate DenseFeatures Embedding Flatten Lambda LayerNormalization "
    "LeakyReLU Maximum Minimum Multiply Normalization Rescaling Reshape Subtract"
)
LAYERS = {"Layer": Layer, "Dense": Dense}
LAYERS |= {name: bent(name.lower()) for name in ("ReLU", "Softmax")}
LAYERS |= by_rules(Layer, *(getattr(mid_level, name) for name in _PLAIN.split()))
LAYERS |= by_rules(Layer, *classes_of(more_layers, mid_level.Layer))
LAYERS |= by_rules(_Drawing, layers.Dropout, more_layers.GaussianNoise)
LAYERS["ActivityRegularization"] = ActivityRegularization
_DRAWN = (
    "constant glorot_normal glorot_uniform he_normal he_uniform identity lecun_normal lecun_uniform ones random_normal "
    "random_uniform truncated_normal zeros"
)
DRAWERS = {name: drawn_by(name) for name in _DRAWN.split()}
DRAWERS |= {name.title().replace("_", ""): drawer for name, drawer in DRAWERS.items()}
