"""Optimizers of recorded tensors: `step` updates each parameter from its `grad`."""

import math
import types
import warnings

import numpy as np

from levels.low_level import constant, sqrt
from levels.support.checks import check_positive
from levels_more import mid_level
from levels_more.checks import as_python, expect
from levels_more.missing import refusing
from levels_more.torch.grad_mode import enable_grad, no_grad
from levels_more.torch.tensors import FUNCTIONS, Tensor

WHOLE = "the optimizer itself, in the same program; files hold the state of modules"


class Optimizer:
    """The base class. params: tensors, or groups with options. Define `update(options, dw, w, state)` -> the new w.

    Raises ValueError if there is no parameter, TypeError for a single tensor, and what `add_param_group` raises.
    """

    __getattr__ = refusing("an optimizer", "torch", state_dict=WHOLE, load_state_dict=WHOLE)

    def __init__(self, params, defaults):
        kind = type(self).__name__
        expect(not isinstance(params, Tensor), f"{kind}: params", params, "a list of tensors, as model.parameters()")
        params = list(params)
        self.defaults = {name: _option(f"{kind}: {name}", value) for name, value in defaults.items()}
        self.state = {}
        self.param_groups = []
        for group in params if params and isinstance(params[0], dict) else [{"params": params}]:
            self.add_param_group(group)
        if not self._parameters():
            raise ValueError(f"{kind}: there is no parameter to train")

    def _parameters(self):
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def zero_grad(self, set_to_none=True):
        """Set the gradients to None, or to 0."""
        clear_gradients(self._parameters(), set_to_none)

    def add_param_group(self, group):
        """Add a group, a dict: its "params" are updated with its options, or with the defaults.

        A tensor that is twice in the group is updated twice, with a warning, as in PyTorch. Raises TypeError for what
        is not a tensor, ValueError for a tensor that is not a leaf, or is in another group.
        """
        found = group["params"]
        kind = type(self).__name__
        known = {*self._parameters()}
        found = [found] if hasattr(found, "grad") else list(found)
        for p in found:
            if not isinstance(p, Tensor):
                raise TypeError(f"{kind}: a parameter is {p!r:.60}; expected tensors, as model.parameters() gives them")
            if not p.is_leaf:
                raise ValueError(f"{kind}: a parameter was made from other tensors; train those, or detach() it first")
            if p in known:
                raise ValueError(f"{kind}: a parameter is in two groups; it would be updated twice")
        if len({*found}) < len(found):
            cure = "give it once; PyTorch 2.13 warns of this, too"
            warnings.warn(
                f"{kind}: a parameter is twice in a group, and each step updates it twice; {cure}", stacklevel=3
            )
        options = {name: as_python(x) for name, x in group.items()}
        self.param_groups.append({**self.defaults, **options, "params": found})

    @no_grad
    def step(self, closure=None):
        """Update parameters with a gradient; return `closure()`, called first. Raises ValueError if shapes differ."""
        with enable_grad():
            loss = closure() if closure else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    if p.grad.shape != p.shape:
                        raise ValueError(f"step: a gradient is {p.grad.shape}, its parameter {p.shape}")
                    state = self.state.setdefault(p, {})
                    how = types.SimpleNamespace(**{name: as_python(x) for name, x in group.items() if name != "params"})
                    p.write(self.update(how, p.grad.held, p.held, state))
        return loss


def clear_gradients(parameters, set_to_none=True):
    """Set the gradients of these tensors to None, or to 0."""
    for parameter in parameters:
        if set_to_none:
            parameter.grad = None
        elif parameter.grad is not None:
            parameter.grad = FUNCTIONS["zeros_like"](parameter.grad)


def _option(name, value):
    """Return an option as a Python number ≥ 0; "betas" as two, each below 1. Raises ValueError for other values."""
    value = as_python(value.tolist() if isinstance(value, np.ndarray) else value)
    if not name.endswith("betas"):
        return check_positive(name, value, zero=True)
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{name} is {value!r}; expected 2 numbers")
    return tuple(check_positive(name, x, 1.0, zero=True) for x in value)


class SGD(Optimizer):
    """v ← momentum·v + dw + weight_decay·w; w ← w - lr·v. Raises TypeError for a dampening other than 0."""

    def __init__(self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0):
        expect(dampening == 0, "SGD: dampening", dampening, "0, the only supported value")
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    def update(self, how, dw, w, state):
        """Return the new w. dw and w are tensors of one shape."""
        dw = dw + how.weight_decay * w if how.weight_decay else dw
        if how.momentum:
            before = state.get("momentum_buffer")
            dw = state["momentum_buffer"] = dw if before is None else how.momentum * before + dw
        return mid_level.descend(how.lr, dw, w)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with the gradient of Σ w²·weight_decay/2 added to dw.

    The corrections 1 - βᵗ are double numbers, as in PyTorch 2.13. On level 4 they have the dtype of w, as in Keras.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def update(self, how, dw, w, state):
        """Return the new w. dw and w are tensors of one shape."""
        dw = dw + how.weight_decay * w if how.weight_decay else dw
        t = state["step"] = state.get("step", 0) + 1
        b1, b2 = how.betas
        before = state.get("exp_avg", 0.0 * w)
        m = before + (1.0 - b1) * (dw - before) if b1 > 0.5 else dw - b1 * (dw - before)
        v = b2 * state.get("exp_avg_sq", 0.0 * w) + (1.0 - b2) * (dw * dw)
        state |= {"exp_avg": m, "exp_avg_sq": v}
        rate = how.lr / (1.0 - b1**t)
        return w - rate * m / (sqrt(v) / math.sqrt(1.0 - b2**t) + how.eps)


@no_grad
def clip_grad_norm_(parameters, max_norm, norm_type=2.0):
    """Scale all gradients by one factor, so that their joint norm is at most `max_norm`. Return the norm before."""
    found = [p.grad for p in ([parameters] if hasattr(parameters, "grad") else parameters) if p.grad is not None]
    norm = float(np.linalg.norm(np.concatenate([dx.held.numpy().ravel() for dx in found] or [[0.0]]), float(norm_type)))
    for dx in found:
        dx.mul_(np.minimum(1.0, float(max_norm) / (norm + 1e-6)))  # of NaN it is NaN
    return found[0].of(constant(norm, found[0].dtype)) if found else FUNCTIONS["zeros"](())
