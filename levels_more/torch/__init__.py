"""PyTorch's names on what the five notebooks build: `import levels_more.torch as torch`.

Here is what small dense nets call; chapter 3 of "eat pytorch in 20 days" runs with only such lines changed. Tensors
remember what they were made from (`levels_more.torch.recorded`), weights are [out, in], losses take the prediction first. A
name that is missing says so.
"""

import functools
import math

import numpy as np

from levels_more.low_level.creation import set_seed
from levels_more.low_level.generator import Generator
from levels_more.missing import room, small_room
from levels_more.torch import serialization
from levels_more.torch.printing import set_printoptions  # noqa: F401
from levels_more.torch.recorded import Recorded as Tensor  # noqa: F401
from levels_more.torch.recorded import Size, device, dtype  # noqa: F401
from levels_more.torch.recorded_making import (  # noqa: F401
    as_tensor,
    cartesian_prod,
    from_numpy,
    get_default_dtype,
    normal,
    promote_types,
    result_type,
    set_default_dtype,
    tensor,
)
from levels_more.torch.recording import Switch as set_grad_enabled  # noqa: F401
from levels_more.torch.recording import recording as is_grad_enabled  # noqa: F401
from levels_more.torch.recording import switched
from levels_more.torch.serialization import save  # noqa: F401

from .functions import FUNCTIONS, KINDS

pi, inf, nan = math.pi, math.inf, math.nan
_no_device = {"is_available": lambda: False, "device_count": lambda: 0}
_no_device |= dict.fromkeys(["manual_seed", "manual_seed_all"], lambda seed: None)
cuda, accelerator = small_room("torch.cuda", **_no_device), small_room("torch.accelerator", **_no_device)
_mps, _cudnn = small_room("torch.backends.mps", **_no_device), small_room("torch.backends.cudnn")
backends = small_room("torch.backends", mps=_mps, cudnn=_cudnn)
__version__, finfo = "2.15, its names on levels", lambda kind: np.finfo(np.dtype(kind))
no_grad, enable_grad = functools.partial(switched, False), functools.partial(switched, True)
inference_mode = no_grad


def manual_seed(seed):
    """Random numbers begin anew, at others for each seed. They are not those that PyTorch draws for it."""
    set_seed(seed)
    return Generator(seed)


def load(f, map_location=None, weights_only=True):
    """What `save` wrote. There is nothing but numbers, texts, dicts and lists in it."""
    return serialization.load(f, tensor)


__getattr__, __dir__ = room("torch", globals(), KINDS, FUNCTIONS)


from . import autograd, linalg, nn, optim, utils  # noqa: E402, F401
