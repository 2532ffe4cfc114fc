"""`torch.optim`: `step` changes each parameter by its `grad`."""

from levels import low_level as low

from levels_more.recording import Switched
from . import lr_scheduler  # noqa: F401


class Optimizer:
    """Parameters, or groups of them with options of their own; what it remembers of each, and a rule: `update`."""

    def __init__(self, params, **defaults):
        params = list(params)
        groups = params if params and isinstance(params[0], dict) else [{"params": params}]
        self.param_groups = [{**defaults, **group, "params": list(group["params"])} for group in groups]
        if not any(group["params"] for group in self.param_groups):
            raise ValueError(f"{type(self).__name__}: there is no parameter to train")
        self.defaults, self.state = defaults, {}

    def zero_grad(self, set_to_none=True):
        """Forget the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @Switched(False)
    def step(self, closure=None):
        """Change each parameter that has a gradient."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state.setdefault(p, {"step": 0})
                    state["step"] += 1
                    dw = p.grad.held + group["weight_decay"] * p.held if group["weight_decay"] else p.grad.held
                    p.set(self.update(p.held, dw, state, group))

    def __repr__(self):
        return f"{type(self).__name__}({self.param_groups[0]['lr']})"


class SGD(Optimizer):
    """v ← momentum·v + dw; w ← w - lr·v, or Nesterov's w - lr·(dw + momentum·v)"""

    def __init__(self, params, lr=0.001, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
        super().__init__(
            params, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov
        )

    def update(self, w, dw, state, group):
        if group["momentum"]:
            v = state.get("v")
            v = state["v"] = dw if v is None else group["momentum"] * v + (1.0 - group["dampening"]) * dw
            dw = dw + group["momentum"] * v if group["nesterov"] else v
        return w - group["lr"] * dw


class Adam(Optimizer):
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²; w ← w - lr·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + eps)"""

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def update(self, w, dw, state, group):
        (b1, b2), t = group["betas"], state["step"]
        m = state["m"] = b1 * state.get("m", 0.0 * w) + (1.0 - b1) * dw
        v = state["v"] = b2 * state.get("v", 0.0 * w) + (1.0 - b2) * (dw * dw)
        return w - group["lr"] * (m / (1.0 - b1**t)) / (low.sqrt(v / (1.0 - b2**t)) + group["eps"])


class AdamW(Adam):
    """Adam, before which the weights shrink by lr·weight_decay of themselves (Loshchilov and Hutter, 2019)."""

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, lr, betas, eps)
        for group in self.param_groups:
            group["decay"] = weight_decay

    def update(self, w, dw, state, group):
        return super().update(w - group["lr"] * group["decay"] * w, dw, state, group)


class RMSprop(Optimizer):
    """v ← alpha·v + (1 - alpha)·dw²; w ← w - lr·dw / (√v + eps)"""

    def __init__(self, params, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0):
        super().__init__(params, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay)

    def update(self, w, dw, state, group):
        v = state["v"] = group["alpha"] * state.get("v", 0.0 * w) + (1.0 - group["alpha"]) * (dw * dw)
        return w - group["lr"] * dw / (low.sqrt(v) + group["eps"])
