"""4 · Mid-level API."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .data import Dataset
from .layers import ACTIVATIONS, RANDOM, Dense, Layer, glorot_uniform
from .losses import BinaryCrossentropy, Loss, MeanSquaredError
from .optimizers import SGD
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "ACTIVATIONS", "RANDOM", "SGD", "BinaryCrossentropy", "Dataset", "Dense", "Layer", "Loss", "MeanSquaredError",
    "dnn_classifier", "glorot_uniform", "linear_regression", "train"
]
