"""The functions that are compiled with a check of each index, because a reader wrote them. Notebook 02 uses this."""

import collections
import types
import weakref
from contextlib import contextmanager

GUARDED = collections.Counter()  # a function -> how many open blocks have each of its indices checked
TRIED = weakref.WeakSet()  # functions that were tried on hard inputs with that check, and need it no more


@contextmanager
def guarded(function):
    """In a `with` block, compile this function with a check of each index: a wrong one raises IndexError, and no crash."""
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, types.FunctionType):  # it will be refused
        yield
        return
    GUARDED[plain] += 1
    try:
        yield
    finally:
        GUARDED[plain] -= 1
        if not GUARDED[plain]:
            del GUARDED[plain]


def is_guarded(function):
    """Whether each index of a function, or of the one inside numba's `njit`, is to be checked."""
    plain = getattr(function, "py_func", function)
    return plain in GUARDED and plain not in TRIED
