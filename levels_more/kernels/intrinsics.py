"""Functions for CPU kernels that emit LLVM instructions which numba does not offer."""

import functools

import numpy as np
from llvmlite import ir

from levels.support.compiled import SUBSTITUTIONS
from levels.support.elementary import exponent, scaled
from levels.support.machine import host_lanes
from levels_more.hardware.locks import once


def intrinsic(function):
    """Decorate a function like numba's decorator of the same name, but import numba only when something is compiled.

    The result can be called only in kernels, which call numba's intrinsic in its place.
    """

    @once
    def in_numba():
        from numba.extending import intrinsic

        return intrinsic(function)

    @functools.wraps(function)
    def named(*arguments):
        raise TypeError(f"{function.__name__} writes instructions: only kernels can call it")

    SUBSTITUTIONS[named] = lambda dtype: in_numba()
    return named


def llvm_function(name):
    """Return an LLVM intrinsic function of two numbers, for use in kernels."""

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
    """Return f(x, n) = x·2ⁿ in two steps, as in the core, that writes n into the exponent bits of the float format."""
    real = np.float64
    whole = np.int64
    fraction = 52
    bias = 1023
    if dtype == np.float32:
        real = np.float32
        whole = np.int32
        fraction = 23
        bias = 127

    def scaled(x, n):
        both = whole(n + real(2 * bias))  # the bias of both halves
        half = both >> 1
        return x * whole(half << fraction).view(real) * whole(both - half << fraction).view(real)

    return scaled


def exponent_bits(dtype):
    """Return a function that reads from the bits of x the n for which x lies between √½·2ⁿ and √2·2ⁿ."""
    if dtype == np.float32:
        return lambda x: np.float32(np.int32(np.float32(x).view(np.int32) - 0x3F3504F3) >> 23)
    return lambda x: np.float64((np.float64(x).view(np.int64) - 0x3FE6A09E667F3BCD) >> 52)


def scaled_at_once(dtype):
    """Return the replacement of `scaled` for that dtype: for float32 one instruction, which gives the same bits."""
    return (lambda x, n: ldexp(x, np.int32(n))) if dtype == np.float32 else scaled_bits(dtype)


# Replace the core's own functions, which call a library for each number, by functions that can be vectorized. AVX-512
# has an instruction for x·2ⁿ; on other CPUs `ldexp` is a slow call for each number. Without it, the bench's row
# "exp" of 10⁶ numbers takes 1.57 times as long.
for _dtype in map(np.dtype, (np.float32, np.float64)):
    SUBSTITUTIONS[SUBSTITUTIONS[scaled](_dtype)] = scaled_at_once if host_lanes() == 16 else scaled_bits
    SUBSTITUTIONS[SUBSTITUTIONS[exponent](_dtype)] = exponent_bits
