"""2 · Kernels."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from .cache import FRESH, OVERLOADS, HashLocator, compile_cpu, described, globals_read, rebound, refresh, watched
from .elementwise import (
    ELEMENTWISE, SPECIAL, adam, add, broadcast, clip, clip_grad, compiled_loop, divide, dtype_of, exponent_overload,
    identity, loop_source, merged_axes, momentum, multiply, negative, overload_elementary, plan_elementwise, relu,
    relu_grad, scalar, scaled_overload, sgd, sigmoid, sigmoid_grad, stands_for, subtract, typed
)
from .matmul import (
    BLOCK, BYTES, DEPTH, PAGE, ROWS, VECTORS, WIDE, WORKERS, WORTH, fill_strip, matmul_ikj, matmul_rows, matmul_small,
    matmul_strips, matmul_tiles, pack, pack_square, pieces, plan_matmul, plan_tiles, strip_width, tile_shape, vectors,
    write_tile
)
from .random import (
    ELEVEN, HIGH, LOW, MIX, STEP, cos_sin, mixed, philox, plan_random, random_normal, random_uniform, two_uniform
)
from .reduce import (
    LONG, REDUCTIONS, combine, compiled_reduction, compiled_rows, larger, llvm_function, log_softmax, log_softmax_grad,
    maximum, minimum, on_rows, plan_reduce, plan_rows, reduce_columns, reduce_max, reduce_min, reduce_rows, reduce_sum,
    reduced, reduction, smaller, softmax, softmax_grad
)
from .registry import (
    COMPILERS, KERNELS, PLANNERS, PLANS, TRIALS, UPDATES, Kernels, Plan, check_results, counted, data_of, in_key,
    kernel, launch, make, new_results, plan, same_dtype, spec_of
)
from .rows import (
    all_fit, cast, gather, one_hot, plan_cast, plan_gather, plan_one_hot, plan_scatter_add, plan_transpose, scatter_add
)
from .tasks import CLIP, dnn_backward, dnn_classifier, dnn_forward, linear_forward, linear_regression
from .trial import counter_example, guarded, outcome, try_kernel, use

__all__ = [
    "BLOCK", "BYTES", "CLIP", "COMPILERS", "DEPTH", "ELEMENTWISE", "ELEVEN", "FRESH", "HIGH", "KERNELS", "LONG", "LOW",
    "MIX", "OVERLOADS", "PAGE", "PLANNERS", "PLANS", "REDUCTIONS", "ROWS", "SPECIAL", "STEP", "TRIALS", "UPDATES",
    "VECTORS", "WIDE", "WORKERS", "WORTH", "HashLocator", "Kernels", "Plan", "adam", "add", "all_fit", "broadcast",
    "cast", "check_results", "clip", "clip_grad", "combine", "compile_cpu", "compiled_loop", "compiled_reduction",
    "compiled_rows", "cos_sin", "counted", "counter_example", "data_of", "described", "divide", "dnn_backward",
    "dnn_classifier", "dnn_forward", "dtype_of", "exponent_overload", "fill_strip", "gather", "globals_read",
    "guarded", "identity", "in_key", "kernel", "larger", "launch", "linear_forward", "linear_regression",
    "llvm_function", "log_softmax", "log_softmax_grad", "loop_source", "make", "matmul_ikj", "matmul_rows",
    "matmul_small", "matmul_strips", "matmul_tiles", "maximum", "merged_axes", "minimum", "mixed", "momentum",
    "multiply", "negative", "new_results", "on_rows", "one_hot", "outcome", "overload_elementary", "pack",
    "pack_square", "philox", "pieces", "plan", "plan_cast", "plan_elementwise", "plan_gather", "plan_matmul",
    "plan_one_hot", "plan_random", "plan_reduce", "plan_rows", "plan_scatter_add", "plan_tiles", "plan_transpose",
    "random_normal", "random_uniform", "rebound", "reduce_columns", "reduce_max", "reduce_min", "reduce_rows",
    "reduce_sum", "reduced", "reduction", "refresh", "relu", "relu_grad", "same_dtype", "scalar", "scaled_overload",
    "scatter_add", "sgd", "sigmoid", "sigmoid_grad", "smaller", "softmax", "softmax_grad", "spec_of", "stands_for",
    "strip_width", "subtract", "tile_shape", "try_kernel", "two_uniform", "typed", "use", "vectors", "watched",
    "write_tile"
]
