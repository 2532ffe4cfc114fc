"""3 · Low-level API."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .autodiff import VJPS, GradientTape, hand_on, unbroadcast, walk_back
from .functions import BACK_ENDS, GUARDS, PASSES, Function, eager, function
from .graph import Graph, Node, Symbol, Trace, dce, needed_by, trace
from .module import Module
from .nn import relu, sigmoid
from .ops import clip, exp, gather, log, matmul, reduce_mean, reduce_sum, sqrt
from .replay import Replay
from .row_program import FORMS, NoProgram, RowProgram, check_fits, row_parts
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import (
    DOOR, DTYPES, METHODS, RUN, Extended, Operators, Run, Tensor, Turns, Variable, apply, as_tensor, constant, home_of,
    renamed, tensor
)

__all__ = [
    "BACK_ENDS", "DOOR", "DTYPES", "FORMS", "GUARDS", "METHODS", "PASSES", "RUN", "VJPS", "Extended", "Function",
    "GradientTape", "Graph", "Module", "Node", "NoProgram", "Operators", "Replay", "RowProgram", "Run", "Symbol",
    "Tensor", "Trace", "Turns", "Variable", "apply", "as_tensor", "check_fits", "clip", "constant", "dce", "dnn",
    "dnn_classifier", "eager", "exp", "function", "gather", "hand_on", "home_of", "linear_regression", "log", "matmul",
    "needed_by", "reduce_mean", "reduce_sum", "relu", "renamed", "row_parts", "sigmoid", "sqrt", "tensor", "trace",
    "unbroadcast", "walk_back"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
