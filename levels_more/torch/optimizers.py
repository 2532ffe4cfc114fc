"""Optimizers of recorded tensors: `step` changes each parameter by its `grad`. A rule is a function, and so a row of a table."""

import math
import types

import numpy as np

from levels import mid_level
from levels.low_level import Operators, constant, sqrt
from levels.support.checks import flag, real
from levels_more.checks import as_python
from levels_more.low_level.ops import maximum
from levels_more.torch.recorded import FUNCTIONS, Recorded
from levels_more.torch.recording import Switch, switched


class Optimizer:
    """Parameters, or groups of them with options of their own. Write `update(options, t, dw, w, state)` -> the new w.

    Raises ValueError where there is no parameter, and what `add_param_group` raises.
    """

    def __init__(self, params, defaults):
        params = list(params)
        self.defaults, self.state, self.param_groups = defaults, {}, []
        for group in params if params and isinstance(params[0], dict) else [{"params": params}]:
            self.add_param_group(group)
        if not self._parameters():
            raise ValueError(f"{type(self).__name__}: there is no parameter to train")

    def _parameters(self):
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def __repr__(self):
        lines = []
        for k, group in enumerate(self.param_groups):
            lines += [
                f"Parameter Group {k}",
                *(f"    {name}: {group[name]}" for name in sorted(group) if name != "params"),
            ]
        return f"{type(self).__name__} (\n" + "\n".join(lines) + "\n)"

    def zero_grad(self, set_to_none=True):
        """Forget the gradients, or make them 0."""
        forget(self._parameters(), set_to_none)

    def add_param_group(self, group):
        """Change the parameters of this dict as well, with its options.

        Raises TypeError for what is no tensor, ValueError for what was made from others, and what is trained already.
        """
        found, kind, known = group["params"], type(self).__name__, {*self._parameters()}
        found = [found] if hasattr(found, "grad") else list(found)
        for p in found:
            if not isinstance(p, Recorded):
                raise TypeError(f"{kind}: a parameter is {p!r:.60}; expected tensors, as model.parameters() gives them")
            if not p.is_leaf:
                raise ValueError(f"{kind}: a parameter was made from other tensors; train those, or detach() it first")
            if p in known:
                raise ValueError(
                    f"{kind}: a parameter of shape {tuple(p.shape)} stands in two groups; it would step twice"
                )
        options = {name: as_python(x) for name, x in group.items()}
        self.param_groups.append({**self.defaults, **options, "params": found})

    @switched(False)
    def step(self, closure=None):
        """Change each parameter that has a gradient. A closure is called first, and what it gives is returned."""
        with Switch(True):
            loss = closure() if closure else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state.setdefault(p, {"step": 0})
                    state["step"] += 1
                    how = types.SimpleNamespace(**{name: as_python(x) for name, x in group.items() if name != "params"})
                    p.write(self.update(how, state["step"], p.grad.held, p.held, state))
        return loss

    def state_dict(self):
        """What it remembers of each parameter, by its number, and the options of the groups."""
        numbers = {p: k for k, p in enumerate(self._parameters())}
        groups = [{**group, "params": [numbers[p] for p in group["params"]]} for group in self.param_groups]
        kept = {
            numbers[p]: {name: p.of(x) if isinstance(x, Operators) else x for name, x in state.items()}
            for p, state in self.state.items()
        }
        return {"state": kept, "param_groups": groups}

    def load_state_dict(self, saved):
        """Take over what `state_dict` gave, of an optimizer for as many parameters."""
        own = self._parameters()
        for group, given in zip(self.param_groups, saved["param_groups"], strict=True):
            group.update({**given, "params": [own[k] for k in given["params"]]})
        self.state = {
            own[k]: {n: getattr(x, "held", x) for n, x in state.items()} for k, state in saved["state"].items()
        }


def forget(parameters, set_to_none=True):
    """Take the gradients of these tensors away, or make them 0."""
    for parameter in parameters:
        if set_to_none:
            parameter.grad = None
        elif parameter.grad is not None:
            parameter.grad = FUNCTIONS["zeros_like"](parameter.grad)


def _wanted(how, dw, w):
    """The gradient of what is to become small, or large with `maximize`, with that of Σ w²·weight_decay/2 in it."""
    dw = -dw if how.maximize else dw
    return dw + how.weight_decay * w if how.weight_decay else dw


def sgd(how, t, dw, w, state):
    """v ← momentum·v + (1 - dampening)·dw; w ← w - lr·v, or Nesterov's w - lr·(dw + momentum·v): tensors of one shape."""
    dw = _wanted(how, dw, w)
    if how.momentum:
        v = state["momentum_buffer"] = (
            dw if t == 1 else how.momentum * state["momentum_buffer"] + (1.0 - how.dampening) * dw
        )
        dw = dw + how.momentum * v if how.nesterov else v
    return mid_level.optimizers.descend(how.lr, dw, w)


def adam(how, t, dw, w, state):
    """That of level 4: tensors of one shape; the gradient has the share of Σ w²·weight_decay/2 in it.

    With `amsgrad` it is divided by the largest of all √v so far (Reddi et al., 2018).
    """
    dw = _wanted(how, dw, w)
    rule = types.SimpleNamespace(betas=how.betas, epsilon=how.eps, iterations=constant(t, w.dtype))
    memory = state.get("exp_avg", 0.0 * w), state.get("exp_avg_sq", 0.0 * w)
    new, *memory = mid_level.optimizers.Adam.update(rule, how.lr, dw, w, *memory)
    m, v = state["exp_avg"], state["exp_avg_sq"] = memory
    if not how.amsgrad:
        return new
    v = state["max_exp_avg_sq"] = maximum(state.get("max_exp_avg_sq", v), v)
    (b1, b2), t = how.betas, int(t)
    return w - how.lr / (1.0 - b1**t) * m / (sqrt(v) / math.sqrt(1.0 - b2**t) + how.eps)


def adamw(how, t, dw, w, state):
    """Adam, before which the tensor w shrinks by lr·weight_decay of itself (Loshchilov and Hutter, 2019)."""
    w = w * (1.0 - how.lr * how.weight_decay)
    return adam(types.SimpleNamespace(**{**vars(how), "weight_decay": 0.0}), t, dw, w, state)


def rmsprop(how, t, dw, w, state):
    """v ← alpha·v + (1 - alpha)·dw²; w ← w - lr·dw / (√v + eps): tensors of one shape (Tieleman and Hinton, 2012).

    With `centered` the square of the mean gradient is taken from v first (Graves, 2013).
    """
    dw = _wanted(how, dw, w)
    v = state["square_avg"] = how.alpha * state.get("square_avg", 0.0 * w) + (1.0 - how.alpha) * (dw * dw)
    if how.centered:
        mean = state["grad_avg"] = how.alpha * state.get("grad_avg", 0.0 * w) + (1.0 - how.alpha) * dw
        v = v - mean * mean
    step = dw / (sqrt(v) + how.eps)
    if how.momentum:
        step = state["momentum_buffer"] = how.momentum * state.get("momentum_buffer", 0.0 * w) + step
    return w - how.lr * step


def adagrad(how, t, dw, w, state):
    """v ← v + dw²; w ← w - lr·dw / (√v + eps): tensors of one shape (Duchi et al., 2011)."""
    dw = _wanted(how, dw, w)
    v = state["sum"] = state.get("sum", 0.0 * w) + dw * dw
    return w - how.lr / (1.0 + (t - 1) * how.lr_decay) * dw / (sqrt(v) + how.eps)


def adadelta(how, t, dw, w, state):
    """Steps as long as the steps before, of tensors of one shape, in proportion to the gradients before (Zeiler, 2012)."""
    dw = _wanted(how, dw, w)
    v = state["square_avg"] = how.rho * state.get("square_avg", 0.0 * w) + (1.0 - how.rho) * (dw * dw)
    before = state.get("acc_delta", 0.0 * w)
    step = sqrt(before + how.eps) / sqrt(v + how.eps) * dw
    state["acc_delta"] = how.rho * before + (1.0 - how.rho) * (step * step)
    return w - how.lr * step


def adamax(how, t, dw, w, state):
    """Adam, of tensors of one shape, with the largest |gradient| of late in the place of √v (Kingma and Ba, 2015, 7.1)."""
    (b1, b2), dw = how.betas, _wanted(how, dw, w)
    m = state["exp_avg"] = b1 * state.get("exp_avg", 0.0 * w) + (1.0 - b1) * dw
    most = state["exp_inf"] = maximum(b2 * state.get("exp_inf", 0.0 * w), maximum(dw, -dw) + how.eps)
    return w - how.lr / (1.0 - b1**t) * m / most


def nadam(how, t, dw, w, state):
    """Adam with Nesterov's momentum, which grows with t: tensors of one shape (Dozat, 2016)."""
    (b1, b2), dw = how.betas, _wanted(how, dw, w)
    now, next_ = (b1 * (1.0 - 0.5 * 0.96 ** (k * how.momentum_decay)) for k in (t, t + 1))
    product = state["mu_product"] = state.get("mu_product", 1.0) * now
    m = state["exp_avg"] = b1 * state.get("exp_avg", 0.0 * w) + (1.0 - b1) * dw
    v = state["exp_avg_sq"] = b2 * state.get("exp_avg_sq", 0.0 * w) + (1.0 - b2) * (dw * dw)
    slope = (1.0 - now) / (1.0 - product) * dw + next_ / (1.0 - product * next_) * m
    return w - how.lr * slope / (sqrt(v / (1.0 - b2**t)) + how.eps)


def radam(how, t, dw, w, state):
    """Adam, which waits to divide by √v until it has seen enough gradients: tensors of one shape (Liu et al., 2020)."""
    (b1, b2), dw = how.betas, _wanted(how, dw, w)
    m = state["exp_avg"] = b1 * state.get("exp_avg", 0.0 * w) + (1.0 - b1) * dw
    v = state["exp_avg_sq"] = b2 * state.get("exp_avg_sq", 0.0 * w) + (1.0 - b2) * (dw * dw)
    most = 2.0 / (1.0 - b2) - 1.0
    seen = most - 2.0 * t * b2**t / (1.0 - b2**t)
    step = how.lr / (1.0 - b1**t) * m
    if seen <= 5.0:
        return w - step
    share = math.sqrt((seen - 4.0) * (seen - 2.0) * most / ((most - 4.0) * (most - 2.0) * seen))
    return w - step * share * math.sqrt(1.0 - b2**t) / (sqrt(v) + how.eps)


def _option(name, value, default):
    """An option as Python's number, or as so many as the default has, or as a bool. Raises ValueError for others."""
    if isinstance(default, bool):
        return flag(name, value)
    several = isinstance(default, tuple)
    below = 1.0 if several else math.inf
    found = list(value) if several and isinstance(value, (list, tuple, np.ndarray)) else [value]
    found = [float(x) if hasattr(x, "held") and x.ndim == 0 else real(x) for x in found]
    fits = len(found) == (len(default) if several else 1)
    if not fits or any(x is None or not 0.0 <= x < below for x in found):
        expected = f"{len(default)} numbers from 0 on, below 1" if several else "a number from 0 on"
        raise ValueError(f"{name} is {value!r:.60}; expected {expected}")
    return tuple(found) if several else found[0]


def optimizer(kind, update, **defaults):
    """A class of optimizers of that name, whose rule is `update`, with these options in this order, and `maximize`."""
    defaults["maximize"] = False

    def __init__(self, params, *args, **given):
        given = {**dict(zip(defaults, args, strict=False)), **given}
        if unknown := given.keys() - defaults.keys():
            raise TypeError(f"{kind}: there is no {', '.join(sorted(unknown))} here; there are {', '.join(defaults)}")
        given = {name: _option(f"{kind}: {name}", x, defaults[name]) for name, x in given.items()}
        Optimizer.__init__(self, params, {**defaults, **given})

    return type(
        kind, (Optimizer,), {"__init__": __init__, "update": lambda self, *how: update(*how), "__doc__": update.__doc__}
    )


@switched(False)
def clip_grad_norm_(parameters, max_norm, norm_type=2.0):
    """Make all gradients shorter by one factor, so that together they are no longer than that; gives how long they were."""
    found = [p.grad for p in ([parameters] if hasattr(parameters, "grad") else parameters) if p.grad is not None]
    norm = float(np.linalg.norm(np.concatenate([dx.held.numpy().ravel() for dx in found] or [[0.0]]), float(norm_type)))
    for dx in found:
        dx.mul_(min(1.0, float(max_norm) / (norm + 1e-6)))
    return found[0].of(constant(norm, found[0].dtype)) if found else norm


@switched(False)
def clip_grad_value_(parameters, clip_value):
    """Keep each number of the gradients within ±clip_value."""
    for p in [parameters] if hasattr(parameters, "grad") else parameters:
        if p.grad is not None:
            p.grad.clamp_(-clip_value, clip_value)


def in_one_row(parameters):
    """All numbers of these tensors, behind each other: one tensor, [n]."""
    return FUNCTIONS["cat"]([parameter.reshape(-1) for parameter in parameters])


@switched(False)
def from_one_row(row, parameters):
    """Put the numbers of a tensor row[n] into these tensors, in their order. Raises ValueError for more or fewer."""
    parameters = list(parameters)
    if row.numel() != sum(p.numel() for p in parameters):
        raise ValueError(f"the row has {row.numel()} numbers, the parameters {sum(p.numel() for p in parameters)}")
    start = 0
    for p in parameters:
        p.write(row[start : start + p.numel()].reshape(p.shape).held)
        start += p.numel()
