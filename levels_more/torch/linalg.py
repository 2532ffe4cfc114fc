"""`torch.linalg`: linear equations, lengths, matrices in parts."""

from levels_more import arguments, solving
from levels_more.missing import room
from levels_more.recorded import recorded
from levels_more.recorded_making import without_memory

from .functions import FUNCTIONS

inv, solve = FUNCTIONS["inverse"], FUNCTIONS["solve"]
det, vector_norm = FUNCTIONS["det"], FUNCTIONS["norm"]
norm = recorded("norm", arguments.spelled(arguments.length))
__getattr__, __dir__ = room(
    "torch.linalg", globals(), {name: without_memory(name, run) for name, run in solving.PLAIN.items()}
)
