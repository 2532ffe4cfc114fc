"""`torch.optim.lr_scheduler`: rates that depend on how often `step` was called, once an epoch."""

import math


class LambdaLR:
    """The first rate times a factor of the epoch."""

    def __init__(self, optimizer, lr_lambda):
        self.optimizer, self.factor, self.last_epoch = optimizer, lr_lambda, 0
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]

    def step(self):
        """One epoch more."""
        self.last_epoch += 1
        for group, first in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = self.rate(first)

    def rate(self, first):
        return first * self.factor(self.last_epoch)

    def get_last_lr(self):
        return [group["lr"] for group in self.optimizer.param_groups]


def StepLR(optimizer, step_size, gamma=0.1):
    """Times gamma, every `step_size` epochs."""
    return LambdaLR(optimizer, lambda epoch: gamma ** (epoch // step_size))


def MultiStepLR(optimizer, milestones, gamma=0.1):
    """Times gamma at each of these epochs."""
    return LambdaLR(optimizer, lambda epoch: gamma ** sum(epoch >= m for m in milestones))


def ExponentialLR(optimizer, gamma):
    """Times gamma in every epoch."""
    return LambdaLR(optimizer, lambda epoch: gamma**epoch)


class CosineAnnealingLR(LambdaLR):
    """Down to `eta_min` along half a wave of `T_max` epochs."""

    def __init__(self, optimizer, T_max, eta_min=0.0):
        super().__init__(optimizer, None)
        self.T_max, self.eta_min = T_max, eta_min

    def rate(self, first):
        return self.eta_min + (first - self.eta_min) * (1.0 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2.0
