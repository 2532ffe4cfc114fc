"""Further layers: penalties, functions as layers, several inputs, arithmetic, dropout, normalisation, embeddings."""

import collections
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from levels import mid_level
from levels.low_level import Variable, apply, exp, gather, sqrt
from levels.mid_level import RANDOM
from levels.support.checks import check_bool, check_int, check_positive, lookup
from levels_more.checks import as_python, called, expect, word
from levels_more.low_level import nn
from levels_more.low_level.ops import cast, concat, reduce_mean, reshape, where
from levels_more.mid_level.base_layer import TRAINING, Layer
from levels_more.mid_level.regularizers import REGULARIZERS

# the functions of levels_more.low_level.nn by name; a name that is not here is looked up in the core's
ACTIVATIONS = collections.ChainMap({name: getattr(nn, name) for name in nn.__all__}, mid_level.ACTIVATIONS)
ACTIVATIONS["exponential"] = exp


def check_softmax(name, activation, units):
    """Raise ValueError for a softmax over one unit, which is always 1 (its logarithm is always 0)."""
    if units == 1 and getattr(activation, "__name__", "") in ("softmax", "log_softmax"):  # by name or as a function
        raise ValueError(f"{name}: a softmax over one unit is always 1; use a sigmoid, or 2 units")


class Dense(mid_level.Dense, Layer):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[1, units]); the bias and a penalty are optional.

    Raises TypeError for an `input_shape`: use an `Input` instead.
    """

    kernel: Variable
    bias: Variable | None

    def __init__(
        self,
        units: int,
        activation: str | Callable | None = None,
        use_bias: bool = True,
        kernel_initializer: str | Callable = "glorot_uniform",
        bias_initializer: str | Callable = "zeros",
        kernel_regularizer: str | Callable | None = None,
        name: str | None = None,
        dtype: str | np.dtype | type | None = None,
        input_shape: None = None,
    ):
        if input_shape is not None:
            raise TypeError(
                f"Dense: input_shape is not known here; put Input({input_shape!r:.60}) in front of the layers"
            )
        if activation is not None:
            activation = lookup("activation", ACTIVATIONS, activation)
        super().__init__(units, activation, name=name, dtype=dtype)
        self.initializers = kernel_initializer, bias_initializer
        check_softmax("Dense", self.activation, self.units)
        self.penalties = []  # functions without arguments, to be added to the loss
        self.use_bias = check_bool("Dense: use_bias", use_bias)
        self.regularizer = kernel_regularizer
        if kernel_regularizer is not None:
            self.regularizer = lookup("regularizer", REGULARIZERS, kernel_regularizer)

    def build(self, shape):
        kernel, bias = self.initializers
        self.kernel = self.add_weight((shape[-1], self.units), kernel)
        self.bias = self.add_weight((1, self.units), bias) if self.use_bias else None
        if self.regularizer is not None:
            self.penalties.append(self.penalty)  # bound: in a copy of this layer it reads the copy's kernel

    def penalty(self):
        """The regularizer's value for the kernel: one number, which is added to the loss."""
        return self.regularizer(self.kernel)

    def call(self, x):
        x = x if x.spec.dtype.kind == "f" else cast(x, self.kernel.dtype)
        return super().call(x) if self.use_bias else self.activation(x @ self.kernel)


class Activation(Layer):
    """A function by name, or one of your own, as a layer."""

    def __init__(self, activation: str | Callable, **options):
        super().__init__(**options)
        self.activation = called("Activation", lookup("activation", ACTIVATIONS, activation), "a name or a function")

    def call(self, x):
        if len(x.spec.shape) == 2:
            check_softmax(type(self).__name__, self.activation, x.spec.shape[-1])
        return self.activation(x)


class Flatten(Layer):
    """x[batch, …] -> [batch, all the rest]"""

    def call(self, x):
        return reshape(x, (-1, math.prod(x.spec.shape[1:])))


class Concatenate(Layer):
    """A list of inputs -> one, joined along an axis. Raises TypeError for a single input."""

    def __init__(self, axis: int = -1, **options):
        super().__init__(**options)
        self.axis = as_python(axis)

    def call(self, x):
        if not isinstance(x, list):
            raise TypeError(f"{self.name}: expected a list of inputs, got {x.spec}")
        return concat(x, self.axis)


class Drawing(Layer):
    """A layer that draws random numbers. The same seed gives the same numbers, call by call."""

    def __init__(self, seed: int | None = None, **options):
        super().__init__(**options)
        seed = RANDOM.getrandbits(62) if seed is None else check_int(0, f"{type(self).__name__}: seed", seed)
        self.state = Variable(np.array([seed, 0]), trainable=False)  # key and counter: see level 2

    def draw(self, op, x):
        """Draw random numbers with this op, with the shape and dtype of x. The next call continues the sequence."""
        drawn = apply(op, self.state, shape=x.shape, dtype=x.dtype)
        self.state.assign(self.state + np.array([0, math.prod(x.shape)]))
        return drawn


class Dropout(Drawing):
    """In training each number is 0 with probability `rate`, and the others are divided by 1 - rate.

    Srivastava et al., 2014.
    """

    def __init__(self, rate: float, seed: int | None = None, **options):
        super().__init__(seed=seed, **options)
        self.rate = check_positive("Dropout: rate", rate, 1.0, zero=True)

    def call(self, x):
        if not TRAINING.now:
            return x
        return where(self.draw("random_uniform", x) < self.rate, 0.0, x / (1.0 - self.rate))


class BatchNormalization(Layer):
    """gamma·(x - mean) / √(variance + epsilon) + beta, over all axes but the last (Ioffe and Szegedy, 2015)."""

    def __init__(self, momentum: float = 0.99, epsilon: float = 1e-3, **options):
        super().__init__(**options)
        self.momentum = check_positive("BatchNormalization: momentum", momentum, 1.0, zero=True)
        self.epsilon = check_positive("BatchNormalization: epsilon", epsilon)

    def build(self, shape):
        expect(shape, f"{self.name}: the input's shape", shape, "one axis or more")
        self.gamma, self.beta = (self.add_weight(shape[-1:], name) for name in ("ones", "zeros"))
        self.moving = [self.add_weight(shape[-1:], name, trainable=False) for name in ("zeros", "ones")]

    def call(self, x):
        """x[…, inputs] -> the same shape. Raises ValueError for another number of inputs than it was built for."""
        mean, variance = self.moving
        if x.spec.shape[-1:] != self.gamma.shape:
            raise ValueError(f"{self.name}: built for {self.gamma.shape[0]} inputs, got {x.spec}")
        if TRAINING.now and self.trainable:  # as in Keras, a frozen layer uses its moving averages
            axes = tuple(range(len(x.spec.shape) - 1))
            mean = reduce_mean(x, axes)
            variance = reduce_mean((x - mean) ** 2, axes)
            for moving, now in zip(self.moving, (mean, variance), strict=True):
                moving.assign(self.momentum * moving + (1.0 - self.momentum) * now)
        return self.gamma * ((x - mean) / sqrt(variance + self.epsilon)) + self.beta


class Embedding(Layer):
    """ids [batch, …], whole numbers below input_dim -> [batch, …, output_dim], rows of a table that is trained."""

    whole = True  # integer inputs of a model with this layer stay integers

    def __init__(
        self, input_dim: int, output_dim: int, embeddings_initializer: str | Callable = "random_uniform", **options
    ):
        super().__init__(**options)
        self.sizes = check_int(1, "Embedding: input_dim", input_dim), check_int(1, "Embedding: output_dim", output_dim)
        self.initializer = embeddings_initializer

    def build(self, shape: tuple[int, ...]) -> None:
        self.embeddings = self.add_weight(self.sizes, self.initializer)

    def call(self, x):
        return gather(self.embeddings, x)


ARITHMETIC = "add", "subtract", "multiply", "divide", "power", "matmul", "negative"


def operand(op, number):
    """Return `number` if it is a number (an int within int64) or an array. Raises TypeError for anything else."""
    real = isinstance(number, (int, float, np.number, np.ndarray)) and not (
        type(number) is int and abs(number) >= 2**63
    )
    return expect(real, f"Arithmetic: the other operand of {op}", number, "a number, an array, or an Input")


class Arithmetic(Layer):
    """Apply an op, given by name, to a list of two tensors, or to one tensor and a number.

    `op` is "add", "subtract", "multiply", "divide", "power" or "matmul"; the number is the right operand, or the left
    one if `left`. "negative" takes one tensor. `inputs * 2.0` with an `Input` makes such a layer. Raises ValueError for
    other names, TypeError if `number` is neither a number nor an array.
    """

    def __init__(self, op: str, number: "ArrayLike | None" = None, left: bool = False, **options):
        super().__init__(**options)
        if word("Arithmetic: op", op) not in ARITHMETIC:
            raise ValueError(f"Arithmetic: op is {op!r}; there are {', '.join(ARITHMETIC)}")
        self.op = op
        self.left = left
        self.number = None if number is None else operand(op, number)

    def call(self, x):
        if self.number is None:
            return apply(self.op, *(x if isinstance(x, list) else [x]))
        return apply(self.op, *((self.number, x) if self.left else (x, self.number)))
