"""1 · Hardware."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels.support.fronts import absent

from .assembler import Assembler, Loops
from .device import DEVICE_MAKERS, MEASURES, PLACE, Buffer, Device, Spec, pool
from .elementary import EXP, LOG, exp, exponent, log, named, rint, scaled, sqrt
from .formulas import descend, dot, flat, line_slopes
from .program import Program
from .roofline import seconds
from .tasks import Fit, dnn_classifier, line_program, linear_regression, net_program, through_relu
from .values import REAL, Index, Value, arithmetic, select, subtract
from .writer import Writer

__all__ = [
    "Assembler", "Buffer", "DEVICE_MAKERS", "Device", "EXP", "Fit", "Index", "LOG", "Loops", "MEASURES", "PLACE",
    "Program", "REAL", "Spec", "Value", "Writer", "arithmetic", "descend", "dnn_classifier", "dot", "exp", "exponent",
    "flat", "line_program", "line_slopes", "linear_regression", "log", "named", "net_program", "pool", "rint",
    "scaled", "seconds", "select", "sqrt", "subtract", "through_relu"
]
__getattr__ = absent(__name__)  # says where there is more
