"""`torch.optim`: `step` changes each parameter by its `grad`."""

from levels_more.missing import room
from levels_more.torch import optimizers
from levels_more.torch.optimizers import Optimizer, optimizer  # noqa: F401

from . import lr_scheduler  # noqa: F401

SGD = optimizer("SGD", optimizers.sgd, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False)
_ADAM = {"betas": (0.9, 0.999), "eps": 1e-8}
Adam = optimizer("Adam", optimizers.adam, lr=1e-3, **_ADAM, weight_decay=0.0, amsgrad=False)
AdamW = optimizer("AdamW", optimizers.adamw, lr=1e-3, **_ADAM, weight_decay=1e-2, amsgrad=False)
Adamax = optimizer("Adamax", optimizers.adamax, lr=2e-3, **_ADAM, weight_decay=0.0)
NAdam = optimizer("NAdam", optimizers.nadam, lr=2e-3, **_ADAM, weight_decay=0.0, momentum_decay=4e-3)
RAdam = optimizer("RAdam", optimizers.radam, lr=1e-3, **_ADAM, weight_decay=0.0)
Adadelta = optimizer("Adadelta", optimizers.adadelta, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0)
RMSprop = optimizer(
    "RMSprop", optimizers.rmsprop, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False
)
Adagrad = optimizer("Adagrad", optimizers.adagrad, lr=1e-2, lr_decay=0.0, weight_decay=0.0, eps=1e-10)

__getattr__, __dir__ = room("torch.optim", globals())
