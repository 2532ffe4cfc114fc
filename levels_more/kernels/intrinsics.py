"""Instructions that numba has no word for: functions that write them themselves, for kernels on a CPU."""

import functools

import numpy as np
from llvmlite import ir

from levels.hardware import exponent, scaled
from levels.support.compiled import STANDS
from levels.support.machine import host_lanes
from levels_more.hardware.locks import once


def intrinsic(function):
    """As numba's decorator of that name, for which numba need not be there before something is compiled.

    It gives a name that only kernels can call; what stands for it there is numba's intrinsic.
    """

    @once
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


def scaled_bits(dtype):
    """x·2ⁿ in two steps, as the core does it, on the bits: n goes to where the format keeps its exponent."""
    real, whole, fraction, bias = np.float64, np.int64, 52, 1023
    if dtype == np.float32:
        real, whole, fraction, bias = np.float32, np.int32, 23, 127

    def scaled(x, n):
        both = whole(n + real(2 * bias))  # so that each half has the bias
        half = both >> 1
        return x * whole(half << fraction).view(real) * whole(both - half << fraction).view(real)

    return scaled


def exponent_bits(dtype):
    """The n for which x lies between √½·2ⁿ and √2·2ⁿ, read from the bits."""
    if dtype == np.float32:
        return lambda x: np.float32(np.int32(np.float32(x).view(np.int32) - 0x3F3504F3) >> 23)
    return lambda x: np.float64((np.float64(x).view(np.int64) - 0x3FE6A09E667F3BCD) >> 52)


def scaled_at_once(dtype):
    """What stands for `scaled` in kernels of that dtype: for float32 one instruction, and the same bits."""
    return (lambda x, n: ldexp(x, np.int32(n))) if dtype == np.float32 else scaled_bits(dtype)


# What stands for the core's own functions, which call a library for each number: these take many at a time. AVX-512 has
# an instruction for x·2ⁿ; elsewhere `ldexp` is a slow call for each number.
for _dtype in map(np.dtype, (np.float32, np.float64)):
    STANDS[STANDS[scaled](_dtype)] = scaled_at_once if host_lanes() == 16 else scaled_bits
    STANDS[STANDS[exponent](_dtype)] = exponent_bits
