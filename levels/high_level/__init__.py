"""5 · High-level API."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

import importlib

from levels import plugged

from .callbacks import (
    RISING, CSVLogger, EarlyStopping, LearningRateScheduler, ModelCheckpoint, Monitor, ReduceLROnPlateau, TensorBoard,
    TerminateOnNaN, graph_of
)
from .loops import (
    OPTIMIZERS, PIECE, Callback, History, Training, alone, attach, compiled, listed, made, noted_interrupts, one_pass,
    pieces, progress, renew, run_epochs, tell, train_step
)
from .models import (
    Call, Functional, Input, Model, Placeholder, Sequential, arrays_of, check_targets, dry_run, in_order, later,
    parted, rows_of, spec_of, summary
)
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "ABOVE", "CLASSES", "CONFIG", "FILES", "LOADING", "MEMORY", "MODELS", "ONNX", "OPTIMIZER", "OPTIMIZERS", "PIECE",
    "RISING", "SUM", "TEXT", "WEIGHTS", "Call", "Callback", "CSVLogger", "DNNClassifier", "EarlyStopping", "Estimator",
    "Functional", "History", "Input", "LearningRateScheduler", "LinearRegressor", "Model", "ModelCheckpoint",
    "Monitor", "OnnxWriter", "Placeholder", "ReduceLROnPlateau", "Sequential", "TensorBoard", "TerminateOnNaN",
    "Training", "alone", "arg_max_row", "arrays_of", "as_bytes", "attach", "attributes_of", "blamed", "both",
    "check_built", "check_targets", "checksum", "compiled", "dnn_classifier", "dry_run", "export", "fill", "graph_of",
    "in_order", "info", "later", "linear_regression", "listed", "load_model", "made", "noted_interrupts",
    "nothing_drawn", "numbers_of", "one_pass", "onnx_graph", "parted", "patiently", "pieces", "progress", "put",
    "reader", "reduction_row", "renew", "replace", "rows_of", "run_epochs", "save", "slice_row", "spec_of", "stored",
    "sum_row", "summary", "tell", "traced", "train", "train_step", "write_aside", "written", "written_part"
]

LAZY = {
    "ABOVE": "saving", "CLASSES": "saving", "CONFIG": "saving", "FILES": "saving", "LOADING": "saving", "MEMORY":
    "saving", "MODELS": "saving", "ONNX": "exporting", "OPTIMIZER": "saving", "SUM": "saving", "TEXT": "saving",
    "WEIGHTS": "saving", "DNNClassifier": "estimators", "Estimator": "estimators", "LinearRegressor": "estimators",
    "OnnxWriter": "exporting", "arg_max_row": "exporting", "as_bytes": "saving", "attributes_of": "exporting",
    "blamed": "saving", "both": "exporting", "check_built": "saving", "checksum": "saving", "export": "exporting",
    "fill": "saving", "info": "exporting", "load_model": "saving", "nothing_drawn": "saving", "numbers_of": "saving",
    "onnx_graph": "exporting", "patiently": "saving", "put": "saving", "reader": "saving", "reduction_row":
    "exporting", "replace": "saving", "save": "saving", "slice_row": "exporting", "stored": "saving", "sum_row":
    "exporting", "traced": "exporting", "write_aside": "saving", "written": "saving", "written_part": "saving"
}


def __getattr__(name):
    """Load the rooms named in LAZY on first use (PEP 562): importing this level does not wait for them."""
    if name in LAZY.values():
        return importlib.import_module(f"{__name__}.{name}")
    if name in LAZY:
        return getattr(importlib.import_module(f"{__name__}.{LAZY[name]}"), name)
    return plugged(__name__)[0](name)


def __dir__():
    return __all__
