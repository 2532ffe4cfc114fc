"""4 · Mid-level API."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .data import Dataset
from .layers import (
    ACTIVATIONS, INITIALIZERS, L1, L2, NORMAL, RANDOM, SPREAD, TRAINING, Activation, BatchNormalization, Concatenate,
    Dense, Dropout, Embedding, Flatten, Layer, Made, absolute, glorot_uniform, known, truncated_normal
)
from .losses import (
    LOSSES, BinaryCrossentropy, CategoricalCrossentropy, Loss, MeanAbsoluteError, MeanSquaredError,
    SparseCategoricalCrossentropy, check_probabilities, within
)
from .metrics import (
    AUC, METRICS, AccuracyByShape, BinaryAccuracy, CategoricalAccuracy, Mean, MeanLoss, Metric, Precision, R2Score,
    Recall, SparseCategoricalAccuracy, ratio, snake_case
)
from .optimizers import SGD, Adam, AdamW, ExponentialDecay, Optimizer, PiecewiseConstantDecay, RMSprop, shortened
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "ACTIVATIONS", "AUC", "INITIALIZERS", "L1", "L2", "LOSSES", "METRICS", "NORMAL", "RANDOM", "SGD", "SPREAD",
    "TRAINING", "AccuracyByShape", "Activation", "Adam", "AdamW", "BatchNormalization", "BinaryAccuracy",
    "BinaryCrossentropy", "CategoricalAccuracy", "CategoricalCrossentropy", "Concatenate", "Dataset", "Dense",
    "Dropout", "Embedding", "ExponentialDecay", "Flatten", "Layer", "Loss", "Made", "Mean", "MeanAbsoluteError",
    "MeanLoss", "MeanSquaredError", "Metric", "Optimizer", "PiecewiseConstantDecay", "Precision", "R2Score", "Recall",
    "RMSprop", "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "absolute", "check_probabilities",
    "dnn_classifier", "glorot_uniform", "known", "linear_regression", "ratio", "shortened", "snake_case", "train",
    "truncated_normal", "within"
]
