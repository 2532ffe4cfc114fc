"""2 · Kernels."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .elementwise import ELEMENTWISE, element_loop, loop_source, nest, places_of, relu_grad, scalar
from .reduce import REDUCTIONS, plan_reshape, reduce_columns, reduce_rows, reduced
from .registry import (
    KERNELS, KINDS, PLANNERS, PLANS, UPDATES, Backend, Plan, counted, kernel, kernel_of, launch, lowered, make, plan,
    planned, same_dtype, use
)
from .tasks import dnn_backward, dnn_classifier, dnn_forward, linear_forward, linear_regression
from .whole import gather, matmul_ikj

__getattr__, __dir__, __all__ = plugged(__name__)  # what is missing here is looked up in levels_more
