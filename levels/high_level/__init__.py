"""5 · High-level API."""

# Built from notebooks/05_high_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

import importlib

from .callbacks import (
    RISING, CSVLogger, EarlyStopping, LearningRateScheduler, ModelCheckpoint, Monitor, ReduceLROnPlateau, TensorBoard,
    TerminateOnNaN, graph_of, rate_of, set_rate
)
from .models import (
    LOSSES, METRICS, OPTIMIZERS, PIECE, Callback, Functional, History, Input, Model, Placeholder, Sequential, Training,
    alone, arrays_of, batches_of, compiled, dry_run, in_order, listed, made, noted_interrupts, one_pass, parted,
    pieces, progress, run_epochs, summary, train_step
)
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "LOSSES", "METRICS", "OPTIMIZERS", "PIECE", "RISING", "Callback", "CSVLogger", "DNNClassifier", "EarlyStopping",
    "Estimator", "Functional", "History", "Input", "LearningRateScheduler", "LinearRegressor", "Model",
    "ModelCheckpoint", "Monitor", "Placeholder", "ReduceLROnPlateau", "Sequential", "TensorBoard", "TerminateOnNaN",
    "Training", "alone", "arrays_of", "batches_of", "compiled", "dnn_classifier", "dry_run", "graph_of", "in_order",
    "linear_regression", "listed", "made", "noted_interrupts", "one_pass", "parted", "pieces", "progress", "rate_of",
    "run_epochs", "set_rate", "summary", "train", "train_step"
]

LAZY = {"DNNClassifier": "estimators", "Estimator": "estimators", "LinearRegressor": "estimators"}


def __getattr__(name):
    """Load the rooms named in LAZY on first use (PEP 562): importing this level does not wait for them."""
    if name in LAZY.values():
        return importlib.import_module(f"{__name__}.{name}")
    if name in LAZY:
        return getattr(importlib.import_module(f"{__name__}.{LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
