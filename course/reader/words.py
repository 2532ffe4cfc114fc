"""Values and errors as short text, as checks, exercises and figures write them."""

import inspect
import traceback
from numbers import Real

import numpy as np

from course.reader.language import say


def in_one_line(error, function):
    """An exception as one line of text, with the line of the function's cell or file that raised it."""
    file = inspect.unwrap(function).__code__.co_filename
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f", in line {frames[-1].lineno}: `{frames[-1].line}`" if frames else ""
    said = f": {error}" if str(error) else ""
    return " ".join(f"{type(error).__name__}{said}".split()) + where


def plain(value):
    """Convert NumPy arrays and numbers to Python lists and numbers, also inside lists and tuples."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def brief(value):
    text = repr(plain(value))
    return text if len(text) <= 200 else text[:200] + " ..."


def spelled(value, unit=""):
    """A number or a range as text, with commas, whole or to six digits, and its unit; str() of anything else."""
    text = str(value)
    if isinstance(value, tuple):  # a range
        text = say("{low} to {high}", low=spelled(value[0]), high=spelled(value[1]))
    elif isinstance(value, Real) and not isinstance(value, bool):
        text = f"{int(value):,}" if abs(value) < 1e15 and value == int(value) else f"{value:,.6g}"
    return f"{text} {unit}".strip()
