"""1 · Hardware."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .assembler import Assembler, Loops, Writer
from .device import MEASURES, PLACE, Buffer, Device, Spec, pool
from .elementary import EXP, LOG, exp, exponent, log, named, rint, scaled, sqrt
from .formulas import descend, dot, flat, line_slopes
from .program import Program
from .roofline import seconds
from .tasks import Fit, dnn_classifier, line_program, linear_regression, net_program, through_relu
from .values import REAL, Index, Value, arithmetic, select, subtract

__getattr__, __dir__, __all__ = plugged(__name__)  # what is missing here is looked up in levels_more
