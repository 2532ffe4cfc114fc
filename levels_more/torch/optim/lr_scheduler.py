"""`torch.optim.lr_scheduler`: rates that depend on how often `step` was called, once an epoch."""

from levels_more.missing import room
from levels_more.torch.rate_schedules import OnPlateau as ReduceLROnPlateau  # noqa: F401
from levels_more.torch.rate_schedules import Scheduler as LambdaLR  # noqa: F401
from levels_more.torch.rate_schedules import by_factor
from levels_more.torch.rate_schedules import half_wave as CosineAnnealingLR  # noqa: F401
from levels_more.torch.rate_schedules import restarts as CosineAnnealingWarmRestarts  # noqa: F401

StepLR = by_factor(lambda epoch, step_size, gamma=0.1: gamma ** (epoch // step_size))
MultiStepLR = by_factor(lambda epoch, milestones, gamma=0.1: gamma ** sum(epoch >= m for m in milestones))
ExponentialLR = by_factor(lambda epoch, gamma: gamma**epoch)
PolynomialLR = by_factor(lambda epoch, total_iters=5, power=1.0: (1.0 - min(epoch / total_iters, 1.0)) ** power)
ConstantLR = by_factor(lambda epoch, factor=1 / 3, total_iters=5: factor if epoch < total_iters else 1.0)
LinearLR = by_factor(
    lambda epoch, start_factor=1 / 3, end_factor=1.0, total_iters=5: (
        start_factor + (end_factor - start_factor) * min(epoch, total_iters) / total_iters
    )
)

__getattr__, __dir__ = room("torch.optim.lr_scheduler", globals())
