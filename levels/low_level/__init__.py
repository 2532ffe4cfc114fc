"""3 · Low-level API."""

# Built from notebooks/03_low_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .autodiff import VJPS, GradientTape, spread_back, unbroadcast, walk_back
from .nn import relu, sigmoid
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import (
    TAPES, Operators, Tensor, Variable, apply, as_tensor, buffer_of, clip, constant, exp, gather, log, matmul,
    number_tensor, reduce_mean, reduce_sum
)

__all__ = [
    "TAPES", "VJPS", "GradientTape", "Operators", "Tensor", "Variable", "apply", "as_tensor", "buffer_of", "clip",
    "constant", "dnn", "dnn_classifier", "exp", "gather", "linear_regression", "log", "matmul", "number_tensor",
    "reduce_mean", "reduce_sum", "relu", "sigmoid", "spread_back", "unbroadcast", "walk_back"
]
