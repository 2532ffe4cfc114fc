"""Level 1 with SIMD lanes and more devices: a GPU (simulated if there is none), a simulated TPU; more targets."""

from levels.hardware import (
    LOOP, PLACE, POOL, REAL, Array, Assembler, Buffer, Condition, Device, Fit, Index, Loops, Program, Register,
    Spec, Sum, Value, Whole, Writer, address_of, arithmetic, descend, dnn_classifier, dot, exp, flat, index_of,
    indices_of, line_row, line_slopes, linear_regression, log, net_row, select, subtract, tasks, through_relu, train,
    write_steps,
)
from levels.support.elementary import EXP, LOG
from levels.support.fronts import public
from levels.support.instructions import exponent, named, rint, scaled, sqrt
from levels.support.measure import MEASURES, seconds
from levels_more.hardware.benchmark import Pool, amount, chase_program, measure_latency, measure_reading, read_program
from levels_more.hardware.devices import MAKERS, copy, fill, placed_on, pool
from levels_more.hardware.disassembly import trimmed
from levels_more.hardware.elementary import cos, maximum, minimum, sin
from levels_more.hardware.gpu.device import Gpu, RealGpu, launch_kernel, make_gpu, real_cuda, translated
from levels_more.hardware.gpu.errors import BarrierError, Endless, GpuError, OutOfBounds, Race, Uninitialised, position
from levels_more.hardware.gpu.memory import READ, SHARED, Block, Dim3, Thread, View, cuda, note, race, used
from levels_more.hardware.gpu.scheduler import LAUNCH_LIMITS, SEGMENT, SimulatedLaunch, Traffic, count_traffic, simulate
from levels_more.hardware.lanes import LaneIndex, LaneProgram, Lanes, LaneSum, Wide
from levels_more.hardware.targets import TARGETS, Target, compiled_for, listing_for, run_on
from levels_more.hardware.tpu import (
    SIDE, Activate, Multiply, ReadWeights, Tpu, Write, bfloat16, dense_program, run_program, systolic,
)
from levels_more.missing import absent as _absent

__all__ = sorted([*public(globals()), "tasks"])
__getattr__ = _absent(__name__)
