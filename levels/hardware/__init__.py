"""1 · Hardware."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .assembler import (
    CACHE, FAST, REAL, Array, Assembler, Condition, Index, Program, Sum, Value, arithmetic, array, as_word,
    check_reach, check_rows, compared, comparison, count, index, keep, kept, laned, live, load, loop, machine_code,
    memory_of, named, number, numeric, object_code, operators, optimised, place, select, size, spread, store,
    target_machine, together, trimmed, word
)
from .device import (
    DEVICES, GAP, LINE, MAKERS, MEASURES, PAGE, POOL, Buffer, Device, Pool, Spec, aligned, amount, copy, host_features,
    host_lanes, host_memory, make_cpu, placed_on, pool, unmasked
)
from .elementary import (
    DOUBLE, EXP, FORMAT, LOG, SINGLE, exp, exponent, log, make_exp, make_log, maximum, minimum, rint, scaled, sqrt
)
from .roofline import (
    chase_program, measure_bandwidth, measure_latency, measure_launch, measure_sums, peak_program, read_program,
    seconds
)
from .tasks import (
    Fit, backward, check_array, check_inputs, check_task, clipped, dense, dnn_classifier, dnn_predict_program,
    dnn_program, dot, forward, linear_predict_program, linear_program, linear_regression, load_weights, net_arrays,
    relu, run_programs, through_relu, weight_names
)

__all__ = [
    "CACHE", "DEVICES", "DOUBLE", "EXP", "FAST", "FORMAT", "GAP", "LINE", "LOG", "MAKERS", "MEASURES", "PAGE", "POOL",
    "REAL", "SINGLE", "Array", "Assembler", "Buffer", "Condition", "Device", "Fit", "Index", "Pool", "Program", "Spec",
    "Sum", "Value", "aligned", "amount", "arithmetic", "array", "as_word", "backward", "chase_program", "check_array",
    "check_inputs", "check_reach", "check_rows", "check_task", "clipped", "compared", "comparison", "copy", "count",
    "dense", "dnn_classifier", "dnn_predict_program", "dnn_program", "dot", "exp", "exponent", "forward",
    "host_features", "host_lanes", "host_memory", "index", "keep", "kept", "laned", "linear_predict_program",
    "linear_program", "linear_regression", "live", "load", "load_weights", "log", "loop", "machine_code", "make_cpu",
    "make_exp", "make_log", "maximum", "measure_bandwidth", "measure_latency", "measure_launch", "measure_sums",
    "memory_of", "minimum", "named", "net_arrays", "number", "numeric", "object_code", "operators", "optimised",
    "peak_program", "place", "placed_on", "pool", "read_program", "relu", "rint", "run_programs", "scaled", "seconds",
    "select", "size", "spread", "sqrt", "store", "target_machine", "through_relu", "together", "trimmed", "unmasked",
    "weight_names", "word"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
