"""4 · Mid-level API."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .data import (
    END, STAGES, DataLoader, Dataset, Pipeline, Stage, Stages, as_array, as_element, at_least, batched, batched_rows,
    cached, column, drawn, drawn_rows, draws_of, each_array, filtered, mapped, number_of_batches, packed, pick,
    prefetched, read_columns, repeated, stack
)
from .feature_columns import (
    BucketizedColumn, CategoricalColumn, DenseFeatures, EmbeddingColumn, FeatureColumn, IndicatorColumn, NumericColumn,
    bucket_of, bucketized_column, categorical_column_with_hash_bucket, categorical_column_with_identity,
    categorical_column_with_vocabulary_list, crossed_column, embedding_column, fingerprint, indicator_column,
    is_missing, numeric_column, row_by_row, values_of, without_gaps
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
    "Activation", "Adam", "AdamW", "BatchNormalization", "BinaryCrossentropy", "BucketizedColumn", "CategoricalColumn",
    "CategoricalCrossentropy", "Concatenate", "DataLoader", "Dataset", "Dense", "DenseFeatures", "Dropout",
    "Embedding", "EmbeddingColumn", "ExponentialDecay", "FeatureColumn", "Flatten", "IndicatorColumn", "Layer", "Loss",
    "Made", "MeanAbsoluteError", "MeanSquaredError", "NumericColumn", "Optimizer", "PiecewiseConstantDecay",
    "Pipeline", "RMSprop", "SparseCategoricalCrossentropy", "Stage", "Stages", "as_array", "as_element", "at_least",
    "batched", "batched_rows", "bucket_of", "bucketized_column", "cached", "categorical_column_with_hash_bucket",
    "categorical_column_with_identity", "categorical_column_with_vocabulary_list", "check_probabilities", "column",
    "crossed_column", "dnn_classifier", "drawn", "drawn_rows", "draws_of", "each_array", "embedding_column",
    "filtered", "fingerprint", "glorot_uniform", "indicator_column", "is_missing", "known", "linear_regression",
    "mapped", "number_of_batches", "numeric_column", "packed", "pick", "prefetched", "read_columns", "repeated",
    "row_by_row", "shortened", "stack", "train", "truncated_normal", "values_of", "within", "without_gaps"
]
