"""Instructions that numba has no word for: functions that write them themselves, for kernels on a CPU."""

import functools

import numpy as np
from llvmlite import ir

from levels.hardware import host_lanes, scaled
from levels.kernels import STANDS


def intrinsic(function):
    """As numba's decorator of that name, for which numba need not be there before something is compiled.

    It gives a name that only kernels can call; what stands for it there is numba's intrinsic.
    """

    @functools.cache
    def in_numba():
        from numba.extending import intrinsic

        return intrinsic(function)

    @functools.wraps(function)
    def named(*arguments):
        raise TypeError(f"{function.__name__} writes instructions: only kernels can call it")

    STANDS[named] = lambda dtype: in_numba()
    return named


def llvm_function(name):
    """One of LLVM's functions of two numbers, for kernels."""

    @intrinsic
    def call(typing, x, y):
        def emit(context, builder, signature, arguments):
            kinds = [argument.type for argument in arguments]
            function = ir.FunctionType(kinds[0], kinds)
            function = builder.module.declare_intrinsic(f"llvm.{name}", [*dict.fromkeys(kinds)], function)
            return builder.call(function, arguments)

        return x(x, y), emit

    return call


ldexp, larger, smaller = map(llvm_function, ("ldexp", "maximum", "minimum"))

if host_lanes() == 16:  # AVX-512 has an instruction for x·2ⁿ; elsewhere `ldexp` is a slow call for each number
    in_steps = STANDS[scaled]

    def scaled_at_once(dtype):
        """What stands for `scaled` in kernels of that dtype: for float32 one instruction, and the same bits."""
        return (lambda x, n: ldexp(x, np.int32(n))) if dtype == np.float32 else in_steps(dtype)

    STANDS[scaled] = scaled_at_once
