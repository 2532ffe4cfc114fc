"""5 · High-level API."""

# Built from notebooks/05_high_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .models import LOSSES, OPTIMIZERS, History, Sequential, batches_of, named
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "LOSSES", "OPTIMIZERS", "History", "Sequential", "batches_of", "dnn_classifier", "linear_regression", "named",
    "train"
]
