"""Answers as plain data: `pack` converts them to a form that can cross a pipe, and `unpack` converts them back.

The input of `unpack` is not trusted. It is only converted to numbers, texts, lists and arrays: none of it is run, and
none of its methods is called.
"""

import base64
import re

import numpy as np

# how many values, how long a text, how many lists in lists an answer may have
ITEMS = 100_000
TEXT = 4000
DEPTH = 20
PLAIN = (type(None), bool, int, float, str)


class Other:
    """A value in an answer that is no plain data. Only the name of its kind is kept."""

    def __init__(self, kind):
        self.kind = kind

    def __repr__(self):
        return f"<{self.kind}>"


def describe(value):
    """The kind of a value, without its numbers: `float32[3, 4]`, `a list of 3`, `an int`."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    names = {"float64": "a float", "float": "a float", "int64": "an int", "int": "an int", "NoneType": "None"}
    kind = str(value.dtype) if isinstance(value, np.ndarray | np.generic) else type(value).__name__
    return value.kind if isinstance(value, Other) else names.get(kind, kind)


def flatten(value, name=""):
    """[(name, class, plain data)] of a result: one for each entry of a dict, and for each array or tensor in a list."""
    if isinstance(value, dict):
        return [part for key, each in value.items() for part in flatten(each, str(key))]
    if isinstance(value, list | tuple) and any(hasattr(each, "numpy") or getattr(each, "ndim", 0) for each in value):
        return [part for k, each in enumerate(value) for part in flatten(each, f"{name}[{k}]")]
    if hasattr(value, "numpy"):
        return [(name, type(value).__name__, np.array(value.numpy()))]
    return [(name, "", value.copy() if isinstance(value, np.ndarray) else value)]


def held(value):
    """What a value holds, to compare it with what it holds later; for any other object, the object itself."""
    if isinstance(value, list | tuple):
        return [held(each) for each in value]
    if hasattr(value, "numpy"):  # a tensor, a variable, a buffer
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    return repr(value) if isinstance(value, float | np.generic) else value


def pack(value):
    """A value as JSON: [kind, content]. The content of an array is its dtype, its shape and its bytes in base64."""
    if type(value) in PLAIN:
        return ["plain", value]
    if isinstance(value, list | tuple):
        return ["list" if isinstance(value, list) else "tuple", [pack(each) for each in value]]
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "?biufc":
        array = np.asarray(value)
        kind = "array" if isinstance(value, np.ndarray) else "number"
        return [kind, [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode()]]
    return ["other", describe(value)]


def unpack(packed):
    """The value that was packed. Raises ValueError for anything that `pack` does not make, or that is too large."""
    left = ITEMS

    def value_of(packed, depth):
        nonlocal left
        left -= 1
        if left < 0 or depth > DEPTH:
            raise ValueError("too much of it")
        match packed:
            case ["plain", value] if type(value) in PLAIN and not (type(value) is str and len(value) > TEXT):
                return value
            case ["list" | "tuple" as kind, list() as values]:
                values = [value_of(each, depth + 1) for each in values]
                return values if kind == "list" else tuple(values)
            case ["array" | "number" as kind, [str() as dtype, list() as shape, str() as held]]:
                array = array_of(dtype, shape, base64.b64decode(held, validate=True))
                return array if kind == "array" else array[()]
            case ["other", str() as kind] if len(kind) <= TEXT:
                return Other(kind)
        raise ValueError("no data")

    return value_of(packed, 0)


def array_of(dtype, shape, held):
    if not re.fullmatch(r"[<>|=][?biufc]\d{1,2}", dtype) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("no array")
    try:
        return np.frombuffer(held, np.dtype(dtype)).reshape(shape).copy()
    except (TypeError, OverflowError) as error:
        raise ValueError(str(error)) from None
