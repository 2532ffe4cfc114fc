"""Further layers, starting weights and activations, layers of several inputs, and penalties for large weights."""

import functools
import inspect
import math
import statistics
import threading

import numpy as np

from levels.low_level import (
    METHODS,
    Operators,
    Tensor,
    Variable,
    apply,
    as_tensor,
    exp,
    gather,
    nn,
    reduce_mean,
    reduce_sum,
    sqrt,
)
from levels.mid_level import (
    ACTIVATIONS,
    INITIALIZERS,
    RANDOM,
    WIDER,
    Layer,
    Made,
    at_least,
    known,
    layers,
    positive,
)
from levels.support.checks import flag
from levels_more.checks import as_python, called, expect
from levels_more.compiler.dependencies import of_levels
from levels_more.low_level import activations
from levels_more.low_level.ops import absolute, cast, concat, log_softmax, reshape, tanh, where
from levels_more.mid_level.composite_ops import joins

_NORMAL = statistics.NormalDist()
_SPREAD = 0.87962566103423978  # the standard deviation of a normal number that is cut off at ±2


def truncated_normal(shape, stddev=0.05):
    """As many numbers as the shape has, normal with mean 0, cut off at two `stddev`."""
    low, high = _NORMAL.cdf(-2.0), _NORMAL.cdf(2.0)
    return [stddev * _NORMAL.inv_cdf(RANDOM.uniform(low, high)) for _ in range(math.prod(shape))]


def _inputs(shape):
    """How many inputs weights of this shape have: the last axis but one or, where there is none, the only one."""
    return shape[-2:][0] if shape else 1


def he_uniform(shape):
    """Numbers for weights [inputs, units], uniform in ±√(6 / inputs) (He et al., 2015)."""
    limit = math.sqrt(6.0 / _inputs(shape))
    return [RANDOM.uniform(-limit, limit) for _ in range(math.prod(shape))]


INITIALIZERS.update(
    ones=lambda shape: [1.0] * math.prod(shape),
    random_normal=lambda shape: [
        0.05 * _NORMAL.inv_cdf(RANDOM.uniform(1e-12, 1.0 - 1e-12)) for _ in range(math.prod(shape))
    ],
    random_uniform=lambda shape: [RANDOM.uniform(-0.05, 0.05) for _ in range(math.prod(shape))],
    truncated_normal=truncated_normal,
    glorot_normal=lambda shape: truncated_normal(shape, math.sqrt(2.0 / sum(shape[-2:])) / _SPREAD),
    lecun_normal=lambda shape: truncated_normal(shape, math.sqrt(1.0 / _inputs(shape)) / _SPREAD),
    lecun_uniform=lambda shape: [w / math.sqrt(2.0) for w in he_uniform(shape)],
    he_normal=lambda shape: truncated_normal(shape, math.sqrt(2.0 / _inputs(shape)) / _SPREAD),
    he_uniform=he_uniform,
)
ACTIVATIONS.update(
    elu=nn.elu,
    exponential=exp,
    gelu=nn.gelu,
    hard_sigmoid=activations.hard_sigmoid,
    leaky_relu=activations.leaky_relu,
    log_sigmoid=activations.log_sigmoid,
    log_softmax=log_softmax,
    mish=activations.mish,
    relu6=activations.relu6,
    selu=activations.selu,
    silu=nn.swish,
    softmax=nn.softmax,
    softplus=activations.softplus,
    softsign=activations.softsign,
    swish=nn.swish,
    tanh=tanh,
)


class L1(Made):
    """l1·Σ|w|"""

    def __init__(self, l1=0.01):
        self.l1 = positive("L1: l1", l1, zero=True)

    def __call__(self, w):
        return self.l1 * reduce_sum(absolute(as_tensor(w)))


class L2(Made):
    """l2·Σw²"""

    def __init__(self, l2=0.01):
        self.l2 = positive("L2: l2", l2, zero=True)

    def __call__(self, w):
        w = as_tensor(w)
        return self.l2 * reduce_sum(w * w)


class L1L2(Made):
    """l1·Σ|w| + l2·Σw²"""

    def __init__(self, l1=0.0, l2=0.0):
        self.parts = L1(l1), L2(l2)

    def __call__(self, w):
        return self.parts[0](w) + self.parts[1](w)


REGULARIZERS = {"l1": L1(), "l2": L2()}


class _Training(threading.local):
    now = False  # whether layers are called in order to be trained, in each thread


TRAINING = _Training()


class Beside(list):
    """Tensors that lie side by side, and the layers of feature columns that read them: each takes `of(layer)`, its own."""

    def __init__(self, readers, tensors):
        super().__init__(tensors)
        self.readers = readers

    def of(self, layer):
        """Those of a layer. Raises ValueError for one that is no part of the model."""
        first = 0
        for reader in self.readers:
            if reader is layer:
                return self[first : first + len(layer.columns)]
            first += len(reader.columns)
        raise ValueError(f"{layer.name} is no part of the model that got these columns; keep it in an attribute")


def _several(x):
    """([their shapes], [their Specs]) of a list or a dict of tensors or arrays. Of one input nothing."""
    parts = [*x.values()] if isinstance(x, dict) else x
    if not isinstance(parts, (list, tuple)) or not parts or not isinstance(parts[0], (Operators, np.ndarray)):
        return ()
    specs = [as_tensor(part).spec for part in parts]
    return [spec.shape for spec in specs], specs


_takes_training = functools.cache(lambda call: "training" in inspect.signature(call).parameters)


def _run(layer, x, shape=None, specs=()):
    """`Layer.run` for a `call` that may hear of a training, or has several inputs with `specs`. What came and went is noted."""
    if not specs:
        x = x if type(x) is Tensor else as_tensor(x)
        specs = [x.spec]
    if not layer.built:
        layer.build_for(specs[0].shape if shape is None else shape, specs[0].dtype)
    hears = _takes_training(getattr(type(layer), "call", len))
    y = layer.call(x, training=TRAINING.now) if hears else layer.call(x)
    layer.input_specs, layer.output_shape = specs, y.spec.shape if isinstance(y, Operators) else None
    return y


def _heard(layer, training, *call):
    """`_run` on this call, with all layers inside told whether it is part of a training. None: as it was."""
    if training is None:
        return _run(layer, *call)
    training = training if type(training) is bool else flag(f"{layer.name}: training", training)
    before, TRAINING.now = TRAINING.now, training
    try:
        return _run(layer, *call)
    finally:
        TRAINING.now = before


class _Inputs(Layer):
    """A layer that is called on anything but one array: on a list of arrays, on numbers, on a place for numbers, on columns.

    Or on one as part of a training, which the layers inside hear of, until the call ends.
    """

    def run(self, x, training=None):
        if isinstance(x, (Operators, np.ndarray)):
            return _heard(self, training, x)
        if isinstance(x, dict) and hasattr(type(self), "ordered"):
            x = self.ordered(x)  # a graph of level 5 has names for its inputs
        if hasattr(x, "keys") and not all(isinstance(column, Operators) for _, column in x.items()):
            from levels_more.high_level.data_adapter import (
                beside,  # here, because level 5 is not there yet when level 4 is imported
            )

            x = beside(self, x)
        first = x[0] if isinstance(x, (list, tuple)) and x else x
        array = isinstance(first, (Operators, np.ndarray))
        if not array and hasattr(first, "through"):  # no numbers yet: level 5 notes down the call
            return first.through(self, x, training)
        if isinstance(x, dict):
            if of_levels(type(self).call) and not hasattr(type(self), "fit"):
                cure = "a DenseFeatures before it reads columns, or a call of yours"
                raise TypeError(f"{self.name}: got columns {', '.join(map(str, x))}; expected an array; {cure}")
            self.input_names = [*x]
        several = array and first is not x and not isinstance(x, Beside)
        return _heard(self, training, [*map(as_tensor, x)] if several else x, *_several(x))


def _losses(layer):
    """What this layer and those inside want added to the loss."""
    return [penalty() for part in layer.named(Layer).values() for penalty in vars(part).get("penalties", ())]


def _not_trained(layer):
    """The variables that no training changes."""
    trained = {*layer.trainable_variables}
    return [v for v in layer.variables if v not in trained]


def add_loss(layer, loss):
    """Not here: a call leaves nothing behind that the next one would have to forget. Raises NotImplementedError."""
    cure = "in call write self.penalties = [lambda: value]: functions whose results are added to the loss"
    raise NotImplementedError(f"{layer.name}: there is no add_loss; {cure}")


METHODS["Layer.add_loss"] = add_loss
METHODS["Layer.losses"] = property(_losses)
METHODS["Layer.weights"] = property(lambda layer: layer.variables)  # Keras' names
METHODS["Layer.trainable_weights"] = property(lambda layer: layer.trainable_variables)
METHODS["Layer.non_trainable_weights"] = METHODS["Layer.non_trainable_variables"] = property(_not_trained)
METHODS["Layer.count_params"] = lambda layer: layer.count()


def check_softmax(name, activation, units):
    """Raise ValueError for a softmax over one unit, which is always 1, and its logarithm 0."""
    if units == 1 and getattr(activation, "__name__", "") in ("softmax", "log_softmax"):  # in any spelling
        raise ValueError(f"{name}: a softmax over one unit is always 1; use a sigmoid, or 2 units")


class Dense(layers.Dense):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[1, units]), with a penalty or without a bias.

    Raises TypeError for an `input_shape`: an `Input` says it.
    """

    def __init__(
        self,
        units,
        activation=None,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        name=None,
        dtype=None,
        input_shape=None,
    ):
        if input_shape is not None:
            raise TypeError(
                f"Dense: input_shape is not known here; put Input({input_shape!r:.60}) in front of the layers"
            )
        initializers = dict(kernel_initializer=kernel_initializer, bias_initializer=bias_initializer)
        super().__init__(units, activation, **initializers, name=name, dtype=dtype)
        check_softmax("Dense", self.activation, self.units)
        self.penalties = []  # functions without arguments, to be added to the loss
        self.use_bias = flag("Dense: use_bias", use_bias)
        self.regularizer = kernel_regularizer
        if kernel_regularizer is not None:
            self.regularizer = known("regularizer", REGULARIZERS, kernel_regularizer)

    def build(self, shape):
        if self.use_bias:
            super().build(shape)
        else:
            self.bias = None
            self.kernel = self.add_weight((shape[-1], self.units), self.initializers[0])
        if self.regularizer is not None:
            self.penalties.append(lambda: self.regularizer(self.kernel))

    def call(self, x):
        x = x if x.spec.dtype.kind == "f" else cast(x, self.kernel.dtype)
        if not self.use_bias:
            return self.activation(x @ self.kernel)
        op = "affine_relu" if self.activation is nn.relu else "affine"
        if not joins(op, x) or getattr(self.bias, "shape", None) != (1, self.units):
            return super().call(x)
        y = apply(op, x, self.kernel, self.bias)
        return y if op == "affine_relu" or self.activation is as_tensor else self.activation(y)


WIDER.update({Layer: _Inputs, layers.Dense: Dense})


class Activation(Layer):
    """A function by name, or one of your own, as a layer."""

    def __init__(self, activation, **options):
        super().__init__(**options)
        self.activation = called("Activation", known("activation", ACTIVATIONS, activation), "a name or a function")

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

    def __init__(self, axis=-1, **options):
        super().__init__(**options)
        self.axis = as_python(axis)

    def call(self, x):
        if not isinstance(x, list):
            raise TypeError(f"{self.name}: expected a list of inputs, got {x.spec}")
        return concat(x, self.axis)


class Drawing(Layer):
    """A layer that draws random numbers: the same for the same seed, call by call."""

    def __init__(self, seed=None, **options):
        super().__init__(**options)
        seed = RANDOM.getrandbits(62) if seed is None else at_least(0, f"{type(self).__name__}: seed", seed)
        self.state = Variable(np.array([seed, 0]), trainable=False)  # key and counter: see level 2

    def drawn(self, op, x):
        """Random numbers in the shape of a tensor x, by the op of that name. Those of the next call follow them."""
        drawn = apply(op, self.state, shape=x.shape, dtype=x.dtype)
        self.state.assign(self.state + np.array([0, math.prod(x.shape)]))
        return drawn


class Dropout(Drawing):
    """In training each number is 0 with probability `rate`, and the others are divided by 1 - rate.

    Srivastava et al., 2014.
    """

    def __init__(self, rate, seed=None, **options):
        super().__init__(seed=seed, **options)
        self.rate = positive("Dropout: rate", rate, 1.0, zero=True)

    def call(self, x):
        if not TRAINING.now:
            return x
        return where(self.drawn("random_uniform", x) < self.rate, 0.0, x / (1.0 - self.rate))


class BatchNormalization(Layer):
    """gamma·(x - mean) / √(variance + epsilon) + beta, over all axes but the last (Ioffe and Szegedy, 2015)."""

    def __init__(self, momentum=0.99, epsilon=1e-3, **options):
        super().__init__(**options)
        self.momentum = positive("BatchNormalization: momentum", momentum, 1.0, zero=True)
        self.epsilon = positive("BatchNormalization: epsilon", epsilon)

    def build(self, shape):
        expect(shape, f"{self.name}: the input's shape", shape, "one axis or more")
        self.gamma, self.beta = (self.add_weight(shape[-1:], name) for name in ("ones", "zeros"))
        self.moving = [self.add_weight(shape[-1:], name, trainable=False) for name in ("zeros", "ones")]

    def call(self, x):
        """x[…, inputs] -> the same shape. Raises ValueError for another number of inputs than it was built for."""
        mean, variance = self.moving
        if x.spec.shape[-1:] != self.gamma.shape:
            raise ValueError(f"{self.name}: built for {self.gamma.shape[0]} inputs, got {x.spec}")
        if TRAINING.now and self.trainable:  # as in Keras, a frozen one goes by what it has seen before
            axes = tuple(range(len(x.spec.shape) - 1))
            mean = reduce_mean(x, axes)
            variance = reduce_mean((x - mean) ** 2, axes)
            for moving, now in zip(self.moving, (mean, variance), strict=True):
                moving.assign(self.momentum * moving + (1.0 - self.momentum) * now)
        return self.gamma * ((x - mean) / sqrt(variance + self.epsilon)) + self.beta


class LayerNormalization(Layer):
    """gamma·(x - mean) / √(variance + epsilon) + beta, each row, the last axis, by itself (Ba et al., 2016)."""

    def __init__(self, epsilon=1e-3, **options):
        super().__init__(**options)
        self.epsilon = positive("LayerNormalization: epsilon", epsilon)

    def build(self, shape):
        expect(shape, f"{self.name}: the input's shape", shape, "one axis or more")
        self.gamma, self.beta = (self.add_weight(shape[-1:], name) for name in ("ones", "zeros"))

    def call(self, x):
        """x[…, inputs] -> the same shape. Raises ValueError for another number of inputs than it was built for."""
        if x.spec.shape[-1:] != self.gamma.shape:
            raise ValueError(f"{self.name}: built for {self.gamma.shape[0]} inputs, got {x.spec}")
        centred = x - reduce_mean(x, -1, keepdims=True)
        variance = reduce_mean(centred * centred, -1, keepdims=True)
        return self.gamma * (centred / sqrt(variance + self.epsilon)) + self.beta


class Embedding(Layer):
    """ids [batch, …], whole numbers below input_dim -> [batch, …, output_dim], rows of a table that is trained."""

    whole = True  # what a model that has it is given stays whole numbers

    def __init__(self, input_dim, output_dim, embeddings_initializer="random_uniform", **options):
        super().__init__(**options)
        self.sizes = at_least(1, "Embedding: input_dim", input_dim), at_least(1, "Embedding: output_dim", output_dim)
        self.initializer = embeddings_initializer

    def build(self, shape):
        self.embeddings = self.add_weight(self.sizes, self.initializer)

    def call(self, x):
        return gather(self.embeddings, x)
