"""3 · Low-level API."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels.support.fronts import absent

from .autodiff import VJPS, WALKS, GradientTape, hand_on, made_from, quickest_walk, unbroadcast, walk_back
from .functions import BACK_ENDS, GUARDS, PASSES, Eager, Function, eager, function
from .graph import Graph, Node, Symbol, Trace, dce, needed_by, trace
from .module import Module
from .nn import relu, sigmoid
from .ops import clip, exp, gather, log, reduce_mean, reduce_sum, sqrt
from .replay import Replay
from .row_program import FORMS, NoProgram, RowProgram, as_instructions, check_fits, row_parts
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import DOOR, DTYPES, OPERATORS, RUN, Operators, Run, Tensor, Variable, apply, as_tensor, constant, sides

__all__ = [
    "BACK_ENDS", "DOOR", "DTYPES", "Eager", "FORMS", "Function", "GUARDS", "GradientTape", "Graph", "Module",
    "NoProgram", "Node", "OPERATORS", "Operators", "PASSES", "RUN", "Replay", "RowProgram", "Run", "Symbol", "Tensor",
    "Trace", "VJPS", "Variable", "WALKS", "apply", "as_instructions", "as_tensor", "check_fits", "clip", "constant",
    "dce", "dnn", "dnn_classifier", "eager", "exp", "function", "gather", "hand_on", "linear_regression", "log",
    "made_from", "needed_by", "quickest_walk", "reduce_mean", "reduce_sum", "relu", "row_parts", "sides", "sigmoid",
    "sqrt", "trace", "unbroadcast", "walk_back"
]
__getattr__ = absent(__name__)  # says where there is more
