"""Converts tables, lists and arrays to NumPy arrays of numbers."""

import numpy as np

from levels.low_level import Operators, constant
from levels.support.checks import numeric_array, words_in


def of_pandas(values):
    """Whether this is a DataFrame or a Series. (Recognised by its methods, so that pandas need not be imported.)"""
    return hasattr(values, "to_numpy") and hasattr(values, "isna")


def is_table(x):
    """Whether x is columns with names: a dict, or a DataFrame."""
    return isinstance(x, dict) or (of_pandas(x) and hasattr(x, "columns"))


def plain(values):
    """The numbers of a DataFrame or Series as an array; gaps are NaN. Raises TypeError that names other columns."""
    kinds = [*zip(values.columns, values.dtypes, strict=True)] if hasattr(values, "columns") else [("", values.dtype)]
    other = [str(name) for name, kind in kinds if getattr(kind, "kind", "O") not in "biuf"]
    if other or not kinds:
        cure = "give them to feature columns (DenseFeatures), or make numbers of them"
        raise TypeError(f"{', '.join(filter(None, other)) or 'the values'}: no numbers; {cure}")
    gaps = values.isna().to_numpy().any()
    whole = [kind if isinstance(kind, np.dtype) else "f8" if gaps or kind.kind == "f" else "i8" for _, kind in kinds]
    return values.to_numpy(dtype=np.result_type(*whole), **({"na_value": np.nan} if gaps else {}))


CURES = {  # name of an argument -> what to do if it holds words
    "x": "make a column of 0 and 1 for each word, as in (column[:, None] == np.unique(column)) * 1.0, or give columns "
    "with names to feature columns (DenseFeatures)",
    "y": "number them with np.unique(y, return_inverse=True)[1], or use DNNClassifier, which takes words",
    "sample_weight": "give a number for each row",
}


def arrays_of(x, name):
    """One array, or a list of arrays, as a list of NumPy arrays. A list of numbers is one array.

    `name`: the name of the argument, a key of CURES. Raises TypeError for words.
    """
    several = isinstance(x, (list, tuple)) and any(isinstance(a, (np.ndarray, Operators)) or of_pandas(a) for a in x)
    return [_array_of(a, name) for a in (x if several else [x])]


def _array_of(values, name):
    try:
        if isinstance(values, np.ndarray):
            return numeric_array(values)
        return plain(values) if of_pandas(values) else constant(values).numpy()
    except TypeError:
        words = words_in(values)
        if not words or name == "x" and is_table(values):  # the error already names a table's columns
            raise
        raise TypeError(f"{name} holds words ({words}); {CURES[name]}") from None
