"""`tf.keras`: levels 4 and 5 with Keras' names. Rules that differ are in keras_layers, keras_models and others."""

from levels_more import high_level
from levels_more.mid_level.names import count_anew
from levels_more.missing import module_api, small_room
from levels_more.tensorflow import keras_layers, keras_losses, keras_models, keras_optimizers
from levels_more.tensorflow.keras_layers import Input
from levels_more.tensorflow.keras_models import Model, Sequential

_HEARING = "Callback EarlyStopping LearningRateScheduler ModelCheckpoint ReduceLROnPlateau"
backend = small_room(
    "tensorflow.keras.backend",
    clear_session=count_anew,  # models share no state but the numbers in the names of their layers
    set_floatx=keras_layers.set_floatx,
)
_listeners = {name: getattr(high_level, name) for name in _HEARING.split()}
callbacks = small_room("tensorflow.keras.callbacks", _listeners)
layers = small_room("tensorflow.keras.layers", keras_layers.LAYERS, Input=Input)
losses = small_room("tensorflow.keras.losses", keras_losses.LOSSES)
metrics = small_room("tensorflow.keras.metrics", keras_losses.METRICS)
models = small_room("tensorflow.keras.models", Model=Model, Sequential=Sequential, load_model=keras_models.load_model)
optimizers = small_room("tensorflow.keras.optimizers", keras_optimizers.OPTIMIZERS)
for _name in ("activations", "constraints", "initializers", "ops", "regularizers", "utils"):  # errors say what to use
    globals()[_name] = small_room(f"tensorflow.keras.{_name}")
__getattr__, __dir__ = module_api("tensorflow.keras", globals())
