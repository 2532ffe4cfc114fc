"""2 · Kernels."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .cache import (
    INTRINSICS, PROGRAMS, STANDS, Kept, compile_cpu, compiled_for, described, globals_read, inside, intrinsic, rebound,
    specialised, watched
)
from .devices import (
    LAYOUTS, NUMBER, ON_GPU, WIDTH, as_on_cpu, by_numbers, compile_gpu, each_row, exponent_as, gather_threads, halves,
    kernel_for, matmul_array, matmul_threads, mover, normal_threads, one_block_each, plan_products, reduce_block,
    reduce_thread, rows_checked, scatter_threads, split, thread, threads_for, tiled, to_even, uniform_threads, view_of
)
from .elementwise import (
    AROUND, ELEMENTWISE, SPECIAL, TRIALS, adam, add, broadcast, clip, clip_grad, compiled_loop, exponent_bits,
    identity, ldexp, llvm_function, loop_source, merged_axes, momentum, nest, plan_elementwise, relu, relu_grad,
    scalar, scaled_bits, sgd, sigmoid, tanh
)
from .matmul import (
    BLOCK, BYTES, DEPTH, ROWS, VECTORS, WIDE, WORKERS, WORTH, fill_columns, matmul_ikj, matmul_rows, matmul_small,
    matmul_tiles, pack, pack_square, pieces, plan_matmul, plan_tiles, tile_shape, vectors, write_tile
)
from .random import (
    ELEVEN, HIGH, LOW, MIX, STEP, cos_sin, normal, philox, plan_random, random_normal, random_uniform, two_uniform,
    uniform
)
from .reduce import (
    LONG, LOOPS, REDUCTIONS, START, arg_max, combine, compiled_reduction, larger, log_softmax, log_softmax_grad,
    on_rows, plan_arg_max, plan_mean, plan_reduce, plan_rows, reduce_columns, reduce_rows, reduce_sum, reduced,
    reduction, smaller, softmax, softmax_grad
)
from .registry import (
    COMPILERS, KERNELS, NUMBERS, PLANNERS, PLANS, UPDATES, Kernels, Plan, check_results, counted, data_of, execute,
    kernel, launch, make, new_results, plan, planned, same_dtype, spec_of
)
from .rows import (
    MOVES, as_slices, by_views, enter_move, gather, one_hot, plan_cast, plan_concat, plan_gather, plan_moves,
    plan_one_hot, plan_reshape, plan_scatter_add, plan_slice, plan_slice_grad, plan_transpose, scatter_add, sliced
)
from .tasks import CLIP, dnn_backward, dnn_classifier, dnn_forward, linear_forward, linear_regression
from .trial import counter_example, drawn, outcome, try_kernel, use

__all__ = [
    "AROUND", "BLOCK", "BYTES", "CLIP", "COMPILERS", "DEPTH", "ELEMENTWISE", "ELEVEN", "HIGH", "INTRINSICS", "KERNELS",
    "LAYOUTS", "LONG", "LOOPS", "LOW", "MIX", "MOVES", "NUMBER", "NUMBERS", "ON_GPU", "PLANNERS", "PLANS", "PROGRAMS",
    "REDUCTIONS", "ROWS", "SPECIAL", "STANDS", "START", "STEP", "TRIALS", "UPDATES", "VECTORS", "WIDE", "WIDTH",
    "WORKERS", "WORTH", "Kept", "Kernels", "Plan", "adam", "add", "arg_max", "as_on_cpu", "as_slices", "broadcast",
    "by_numbers", "by_views", "check_results", "clip", "clip_grad", "combine", "compile_cpu", "compile_gpu",
    "compiled_for", "compiled_loop", "compiled_reduction", "cos_sin", "counted", "counter_example", "data_of",
    "described", "dnn_backward", "dnn_classifier", "dnn_forward", "drawn", "each_row", "enter_move", "execute",
    "exponent_as", "exponent_bits", "fill_columns", "gather", "gather_threads", "globals_read", "halves", "identity",
    "inside", "intrinsic", "kernel", "kernel_for", "larger", "launch", "ldexp", "linear_forward", "linear_regression",
    "llvm_function", "log_softmax", "log_softmax_grad", "loop_source", "make", "matmul_array", "matmul_ikj",
    "matmul_rows", "matmul_small", "matmul_threads", "matmul_tiles", "merged_axes", "momentum", "mover", "nest",
    "new_results", "normal", "normal_threads", "on_rows", "one_block_each", "one_hot", "outcome", "pack",
    "pack_square", "philox", "pieces", "plan", "plan_arg_max", "plan_cast", "plan_concat", "plan_elementwise",
    "plan_gather", "plan_matmul", "plan_mean", "plan_moves", "plan_one_hot", "plan_products", "plan_random",
    "plan_reduce", "plan_reshape", "plan_rows", "plan_scatter_add", "plan_slice", "plan_slice_grad", "plan_tiles",
    "plan_transpose", "planned", "random_normal", "random_uniform", "rebound", "reduce_block", "reduce_columns",
    "reduce_rows", "reduce_sum", "reduce_thread", "reduced", "reduction", "relu", "relu_grad", "rows_checked",
    "same_dtype", "scalar", "scaled_bits", "scatter_add", "scatter_threads", "sgd", "sigmoid", "sliced", "smaller",
    "softmax", "softmax_grad", "spec_of", "specialised", "split", "tanh", "thread", "threads_for", "tile_shape",
    "tiled", "to_even", "try_kernel", "two_uniform", "uniform", "uniform_threads", "use", "vectors", "view_of",
    "watched", "write_tile"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
