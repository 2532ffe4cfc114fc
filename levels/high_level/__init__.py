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
    OPTIMIZERS, PIECE, Callback, Functional, History, Input, Model, Placeholder, Sequential, Training, alone,
    arrays_of, batches_of, compiled, dry_run, in_order, later, listed, made, noted_interrupts, one_pass, parted,
    pieces, progress, run_epochs, summary, train_step
)
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "CLASSES", "CONFIG", "FILES", "LEVEL_4", "ONNX", "OPTIMIZER", "OPTIMIZERS", "PIECE", "RISING", "WEIGHTS",
    "Callback", "CSVLogger", "DNNClassifier", "EarlyStopping", "Estimator", "Functional", "History", "Input",
    "LearningRateScheduler", "LinearRegressor", "Model", "ModelCheckpoint", "Monitor", "OnnxWriter", "Placeholder",
    "Reader", "ReduceLROnPlateau", "Sequential", "TensorBoard", "TerminateOnNaN", "Training", "alone", "arrays_of",
    "attributes_of", "batches_of", "blamed", "both", "check_built", "compiled", "dnn_classifier", "dry_run", "export",
    "fill", "folder_of", "graph_of", "in_order", "info", "later", "linear_regression", "listed", "load_model", "made",
    "made_with", "noted_interrupts", "nothing_drawn", "numbered", "one_pass", "onnx_graph", "packed", "parted",
    "pieces", "progress", "rate_of", "reduction_row", "replaced", "run_epochs", "save", "save_weights", "set_rate",
    "slice_row", "summary", "traced", "train", "train_step", "write", "written", "written_part"
]

LAZY = {
    "CLASSES": "saving", "CONFIG": "saving", "FILES": "saving", "LEVEL_4": "saving", "ONNX": "exporting", "OPTIMIZER":
    "saving", "WEIGHTS": "saving", "DNNClassifier": "estimators", "Estimator": "estimators", "LinearRegressor":
    "estimators", "OnnxWriter": "exporting", "Reader": "saving", "attributes_of": "exporting", "blamed": "saving",
    "both": "exporting", "check_built": "saving", "export": "exporting", "fill": "saving", "folder_of": "saving",
    "info": "exporting", "load_model": "saving", "made_with": "saving", "nothing_drawn": "saving", "numbered":
    "exporting", "onnx_graph": "exporting", "packed": "saving", "reduction_row": "exporting", "replaced": "saving",
    "save": "saving", "save_weights": "saving", "slice_row": "exporting", "traced": "exporting", "write": "saving",
    "written": "saving", "written_part": "saving"
}


def __getattr__(name):
    """Load the rooms named in LAZY on first use (PEP 562): importing this level does not wait for them."""
    if name in LAZY.values():
        return importlib.import_module(f"{__name__}.{name}")
    if name in LAZY:
        return getattr(importlib.import_module(f"{__name__}.{LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
