"""4 · Mid-level API."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .data import (
    END, DataLoader, Dataset, Pipeline, as_array, as_element, batched, cached, column, drawn, draws_of, each_array,
    filtered, in_rows, mapped, packed, part, prefetched, read_columns, repeated, shuffled, stack, stacked, taken,
    unknown
)
from .feature_columns import (
    BucketizedColumn, CategoricalColumn, DenseFeatures, EmbeddingColumn, FeatureColumn, IndicatorColumn, NumericColumn,
    bucket_of, bucketized_column, categorical_column_with_hash_bucket, categorical_column_with_identity,
    categorical_column_with_vocabulary_list, crossed_column, embedding_column, fingerprint, indicator_column,
    is_missing, numeric_column, row_by_row, values_of
)
from .layers import (
    ACTIVATIONS, INITIALIZERS, L1, L2, NORMAL, RANDOM, REGULARIZERS, SPREAD, TRAINING, Activation, BatchNormalization,
    Concatenate, Dense, Dropout, Embedding, Flatten, Layer, Made, absolute, at_least, from_zero, glorot_uniform, known,
    positive, truncated_normal
)
from .losses import (
    LOSSES, BinaryCrossentropy, CategoricalCrossentropy, Crossentropy, Loss, MeanAbsoluteError, MeanSquaredError,
    SparseCategoricalCrossentropy, check_classes, check_probabilities, weighted, within
)
from .metrics import (
    AUC, KINDS, METRICS, AccuracyByShape, BinaryAccuracy, CategoricalAccuracy, Mean, MeanLoss, Metric, Precision,
    R2Score, Recall, SparseCategoricalAccuracy, ratio, snake_case
)
from .optimizers import SGD, Adam, AdamW, ExponentialDecay, Optimizer, PiecewiseConstantDecay, RMSprop, shortened
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "ACTIVATIONS", "AUC", "END", "INITIALIZERS", "KINDS", "L1", "L2", "LOSSES", "METRICS", "NORMAL", "RANDOM",
    "REGULARIZERS", "SGD", "SPREAD", "TRAINING", "AccuracyByShape", "Activation", "Adam", "AdamW",
    "BatchNormalization", "BinaryAccuracy", "BinaryCrossentropy", "BucketizedColumn", "CategoricalAccuracy",
    "CategoricalColumn", "CategoricalCrossentropy", "Concatenate", "Crossentropy", "DataLoader", "Dataset", "Dense",
    "DenseFeatures", "Dropout", "Embedding", "EmbeddingColumn", "ExponentialDecay", "FeatureColumn", "Flatten",
    "IndicatorColumn", "Layer", "Loss", "Made", "Mean", "MeanAbsoluteError", "MeanLoss", "MeanSquaredError", "Metric",
    "NumericColumn", "Optimizer", "PiecewiseConstantDecay", "Pipeline", "Precision", "R2Score", "Recall", "RMSprop",
    "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "absolute", "as_array", "as_element", "at_least",
    "batched", "bucket_of", "bucketized_column", "cached", "categorical_column_with_hash_bucket",
    "categorical_column_with_identity", "categorical_column_with_vocabulary_list", "check_classes",
    "check_probabilities", "column", "crossed_column", "dnn_classifier", "drawn", "draws_of", "each_array",
    "embedding_column", "filtered", "fingerprint", "from_zero", "glorot_uniform", "in_rows", "indicator_column",
    "is_missing", "known", "linear_regression", "mapped", "numeric_column", "packed", "part", "positive", "prefetched",
    "ratio", "read_columns", "repeated", "row_by_row", "shortened", "shuffled", "snake_case", "stack", "stacked",
    "taken", "train", "truncated_normal", "unknown", "values_of", "weighted", "within"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
