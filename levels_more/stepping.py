"""Optimizers of recorded tensors: `step` changes each parameter by its `grad`. A rule is a function, and so a row of a table."""

import types

import numpy as np

from levels import mid_level
from levels.low_level import Operators, constant, sqrt
from levels_more.recorded import FUNCTIONS
from levels_more.recording import Switch, switched


class Optimizer:
    """Parameters, or groups of them with options of their own. Write `update(options, t, dw, w, state)` -> the new w.

    Raises ValueError where there is no parameter.
    """

    def __init__(self, params, defaults):
        params = list(params)
        groups = params if params and isinstance(params[0], dict) else [{"params": params}]
        self.param_groups = [{**defaults, **group} for group in groups]
        for group in self.param_groups:
            group["params"] = [group["params"]] if hasattr(group["params"], "grad") else list(group["params"])
        if not any(group["params"] for group in self.param_groups):
            raise ValueError(f"{type(self).__name__}: there is no parameter to train")
        self.defaults, self.state = defaults, {}

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
        """Change the parameters of this dict as well, with its options."""
        found = group["params"]
        self.param_groups.append(
            {**self.defaults, **group, "params": [found] if hasattr(found, "grad") else list(found)}
        )

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
                    p.write(self.update(types.SimpleNamespace(**group), state["step"], p.grad.held, p.held, state))
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


def sgd(how, t, dw, w, state):
    """v ← momentum·v + (1 - dampening)·dw; w ← w - lr·v, or Nesterov's w - lr·(dw + momentum·v): tensors of one shape."""
    dw = dw + how.weight_decay * w if how.weight_decay else dw
    if how.momentum:
        v = state["momentum_buffer"] = (
            dw if t == 1 else how.momentum * state["momentum_buffer"] + (1.0 - how.dampening) * dw
        )
        dw = dw + how.momentum * v if how.nesterov else v
    return mid_level.optimizers.descend(how.lr, dw, w)


def adam(how, t, dw, w, state):
    """That of level 4: tensors of one shape; the gradient has the share of Σ w²·weight_decay/2 in it."""
    dw = dw + how.weight_decay * w if how.weight_decay else dw
    rule = types.SimpleNamespace(betas=how.betas, epsilon=how.eps, iterations=constant(t, w.dtype))
    memory = state.get("exp_avg", 0.0 * w), state.get("exp_avg_sq", 0.0 * w)
    w, *memory = mid_level.optimizers.Adam.update(rule, how.lr, dw, w, *memory)
    state["exp_avg"], state["exp_avg_sq"] = memory
    return w


def adamw(how, t, dw, w, state):
    """Adam, before which the tensor w shrinks by lr·weight_decay of itself (Loshchilov and Hutter, 2019)."""
    w = w * (1.0 - how.lr * how.weight_decay)
    return adam(types.SimpleNamespace(**{**vars(how), "weight_decay": 0.0}), t, dw, w, state)


def rmsprop(how, t, dw, w, state):
    """v ← alpha·v + (1 - alpha)·dw²; w ← w - lr·dw / (√v + eps): tensors of one shape (Tieleman and Hinton, 2012)."""
    dw = dw + how.weight_decay * w if how.weight_decay else dw
    v = state["square_avg"] = how.alpha * state.get("square_avg", 0.0 * w) + (1.0 - how.alpha) * (dw * dw)
    step = dw / (sqrt(v) + how.eps)
    if how.momentum:
        step = state["momentum_buffer"] = how.momentum * state.get("momentum_buffer", 0.0 * w) + step
    return w - how.lr * step


def adagrad(how, t, dw, w, state):
    """v ← v + dw²; w ← w - lr·dw / (√v + eps): tensors of one shape (Duchi et al., 2011)."""
    dw = dw + how.weight_decay * w if how.weight_decay else dw
    v = state["sum"] = state.get("sum", 0.0 * w) + dw * dw
    return w - how.lr / (1.0 + (t - 1) * how.lr_decay) * dw / (sqrt(v) + how.eps)


def optimizer(kind, update, **defaults):
    """A class of optimizers of that name, whose rule is `update`, with these options in this order."""

    def __init__(self, params, *args, **given):
        given = {**dict(zip(defaults, args, strict=False)), **given}
        if unknown := given.keys() - defaults.keys():
            raise TypeError(f"{kind}: there is no {', '.join(sorted(unknown))} here; there are {', '.join(defaults)}")
        for name, value in given.items():
            if not all(0.0 <= x < (1.0 if name == "betas" else np.inf) for x in np.atleast_1d(value)):
                raise ValueError(
                    f"{kind}: {name} is {value!r:.60}; expected numbers from 0 on" + ", below 1" * (name == "betas")
                )
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
