"""2 · Kernels."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .cache import (
    INTRINSICS, PLAIN, PROGRAMS, STANDS, Kept, compile_cpu, compiled_for, described, globals_read, inside, intrinsic,
    rebound, specialised, watched
)
from .elementwise import (
    AROUND, ELEMENTWISE, SPECIAL, TRIALS, adam, add, broadcast, clip, clip_grad, exponent_bits, identity, ldexp,
    llvm_function, loop_source, lowered_loop, merged_axes, momentum, nest, plan_elementwise, relu, relu_grad, scalar,
    scaled_bits, sgd, sigmoid
)
from .matmul import matmul_ikj, plan_matmul
from .reduce import (
    LONG, LOOPS, REDUCTIONS, START, combine, lowered_reduction, plan_mean, plan_reduce, reduce_columns, reduce_rows,
    reduce_sum, reduced, reduction
)
from .registry import (
    COMPILERS, FLAT, KERNELS, KIND_PLANNERS, NUMBERS, PLANNERS, PLANS, UPDATES, Kernels, Plan, check_results, counted,
    data_of, execute, kernel, kernel_of, launch, lowered, make, new_results, plan, planned, same_dtype, spec_of
)
from .rows import gather, plan_gather
from .tasks import CLIP, dnn_backward, dnn_classifier, dnn_forward, linear_forward, linear_regression
from .trial import counter_example, drawn, outcome, try_kernel, use

__all__ = [
    "AROUND", "CLIP", "COMPILERS", "ELEMENTWISE", "FLAT", "INTRINSICS", "KERNELS", "KIND_PLANNERS", "LONG", "LOOPS",
    "NUMBERS", "PLAIN", "PLANNERS", "PLANS", "PROGRAMS", "REDUCTIONS", "SPECIAL", "STANDS", "START", "TRIALS",
    "UPDATES", "Kept", "Kernels", "Plan", "adam", "add", "broadcast", "check_results", "clip", "clip_grad", "combine",
    "compile_cpu", "compiled_for", "counted", "counter_example", "data_of", "described", "dnn_backward",
    "dnn_classifier", "dnn_forward", "drawn", "execute", "exponent_bits", "gather", "globals_read", "identity",
    "inside", "intrinsic", "kernel", "kernel_of", "launch", "ldexp", "linear_forward", "linear_regression",
    "llvm_function", "loop_source", "lowered", "lowered_loop", "lowered_reduction", "make", "matmul_ikj",
    "merged_axes", "momentum", "nest", "new_results", "outcome", "plan", "plan_elementwise", "plan_gather",
    "plan_matmul", "plan_mean", "plan_reduce", "planned", "rebound", "reduce_columns", "reduce_rows", "reduce_sum",
    "reduced", "reduction", "relu", "relu_grad", "same_dtype", "scalar", "scaled_bits", "sgd", "sigmoid", "spec_of",
    "specialised", "try_kernel", "use", "watched"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
