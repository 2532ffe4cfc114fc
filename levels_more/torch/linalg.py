"""`torch.linalg`: linear equations, and lengths."""

from . import functions

inv, solve, det, norm = (functions.FUNCTIONS[name] for name in ("inverse", "solve", "det", "norm"))
__getattr__ = functions.room("torch.linalg")
