"""Checks of arguments for all of `levels_more`: one function, with one error sentence, for each kind of argument."""

import functools
import inspect
import operator
import os
import re
import reprlib
from types import FunctionType, MethodType

import numpy as np

from levels.support.checks import numeric_array, real


def expect(fits, name, value, expected):
    """Return the value if it fits. Else raise TypeError, which says what it is and what was expected."""
    if not fits:
        raise TypeError(f"{name} is {reprlib.repr(value)}; expected {expected}")
    return value


def without_mask(values):
    """Return the values: an array, or a list or object array of values. Raises TypeError if one is a masked array."""
    objects = isinstance(values, np.ndarray) and values.dtype == object
    inside = values.flat if objects else values if isinstance(values, list | tuple) else ()
    for each in (values, *inside):
        if isinstance(each, np.ma.MaskedArray):
            numeric_array(each)  # raises the error
    return values


def word(name, value):
    """Return the value if it is a string. Else raise TypeError."""
    return expect(isinstance(value, str), name, value, "a name, in quotes")


def called(name, value, what="a function"):
    """Return the value if it is callable. Else raise TypeError."""
    return expect(callable(value), name, value, what)


def several(name, value, what="a list"):
    """Return the value if it is a list or a tuple. Else raise TypeError."""
    return expect(isinstance(value, list | tuple), name, value, what)


def file_name(name, value):
    """Return a path as text, with the home folder in the place of `~` at its start.

    Raises TypeError if it is no path (`open` takes an integer for a file descriptor), ValueError for an address such as
    gs://models, or if nothing says which folder is the home folder: a folder of such a name would be made otherwise.
    """
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    expect(isinstance(path, str) and path, name, value, "the name of a file")
    if re.match(r"[a-z][a-z0-9+.-]+:/", path, re.IGNORECASE):
        raise ValueError(f"{name} is {path!r}, an address; expected a file or folder of this computer")
    found = os.path.expanduser(path)
    if re.match(r"~([/\\]|$)", found):
        raise ValueError(f"{name} is {path!r}, and no home folder is known here; give the path without ~")
    return found


def sample_of(dataset, key, cure):
    """Return dataset[key]. IndexError and KeyError are raised again with the data set, the key and the cure in them."""
    try:
        return dataset[key]
    except (IndexError, KeyError) as error:
        kind = KeyError if isinstance(error, KeyError) else IndexError
        told = f"{type(dataset).__name__}[{key!r:.60}] raises {type(error).__name__}: {error}"
        raise kind(f"DataLoader: {told}; {cure}") from error


def dtype_of(name, value, allowed="float32 float64 int64 bool"):
    """Return the dtype of that name if it is allowed. Else raise TypeError. (NumPy takes None for float64.)"""
    try:
        found = None if value is None else np.dtype(value)
    except (TypeError, ValueError):
        found = None
    return (
        found
        if str(found) in allowed.split()
        else expect(False, name, value, " or ".join(allowed.replace(" ", ", ").rsplit(", ", 1)))
    )


def as_int64(array):
    """Cast an array of numbers to int64, truncating floats. Raises OverflowError for NaN and numbers too large."""
    numbers = array.astype(np.float64) if array.dtype.kind == "f" else array
    largest = np.uint64(2**63 - 1) if array.dtype.kind == "u" else 2.0**63 - 1024  # the largest float64 below 2^63
    fits = (numbers >= -(2.0**63)) & (numbers <= largest)
    if array.dtype.kind in "uf" and (beyond := numbers[~fits]).size:
        raise OverflowError(f"{beyond.flat[0]} does not fit in int64, the dtype of whole numbers; give it as a float")
    return array.astype(np.int64)


def as_float32(array):
    """Cast an array of floats to float32. Raises OverflowError, as `constant` does, for numbers too large."""
    try:
        with np.errstate(over="raise", under="ignore"):
            return array.astype(np.float32)
    except FloatingPointError:
        raise OverflowError("a number is too large for float32") from None


def whole_as_int64(values):
    """Return an array or a list of whole numbers, of any width, as int64. Return any other value as it is.

    Raises OverflowError for numbers too large.
    """
    if isinstance(values, (list, tuple, np.ndarray, np.generic)) or hasattr(values, "to_numpy"):  # also of pandas
        array = numeric_array(values)
        return as_int64(array) if array.dtype.kind in "iu" else values
    return values


def check_exact(name, values):
    """Return an array of numbers or objects. Raises ValueError for a whole number in it that float64 would round."""
    large = values[(values > 2**53) | (values < -(2**53))] if values.dtype.kind in "iu" else values
    for n in large.tolist() if large.dtype.kind in "iuO" else ():
        whole = abs(int(n)) if isinstance(n, int | np.integer) else 0
        if whole > 2**53 and whole // (whole & -whole) > 2**53:  # without its factors 2
            raise ValueError(f"{name} holds {n}, which float64 would round; ids go into a categorical column")
    return values


def as_tuple(value):
    """Convert a list, or a tensor or array with at least one axis, to a tuple. Return any other value as it is."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return tuple(np.asarray(value).tolist()) if getattr(value, "shape", ()) else value


def sizes(name, value):
    """Convert one integer >= 0 or several (Python, NumPy, tensor) to a shape, a tuple of ints. Raises TypeError."""
    value = as_tuple(value)
    try:
        found = tuple(map(operator.index, value if isinstance(value, tuple | list) else (value,)))
    except TypeError:
        found = (-1,)
    whole = not any(isinstance(size, bool) for size in (value if isinstance(value, tuple | list) else (value,)))
    expect(whole and min(found, default=0) >= 0, name, value, "sizes, whole numbers from 0 on")
    return found


def number(name, value, least=-np.inf):
    """Return a finite number >= `least` as a Python number. Raises TypeError for anything else, also for bools."""
    found = real(value)
    fits = found is not None and found >= least and abs(found) < np.inf
    expect(fits, name, value, "a number" + f" from {least:g} on" * (least > -np.inf))
    return found


def as_python(value):
    """Convert NumPy's real numbers to Python's, also inside lists and tuples. Return anything else as it is."""
    if type(value) in (list, tuple):
        return type(value)(map(as_python, value))
    return real(value) if isinstance(value, np.number) and real(value) is not None else value


def takes(method, given):
    """Whether a function can be called with this many positional arguments."""
    if isinstance(method, MethodType) and isinstance(method.__func__, FunctionType):  # cached: called in every epoch
        return _takes(method.__func__, given + 1)
    return _takes.__wrapped__(method, given)


@functools.lru_cache(256)
def _takes(function, given):
    try:
        inspect.signature(function).bind(*range(given))
    except (TypeError, ValueError):  # they do not fit, or it has no known signature
        return False
    return True


def axis_of(name, axis, axes):
    """Return the axis, counted from the front. Raises TypeError for a non-integer, ValueError if it is out of range."""
    axis = index_of(f"{name}: axis", axis)
    if not -axes <= axis < axes:
        raise ValueError(f"{name}: axis {axis} is not one of {axes} axes")
    return axis % axes


def index_of(name, value):
    """Convert an integer (Python, NumPy or tensor) to an int. Raises TypeError for anything else, also for bools."""
    try:
        return operator.index(None if isinstance(value, bool | np.bool_) else value)
    except (TypeError, ValueError):
        return expect(False, name, value, "a whole number")
