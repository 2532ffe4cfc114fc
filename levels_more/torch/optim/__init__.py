"""`torch.optim`: `step` changes each parameter by its `grad`."""

from levels_more import stepping
from levels_more.missing import room
from levels_more.stepping import Optimizer, optimizer  # noqa: F401

from . import lr_scheduler  # noqa: F401

SGD = optimizer("SGD", stepping.sgd, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False)
_ADAM = {"betas": (0.9, 0.999), "eps": 1e-8}
Adam = optimizer("Adam", stepping.adam, lr=1e-3, **_ADAM, weight_decay=0.0, amsgrad=False)
AdamW = optimizer("AdamW", stepping.adamw, lr=1e-3, **_ADAM, weight_decay=1e-2, amsgrad=False)
Adamax = optimizer("Adamax", stepping.adamax, lr=2e-3, **_ADAM, weight_decay=0.0)
NAdam = optimizer("NAdam", stepping.nadam, lr=2e-3, **_ADAM, weight_decay=0.0, momentum_decay=4e-3)
RAdam = optimizer("RAdam", stepping.radam, lr=1e-3, **_ADAM, weight_decay=0.0)
Adadelta = optimizer("Adadelta", stepping.adadelta, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0)
RMSprop = optimizer(
    "RMSprop", stepping.rmsprop, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False
)
Adagrad = optimizer("Adagrad", stepping.adagrad, lr=1e-2, lr_decay=0.0, weight_decay=0.0, eps=1e-10)

__getattr__, __dir__ = room("torch.optim", globals())
