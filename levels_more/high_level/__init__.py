"""Models with all that Keras' have: metrics, callbacks, data of many kinds, graphs of layers."""

import importlib

from levels.high_level import (
    Callback, History, Trainable, batches_of, dnn_classifier, dtype_for, ended, epoch_loss, linear_regression, prepared,
    run_epochs, run_training, tasks,
)
from levels_more import moved as _moved
from levels_more.high_level.callbacks import (
    CSVLogger, EarlyStopping, LambdaCallback, LearningRateScheduler, ModelCheckpoint, Monitor, ReduceLROnPlateau,
    TensorBoard, TerminateOnNaN, graph_of,
)
from levels_more.high_level.functional import Call, Input, Placeholder
from levels_more.high_level.model import Model, Sequential
from levels_more.high_level.training import Training

__all__ = _moved.handed_on(globals(), "tasks")

_HEAVY = {  # names whose file imports a large package, and so is imported when the name is asked for
    "DNNClassifier": "levels_more.high_level.sklearn",
    "DNNRegressor": "levels_more.high_level.sklearn",
    "Estimator": "levels_more.high_level.sklearn",
    "LinearRegressor": "levels_more.high_level.sklearn",
}


def __getattr__(name):
    if name in _HEAVY:
        return getattr(importlib.import_module(_HEAVY[name]), name)
    raise _moved.elsewhere(__name__, name)
