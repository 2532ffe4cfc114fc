"""3 · Low-level API."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

from levels.support.fronts import absent, public

from .autodiff import VJPS, GradientTape, backward_pass, hand_on, plan_spread, reachable, unbroadcast
from .functions import BACK_ENDS, PASSES, Function, eager, function
from .graph import Graph, Node, Symbol, Trace, dce, needed_by, trace
from .module import Module
from .nn import relu, sigmoid
from .ops import clip, exp, gather, log, reduce_mean, reduce_sum, sqrt
from .replay import Replay
from .row_program import LOWERINGS, SHARES, NoProgram, OpWriter, RowProgram, StepWriter, as_instructions, row_parts
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import (
    DOOR, DTYPES, OPERATORS, Interpreter, Operators, Tensor, Variable, Watcher, apply, as_tensor, binary_op, constant
)

__all__ = public(globals())
__getattr__ = absent(__name__)  # says where there is more
