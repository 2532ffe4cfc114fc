"""3 · Low-level API."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .autodiff import VJPS, GradientTape, hand_on, size, spread_back, times_back, unbroadcast, walk_back, write_down
from .forms import FORMS, NoProgram, each, reduced_values
from .functions import BACK_ENDS, GUARDS, PASSES, Function, eager, function
from .graph import Graph, Node, Symbol, Trace, dce, needed_by, trace
from .module import Module
from .nn import relu, sigmoid
from .ops import clip, exp, gather, log, matmul, reduce_mean, reduce_sum, sqrt, whole
from .replay import Replay
from .row_program import LIMIT, RowProgram, Turns, address, check_fits, home_of, row_parts, write_step
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import (
    BIRTHS, DOOR, DTYPES, METHODS, RUN, Extended, Operators, Passing, Run, Tensor, Variable, apply, as_tensor,
    as_tensors, constant, renamed, tensor
)

__all__ = [
    "BACK_ENDS", "BIRTHS", "DOOR", "DTYPES", "FORMS", "GUARDS", "LIMIT", "METHODS", "PASSES", "RUN", "VJPS",
    "Extended", "Function", "GradientTape", "Graph", "Module", "Node", "NoProgram", "Operators", "Passing", "Replay",
    "RowProgram", "Run", "Symbol", "Tensor", "Trace", "Turns", "Variable", "address", "apply", "as_tensor",
    "as_tensors", "check_fits", "clip", "constant", "dce", "dnn", "dnn_classifier", "each", "eager", "exp", "function",
    "gather", "hand_on", "home_of", "linear_regression", "log", "matmul", "needed_by", "reduce_mean", "reduce_sum",
    "reduced_values", "relu", "renamed", "row_parts", "sigmoid", "size", "spread_back", "sqrt", "tensor", "times_back",
    "trace", "unbroadcast", "walk_back", "whole", "write_down", "write_step"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
