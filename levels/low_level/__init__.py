"""3 · Low-level API."""

# Built from notebooks/03_low_level.ipynb: edit there, then run its last cell.

from .autodiff import VJPS, GradientTape, spread_back, unbroadcast, walk_back
from .tasks import linear_regression
from .tensors import (
    TAPES,
    Operators,
    Tensor,
    Variable,
    apply,
    as_tensor,
    constant,
    gather,
    matmul,
    reduce_mean,
    reduce_sum,
    scalar,
)

__all__ = [
    "TAPES",
    "VJPS",
    "GradientTape",
    "Operators",
    "Tensor",
    "Variable",
    "apply",
    "as_tensor",
    "constant",
    "gather",
    "linear_regression",
    "matmul",
    "reduce_mean",
    "reduce_sum",
    "scalar",
    "spread_back",
    "unbroadcast",
    "walk_back",
]
