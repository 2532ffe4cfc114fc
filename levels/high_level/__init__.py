"""5 · High-level API."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

import importlib

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
    "ABOVE", "CLASSES", "CONFIG", "FILES", "MODELS", "ONNX", "OPTIMIZER", "OPTIMIZERS", "PIECE", "RISING", "WEIGHTS",
    "Call", "Callback", "CSVLogger", "DNNClassifier", "EarlyStopping", "Estimator", "Functional", "History", "Input",
    "LearningRateScheduler", "LinearRegressor", "Model", "ModelCheckpoint", "Monitor", "OnnxWriter", "Placeholder",
    "ReduceLROnPlateau", "Sequential", "TensorBoard", "TerminateOnNaN", "Training", "alone", "arg_max_row",
    "arrays_of", "attach", "attributes_of", "blamed", "both", "check_built", "check_targets", "compiled",
    "dnn_classifier", "dry_run", "export", "fill", "graph_of", "in_order", "info", "later", "linear_regression",
    "listed", "load_model", "made", "noted_interrupts", "nothing_drawn", "one_pass", "onnx_graph", "packed", "parted",
    "pieces", "progress", "reader", "reduction_row", "renew", "replaced", "rows_of", "run_epochs", "save", "slice_row",
    "spec_of", "sum_row", "summary", "tell", "traced", "train", "train_step", "write", "written", "written_part"
]

LAZY = {
    "ABOVE": "saving", "CLASSES": "saving", "CONFIG": "saving", "FILES": "saving", "MODELS": "saving", "ONNX":
    "exporting", "OPTIMIZER": "saving", "WEIGHTS": "saving", "DNNClassifier": "estimators", "Estimator": "estimators",
    "LinearRegressor": "estimators", "OnnxWriter": "exporting", "arg_max_row": "exporting", "attributes_of":
    "exporting", "blamed": "saving", "both": "exporting", "check_built": "saving", "export": "exporting", "fill":
    "saving", "info": "exporting", "load_model": "saving", "nothing_drawn": "saving", "onnx_graph": "exporting",
    "packed": "saving", "reader": "saving", "reduction_row": "exporting", "replaced": "saving", "save": "saving",
    "slice_row": "exporting", "sum_row": "exporting", "traced": "exporting", "write": "saving", "written": "saving",
    "written_part": "saving"
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
