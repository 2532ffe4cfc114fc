"""More functions of tensors and their gradients, all operators, and the compiler."""

from levels.low_level import (
    BACK_ENDS, DOOR, DTYPES, Graph, Interpreter, LOWERINGS, NoProgram, Node, OPERATORS, OpWriter, Operators, PASSES,
    Replay, RowProgram, SHARES, StepWriter, Symbol, Tensor, Trace, VJPS, Variable, Watcher, apply, as_instructions,
    as_tensor, backward_pass, binary_op, clip, constant, dce, dnn, dnn_classifier, eager, exp, gather,
    hand_on, linear_regression, log, needed_by, plan_spread, reachable, reduce_sum, relu, row_parts, sigmoid, sqrt,
    tasks, trace, unbroadcast,
)
from levels.support.fronts import public
from levels_more import compiler  # (it adds passes and back ends)
from levels_more.compiler.functions import Function, function
from levels_more.compiler.passes import constant_fold, cse
from levels_more.low_level import nn, vjps  # (the second adds rules)
from levels_more.low_level.autodiff import backward, grad, stop_gradient
from levels_more.low_level.creation import arange, device, ones, ones_like, range, tensor, zeros, zeros_like
from levels_more.low_level.indexing import boolean_mask
from levels_more.low_level.math import divide, floordiv, mod
from levels_more.low_level.module import Module
from levels_more.low_level.ops import (
    abs, absolute, arg_max, arg_min, argmax, argmin, broadcast_to, cast, cat, concat, cos, dot, elu, equal, erf,
    log_softmax, logical_and, logical_not, logical_or, matmul, maximum, minimum, one_hot, reduce_all, reduce_any,
    reduce_max, reduce_mean, reduce_min, reshape, sin, softmax, square, swapaxes, tanh, transpose, where,
)
from levels_more.low_level.random import normal, set_seed, shuffle, uniform
from levels_more.low_level.shape import (
    expand_dims, fancy_index, largest, reduce_std, reduce_variance, smallest, squeeze, stack, take, take_along,
)
from levels_more.compiler.eager.tapes import GradientTape
from levels_more.missing import absent as _absent

__all__ = sorted([*public(globals()), "nn", "tasks"])
__getattr__ = _absent(__name__)
