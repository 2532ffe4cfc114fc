"""4 · Mid-level API."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .data import (
    END, STAGES, DataLoader, Dataset, Pipeline, Stage, Stages, as_array, as_element, at_least, batched, batched_rows,
    cached, column, drawn, drawn_rows, draws_of, each_array, filtered, mapped, number_of_batches, packed, pick,
    prefetched, read_columns, repeated, stack
)
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
    "ACTIVATIONS", "END", "INITIALIZERS", "L1", "L2", "NORMAL", "RANDOM", "SGD", "SPREAD", "STAGES", "TRAINING",
    "Activation", "Adam", "AdamW", "BatchNormalization", "BinaryCrossentropy", "CategoricalCrossentropy",
    "Concatenate", "DataLoader", "Dataset", "Dense", "Dropout", "Embedding", "ExponentialDecay", "Flatten", "Layer",
    "Loss", "Made", "MeanAbsoluteError", "MeanSquaredError", "Optimizer", "PiecewiseConstantDecay", "Pipeline",
    "RMSprop", "SparseCategoricalCrossentropy", "Stage", "Stages", "as_array", "as_element", "at_least", "batched",
    "batched_rows", "cached", "check_probabilities", "column", "dnn_classifier", "drawn", "drawn_rows", "draws_of",
    "each_array", "filtered", "glorot_uniform", "known", "linear_regression", "mapped", "number_of_batches", "packed",
    "pick", "prefetched", "read_columns", "repeated", "shortened", "stack", "train", "truncated_normal", "within"
]
