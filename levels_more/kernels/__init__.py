"""More kernels: layout, reductions, random numbers, the large matrix product, and those of other devices."""

from levels.kernels import (
    ELEMENTWISE, KERNELS, KERNEL_TRIALS, KINDS, PLANNERS, PLANS, PLAN_FINISHERS, QUICKER, REDUCTIONS, UPDATES, Backend,
    Plan, counted, dnn_backward, dnn_classifier, dnn_forward, element_loop, gather, kernel, kernel_of, launch,
    linear_forward, linear_regression, loop_source, lowered, make, matmul_ikj, nest, places_of, plan, plan_reshape,
    planned, reduce_columns, reduce_rows, reduced, relu_grad, same_dtype, scalar, tasks, use,
)
from levels_more.kernels.elementwise import elu, erf, small_tanh, tanh
from levels_more.kernels.gpu import BLOCK_THREADS, gather_threads, mover, reduce_block, scatter_threads, tiled
from levels_more.kernels.gpu_compiler import ON_GPU, compile_gpu, each_row, thread, threads_for
from levels_more.kernels.intrinsics import exponent_bits, intrinsic, larger, ldexp, scaled_bits, smaller
from levels_more.kernels.layout import (
    as_slices, copy_views, layout_op, one_hot, plan_cast, plan_concat, plan_moves, plan_scatter_add, plan_slice,
    plan_slice_grad, plan_transpose, scatter_add,
)
from levels_more.kernels.matmul import WORTH_PACKING, matmul_rows, matmul_small, matmul_tiles, pack, plan_tiles
from levels_more.kernels.micro_kernel import (
    TILE_ROWS, TILE_VECTORS, VECTOR_BYTES, macro_kernel, pack_square, tile_shape, vectors, write_tile,
)
from levels_more.kernels.random import (
    HIGH, LOW, MIX, STEP, cos_sin, normal, philox, plan_random, random_normal, random_uniform, two_uniform, uniform,
)
from levels_more.kernels.reductions import (
    arg_max, arg_min, log_softmax, log_softmax_grad, plan_arg_max, plan_extreme, plan_rows, reduce_by_fours, reduction,
    softmax, softmax_grad,
)
from levels_more.kernels.tpu import matmul_array
from levels_more.kernels.verify import SPECIAL, cases_of, counter_example, drawn, outcome, verify_kernel
from levels_more.moved import renamed

__all__ = [
    "BLOCK_THREADS", "Backend", "ELEMENTWISE", "HIGH", "KERNELS", "KERNEL_TRIALS", "KINDS", "LOW", "MIX", "ON_GPU",
    "PLANNERS", "PLANS", "PLAN_FINISHERS", "Plan", "QUICKER", "REDUCTIONS", "SPECIAL", "STEP", "TILE_ROWS",
    "TILE_VECTORS", "UPDATES", "VECTOR_BYTES", "WORTH_PACKING", "arg_max", "arg_min", "as_slices", "cases_of",
    "compile_gpu", "copy_views", "cos_sin", "counted", "counter_example", "dnn_backward", "dnn_classifier",
    "dnn_forward", "drawn", "each_row", "element_loop", "elu", "erf", "exponent_bits", "gather", "gather_threads",
    "intrinsic", "kernel", "kernel_of", "larger", "launch", "layout_op", "ldexp", "linear_forward", "linear_regression",
    "log_softmax", "log_softmax_grad", "loop_source", "lowered", "macro_kernel", "make", "matmul_array", "matmul_ikj",
    "matmul_rows", "matmul_small", "matmul_tiles", "mover", "nest", "normal", "one_hot", "outcome", "pack",
    "pack_square", "philox", "places_of", "plan", "plan_arg_max", "plan_cast", "plan_concat", "plan_extreme",
    "plan_moves", "plan_random", "plan_reshape", "plan_rows", "plan_scatter_add", "plan_slice", "plan_slice_grad",
    "plan_tiles", "plan_transpose", "planned", "random_normal", "random_uniform", "reduce_block", "reduce_by_fours",
    "reduce_columns", "reduce_rows", "reduced", "reduction", "relu_grad", "same_dtype", "scalar", "scaled_bits",
    "scatter_add", "scatter_threads", "small_tanh", "smaller", "softmax", "softmax_grad", "tanh", "tasks", "thread",
    "threads_for", "tile_shape", "tiled", "two_uniform", "uniform", "use", "vectors", "verify_kernel", "write_tile",
]


def __getattr__(name):
    """What a name of before is called now."""
    raise renamed(__name__, name)
