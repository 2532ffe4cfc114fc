"""PyTorch's names on what the five notebooks build: `import levels_more.torch as torch`.

Here is what the stored programs call, and what stands right beside it; chapter 3 of "eat pytorch in 20 days" runs with
only its import lines changed. Tensors remember what they were made from (`levels_more.torch.recorded`), weights are
[out, in], losses take the prediction first. A name that is missing says what to use.
"""

import functools
import math

from levels_more.low_level.random import Generator, set_seed
from levels_more.missing import room, small_room
from levels_more.torch import storage
from levels_more.torch.functions import (  # noqa: F401
    FUNCTIONS, KINDS, as_tensor, from_numpy, get_default_dtype, normal, set_default_dtype, tensor,
)
from levels_more.torch.recorded import Size, Tensor, device, dtype  # noqa: F401
from levels_more.torch.recording import grad_mode, set_grad_enabled  # noqa: F401
from levels_more.torch.recording import recording as is_grad_enabled  # noqa: F401
from levels_more.torch.storage import save  # noqa: F401

__version__ = "2.15.0+levels"  # PyTorch's names as of then
pi, inf, nan = math.pi, math.inf, math.nan
cuda = small_room("torch.cuda", is_available=lambda: False, device_count=lambda: 0, manual_seed_all=lambda seed: None)
linalg, accelerator = small_room("torch.linalg"), small_room("torch.accelerator")  # they say what to use
backends = small_room("torch.backends", mps=cuda, cudnn=small_room("torch.backends.cudnn"))
no_grad, enable_grad = functools.partial(grad_mode, False), functools.partial(grad_mode, True)
inference_mode = no_grad


def manual_seed(seed):
    """Random numbers begin anew, at others for each seed. They are not those that PyTorch draws for it."""
    set_seed(seed)
    return Generator(seed)


def load(f, map_location=None, weights_only=True):
    """What `save` wrote. There is nothing but numbers, texts, dicts and lists in it."""
    return storage.load(f, tensor)


__getattr__, __dir__ = room("torch", globals(), KINDS, FUNCTIONS)


from . import autograd, nn, optim, utils  # noqa: E402, F401
