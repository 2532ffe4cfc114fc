"""`torch.optim.lr_scheduler`: learning rates that depend on the number of calls of `step`, one per epoch."""

from levels.support.checks import check_int as _check_int
from levels_more.checks import as_python as _as_python
from levels_more.checks import expect as _expect
from levels_more.missing import module_api
from levels_more.missing import refusing as _refusing


class LambdaLR:
    """Sets the learning rate of each group to its initial rate times `lr_lambda(epoch)`."""

    __getattr__ = _refusing("a scheduler", "torch")

    def __init__(self, optimizer, lr_lambda):
        _expect(lr_lambda is None or callable(lr_lambda), "LambdaLR: lr_lambda", lr_lambda, "a function of the epoch")
        groups = optimizer.param_groups
        self.optimizer = optimizer
        self.last_epoch = 0
        self.base_lrs = [group.setdefault("initial_lr", group["lr"]) for group in groups]
        self.factor = lr_lambda
        self._set()
        self._last_lr = [group["lr"] for group in groups]

    def _set(self):
        for group, first in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = _as_python(first * self.factor(self.last_epoch))

    def step(self):
        """Count one more epoch, and set the rates."""
        self.last_epoch += 1
        self._set()
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self):
        """Return the rates of the groups as this schedule last set them. Other code may have changed them since."""
        return self._last_lr[:]

    def state_dict(self):
        """Return its numbers, {name: value}, without its optimizer and its function."""
        return {name: value for name, value in vars(self).items() if name not in ("optimizer", "factor")}

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave. The optimizer keeps its rates. Raises TypeError for anything else."""
        known = self.state_dict().keys()
        fits = isinstance(state_dict, dict) and "last_epoch" in state_dict
        _expect(fits, f"{type(self).__name__}.load_state_dict", state_dict, "what state_dict() of a scheduler gave")
        vars(self).update({name: value for name, value in state_dict.items() if name in known})


class StepLR(LambdaLR):
    """Multiplies the current rate by `gamma` after every `step_size` epochs. Other code may change the rate, too."""

    def __init__(self, optimizer, step_size, gamma=0.1):
        self.step_size, self.gamma = _check_int(1, "StepLR: step_size", step_size), _as_python(gamma)
        super().__init__(optimizer, None)

    def _set(self):
        if self.last_epoch and self.last_epoch % self.step_size == 0:
            for group in self.optimizer.param_groups:
                group["lr"] *= self.gamma


__getattr__, __dir__ = module_api("torch.optim.lr_scheduler", globals())
