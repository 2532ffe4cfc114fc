"""1 · Hardware."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

from levels.support.elementary import exp, log, select
from levels.support.fronts import absent, public

from .assembler import Assembler, Sum
from .bounds import address_of, index_of, indices_of
from .device import PLACE, POOL, Buffer, Device, Spec, pool
from .formulas import descend, dot, flat, line_slopes
from .program import Program
from .tasks import Fit, dnn_classifier, line_row, linear_regression, net_row, through_relu, train, write_steps
from .values import REAL, Condition, Index, Register, Value, Whole, arithmetic, subtract
from .writer import LOOP, Array, Loops, Writer

__all__ = public(globals())
__getattr__ = absent(__name__)  # says where there is more
