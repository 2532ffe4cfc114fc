"""3 · Low-level API."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .autodiff import VJPS, GradientTape, hand_on, size, spread_back, times_back, unbroadcast, walk_back, write_down
from .forms import FORMS, NoProgram, each, form_of, never, sum_keeps, sum_values
from .functions import BACK_ENDS, GUARDS, PASSES, Function, eager, function, program_of, row_numbers
from .graph import Graph, Node, Symbol, Trace, dce, needed_by, results_of, trace
from .module import Module
from .nn import relu, sigmoid
from .ops import clip, exp, gather, log, matmul, reduce_mean, reduce_sum, sqrt, whole
from .replay import Replay, check_results, stacked
from .row_program import (
    LIMIT, Home, RowProgram, Split, Writer, address, check_fits, check_rows, home_of, written_at_home
)
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import (
    BIRTHS, DOOR, DTYPES, METHODS, RUN, Extended, Operators, Passing, Run, Tensor, Variable, apply, as_tensor,
    as_tensors, constant, renamed, tensor
)

__all__ = [
    "BACK_ENDS", "BIRTHS", "DOOR", "DTYPES", "FORMS", "GUARDS", "LIMIT", "METHODS", "PASSES", "RUN", "VJPS",
    "Extended", "Function", "GradientTape", "Graph", "Home", "Module", "Node", "NoProgram", "Operators", "Passing",
    "Replay", "RowProgram", "Run", "Split", "Symbol", "Tensor", "Trace", "Variable", "Writer", "address", "apply",
    "as_tensor", "as_tensors", "check_fits", "check_results", "check_rows", "clip", "constant", "dce", "dnn",
    "dnn_classifier", "each", "eager", "exp", "form_of", "function", "gather", "hand_on", "home_of",
    "linear_regression", "log", "matmul", "needed_by", "never", "program_of", "reduce_mean", "reduce_sum", "relu",
    "renamed", "results_of", "row_numbers", "sigmoid", "size", "spread_back", "sqrt", "stacked", "sum_keeps",
    "sum_values", "tensor", "times_back", "trace", "unbroadcast", "walk_back", "whole", "write_down", "written_at_home"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
