"""What an argument has to be is said where it is given: a sentence for each kind, for all of `levels_more`."""

import functools
import inspect
import operator
import os
import reprlib
from types import FunctionType, MethodType

import numpy as np

from levels.support.checks import real, unmasked


def expect(fits, name, value, expected):
    """The value, if it fits. Else raises TypeError, which tells what it is, and what was expected."""
    if not fits:
        raise TypeError(f"{name} is {reprlib.repr(value)}; expected {expected}")
    return value


def without_mask(values):
    """These values, if none of them is masked: an array, or a list or an array of objects. Else raises TypeError."""
    objects = isinstance(values, np.ndarray) and values.dtype == object
    inside = values.flat if objects else values if isinstance(values, list | tuple) else ()
    for each in (values, *inside):
        if isinstance(each, np.ma.MaskedArray):
            unmasked(each)  # says what to do about it
    return values


def word(name, value):
    """The value, if it is text."""
    return expect(isinstance(value, str), name, value, "a name, in quotes")


def called(name, value, what="a function"):
    """The value, if it can be called."""
    return expect(callable(value), name, value, what)


def several(name, value, what="a list"):
    """The value, if it is a list or a tuple."""
    return expect(isinstance(value, list | tuple), name, value, what)


def file_name(name, value):
    """The value, if it names a file: a number would be the number of an open one."""
    return expect(isinstance(value, str | os.PathLike), name, value, "the name of a file")


def dtype_of(name, value, allowed="float32 float64 int64 bool"):
    """The dtype of that name, if it is among the allowed ones. (NumPy takes None for float64.)"""
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
    """An array of numbers as int64, with floats cut off behind the point. OverflowError: NaN, or a number too large."""
    numbers = array.astype(np.float64) if array.dtype.kind == "f" else array
    largest = np.uint64(2**63 - 1) if array.dtype.kind == "u" else 2.0**63 - 1024  # the largest float64 below 2^63
    if array.dtype.kind in "uf" and (beyond := numbers[~(abs(numbers) <= largest)]).size:
        raise OverflowError(f"{beyond.flat[0]} has no place in int64, the dtype of whole numbers; give it as a float")
    return array.astype(np.int64)


def as_tuple(value):
    """A list, a tuple, or a tensor or an array with an axis as a tuple; any other value stays."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return tuple(np.asarray(value).tolist()) if getattr(value, "shape", ()) else value


def sizes(name, value):
    """A shape as a tuple of whole numbers from 0 on: Python's, NumPy's, tensors. One number is a shape of one axis."""
    value = as_tuple(value)
    try:
        found = tuple(map(operator.index, value if isinstance(value, tuple | list) else (value,)))
    except TypeError:
        found = (-1,)
    whole = not any(isinstance(size, bool) for size in (value if isinstance(value, tuple | list) else (value,)))
    expect(whole and min(found, default=0) >= 0, name, value, "sizes, whole numbers from 0 on")
    return found


def number(name, value, least=-np.inf):
    """The value as Python's number, if it is a number from there on, finite and no bool."""
    found = real(value)
    fits = found is not None and found >= least and abs(found) < np.inf
    expect(fits, name, value, "a number" + f" from {least:g} on" * (least > -np.inf))
    return found


def as_python(value):
    """NumPy's real numbers as Python's, in a list or a tuple, too; anything else as it is."""
    if type(value) in (list, tuple):
        return type(value)(map(as_python, value))
    return real(value) if isinstance(value, np.number) and real(value) is not None else value


def takes(method, given):
    """Whether a function can be called with so many arguments."""
    if isinstance(method, MethodType) and isinstance(method.__func__, FunctionType):  # asked in every epoch
        return _takes(method.__func__, given + 1)
    return _takes.__wrapped__(method, given)


@functools.lru_cache(256)
def _takes(function, given):
    try:
        inspect.signature(function).bind(*range(given))
    except (TypeError, ValueError):  # it cannot, or Python does not know
        return False
    return True


def axis_of(name, axis, axes):
    """The axis, counted from the front. Raises TypeError for no whole number, ValueError where there is none."""
    axis = index_of(f"{name}: axis", axis)
    if not -axes <= axis < axes:
        raise ValueError(f"{name}: axis {axis} is not one of {axes} axes")
    return axis % axes


def index_of(name, value):
    """A whole number, Python's, NumPy's or a tensor, as Python's. Raises TypeError for anything else, bools too."""
    try:
        return operator.index(None if isinstance(value, bool | np.bool_) else value)
    except (TypeError, ValueError):
        return expect(False, name, value, "a whole number")
