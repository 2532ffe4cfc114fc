"""2 · Kernels."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels.support.fronts import absent

from .array_kernels import gather, matmul_ikj
from .elementwise import ELEMENTWISE, element_loop, loop_source, nest, places_of, relu_grad, scalar
from .reduce import QUICKER, REDUCTIONS, plan_reshape, reduce_columns, reduce_rows, reduced
from .registry import (
    BACKENDS, KERNEL_TRIALS, KERNELS, PLAN_FINISHERS, PLANNERS, PLANS, UPDATES, Backend, Plan, counted, kernel,
    kernel_of, launch, lowered, make, plan, planned, same_dtype, use
)
from .tasks import dnn_backward, dnn_classifier, dnn_forward, linear_forward, linear_regression

__all__ = [
    "BACKENDS", "Backend", "ELEMENTWISE", "KERNELS", "KERNEL_TRIALS", "PLANNERS", "PLANS", "PLAN_FINISHERS", "Plan",
    "QUICKER", "REDUCTIONS", "UPDATES", "counted", "dnn_backward", "dnn_classifier", "dnn_forward", "element_loop",
    "gather", "kernel", "kernel_of", "launch", "linear_forward", "linear_regression", "loop_source", "lowered", "make",
    "matmul_ikj", "nest", "places_of", "plan", "plan_reshape", "planned", "reduce_columns", "reduce_rows", "reduced",
    "relu_grad", "same_dtype", "scalar", "use"
]
__getattr__ = absent(__name__)  # says where there is more
