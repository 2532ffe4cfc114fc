"""3 · Low-level API."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .autodiff import VJPS, GradientTape, hand_on, unbroadcast, walk_back
from .forms import FORMS, NoProgram, each, form_of, never, sum_keeps, sum_values
from .functions import BACK_ENDS, GUARDS, PASSES, Function, eager, function, program_of, row_numbers
from .graph import Graph, Node, Symbol, Trace, dce, needed_by, results_of, trace
from .module import Module
from .nn import relu, sigmoid
from .ops import clip, exp, gather, log, matmul, reduce_mean, reduce_sum, sqrt
from .replay import Replay, check_results, size, stacked
from .row_program import (
    LIMIT, Home, RowProgram, Split, Writer, address, check_fits, check_rows, home_of, written_at_home
)
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import DOOR, DTYPES, METHODS, RUN, Operators, Run, Tensor, Variable, apply, as_tensor, constant, tensor

__all__ = [
    "BACK_ENDS", "DOOR", "DTYPES", "FORMS", "GUARDS", "LIMIT", "METHODS", "PASSES", "RUN", "VJPS", "Function",
    "GradientTape", "Graph", "Home", "Module", "Node", "NoProgram", "Operators", "Replay", "RowProgram", "Run",
    "Split", "Symbol", "Tensor", "Trace", "Variable", "Writer", "address", "apply", "as_tensor", "check_fits",
    "check_results", "check_rows", "clip", "constant", "dce", "dnn", "dnn_classifier", "each", "eager", "exp",
    "form_of", "function", "gather", "hand_on", "home_of", "linear_regression", "log", "matmul", "needed_by", "never",
    "program_of", "reduce_mean", "reduce_sum", "relu", "results_of", "row_numbers", "sigmoid", "size", "sqrt",
    "stacked", "sum_keeps", "sum_values", "tensor", "trace", "unbroadcast", "walk_back", "written_at_home"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
