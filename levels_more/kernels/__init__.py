"""More kernels: layout ops, reductions, random numbers, fast matrix products, and kernels for a GPU and a TPU."""

from levels.kernels import (
    BACKENDS, ELEMENTWISE, IN_USE, KERNELS, NUMBERS, PLANNERS, PLANS, PLAN_FINISHERS, Plan, REDUCTIONS, UPDATES,
    counted, dnn_backward, dnn_classifier, dnn_forward, element_loop, gather, kernel, launch, linear_forward,
    linear_regression, loop_source, lowered, matmul_ikj, nest, places_of, plan, plan_elementwise, plan_gather,
    plan_loop, plan_matmul, plan_reduce, planned, reduce_loop, reduced, relu_grad, scalar, tasks,
)
from levels.support.fronts import public
from levels_more.kernels.elementwise import elu, erf, mask_op, plan_masked, small_tanh, tanh
from levels_more.kernels.gpu import BLOCK_THREADS, gather_threads, mover, reduce_block, scatter_threads, tiled
from levels_more.kernels.gpu_compiler import ON_GPU, compile_gpu, each_row, thread, threads_for
from levels_more.kernels.intrinsics import exponent_bits, intrinsic, larger, ldexp, scaled_bits, smaller
from levels_more.kernels.layout import (
    as_slices, copy_views, layout_op, one_hot, plan_cast, plan_concat, plan_moves, plan_reshape, plan_scatter_add,
    plan_slice, plan_slice_grad, plan_transpose, scatter_add,
)
from levels_more.kernels.matmul import WORTH_PACKING, matmul_rows, matmul_small, matmul_tiles, pack, plan_tiles
from levels_more.kernels.micro_kernel import (
    TILE_ROWS, TILE_VECTORS, VECTOR_BYTES, macro_kernel, pack_square, tile_shape, vectors, write_tile,
)
from levels_more.kernels.random import (
    HIGH, LOW, MIX, STEP, cos_sin, normal, philox, plan_random, random_normal, random_uniform, two_uniform, uniform,
)
from levels_more.kernels.reductions import (
    arg_max, arg_min, log_softmax, log_softmax_grad, plan_arg_max, plan_extreme, plan_mean, plan_rows,
    reduce_by_fours, reduce_columns, reduction, softmax, softmax_grad,
)
from levels_more.kernels.tpu import matmul_array
from levels_more.kernels.verify import SPECIAL, cases_of, counter_example, drawn, outcome, use, verify_kernel
from levels_more.missing import absent as _absent

__all__ = sorted([*public(globals()), "tasks"])
__getattr__ = _absent(__name__)
