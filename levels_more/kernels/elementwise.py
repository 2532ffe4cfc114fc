"""More elementwise ops, each defined by a scalar function.

A comparison gives a mask, an array of bools, whatever its inputs hold, and `where` takes one. So these ops have a
planner of their own, `plan_masked`.
"""

import numpy as np

from levels.hardware import exp, log, select
from levels.kernels import ELEMENTWISE, PLANNERS, kernel, plan_elementwise, plan_loop, scalar
from levels.support.compiled import SUBSTITUTIONS
from levels.support.shapes import broadcast, number_names, same_dtype
from levels_more.hardware.elementary import COS, SIN, cos, maximum, minimum, sin
from levels_more.kernels.intrinsics import larger, smaller

scalar("copy", takes="fib")(lambda x: x)
scalar("broadcast_to", takes="fi")(lambda x: x)  # the loop around it does the work
scalar("broadcast_divide", count=3.0)(lambda dy, x, count: dy / count)  # the way back through a mean
scalar("power")(lambda x, y: x**y)
MASKS = {}  # op -> how many of its inputs, the first ones, are arrays of bools
GIVES = {}  # op -> the dtype of its result, where this is not that of its inputs


def plan_masked(op, function, *inputs):
    """Plan an elementwise op of MASKS or GIVES. Raises what the core's planner raises."""
    number_names(op, function, inputs, {})
    masks = MASKS.get(op, 0)
    for mask in inputs[:masks]:
        same_dtype(op, mask, kinds="b")
    dtype = same_dtype(op, *inputs[masks:], kinds=ELEMENTWISE[op])
    return plan_loop(op, function, inputs, broadcast(op, inputs, None), GIVES.get(op, dtype))


def mask_op(op, takes, gives=None, masks=0):
    """Decorate a scalar function that takes masks or gives them: it becomes an op, as with `scalar`."""

    def enter(function):
        kernel(op, planner=plan_masked)(function)
        ELEMENTWISE[op] = takes
        if masks:
            MASKS[op] = masks
        if gives:
            GIVES[op] = np.dtype(gives)
        return function

    return enter


mask_op("less", "fi", gives=np.bool_)(lambda x, y: x < y)
mask_op("less_equal", "fi", gives=np.bool_)(lambda x, y: x <= y)
mask_op("equal", "fib", gives=np.bool_)(lambda x, y: x == y)
mask_op("not_equal", "fib", gives=np.bool_)(lambda x, y: x != y)
mask_op("where", "fib", masks=1)(lambda mask, x, y: select(mask, x, y))


def plan_quotient(op, function, *inputs, **attrs):
    """Plan a division. Whole numbers give float64, as in NumPy. Raises what the core's planner raises."""
    if any(x.dtype.kind != "i" for x in inputs):
        return plan_elementwise(op, function, *inputs, **attrs)
    number_names(op, function, inputs, {})
    same_dtype(op, *inputs, kinds="i")
    shape = broadcast(op, inputs, attrs.get("shape"))
    return plan_loop(op, function, inputs, shape, np.dtype(np.float64))


PLANNERS["divide", "cpu"] = plan_quotient


def small_tanh(x):
    """Return tanh(x) of a number near 0, by Lambert's continued fraction (1768)."""
    z = x * x
    return x / (1.0 + z / (3.0 + z / (5.0 + z / (7.0 + z / (9.0 + z / (11.0 + z / 13.0))))))


@scalar("tanh")
def tanh(x):
    """Return tanh of each number x: (1 - e) / (1 + e) with e = exp(-2·|x|), and the sign of x.

    Near 0, where 1 - e loses digits, use Lambert's continued fraction (1768) instead.
    """
    size = select(x > 0.0, x, -x)
    e = exp(-2.0 * size)
    far = (1.0 - e) / (1.0 + e)
    near = small_tanh(x)
    return select(size < 0.5, near, select(x > 0.0, far, -far))


@scalar("elu", alpha=1.0)
def elu(x, alpha):
    """Return x if x > 0, else alpha·(exp(x) - 1), of each number x: from tanh(x / 2) if x >= -1, which keeps digits."""
    t = small_tanh(0.5 * select(x > 0.0, 0.0, select(x < -1.0, -1.0, x)))
    return select(x > 0.0, x, alpha * select(x < -1.0, exp(x) - 1.0, 2.0 * t / (1.0 - t)))


# `maximum` is level 1's. Kernels for floats call LLVM's function in its place, which gives the same bits.
scalar("maximum", takes="fi")(lambda x, y: maximum(x, y))
scalar("minimum", takes="fi")(lambda x, y: minimum(x, y))
SUBSTITUTIONS[maximum] = lambda dtype: larger if dtype.kind == "f" else lambda x, y: x if x > y else y
SUBSTITUTIONS[minimum] = lambda dtype: smaller if dtype.kind == "f" else lambda x, y: x if x < y else y
scalar("absolute", takes="fi")(lambda x: maximum(x, -x))
# x·y, but 0 if y is 0, also for an infinite or NaN x: for a class masked by a logit of -inf (TensorFlow's name)
scalar("multiply_no_nan")(lambda x, y: select(y == 0.0, 0.0, x * y))


@scalar("sum_error")
def sum_error(x, y):
    """What rounding takes from x + y, of two numbers (Knuth's TwoSum); 0 if the sum is not finite."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    return select(error == error, error, 0.0)


@scalar("logits_crossentropy")
def logits_crossentropy(y, z):
    """Return the cross-entropy of a label y and p = 1 / (1 + exp(-z)), for a number z or ±inf, without overflow."""
    between = maximum(z, 0.0) - y * z  # NaN for an infinite z, so y = 0 and y = 1 are separate cases
    cost = select(y == 0.0, maximum(z, 0.0), select(y == 1.0, maximum(-z, 0.0), between))
    e = exp(-maximum(z, -z))
    u = 1.0 + e
    return cost + (log(u) + (e - (u - 1.0)) / u)  # log(1 + e): the quotient is what rounding took from u


# the cross-entropy as a function of p itself; logarithms are clipped at -100, as in PyTorch
scalar("probabilities_crossentropy")(
    lambda y, p: -(y * maximum(log(p), -100.0) + (1.0 - y) * maximum(log(1.0 - p), -100.0))
)
# its derivative d/dp; PyTorch's smallest divisor is a float32 number, also for float64
SMALLEST = float(np.float32(1e-12))
scalar("probabilities_slope")(lambda y, p: (p - y) / maximum(p * (1.0 - p), SMALLEST))
SUBSTITUTIONS[sin] = SIN.get
SUBSTITUTIONS[cos] = COS.get
scalar("sin")(lambda x: sin(x))
scalar("cos")(lambda x: cos(x))

_NEAR = tuple(2.0 / n for n in range(81, 1, -2))  # factors of the series, the last one first
_FAR = tuple(n / 2.0 for n in range(36, 0, -1))  # terms of the continued fraction, the last one first


@scalar("erf")
def erf(x):
    """Return the error function of each number: its series for |x| < 2.2, else Laplace's continued fraction (1805).

    DLMF 7.6.2 and 7.9.1, https://dlmf.nist.gov/7. In float64 the error is at most 8 units in the last place.
    """
    size = select(x > 0.0, x, -x)
    z = x * x
    near = 1.0
    tail = 0.0
    e = 1.1283791670955126 * exp(-z)  # 2/√π·exp(-x²)
    for c in _NEAR:
        near = 1.0 + c * z * near
    large = select(size < 2.2, 2.2, size)
    for c in _FAR:
        tail = c / (large + tail)
    far = 1.0 - 0.5 * e / (large + tail)
    return select(size < 2.2, x * e * near, select(x > 0.0, far, -far))
