"""Rates of optimizers of recorded tensors that depend on the epoch: `step` is called once in each, and counts them."""

import math

from levels_more.checks import as_python


class Scheduler:
    """The rate that each group began with, times `factor(epoch)`, or times one of a list of such functions, one a group."""

    def __init__(self, optimizer, lr_lambda):
        groups = optimizer.param_groups
        self.optimizer, self.last_epoch = optimizer, 0
        self.base_lrs = [group.setdefault("initial_lr", group["lr"]) for group in groups]
        self.factors = lr_lambda if isinstance(lr_lambda, list) else [lr_lambda] * len(groups)
        self._set()

    def _set(self):
        for group, first, factor in zip(self.optimizer.param_groups, self.base_lrs, self.factors, strict=True):
            group["lr"] = as_python(first * factor(self.last_epoch))
        self.last_rates = [group["lr"] for group in self.optimizer.param_groups]

    def step(self):
        """One epoch more."""
        self.last_epoch += 1
        self._set()

    def get_last_lr(self):
        """The rates of the groups, as the last step set them."""
        return list(self.last_rates)

    def state_dict(self):
        """What `load_state_dict` takes over."""
        return {"last_epoch": self.last_epoch, "base_lrs": self.base_lrs}

    def load_state_dict(self, state):
        """Go on at the epoch that another one had come to."""
        self.last_epoch, self.base_lrs = state["last_epoch"], list(state["base_lrs"])
        self._set()


def by_factor(factor):
    """What makes schedulers with rates times `factor(epoch, …)`, the options of which it is given."""

    def made(optimizer, *how, **options):
        how, options = as_python(how), {name: as_python(x) for name, x in options.items()}
        return Scheduler(optimizer, lambda epoch: factor(epoch, *how, **options))

    return made


def half_wave(optimizer, T_max, eta_min=0.0):
    """From each group's first rate down to `eta_min` along half a wave of `T_max` epochs (Loshchilov and Hutter, 2017)."""

    T_max, eta_min = as_python(T_max), as_python(eta_min)

    def down(first):
        wave = lambda epoch: (1.0 + math.cos(math.pi * epoch / T_max)) / 2.0  # noqa: E731
        return lambda epoch: (eta_min + (first - eta_min) * wave(epoch)) / first

    return Scheduler(optimizer, [down(group.get("initial_lr", group["lr"])) for group in optimizer.param_groups])


def restarts(optimizer, T_0, T_mult=1, eta_min=0.0):
    """Half waves down to `eta_min` again and again, each `T_mult` times as long as the one before (Loshchilov and Hutter, 2017)."""

    T_0, T_mult, eta_min = as_python(T_0), as_python(T_mult), as_python(eta_min)

    def down(first):
        def factor(epoch):
            length = T_0
            while epoch >= length:
                epoch, length = epoch - length, length * T_mult
            return (eta_min + (first - eta_min) * (1.0 + math.cos(math.pi * epoch / length)) / 2.0) / first

        return factor

    return Scheduler(optimizer, [down(group.get("initial_lr", group["lr"])) for group in optimizer.param_groups])


class OnPlateau:
    """The rates times `factor` when a number, given to `step`, was not better for more than `patience` epochs."""

    def __init__(
        self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, cooldown=0, min_lr=0.0, eps=1e-8
    ):
        self.optimizer, self.factor = optimizer, as_python(factor)
        self.sign = {"min": 1.0, "max": -1.0}[mode]
        self.patience = as_python(patience)
        self.threshold = as_python(threshold)
        self.cooldown = as_python(cooldown)
        self.min_lr, self.eps, self.best = as_python(min_lr), as_python(eps), math.inf
        self.bad = self.cooling = self.last_epoch = 0

    def step(self, metrics):
        """One epoch more, with the number that it came to."""
        now, self.last_epoch = self.sign * float(metrics), self.last_epoch + 1
        better = now < self.best - self.threshold * abs(self.best) if self.best < math.inf else now < math.inf
        self.best, self.bad = (now, 0) if better else (self.best, self.bad + 1)
        if self.cooling > 0:
            self.cooling, self.bad = self.cooling - 1, 0
        if self.bad > self.patience:
            self.cooling, self.bad = self.cooldown, 0
            for group in self.optimizer.param_groups:
                rate = as_python(max(group["lr"] * self.factor, self.min_lr))
                group["lr"] = rate if group["lr"] - rate > self.eps else group["lr"]

    def get_last_lr(self):
        """The rates of the groups."""
        return [group["lr"] for group in self.optimizer.param_groups]
