"""How a tensor is printed, and `set_printoptions`, which changes that."""

import math
import sys

import numpy as np

from levels.support.checks import check_bool, check_int
from levels_more.torch.ops import NUMBERS

PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": sys.maxsize, "edgeitems": 3, "linewidth": 80},
}
_OPTIONS = PROFILES["default"] | {"sci_mode": None}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Set how tensors are printed: digits, numbers before a shortening, numbers at its ends, characters in a line.

    The profiles "default", "short" and "full" set all four. `sci_mode`: exponents always or never, else where they
    are needed. Raises ValueError for other values.
    """
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"set_printoptions: profile is {profile!r}; expected {', '.join(PROFILES)}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    found = PROFILES.get(profile, {}) | {name: value for name, value in given.items() if value is not None}
    for name, value in found.items():
        found[name] = sys.maxsize if value == math.inf else check_int(0, f"set_printoptions: {name}", value)
    found["sci_mode"] = None if sci_mode is None else check_bool("set_printoptions: sci_mode", sci_mode)
    _OPTIONS.update(found)


def printed(x):
    """Return the text of a tensor: its numbers, and its dtype if it is not the default one."""
    array = x.held.numpy()
    whole = x.dtype.kind != "f" or not (array[np.isfinite(array)] % 1.0).any()
    how = {name: _OPTIONS[name] for name in ("precision", "threshold", "edgeitems")}
    if _OPTIONS["sci_mode"]:
        how["formatter"] = {"float_kind": lambda number: f"{number:.{_OPTIONS['precision']}e}"}
    how |= {"suppress_small": _OPTIONS["sci_mode"] is False, "floatmode": "maxprec" if whole else "fixed"}
    text = np.array2string(array, _OPTIONS["linewidth"], separator=", ", prefix="tensor(", **how)
    notes = [text.replace(", ...,", ",  ...,")]  # PyTorch's two spaces
    if x.dtype != NUMBERS[float] and (x.dtype.kind == "f" or not array.size):
        notes.append(f"dtype={x.dtype}")
    return ", ".join(notes)
