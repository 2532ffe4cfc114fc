"""4 · Mid-level API."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .data import (
    END, STAGES, DataLoader, Dataset, Pipeline, Stage, Stages, as_array, as_element, batched, batched_rows, cached,
    column, drawn, drawn_rows, draws_of, each_array, filtered, mapped, number_of_batches, packed, pick, prefetched,
    read_columns, repeated, stack
)
from .feature_columns import (
    BucketizedColumn, CategoricalColumn, DenseFeatures, EmbeddingColumn, FeatureColumn, IndicatorColumn, NumericColumn,
    bucket_of, bucketized_column, categorical_column_with_hash_bucket, categorical_column_with_identity,
    categorical_column_with_vocabulary_list, crossed_column, embedding_column, fingerprint, indicator_column,
    is_missing, numeric_column, row_by_row, values_of
)
from .layers import (
    ACTIVATIONS, INITIALIZERS, L1, L2, NORMAL, RANDOM, REGULARIZERS, SPREAD, TRAINING, Activation, BatchNormalization,
    Concatenate, Dense, Dropout, Embedding, Flatten, Layer, Made, absolute, at_least, glorot_uniform, known,
    truncated_normal
)
from .losses import (
    LOSSES, BinaryCrossentropy, CategoricalCrossentropy, Crossentropy, Loss, MeanAbsoluteError, MeanSquaredError,
    SparseCategoricalCrossentropy, check_probabilities, weighted, within
)
from .metrics import (
    AUC, KINDS, METRICS, AccuracyByShape, BinaryAccuracy, CategoricalAccuracy, Mean, MeanLoss, Metric, Precision,
    R2Score, Recall, SparseCategoricalAccuracy, ratio, snake_case
)
from .optimizers import SGD, Adam, AdamW, ExponentialDecay, Optimizer, PiecewiseConstantDecay, RMSprop, shortened
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "ACTIVATIONS", "AUC", "END", "INITIALIZERS", "KINDS", "L1", "L2", "LOSSES", "METRICS", "NORMAL", "RANDOM",
    "REGULARIZERS", "SGD", "SPREAD", "STAGES", "TRAINING", "AccuracyByShape", "Activation", "Adam", "AdamW",
    "BatchNormalization", "BinaryAccuracy", "BinaryCrossentropy", "BucketizedColumn", "CategoricalAccuracy",
    "CategoricalColumn", "CategoricalCrossentropy", "Concatenate", "Crossentropy", "DataLoader", "Dataset", "Dense",
    "DenseFeatures", "Dropout", "Embedding", "EmbeddingColumn", "ExponentialDecay", "FeatureColumn", "Flatten",
    "IndicatorColumn", "Layer", "Loss", "Made", "Mean", "MeanAbsoluteError", "MeanLoss", "MeanSquaredError", "Metric",
    "NumericColumn", "Optimizer", "PiecewiseConstantDecay", "Pipeline", "Precision", "R2Score", "Recall", "RMSprop",
    "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "Stage", "Stages", "absolute", "as_array",
    "as_element", "at_least", "batched", "batched_rows", "bucket_of", "bucketized_column", "cached",
    "categorical_column_with_hash_bucket", "categorical_column_with_identity",
    "categorical_column_with_vocabulary_list", "check_probabilities", "column", "crossed_column", "dnn_classifier",
    "drawn", "drawn_rows", "draws_of", "each_array", "embedding_column", "filtered", "fingerprint", "glorot_uniform",
    "indicator_column", "is_missing", "known", "linear_regression", "mapped", "number_of_batches", "numeric_column",
    "packed", "pick", "prefetched", "ratio", "read_columns", "repeated", "row_by_row", "shortened", "snake_case",
    "stack", "train", "truncated_normal", "values_of", "weighted", "within"
]
