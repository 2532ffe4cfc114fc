"""PyTorch's API on top of what the five notebooks build: `import levels_more.torch as torch`.

It has what the stored programs call, and what a program needs beside that. Chapter 3 of "eat pytorch in 20 days" runs
with only its import lines changed. Tensors record how they were computed (`levels_more.torch.tensors`), weights are
[out, in], and losses take the prediction first. The error for a missing name says what to use instead.
"""

import math

from levels_more.low_level.random import set_seed
from levels_more.missing import module_api, small_room
from levels_more.torch.dtypes import dtype  # noqa: F401
from levels_more.torch.functions import (  # noqa: F401
    FUNCTIONS, KINDS, from_numpy, normal, set_default_dtype, tensor,
)
from levels_more.torch.grad_mode import enable_grad, no_grad  # noqa: F401
from levels_more.torch.files import load, save  # noqa: F401
from levels_more.torch.tensors import Tensor, device  # noqa: F401

__version__ = "2.13.0+levels"  # the version of PyTorch beside which the stored programs run
pi = math.pi
cuda = small_room("torch.cuda", is_available=lambda: False)
linalg = small_room("torch.linalg")  # empty: errors say what to use


def manual_seed(seed):
    """Seed the random numbers. They differ from PyTorch's."""
    set_seed(seed)


__getattr__, __dir__ = module_api("torch", globals(), KINDS, FUNCTIONS)


from . import autograd, nn, optim, utils  # noqa: E402, F401
