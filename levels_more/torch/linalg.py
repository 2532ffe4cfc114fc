"""`torch.linalg`: linear equations, lengths, matrices in parts."""

from levels_more.low_level import linalg as solving
from levels_more.missing import room
from levels_more.torch import op_arguments
from levels_more.torch.recorded import recorded
from levels_more.torch.recorded_making import without_memory

from .functions import FUNCTIONS

inv, solve = FUNCTIONS["inverse"], FUNCTIONS["solve"]
det, vector_norm = FUNCTIONS["det"], FUNCTIONS["norm"]
norm = recorded("norm", op_arguments.spelled(op_arguments.length))
__getattr__, __dir__ = room(
    "torch.linalg", globals(), {name: without_memory(name, run) for name, run in solving.PLAIN.items()}
)
