"""Answers as plain data: `pack` and `unpack` make what can cross a pipe.

What `unpack` takes may come from anybody: it makes numbers, texts, lists and arrays of it, runs nothing, and calls no
method of it.
"""

import base64
import re

import numpy as np

ITEMS, TEXT, DEPTH = 100_000, 4000, 20  # how many values, how long a text, how many lists in lists an answer may have
PLAIN = (type(None), bool, int, float, str)


class Other:
    """In an answer: a value that is no data, by the name of its kind."""

    def __init__(self, kind):
        self.kind = kind

    def __repr__(self):
        return f"<{self.kind}>"


def describe(value):
    """What a value is, apart from its numbers: `float32[3, 4]`, `a list of 3`, `an int`."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    names = {"float64": "a float", "float": "a float", "int64": "an int", "int": "an int", "NoneType": "None"}
    kind = str(value.dtype) if isinstance(value, np.ndarray | np.generic) else type(value).__name__
    return value.kind if isinstance(value, Other) else names.get(kind, kind)


def pack(value):
    """A value in terms of JSON: a kind, and what it holds. Arrays are packed by dtype, shape and bytes."""
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
    """The value that was packed. Raises ValueError for whatever `pack` does not make, or makes of too much."""
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
