"""3 · Low-level API."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .autodiff import VJPS, GradientTape, hand_on, made_from, unbroadcast, walk_back
from .functions import BACK_ENDS, PASSES, Function, eager, function, row_numbers
from .graph import Graph, Node, Symbol, Trace, dce, needed_by, trace
from .module import Module
from .nn import relu, sigmoid
from .ops import clip, exp, gather, log, reduce_mean, reduce_sum, sqrt
from .replay import Replay
from .row_program import FORMS, NoProgram, RowProgram, as_instructions, check_fits, row_parts
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import (
    DOOR, DTYPES, METHODS, RUN, Added, Operators, Run, Tensor, Turns, Variable, apply, as_tensor, constant, home_of,
    renamed, sides
)

__getattr__, __dir__, __all__ = plugged(__name__)  # what is missing here is looked up in levels_more
