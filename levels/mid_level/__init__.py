"""4 · Mid-level API."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .data import Dataset
from .layers import (
    ACTIVATIONS, INITIALIZERS, L1, L2, NORMAL, RANDOM, SPREAD, TRAINING, Activation, BatchNormalization, Concatenate,
    Dense, Dropout, Embedding, Flatten, Layer, Made, glorot_uniform, known, truncated_normal
)
from .losses import (
    BinaryCrossentropy, CategoricalCrossentropy, Loss, MeanAbsoluteError, MeanSquaredError,
    SparseCategoricalCrossentropy, check_probabilities, within
)
from .optimizers import SGD, Adam, AdamW, ExponentialDecay, Optimizer, PiecewiseConstantDecay, RMSprop, shortened
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "ACTIVATIONS", "INITIALIZERS", "L1", "L2", "NORMAL", "RANDOM", "SGD", "SPREAD", "TRAINING", "Activation", "Adam",
    "AdamW", "BatchNormalization", "BinaryCrossentropy", "CategoricalCrossentropy", "Concatenate", "Dataset", "Dense",
    "Dropout", "Embedding", "ExponentialDecay", "Flatten", "Layer", "Loss", "Made", "MeanAbsoluteError",
    "MeanSquaredError", "Optimizer", "PiecewiseConstantDecay", "RMSprop", "SparseCategoricalCrossentropy",
    "check_probabilities", "dnn_classifier", "glorot_uniform", "known", "linear_regression", "shortened", "train",
    "truncated_normal", "within"
]
