"""More functions of tensors and their gradients, all operators, and the compiler."""

from levels.low_level import (
    BACK_ENDS, DOOR, DTYPES, Eager, FORMS, Function, GUARDS, GradientTape, Graph, NoProgram, Node, OPERATORS, Operators,
    PASSES, RUN, Replay, RowProgram, Run, Symbol, Tensor, Trace, VJPS, Variable, WALKS, apply, as_instructions,
    as_tensor, check_fits, clip, constant, dce, dnn, dnn_classifier, eager, exp, function, gather, hand_on,
    linear_regression, log, made_from, needed_by, quickest_walk, reduce_mean, reduce_sum, relu, row_parts, sides,
    sigmoid, sqrt, tasks, trace, unbroadcast, walk_back,
)
from levels_more import compiler  # noqa: F401 (it adds passes and back ends)
from levels_more.compiler.passes import constant_fold, cse
from levels_more.low_level import nn, vjps  # noqa: F401 (the second adds rules)
from levels_more.low_level.autodiff import backward, grad, stop_gradient
from levels_more.low_level.creation import arange, ones, ones_like, range, tensor, zeros, zeros_like
from levels_more.low_level.device import device, moved
from levels_more.low_level.indexing import boolean_mask, slice_of
from levels_more.low_level.math import divide, eye, fill, floor, floordiv, mod, rounded, sign
from levels_more.low_level.module import Module
from levels_more.low_level.ops import (
    abs, absolute, arg_max, arg_min, argmax, argmin, broadcast_to, cast, cat, concat, cos, dot, elu, equal, erf,
    log_softmax, logical_and, logical_not, logical_or, matmul, maximum, minimum, one_hot, reduce_all, reduce_any,
    reduce_max, reduce_min, reshape, sin, softmax, square, swapaxes, tanh, transpose, where,
)
from levels_more.low_level.random import Generator, normal, set_seed, shuffle, uniform
from levels_more.low_level.shape import expand_dims, fancy_index, squeeze, stack, take
from levels_more.low_level.statistics import largest, reduce_std, reduce_variance, smallest, take_along
from levels_more.moved import elsewhere

__all__ = [
    "BACK_ENDS", "DOOR", "DTYPES", "Eager", "FORMS", "Function", "GUARDS", "Generator", "GradientTape", "Graph",
    "Module", "NoProgram", "Node", "OPERATORS", "Operators", "PASSES", "RUN", "Replay", "RowProgram", "Run", "Symbol",
    "Tensor", "Trace", "VJPS", "Variable", "WALKS", "abs", "absolute", "apply", "arange", "arg_max", "arg_min",
    "argmax", "argmin", "as_instructions", "as_tensor", "backward", "boolean_mask", "broadcast_to", "cast", "cat",
    "check_fits", "clip", "concat", "constant", "constant_fold", "cos", "cse", "dce", "device", "divide", "dnn",
    "dnn_classifier", "dot", "eager", "elu", "equal", "erf", "exp", "expand_dims", "eye", "fancy_index", "fill",
    "floor", "floordiv", "function", "gather", "grad", "hand_on", "largest", "linear_regression", "log", "log_softmax",
    "logical_and", "logical_not", "logical_or", "made_from", "matmul", "maximum", "minimum", "mod", "moved",
    "needed_by", "nn", "normal", "one_hot", "ones", "ones_like", "quickest_walk", "range", "reduce_all", "reduce_any",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_std", "reduce_sum", "reduce_variance", "relu", "reshape",
    "rounded", "row_parts", "set_seed", "shuffle", "sides", "sigmoid", "sign", "sin", "slice_of", "smallest", "softmax",
    "sqrt", "square", "squeeze", "stack", "stop_gradient", "swapaxes", "take", "take_along", "tanh", "tasks", "tensor",
    "trace", "transpose", "unbroadcast", "uniform", "walk_back", "where", "zeros", "zeros_like",
]


def __getattr__(name):
    raise elsewhere(__name__, name)
