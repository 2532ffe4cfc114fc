"""1 · Hardware."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .assembler import Assembler, Sum
from .device import DEVICES, MAKERS, MEASURES, Buffer, Device, Spec, copy, pool, unmasked
from .elementary import DOUBLE, EXP, LOG, exp, exponent, log, rint, scaled, sqrt
from .formulas import descend, dot, flat, line_slopes
from .machine import CACHE, host_features, host_lanes, keep, kept, machine_code, optimised, target_machine
from .program import Array, Program
from .roofline import measure_bandwidth, measure_launch, measure_sums, seconds
from .tasks import (
    Fit, backward, check_inputs, check_task, clipped, dense, dnn_classifier, forward, line_row, linear_regression,
    net_row, relu, through_relu, train_program
)
from .values import REAL, Condition, Index, Value, arithmetic, comparison, named, select, subtract

__all__ = [
    "CACHE", "DEVICES", "DOUBLE", "EXP", "LOG", "MAKERS", "MEASURES", "REAL", "Array", "Assembler", "Buffer",
    "Condition", "Device", "Fit", "Index", "Program", "Spec", "Sum", "Value", "arithmetic", "backward", "check_inputs",
    "check_task", "clipped", "comparison", "copy", "dense", "descend", "dnn_classifier", "dot", "exp", "exponent",
    "flat", "forward", "host_features", "host_lanes", "keep", "kept", "line_row", "line_slopes", "linear_regression",
    "log", "machine_code", "measure_bandwidth", "measure_launch", "measure_sums", "named", "net_row", "optimised",
    "pool", "relu", "rint", "scaled", "seconds", "select", "sqrt", "subtract", "target_machine", "through_relu",
    "train_program", "unmasked"
]

__getattr__, __dir__ = plugged(__name__, __all__)  # what is missing here is looked up in levels_more
