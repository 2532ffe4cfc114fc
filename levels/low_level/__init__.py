"""3 · Low-level API."""

# Built from notebooks/03_low_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .autodiff import (
    VJPS, GradientTape, grad, matmul_vjp_w, matmul_vjp_x, part_of_join, printed, share_back, size, spread_back,
    stop_gradient, unbroadcast, walk_back
)
from .module import Module, parts
from .nn import log_softmax, relu, sigmoid, softmax
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import (
    DEVICES, DTYPES, ENGINES, NUMBER, TAPES, VARIABLES, Operators, Protocols, Tensor, Variable, apply, arg_max,
    as_tensor, as_tensors, at_once, backward, blank, cast, cat, clip, concat, constant, device, empty, exp, gather,
    in_range, innermost, log, matmul, maximum, method, minimum, moved, number_tensor, one_hot, reduce_max, reduce_mean,
    reduce_min, reduce_sum, renamed, reshape, slice_of, sqrt, tanh, tensor, transpose, where, whole, without_dots
)

__all__ = [
    "DEVICES", "DTYPES", "ENGINES", "NUMBER", "TAPES", "VARIABLES", "VJPS", "GradientTape", "Module", "Operators",
    "Protocols", "Tensor", "Variable", "apply", "arg_max", "as_tensor", "as_tensors", "at_once", "backward", "blank",
    "cast", "cat", "clip", "concat", "constant", "device", "dnn", "dnn_classifier", "empty", "exp", "gather", "grad",
    "in_range", "innermost", "linear_regression", "log", "log_softmax", "matmul", "matmul_vjp_w", "matmul_vjp_x",
    "maximum", "method", "minimum", "moved", "number_tensor", "one_hot", "part_of_join", "parts", "printed",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_sum", "relu", "renamed", "reshape", "share_back", "sigmoid",
    "size", "slice_of", "softmax", "spread_back", "sqrt", "stop_gradient", "tanh", "tensor", "transpose",
    "unbroadcast", "walk_back", "where", "whole", "without_dots"
]
