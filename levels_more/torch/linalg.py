"""`torch.linalg`: linear equations, and lengths."""

from levels_more import solving
from levels_more.missing import room
from levels_more.recorded_making import without_memory

from . import functions

inv, solve = functions.FUNCTIONS["inverse"], functions.FUNCTIONS["solve"]
det, norm = functions.FUNCTIONS["det"], functions.FUNCTIONS["norm"]
vector_norm = matrix_norm = norm
PLAIN = {name: without_memory(name, function) for name, function in solving.PLAIN.items()}
__getattr__ = room("torch.linalg", PLAIN)
