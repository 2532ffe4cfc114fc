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
from .gpu import (
    ATOMIC, LIMITS, READ, SEGMENT, SHARED, UNUSED, WARP, WATCHERS, WORKERS, WRITE, BarrierError, Block, Counted, Cuda,
    Dim3, Endless, Gpu, GpuError, OutOfBounds, Race, RealGpu, Run, Thread, Traffic, Uninitialised, View, Workers,
    address_of, as_size, atomic, clash, compiled, count_traffic, cuda, every_place, for_gpu, keep_watch, last_line,
    launch_kernel, listed, local_array, make_gpu, note, on_chip, part_of, patrol, position, race, real_cuda, seen_by,
    shared_array, simulate, source_line, spot, standing, translated, used, uses_of, work, worker
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
from .tpu import (
    ACTIVATIONS, SIDE, Activate, Chip, Multiply, ReadWeights, Tpu, Write, bfloat16, dense_program, run_program, span,
    systolic, tiles
)

__all__ = [
    "ACTIVATIONS", "ATOMIC", "CACHE", "DEVICES", "DOUBLE", "EXP", "FAST", "FORMAT", "GAP", "LIMITS", "LINE", "LOG",
    "MAKERS", "MEASURES", "PAGE", "POOL", "READ", "REAL", "SEGMENT", "SHARED", "SIDE", "SINGLE", "UNUSED", "WARP",
    "WATCHERS", "WORKERS", "WRITE", "Activate", "Array", "Assembler", "BarrierError", "Block", "Buffer", "Chip",
    "Condition", "Counted", "Cuda", "Device", "Dim3", "Endless", "Fit", "Gpu", "GpuError", "Index", "Multiply",
    "OutOfBounds", "Pool", "Program", "Race", "ReadWeights", "RealGpu", "Run", "Spec", "Sum", "Thread", "Tpu",
    "Traffic", "Uninitialised", "Value", "View", "Workers", "Write", "address_of", "aligned", "amount", "arithmetic",
    "array", "as_size", "as_word", "atomic", "backward", "bfloat16", "chase_program", "check_array", "check_inputs",
    "check_reach", "check_rows", "check_task", "clash", "clipped", "compared", "comparison", "compiled", "copy",
    "count", "count_traffic", "cuda", "dense", "dense_program", "dnn_classifier", "dnn_predict_program", "dnn_program",
    "dot", "every_place", "exp", "exponent", "for_gpu", "forward", "host_features", "host_lanes", "host_memory",
    "index", "keep", "keep_watch", "kept", "laned", "last_line", "launch_kernel", "linear_predict_program",
    "linear_program", "linear_regression", "listed", "live", "load", "load_weights", "local_array", "log", "loop",
    "machine_code", "make_cpu", "make_exp", "make_gpu", "make_log", "maximum", "measure_bandwidth", "measure_latency",
    "measure_launch", "measure_sums", "memory_of", "minimum", "named", "net_arrays", "note", "number", "numeric",
    "object_code", "on_chip", "operators", "optimised", "part_of", "patrol", "peak_program", "place", "placed_on",
    "pool", "position", "race", "read_program", "real_cuda", "relu", "rint", "run_program", "run_programs", "scaled",
    "seconds", "seen_by", "select", "shared_array", "simulate", "size", "source_line", "span", "spot", "spread",
    "sqrt", "standing", "store", "systolic", "target_machine", "through_relu", "tiles", "together", "translated",
    "trimmed", "unmasked", "used", "uses_of", "weight_names", "word", "work", "worker"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
