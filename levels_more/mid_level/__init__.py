"""More parts: layers, losses, metrics, optimizers, data."""

from levels.mid_level import (
    RANDOM, affine, cross_entropy, descend, dnn_classifier, glorot_uniform, linear_regression, squared_error, tasks,
)
from levels.support.fronts import public
from levels.support.parts import Reconstructible
from levels_more.mid_level import layers, losses, metrics, optimizers
from levels_more.mid_level.base_layer import Layer
from levels_more.mid_level.base_metric import Metric
from levels_more.mid_level.dataset import DataLoader, Dataset
from levels_more.mid_level.feature_columns import (
    BucketizedColumn, CategoricalColumn, DenseFeatures, EmbeddingColumn, FeatureColumn, IndicatorColumn,
    NumericColumn, bucketized_column, categorical_column_with_hash_bucket, categorical_column_with_identity,
    categorical_column_with_vocabulary_list, crossed_column, embedding_column, indicator_column, numeric_column,
)
from levels_more.mid_level.initializers import INITIALIZERS, truncated_normal
from levels_more.mid_level.layers import (
    ACTIVATIONS, Activation, Arithmetic, BatchNormalization, Concatenate, Dense, Dropout, Embedding, Flatten,
)
from levels_more.mid_level.losses import (
    BinaryCrossentropy, CategoricalCrossentropy, Crossentropy, LOSSES, Loss, MeanAbsoluteError, MeanSquaredError,
    Reduced, SparseCategoricalCrossentropy,
)
from levels_more.mid_level.metrics import (
    AUC, AccuracyByShape, BinaryAccuracy, Calculated, CategoricalAccuracy, METRICS, Mean, MeanLoss, Precision, R2Score,
    Recall, SparseCategoricalAccuracy,
)
from levels_more.mid_level.optimizers import (
    Adam, AdamW, ExponentialDecay, OPTIMIZERS, Optimizer, PiecewiseConstantDecay, RMSprop, SGD,
)
from levels_more.mid_level.regularizers import L1, L2, REGULARIZERS
from levels_more.missing import absent as _absent

__all__ = sorted([*public(globals()), "layers", "losses", "metrics", "optimizers", "tasks"])
__getattr__ = _absent(__name__)
