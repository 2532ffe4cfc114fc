"""4 · Mid-level API."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .data import Dataset
from .feature_columns import (
    BucketizedColumn, CategoricalColumn, DenseFeatures, EmbeddingColumn, FeatureColumn, IndicatorColumn, NumericColumn,
    bucket_of, bucketized_column, categorical_column_with_hash_bucket, categorical_column_with_identity,
    categorical_column_with_vocabulary_list, crossed_column, embedding_column, fingerprint, indicator_column,
    is_missing, numeric_column, row_by_row, values_of, without_gaps
)
from .layers import ACTIVATIONS, INITIALIZERS, RANDOM, TRAINING, Dense, Layer, glorot_uniform, known
from .losses import BinaryCrossentropy, Loss, MeanSquaredError
from .optimizers import SGD, Adam, Optimizer, shortened
from .tasks import dnn_classifier, linear_regression, train

__all__ = [
    "ACTIVATIONS", "INITIALIZERS", "RANDOM", "SGD", "TRAINING", "Adam", "BinaryCrossentropy", "BucketizedColumn",
    "CategoricalColumn", "Dataset", "Dense", "DenseFeatures", "EmbeddingColumn", "FeatureColumn", "IndicatorColumn",
    "Layer", "Loss", "MeanSquaredError", "NumericColumn", "Optimizer", "bucket_of", "bucketized_column",
    "categorical_column_with_hash_bucket", "categorical_column_with_identity",
    "categorical_column_with_vocabulary_list", "crossed_column", "dnn_classifier", "embedding_column", "fingerprint",
    "glorot_uniform", "indicator_column", "is_missing", "known", "linear_regression", "numeric_column", "row_by_row",
    "shortened", "train", "values_of", "without_gaps"
]
