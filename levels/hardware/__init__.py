"""1 · Hardware."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .assembler import Array, Assembler, Program, Sum
from .device import (
    DEVICES, LINE, MAKERS, MEASURES, PAGE, Buffer, Device, Spec, aligned, copy, flag, placed_on, pool, unmasked
)
from .elementary import DOUBLE, EXP, LOG, exp, exponent, log, rint, scaled, sqrt
from .formulas import descend, dot, flat, line_slopes
from .machine import CACHE, host_features, host_lanes, keep, kept, machine_code, optimised, target_machine
from .roofline import measure_bandwidth, measure_launch, measure_sums, seconds
from .tasks import (
    Fit, backward, check_inputs, check_task, clipped, dense, dnn_classifier, dnn_program, forward, linear_program,
    linear_regression, relu, through_relu, weight_names
)
from .values import REAL, Condition, Index, Value, arithmetic, comparison, named, select, subtract

__all__ = [
    "CACHE", "DEVICES", "DOUBLE", "EXP", "LINE", "LOG", "MAKERS", "MEASURES", "PAGE", "REAL", "Array", "Assembler",
    "Buffer", "Condition", "Device", "Fit", "Index", "Program", "Spec", "Sum", "Value", "aligned", "arithmetic",
    "backward", "check_inputs", "check_task", "clipped", "comparison", "copy", "dense", "descend", "dnn_classifier",
    "dnn_program", "dot", "exp", "exponent", "flag", "flat", "forward", "host_features", "host_lanes", "keep", "kept",
    "line_slopes", "linear_program", "linear_regression", "log", "machine_code", "measure_bandwidth", "measure_launch",
    "measure_sums", "named", "optimised", "placed_on", "pool", "relu", "rint", "scaled", "seconds", "select", "sqrt",
    "subtract", "target_machine", "through_relu", "unmasked", "weight_names"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
