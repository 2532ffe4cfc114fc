"""3 · Low-level API."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .autodiff import (
    VJPS, GradientTape, grad, matmul_vjp_w, matmul_vjp_x, part_of_join, printed, share_back, size, spread_back,
    stop_gradient, unbroadcast, walk_back
)
from .compiler import (
    ALONE, BACK_ENDS, EAGER, LIMIT, NEAR, OWN, PASSES, PROGRAMS_OF, WIDEST, WRAPPERS, Call, Function, Launches, Loops,
    NoProgram, Rows, Split, Writer, address, addressof, adds_rows, all_lanes, argument, built, check_fits,
    check_results, check_rows, column_program, computed, copy_program, depth, dtype_of, eager, elementwise_values,
    fetch_program, function, fused, held, in_programs, inside, keeps_rows, list_call, list_program, listed, loop_of,
    loop_program, nothing_at, of_the_reader, outline, overwriting, own_kernel, packed_like, placed, product_of,
    product_program, product_values, program_of, read_outside, reduced_values, references, refs, resized, room_for,
    row_kernel_values, row_numbers, rows_of, rows_program, run_launch, run_loop, stacked, stale, sum_of, sum_program,
    terms, threads, unit_program, unwrapped, with_rows, write_loop, write_step
)
from .graph import (
    SKETCHES, Graph, Node, Symbol, Tracer, each, folded, leaf_name, numbers_of, on_duty, rebuilt, results_of, shared,
    trace, without_dead
)
from .module import Module, parts
from .nn import log_softmax, relu, sigmoid, softmax
from .tasks import dnn, dnn_classifier, linear_regression
from .tensors import (
    DTYPES, ENGINES, NUMBER, TAPES, VARIABLES, Operators, Protocols, Tensor, Variable, apply, arg_max, as_tensor,
    as_tensors, at_once, backward, blank, cast, cat, clip, concat, constant, device, exp, gather, in_range, innermost,
    log, matmul, maximum, method, minimum, moved, new_tensor, number_tensor, one_hot, reduce_max, reduce_mean,
    reduce_min, reduce_sum, renamed, reshape, slice_of, sqrt, tanh, tensor, transpose, where, whole, without_dots
)

__all__ = [
    "ALONE", "BACK_ENDS", "DTYPES", "EAGER", "ENGINES", "LIMIT", "NEAR", "NUMBER", "OWN", "PASSES", "PROGRAMS_OF",
    "SKETCHES", "TAPES", "VARIABLES", "VJPS", "WIDEST", "WRAPPERS", "Call", "Function", "GradientTape", "Graph",
    "Launches", "Loops", "Module", "Node", "NoProgram", "Operators", "Protocols", "Rows", "Split", "Symbol", "Tensor",
    "Tracer", "Variable", "Writer", "address", "addressof", "adds_rows", "all_lanes", "apply", "arg_max", "argument",
    "as_tensor", "as_tensors", "at_once", "backward", "blank", "built", "cast", "cat", "check_fits", "check_results",
    "check_rows", "clip", "column_program", "computed", "concat", "constant", "copy_program", "depth", "device", "dnn",
    "dnn_classifier", "dtype_of", "each", "eager", "elementwise_values", "exp", "fetch_program", "folded", "function",
    "fused", "gather", "grad", "held", "in_programs", "in_range", "innermost", "inside", "keeps_rows", "leaf_name",
    "linear_regression", "list_call", "list_program", "listed", "log", "log_softmax", "loop_of", "loop_program",
    "matmul", "matmul_vjp_w", "matmul_vjp_x", "maximum", "method", "minimum", "moved", "new_tensor", "nothing_at",
    "number_tensor", "numbers_of", "of_the_reader", "on_duty", "one_hot", "outline", "overwriting", "own_kernel",
    "packed_like", "part_of_join", "parts", "placed", "printed", "product_of", "product_program", "product_values",
    "program_of", "read_outside", "rebuilt", "reduce_max", "reduce_mean", "reduce_min", "reduce_sum", "reduced_values",
    "references", "refs", "relu", "renamed", "reshape", "resized", "results_of", "room_for", "row_kernel_values",
    "row_numbers", "rows_of", "rows_program", "run_launch", "run_loop", "share_back", "shared", "sigmoid", "size",
    "slice_of", "softmax", "spread_back", "sqrt", "stacked", "stale", "stop_gradient", "sum_of", "sum_program", "tanh",
    "tensor", "terms", "threads", "trace", "transpose", "unbroadcast", "unit_program", "unwrapped", "walk_back",
    "where", "whole", "with_rows", "without_dead", "without_dots", "write_loop", "write_step"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
