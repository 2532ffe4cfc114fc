"""`tf.keras`: levels 4 and 5 by Keras' names, in rooms. Where Keras' rules differ, they are in levels_more.tensorflow.keras_layers and others."""

import numpy as np

from levels import high_level, mid_level
from levels_more.high_level.batch_methods import to_categorical
from levels_more.low_level.creation import set_seed
from levels_more.tensorflow import constraints as limits
from levels_more.tensorflow import keras_layers, keras_losses, keras_metrics, keras_models, keras_optimizers
from levels_more.tensorflow.keras_callbacks import Callback, History
from levels_more.tensorflow.keras_layers import LAYERS, Input
from levels_more.tensorflow.keras_models import Model, Sequential  # noqa: F401

from .functions import FUNCTIONS, NN, constant
from .rooms import missing, room


def _named(place, names):
    return {name: getattr(place, name) for name in names.split()}


def _layer(name):
    """A layer's class as a function of several inputs: concatenate([a, b])."""
    return lambda inputs, **options: LAYERS[name](**options)(inputs)


def _get(what, table):
    """`get`: a word of a table as a new object of its class, or as its function; what is no word stays."""

    def find(name):
        found = mid_level.known(what, table, name)
        return found() if isinstance(name, str) and isinstance(found, type) else found

    return find


def _activation(name):
    return mid_level.known("activation", mid_level.ACTIVATIONS, name or "linear")


_PLAIN = (
    "abs argmax argmin cast equal exp expand_dims log matmul maximum minimum ones_like reduce_all reduce_any reduce_max "
    "reduce_mean reduce_min reduce_prod reduce_std reduce_sum reshape round shape sign sqrt square squeeze stack transpose "
    "where zeros_like"
)
_JOINING = "Add Average Concatenate Maximum Minimum Multiply Subtract"
_HEARING = (
    "CSVLogger EarlyStopping LambdaCallback LearningRateScheduler ModelCheckpoint ReduceLROnPlateau "
    "TensorBoard TerminateOnNaN"
)
_RATES = "CosineDecay ExponentialDecay InverseTimeDecay PiecewiseConstantDecay PolynomialDecay"
_plain = {name.removeprefix("reduce_"): FUNCTIONS[name] for name in _PLAIN.split()}
_joining = {name.lower(): _layer(name) for name in _JOINING.split()}

activations = room("keras.activations", NN, linear=FUNCTIONS["identity"], exponential=FUNCTIONS["exp"], get=_activation)
backend = room(
    "keras.backend",
    NN,
    _plain,
    clear_session=lambda: None,  # models share no state, so there is nothing to clear
    clip=FUNCTIONS["clip_by_value"],
    epsilon=lambda: 1e-7,
    floatx=lambda: keras_layers.FLOAT[0],
    get_value=np.asarray,
    set_floatx=keras_layers.set_floatx,
)
callbacks = room("keras.callbacks", _named(high_level, _HEARING), Callback=Callback, History=History)
constraints = room("keras.constraints", limits.CONSTRAINTS)
initializers = room("keras.initializers", keras_layers.DRAWERS)
initializers.get = lambda name: keras_layers.DRAWERS[name]() if isinstance(name, str) else name
layers = room("keras.layers", LAYERS, _joining, Input=Input, InputLayer=Input)
losses = room("keras.losses", keras_losses.LOSSES, get=_get("loss", keras_losses.LOSSES))
metrics = room("keras.metrics", keras_metrics.METRICS, get=_get("metric", keras_metrics.METRICS))
models = room(
    "keras.models",
    _named(keras_models, "Model Sequential load_model"),
    _named(high_level, "clone_model model_from_json"),
)
ops = room("keras.ops", FUNCTIONS, NN, _plain, convert_to_tensor=constant, concatenate=FUNCTIONS["concat"])
optimizers = room("keras.optimizers", keras_optimizers.OPTIMIZERS, get=_get("optimizer", keras_optimizers.BY_NAME))
optimizers.schedules = room("keras.optimizers.schedules", _named(mid_level, _RATES))
optimizers.schedules.LearningRateSchedule = keras_optimizers.LearningRateSchedule
regularizers = room(
    "keras.regularizers", _named(mid_level, "L1 L2 L1L2"), l1=mid_level.L1, l2=mid_level.L2, l1_l2=mid_level.L1L2
)
utils = room(
    "keras.utils",
    _named(keras_models, "register_keras_serializable"),
    set_random_seed=set_seed,
    to_categorical=to_categorical,
)


def __getattr__(name):
    raise missing(__name__, name)
