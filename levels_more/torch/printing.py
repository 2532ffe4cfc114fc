"""How a tensor is printed."""

import numpy as np

from levels_more.torch.dtypes import NUMBERS

WIDTH = 80  # characters in a line


def printed(x):
    """Return the text of a tensor: its numbers, with 4 digits, and its dtype if it is not the default one.

    Of more than 1000 numbers the first and the last 3 along each axis are shown.
    """
    array = x.held.numpy()
    whole = x.dtype.kind != "f" or not (array[np.isfinite(array)] % 1.0).any()
    how = {"precision": 4, "threshold": 1000, "edgeitems": 3, "suppress_small": False}
    how["floatmode"] = "maxprec" if whole else "fixed"
    text = np.array2string(array, WIDTH, separator=", ", prefix="tensor(", **how)
    notes = [text.replace(", ...,", ",  ...,")]  # PyTorch's two spaces
    if x.dtype != NUMBERS[float] and (x.dtype.kind == "f" or not array.size):
        notes.append(f"dtype={x.dtype}")
    return ", ".join(notes)
