"""2 · Kernels."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels.support.fronts import absent

from .array_kernels import gather, matmul_ikj, plan_gather, plan_matmul
from .elementwise import (
    ELEMENTWISE, element_loop, loop_source, nest, places_of, plan_elementwise, plan_loop, relu_grad, scalar
)
from .reduce import REDUCTIONS, plan_reduce, reduce_loop, reduced
from .registry import (
    BACKENDS, IN_USE, KERNELS, NUMBERS, PLAN_FINISHERS, PLANNERS, PLANS, UPDATES, Plan, counted, kernel, launch,
    lowered, plan, planned, use
)
from .tasks import dnn_backward, dnn_classifier, dnn_forward, linear_forward, linear_regression

__all__ = [
    "BACKENDS", "ELEMENTWISE", "IN_USE", "KERNELS", "NUMBERS", "PLANNERS", "PLANS", "PLAN_FINISHERS", "Plan",
    "REDUCTIONS", "UPDATES", "counted", "dnn_backward", "dnn_classifier", "dnn_forward", "element_loop", "gather",
    "kernel", "launch", "linear_forward", "linear_regression", "loop_source", "lowered", "matmul_ikj", "nest",
    "places_of", "plan", "plan_elementwise", "plan_gather", "plan_loop", "plan_matmul", "plan_reduce", "planned",
    "reduce_loop", "reduced", "relu_grad", "scalar", "use"
]
__getattr__ = absent(__name__)  # says where there is more
