"""2 · Kernels."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .cache import (
    INTRINSICS, PROGRAMS, STANDS, HashLocator, compile_cpu, compiled_for, described, globals_read, inside, intrinsic,
    rebound, watched
)
from .elementwise import (
    ELEMENTWISE, SPECIAL, TRIALS, adam, add, broadcast, clip, clip_grad, compiled_loop, exponent_bits, identity, ldexp,
    llvm_function, loop_source, merged_axes, momentum, plan_elementwise, relu, relu_grad, scalar, scaled_bits, sgd,
    sigmoid, tanh
)
from .matmul import (
    BLOCK, BYTES, DEPTH, ROWS, VECTORS, WIDE, WORKERS, WORTH, fill_columns, matmul_ikj, matmul_rows, matmul_small,
    matmul_tiles, pack, pack_square, pieces, plan_matmul, plan_tiles, tile_shape, vectors, write_tile
)
from .random import (
    ELEVEN, HIGH, LOW, MIX, STEP, cos_sin, philox, plan_random, random_normal, random_uniform, two_uniform
)
from .reduce import (
    LONG, REDUCTIONS, START, arg_max, combine, compiled_reduction, larger, log_softmax, log_softmax_grad, maximum,
    minimum, on_rows, plan_arg_max, plan_mean, plan_reduce, plan_rows, reduce_columns, reduce_rows, reduce_sum,
    reduced, reduction, smaller, softmax, softmax_grad
)
from .registry import (
    COMPILERS, KERNELS, NUMBERS, PLANNERS, PLANS, UPDATES, Kernels, Plan, check_results, counted, data_of, execute,
    kernel, launch, make, new_results, plan, planned, same_dtype, spec_of
)
from .rows import (
    as_slices, enter_move, gather, one_hot, plan_cast, plan_concat, plan_gather, plan_moves, plan_one_hot,
    plan_reshape, plan_scatter_add, plan_slice, plan_slice_grad, plan_transpose, scatter_add, sliced
)
from .tasks import CLIP, dnn_backward, dnn_classifier, dnn_forward, linear_forward, linear_regression
from .trial import counter_example, drawn, outcome, try_kernel, use

__all__ = [
    "BLOCK", "BYTES", "CLIP", "COMPILERS", "DEPTH", "ELEMENTWISE", "ELEVEN", "HIGH", "INTRINSICS", "KERNELS", "LONG",
    "LOW", "MIX", "NUMBERS", "PLANNERS", "PLANS", "PROGRAMS", "REDUCTIONS", "ROWS", "SPECIAL", "STANDS", "START",
    "STEP", "TRIALS", "UPDATES", "VECTORS", "WIDE", "WORKERS", "WORTH", "HashLocator", "Kernels", "Plan", "adam",
    "add", "arg_max", "as_slices", "broadcast", "check_results", "clip", "clip_grad", "combine", "compile_cpu",
    "compiled_for", "compiled_loop", "compiled_reduction", "cos_sin", "counted", "counter_example", "data_of",
    "described", "dnn_backward", "dnn_classifier", "dnn_forward", "drawn", "enter_move", "execute", "exponent_bits",
    "fill_columns", "gather", "globals_read", "identity", "inside", "intrinsic", "kernel", "larger", "launch", "ldexp",
    "linear_forward", "linear_regression", "llvm_function", "log_softmax", "log_softmax_grad", "loop_source", "make",
    "matmul_ikj", "matmul_rows", "matmul_small", "matmul_tiles", "maximum", "merged_axes", "minimum", "momentum",
    "new_results", "on_rows", "one_hot", "outcome", "pack", "pack_square", "philox", "pieces", "plan", "plan_arg_max",
    "plan_cast", "plan_concat", "plan_elementwise", "plan_gather", "plan_matmul", "plan_mean", "plan_moves",
    "plan_one_hot", "plan_random", "plan_reduce", "plan_reshape", "plan_rows", "plan_scatter_add", "plan_slice",
    "plan_slice_grad", "plan_tiles", "plan_transpose", "planned", "random_normal", "random_uniform", "rebound",
    "reduce_columns", "reduce_rows", "reduce_sum", "reduced", "reduction", "relu", "relu_grad", "same_dtype", "scalar",
    "scaled_bits", "scatter_add", "sgd", "sigmoid", "sliced", "smaller", "softmax", "softmax_grad", "spec_of", "tanh",
    "tile_shape", "try_kernel", "two_uniform", "use", "vectors", "watched", "write_tile"
]
