"""A room is a module that a table fills: `tf.keras.layers` and the others. What it lacks, it says, and what to use instead."""

import sys
from types import ModuleType

from levels_more.checks import absent

_WORDS = "tf.feature_column with layers.DenseFeatures, or pandas.get_dummies"
INSTEAD = {  # a name that is not here -> what to use
    "TensorArray": "a Python list, and tf.stack",
    "Tokenizer": "levels.mid_level.feature_columns, for words",
    "datasets": "course.data, or files of your own with NumPy or pandas",
    "plot_model": "model.summary()",
    "saved_model": "model.save(folder) and tf.keras.models.load_model(folder)",
    "string": "Python's text; tensors hold numbers",
    "StringLookup": _WORDS,
    "IntegerLookup": _WORDS,
    "CategoryEncoding": _WORDS,
    "float16": "tf.float32",
    "uint8": "tf.int64",
}


def missing(place, name):
    """The error of a name that a module does not have."""
    cure = INSTEAD.get(name, "here are the names that small dense nets use; dir() lists them")
    return absent(f"{place} has no {name!r}; {cure}", name)


def room(name, *tables, **names):
    """Make the module levels_more.tensorflow.NAME, such as "keras.layers", of tables {name: thing} and of names."""
    module = ModuleType(f"{__package__}.{name}", f"`tf.{name}`.")
    for table in (*tables, names):
        vars(module).update(table)

    def find(wanted):
        raise missing(module.__name__, wanted)

    module.__getattr__ = find
    sys.modules[module.__name__] = module
    return module
