"""5 · High-level API."""

# Built from notebooks/05_high_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .models import (
    OPTIMIZERS, PIECE, Callback, Functional, History, Input, Model, Placeholder, Sequential, Training, alone,
    batches_of, compiled, dry_run, in_order, listed, made, noted_interrupts, one_pass, parted, pieces, progress,
    run_epochs, summary, train_step
)
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "OPTIMIZERS", "PIECE", "Callback", "Functional", "History", "Input", "Model", "Placeholder", "Sequential",
    "Training", "alone", "batches_of", "compiled", "dnn_classifier", "dry_run", "in_order", "linear_regression",
    "listed", "made", "noted_interrupts", "one_pass", "parted", "pieces", "progress", "run_epochs", "summary", "train",
    "train_step"
]
