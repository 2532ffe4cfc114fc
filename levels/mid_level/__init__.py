"""4 · Mid-level API."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .data import Dataset
from .layers import (
    ACTIVATIONS, INITIALIZERS, RANDOM, WIDER, Dense, Layer, Made, affine, at_least, glorot_uniform, known, positive,
    widened, wider
)
from .losses import LOSSES, BinaryCrossentropy, Loss, MeanSquaredError, cross_entropy, squared_error
from .optimizers import OPTIMIZERS, SGD, Adam, Optimizer, descend
from .tasks import dnn_classifier, linear_regression

__all__ = [
    "ACTIVATIONS", "INITIALIZERS", "LOSSES", "OPTIMIZERS", "RANDOM", "SGD", "WIDER", "Adam", "BinaryCrossentropy",
    "Dataset", "Dense", "Layer", "Loss", "Made", "MeanSquaredError", "Optimizer", "affine", "at_least",
    "cross_entropy", "descend", "dnn_classifier", "glorot_uniform", "known", "linear_regression", "positive",
    "squared_error", "widened", "wider"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
