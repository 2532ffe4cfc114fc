"""4 · Mid-level API."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .data import Dataset
from .layers import ACTIVATIONS, INITIALIZERS, RANDOM, TRAINING, Dense, Layer, glorot_uniform, known
from .losses import BinaryCrossentropy, Loss, MeanSquaredError
from .optimizers import SGD, Adam, Optimizer, shortened
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "ACTIVATIONS", "INITIALIZERS", "RANDOM", "SGD", "TRAINING", "Adam", "BinaryCrossentropy", "Dataset", "Dense",
    "Layer", "Loss", "MeanSquaredError", "Optimizer", "dnn_classifier", "glorot_uniform", "known", "linear_regression",
    "shortened", "train"
]
