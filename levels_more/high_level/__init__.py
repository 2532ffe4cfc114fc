"""Models with what Keras' models have: metrics, callbacks, data of many kinds, graphs of layers."""

import importlib
import typing

from levels.high_level import (
    Callback, History, batches_of, dnn_classifier, dtype_for, ended, epoch_loss, linear_regression, one_pass, prepared,
    run_epochs, run_training, tasks,
)
from levels.support.fronts import public
from levels_more import saving  # (it adds methods of a model)
from levels_more.high_level.callbacks import (
    EarlyStopping, LambdaCallback, LearningRateScheduler, ModelCheckpoint, Monitor, ReduceLROnPlateau, TerminateOnNaN,
)
from levels_more.high_level.functional import Call, Input, Placeholder
from levels_more.high_level.loggers import CSVLogger, TensorBoard, graph_of
from levels_more.high_level.model import Model, Sequential
from levels_more.high_level.training import Training
from levels_more.missing import absent as _absent

__all__ = sorted([*public(globals()), "tasks"])

if typing.TYPE_CHECKING:  # for editors
    from levels_more.high_level.sklearn import DNNClassifier, DNNRegressor, Estimator, LinearRegressor

_HEAVY = "DNNClassifier", "DNNRegressor", "Estimator", "LinearRegressor"  # their file imports scikit-learn


def __getattr__(name):
    if name in _HEAVY:  # imported on first use, because scikit-learn is slow to import
        return getattr(importlib.import_module("levels_more.high_level.sklearn"), name)
    return _absent(__name__)(name)
