"""Gradients in PyTorch's style, stop_gradient, and the vjps of gradient ops, for second derivatives."""

import math

from levels.low_level import (
    DOOR,
    OPERATORS,
    VJPS,
    GradientTape,
    Operators,
    Symbol,
    Variable,
    apply,
    as_tensor,
    exp,
    log,
    nn,
    reduce_sum,
)
from levels_more.checks import expect
from levels_more.kernels.elementwise import SMALLEST
from levels_more.low_level.ops import maximum

VJPS["copy"] = (None,)
Variable.grad = None  # until `backward` adds the first gradient


def stop_gradient(x):
    """Return a copy of the numbers that passes no gradient back (`detach` in PyTorch)."""
    return apply("copy", x)


def leading_to(records, target):
    """Return all float tensors of a tape's records whose gradient reaches them from this target, and the target."""
    found = {target}
    for op, inputs, _, y in reversed(records):
        if y in found:
            rules = VJPS.get(op, inputs)  # for an op without a rule, `backward_pass` raises
            found.update(x for x, rule in zip(inputs, rules, strict=False) if rule is not None and x.dtype.kind == "f")
    return found


def _innermost(asked):
    """Return the innermost open tape that can be read. If there is none, raise RuntimeError, which names `asked`."""
    stands = DOOR.top
    why = "no tape is open; compute inside `with GradientTape():`"
    while hasattr(stands, "below"):
        if isinstance(stands, GradientTape):
            if stands.records is not None:
                return stands
            why = "this tape was read; GradientTape(persistent=True) can be read again"
        stands = stands.below
    raise RuntimeError(f"{asked}: {why}")


def grad(outputs, inputs):
    """Return the gradients of one number, shaped like the inputs, from the innermost open tape (`torch.autograd.grad`).

    Raises RuntimeError if no tape is open or it was already read, ValueError for an output of several numbers.
    """
    tape = _innermost("grad")
    expect(isinstance(outputs, Operators), "grad: outputs", outputs, "a tensor that was computed on the tape")
    if math.prod(outputs.shape) != 1:
        raise ValueError(f"grad: the output has shape {outputs.shape}; expected one number")
    return tape.gradient(outputs, inputs)


def backward(loss):
    """Add the gradients of this loss to the `grad` of the trainable variables that it depends on, as in PyTorch.

    Raises RuntimeError if no tape is open or it was already read, ValueError if the loss depends on no such variable or
    one was assigned meanwhile, and TypeError while a function is traced, because `grad` would hold no numbers.
    """
    tape = _innermost("backward")
    expect(isinstance(loss, Operators), "backward: the loss", loss, "a tensor that was computed on the tape")
    loss = as_tensor(loss)
    if type(loss) is Symbol:
        raise TypeError("backward: inside a function, use tape.gradient, which returns the gradients")
    used = {loss}
    for _, inputs, _, y in reversed(tape.records or ()):
        used.update(inputs if y in used else ())
    variables = [v for v, x in tape.variables.items() if x in used and v.trainable and v.dtype.kind == "f"]
    if not variables:
        raise ValueError("backward: the loss was made from no variable while the tape was open")
    for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
        variable.grad = gradient if variable.grad is None else variable.grad + gradient


OPERATORS["backward"] = backward


def _slope_at_target(dx, x, y, p):
    """The vjp of -(y·log p + (1 - y)·log(1 - p)) for y: dx·(log(1 - p) - log p), with logarithms clipped at -100."""
    return dx * (maximum(log(1.0 - p), -100.0) - maximum(log(p), -100.0))


def _slope_at_probability(dx, x, y, p):
    """The vjp for p: dx·(p - y) / (p·(1 - p)), with a divisor of at least float32(1e-12): finite at 0 and 1 (PyTorch).

    The chain rule through the clipped logarithms would give NaN there: the slope 0 of the clipping, divided by p = 0.
    """
    return dx * apply("probabilities_slope", y, p)


def _slope_of_slope(dx, x, y, p):
    """The vjp of that slope for p: dx·(p² - 2·p·y + y) / (p·(1 - p))², with 1e-12 added to each factor (PyTorch)."""
    room = (p + 1e-12) * (1.0 - p + 1e-12)
    return dx * (p * p - 2.0 * p * y + y) / (room * room)


VJPS.update(
    {
        "relu_grad": (lambda g, dx, dy, y: apply("relu_grad", g, y), None),
        "clip_grad": (lambda g, dx, dy, x, low, high: apply("clip_grad", g, x, low=low, high=high), None),
        "sigmoid_grad": (
            lambda g, dx, dy, y: apply("sigmoid_grad", g, y),
            lambda g, dx, dy, y: g * dy * (1.0 - 2.0 * y),
        ),
        "logits_crossentropy": (lambda dx, x, y, z: -dx * z, lambda dx, x, y, z: dx * (nn.sigmoid(z) - y)),
        "multiply_no_nan": (
            lambda g, xy, x, y: apply("multiply_no_nan", g, y),
            lambda g, xy, x, y: apply("multiply_no_nan", x, g),
        ),
        "probabilities_crossentropy": (_slope_at_target, _slope_at_probability),
        "probabilities_slope": (lambda dx, x, y, p: -dx / maximum(p * (1.0 - p), SMALLEST), _slope_of_slope),
        "softmax_grad": (
            lambda g, dx, dy, y: apply("softmax_grad", g, y),
            lambda g, dx, dy, y: g * (dy - reduce_sum(dy * y, -1, True)) - dy * reduce_sum(g * y, -1, True),
        ),
        "log_softmax_grad": (
            lambda g, dx, dy, y: g - reduce_sum(g * exp(y), -1, True),
            lambda g, dx, dy, y: -g * exp(y) * reduce_sum(dy, -1, True),
        ),
    }
)
