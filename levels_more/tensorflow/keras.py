"""`tf.keras`: levels 4 and 5 by Keras' names, in rooms. Where Keras' rules differ, they are in levels_more.keras_rules."""

import numpy as np

from levels import high_level, mid_level
from levels.high_level import Input
from levels.low_level import set_seed
from levels_more import keras_rules, saving
from levels_more import metrics as more_metrics
from levels_more.by_batch import to_categorical
from levels_more.keras_rules import LAYERS, LOSSES, METRICS, Model, Sequential, rows_of

from .functions import FUNCTIONS, NN, constant
from .rooms import missing, room

REGISTERED = {}  # classes and functions of the reader's that load_model knows


def _named(place, names):
    return {name: getattr(place, name) for name in names.split()}


def _layer(name):
    """A layer's class as a function of several inputs: concatenate([a, b])."""
    return lambda inputs, **options: LAYERS[name](**options)(inputs)


def _input_layer(input_shape=None, shape=None, dtype="float32", name=None):
    return Input(tuple(input_shape or shape), dtype, name)


def _metric(kind):
    """The metric of a loss: its mean over all samples."""
    return lambda name=None, dtype=None, **options: METRICS["MeanLoss"](kind(**options), name)


def _drawn(name):
    """An initializer by name: what gives a tensor of that shape."""
    return lambda *numbers, seed=None, **options: (
        lambda shape, dtype=None: constant(
            np.reshape(keras_rules.draw(name, tuple(shape), *numbers, **options), tuple(shape)),
            dtype or keras_rules.FLOAT[0],
        )
    )


def register_keras_serializable(package="Custom", name=None):
    """Decorates a class or a function of yours, which `load_model` then knows."""
    return lambda kind: REGISTERED.setdefault(kind.__name__, kind)


def load_model(filepath, custom_objects=None, compile=True):
    """The model that `save` wrote."""
    return saving.load_model(filepath, REGISTERED | (custom_objects or {}))


def get(name):
    """The function of that name, or the function itself; None is `linear`."""
    return mid_level.known("activation", mid_level.ACTIVATIONS, name or "linear")


_DRAWN = "constant glorot_normal glorot_uniform he_normal he_uniform ones random_normal random_uniform truncated_normal zeros"
_PLAIN = (
    "abs argmax argmin cast equal exp expand_dims log matmul maximum minimum ones_like reduce_all reduce_any reduce_max "
    "reduce_mean reduce_min reduce_prod reduce_std reduce_sum reshape round shape sign sqrt square squeeze stack transpose "
    "where zeros_like"
)
_JOINING = "Add Average Concatenate Maximum Minimum Multiply Subtract"
_HEARING = (
    "Callback CSVLogger EarlyStopping History LambdaCallback LearningRateScheduler ModelCheckpoint ReduceLROnPlateau "
    "TensorBoard TerminateOnNaN"
)
_drawers = {name: _drawn(name) for name in _DRAWN.split()}
_plain = {name.removeprefix("reduce_"): FUNCTIONS[name] for name in _PLAIN.split()}
_rows = {more_metrics.snake_case(name): rows_of(kind) for name, kind in LOSSES.items() if name != "Loss"}
_rows |= {"mse": _rows["mean_squared_error"], "mae": _rows["mean_absolute_error"]}

activations = room("keras.activations", NN, linear=FUNCTIONS["identity"], get=get)
backend = room(
    "keras.backend",
    _plain,
    clear_session=lambda: None,  # models share no state, so there is nothing to clear
    clip=FUNCTIONS["clip_by_value"],
    epsilon=lambda: 1e-7,
    floatx=lambda: keras_rules.FLOAT[0],
    get_value=np.asarray,
    set_floatx=keras_rules.set_floatx,
)
ops = room("keras.ops", FUNCTIONS, NN, _plain, convert_to_tensor=constant)
callbacks = room("keras.callbacks", _named(high_level, _HEARING))
initializers = room(
    "keras.initializers", _drawers, {name.title().replace("_", ""): drawer for name, drawer in _drawers.items()}
)
layers = room(
    "keras.layers",
    LAYERS,
    {name.lower(): _layer(name) for name in _JOINING.split()},
    Input=Input,
    InputLayer=_input_layer,
)
losses = room("keras.losses", LOSSES, _rows)
metrics = room(
    "keras.metrics",
    {name: _metric(kind) for name, kind in LOSSES.items() if name != "Loss"},
    METRICS,
    _rows,
    binary_accuracy=keras_rules.binary_accuracy,
)
models = room(
    "keras.models",
    _named(high_level, "clone_model model_from_json"),
    Model=Model,
    Sequential=Sequential,
    load_model=load_model,
)
schedules = room(
    "keras.optimizers.schedules",
    _named(mid_level, "CosineDecay ExponentialDecay InverseTimeDecay PiecewiseConstantDecay PolynomialDecay"),
)
optimizers = room("keras.optimizers", keras_rules.OPTIMIZERS_OF_KERAS, schedules=schedules)
regularizers = room(
    "keras.regularizers", _named(mid_level, "L1 L2 L1L2"), l1=mid_level.L1, l2=mid_level.L2, l1_l2=mid_level.L1L2
)
utils = room(
    "keras.utils",
    to_categorical=to_categorical,
    set_random_seed=set_seed,
    register_keras_serializable=register_keras_serializable,
)


def __getattr__(name):
    raise missing(__name__, name)
