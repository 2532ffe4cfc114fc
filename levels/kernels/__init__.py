"""2 · Kernels."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

from levels.support.fronts import absent, public

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

__all__ = public(globals())
__getattr__ = absent(__name__)  # says where there is more
