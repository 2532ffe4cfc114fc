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


def sizes(name, value):
    """A shape as a tuple of whole numbers from 0 on. One number is a shape of one axis."""
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
    whole = isinstance(axis, int | np.integer) and not isinstance(axis, bool)
    expect(whole, f"{name}: axis", axis, "a whole number")
    if not -axes <= axis < axes:
        raise ValueError(f"{name}: axis {axis} is not one of {axes} axes")
    return int(axis) % axes
