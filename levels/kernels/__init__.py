"""2 · Kernels."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .cache import PLAIN, PROGRAMS, STANDS, compile_cpu, compiled_for, described, globals_read, inside, specialised
from .elementwise import (
    AROUND, ELEMENTWISE, clip_grad, loop_source, lowered_loop, merged_axes, nest, plan_elementwise, relu_grad, scalar,
    sgd
)
from .matmul import matmul_ikj, plan_matmul
from .reduce import LOOPS, REDUCTIONS, START, combine, plan_reduce, reduce_columns, reduce_rows, reduced
from .registry import (
    COMPILERS, FLAT, KERNELS, KIND_PLANNERS, NUMBERS, PLANNERS, PLANS, UPDATES, Plan, counted, kernel, kernel_of,
    launch, lowered, make, plan, planned, same_dtype, use
)
from .rows import gather, plan_gather
from .tasks import CLIP, dnn_backward, dnn_classifier, dnn_forward, linear_forward, linear_regression

__all__ = [
    "AROUND", "CLIP", "COMPILERS", "ELEMENTWISE", "FLAT", "KERNELS", "KIND_PLANNERS", "LOOPS", "NUMBERS", "PLAIN",
    "PLANNERS", "PLANS", "PROGRAMS", "REDUCTIONS", "STANDS", "START", "UPDATES", "Plan", "clip_grad", "combine",
    "compile_cpu", "compiled_for", "counted", "described", "dnn_backward", "dnn_classifier", "dnn_forward", "gather",
    "globals_read", "inside", "kernel", "kernel_of", "launch", "linear_forward", "linear_regression", "loop_source",
    "lowered", "lowered_loop", "make", "matmul_ikj", "merged_axes", "nest", "plan", "plan_elementwise", "plan_gather",
    "plan_matmul", "plan_reduce", "planned", "reduce_columns", "reduce_rows", "reduced", "relu_grad", "same_dtype",
    "scalar", "sgd", "specialised", "use"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
