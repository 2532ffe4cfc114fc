"""More kernels: layout ops, reductions, random numbers, fast matrix products, and kernels for a GPU and a TPU."""

from levels.kernels import (
    BACKENDS, ELEMENTWISE, IN_USE, KERNELS, NUMBERS, PLANNERS, PLANS, PLAN_FINISHERS, Plan, REDUCTIONS, UPDATES,
    counted, dnn_backward, dnn_classifier, dnn_forward, element_loop, gather, kernel, launch, linear_forward,
    linear_regression, loop_source, lowered, matmul_ikj, nest, places_of, plan, plan_elementwise, plan_gather,
    plan_loop, plan_matmul, plan_reduce, planned, reduce_loop, reduced, relu_grad, scalar, tasks,
)
from levels.support.fronts import public
from levels_more.kernels.elementwise import elu, erf, tanh
from levels_more.kernels import gpu, matmul, tpu  # (they add kernels)
from levels_more.kernels.layout import one_hot, scatter_add
from levels_more.kernels.random import normal, philox, random_normal, random_uniform, uniform
from levels_more.kernels.reductions import arg_max, arg_min, log_softmax, log_softmax_grad, softmax, softmax_grad
from levels_more.kernels.verify import use
from levels_more.missing import absent as _absent

__all__ = sorted([*public(globals()), "tasks"])
__getattr__ = _absent(__name__)
