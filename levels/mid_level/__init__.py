"""4 · Mid-level API."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.

from .data import Dataset
from .layers import RANDOM, Dense, Layer, glorot_uniform
from .losses import MeanSquaredError
from .optimizers import SGD
from .tasks import linear_regression

__all__ = ["RANDOM", "SGD", "Dataset", "Dense", "Layer", "MeanSquaredError", "glorot_uniform", "linear_regression"]
