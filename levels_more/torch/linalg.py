"""`torch.linalg`: linear equations, and lengths."""

from . import functions

inv, solve = functions.FUNCTIONS["inverse"], functions.FUNCTIONS["solve"]
det, norm = functions.FUNCTIONS["det"], functions.FUNCTIONS["norm"]
__getattr__ = functions.room("torch.linalg")
