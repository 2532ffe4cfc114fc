"""Whether the numbers of a tensor are probabilities: asked in each call of a loss, so by a program."""

import functools
import math

import numpy as np

from levels.hardware import Assembler, select
from levels.low_level import Tensor
from levels_more.compiler.eager import ACCELERATION
from levels_more.compiler.eager.small_ops import SMALL, caller
from levels_more.compiler.typed_assembler import all_lanes
from levels_more.hardware.locks import once


@once
def range_program(dtype):
    """1 is where `answer` points if one of x[count] is below 0 or above 1."""
    a = Assembler("range", dtype, all_lanes(dtype))
    x, answer, outside = a.array("x", "count"), a.word("answer", "ptr"), a.sum()
    with a.loop("count", a.lanes) as i:
        number = a.load(x, i)
        outside += select(number < 0.0, 1.0, select(number > 1.0, 1.0, 0.0))
    count = outside.total().register
    one = a.write(f"extractelement {a.kind} {count}, i32 0") if a.lanes > 1 else count
    some = a.write(f"fcmp one {a.real} {one}, 0.0")
    a.emit(f"store i64 {a.write(f'zext i1 {some} to i64')}, ptr {answer}")
    return a.assemble()


@functools.lru_cache(maxsize=256)
def _asks(spec):
    """The function that says whether a number is outside, of an array like that; None where it is no small one of floats."""
    if spec.device.kind != "cpu" or spec.dtype.kind != "f" or not 0 < spec.nbytes <= SMALL:
        return None
    run = caller(range_program(spec.dtype), ["x", "answer"], count=math.prod(spec.shape))

    def asks(x):
        outside = np.zeros(1, np.int64)
        run(x, outside)
        return bool(outside[0])

    return asks


def surely_within(x):
    """Whether it is known that no number of the tensor x is below 0 or above 1."""
    asks = _asks(x.spec) if ACCELERATION.on and type(x) is Tensor and x.data is not None else None
    return asks is not None and not asks(x.data)
