"""`torch.linalg`: linear equations, and lengths."""

from levels_more.missing import room

from . import functions

inv, solve = functions.FUNCTIONS["inverse"], functions.FUNCTIONS["solve"]
det, norm = functions.FUNCTIONS["det"], functions.FUNCTIONS["norm"]
__getattr__ = room("torch.linalg")
