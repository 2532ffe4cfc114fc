"""What grows on the five levels: more ops, layers, devices, back ends. Written by hand, and plugged in by need.

`levels` asks `enter` for what it lacks. Importing one of these modules enters rows into the tables of the core; nothing is
imported before somebody asks for it, so `import levels.high_level` waits for none of them.
"""

import functools
import importlib

# what -> module -> its rows. `what` is a table of the core, or the front or room of `levels` that the names are added to.
CONTENTS = {
    "levels.high_level": {
        "callbacks": "CSVLogger EarlyStopping LearningRateScheduler ModelCheckpoint Monitor ReduceLROnPlateau TensorBoard "
        "TerminateOnNaN graph_of",
        "estimators": "DNNClassifier Estimator LinearRegressor",
        "exporting": "ONNX OnnxWriter export onnx_graph",
        "fitting": "",
        "functional": "Call Functional Input Placeholder",
        "saving": "load_model save",
    },
    "levels.mid_level": {
        "layers": "Activation BatchNormalization Concatenate Dropout Embedding Flatten L1 L2 REGULARIZERS absolute "
        "truncated_normal",
        "losses": "CategoricalCrossentropy Crossentropy MeanAbsoluteError SparseCategoricalCrossentropy check_classes "
        "weighted",
        "metrics": "METRICS AUC AccuracyByShape BinaryAccuracy CategoricalAccuracy Mean MeanLoss Metric Precision R2Score Recall "
        "SparseCategoricalAccuracy ratio snake_case",
        "optimizers": "AdamW ExponentialDecay PiecewiseConstantDecay RMSprop shortened",
        "pipeline": "DataLoader Pipeline Stream as_array as_element cached column drawn each_array filtered in_rows mapped packed "
        "prefetched read_columns repeated stack stacked taken",
        "feature_columns": "BucketizedColumn CategoricalColumn DenseFeatures EmbeddingColumn FeatureColumn "
        "IndicatorColumn NumericColumn bucket_of bucketized_column categorical_column_with_hash_bucket "
        "categorical_column_with_identity categorical_column_with_vocabulary_list crossed_column embedding_column "
        "fingerprint indicator_column is_missing numeric_column row_by_row values_of",
    },
    "levels.mid_level.layers": {
        "layers": "Activation BatchNormalization Concatenate Dropout Embedding Flatten L1 L2 absolute truncated_normal",
        "feature_columns": "DenseFeatures",
    },
    "levels.mid_level.losses": {
        "losses": "CategoricalCrossentropy Crossentropy MeanAbsoluteError SparseCategoricalCrossentropy",
    },
    "levels.mid_level.optimizers": {"optimizers": "AdamW ExponentialDecay PiecewiseConstantDecay RMSprop"},
    "levels.mid_level.data": {"pipeline": "DataLoader"},
    "activation": {"layers": "softmax tanh"},
    "class": {
        "functional": "Model",
        "layers": "Dense Layer",
        "losses": "BinaryCrossentropy Loss",
        "optimizers": "Adam SGD",
        "pipeline": "Dataset",
    },
    "initializer": {"layers": "glorot_normal he_normal ones random_uniform truncated_normal"},
    "loss": {"losses": "categorical_crossentropy mae mean_absolute_error sparse_categorical_crossentropy"},
    "method": {
        "exporting": "Model.export",
        "fitting": "Model.Training Model.run_training Model.rows_of Model.parted Model.predict Model.summary",
        "functional": "Model.begin",
        "pipeline": "Dataset.cache Dataset.filter Dataset.from_csv Dataset.from_generator Dataset.map "
        "Dataset.prefetch Dataset.repeat Dataset.skip Dataset.take Dataset.zip",
        "saving": "Model.save",
    },
    "optimizer": {"optimizers": "adamw rmsprop"},
}


@functools.cache
def _modules(what):
    """{row: the name of the module that enters it}"""
    return {name: module for module, names in CONTENTS.get(what, {}).items() for name in (module, *names.split())}


def enter(what, name):
    """The module that has entered the row `name` in the table `what`, or that adds this name to a front; else None."""
    module = _modules(what).get(name)
    return module and importlib.import_module(f"levels_more.{module}")
