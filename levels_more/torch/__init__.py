"""PyTorch's names on what the five notebooks build: `import levels_more.torch as torch`.

Programs for small dense nets run with only that line changed. Tensors remember what they were made from
(`levels_more.recording`), weights are [out, in], losses take the prediction first. A name that is missing says so.
"""

import math
from types import SimpleNamespace

from levels_more.recording import FUNCTIONS, Switched, grad

from . import functions, nn, optim, utils  # noqa: F401
from .functions import DEFAULT, KINDS, Size, Tensor, tensor  # noqa: F401

autograd = SimpleNamespace(grad=grad)
cuda = SimpleNamespace(is_available=lambda: False, device_count=lambda: 0)
pi, inf, nan = math.pi, math.inf, math.nan
as_tensor, set_grad_enabled = tensor, Switched


def no_grad():
    """Inside this `with` block, or the function that it decorates, nothing is remembered."""
    return Switched(False)


def enable_grad():
    """Inside this `with` block, or the function that it decorates, results remember what they were made from."""
    return Switched(True)


def device(name="cpu"):
    """The name of a device. There is "cpu"."""
    return name


def is_tensor(x):
    """Whether this is a tensor."""
    return isinstance(x, Tensor)


def set_default_dtype(dtype):
    """The dtype of Python's floats from now on: torch.float32 or torch.float64."""
    DEFAULT[0] = dtype


def __getattr__(name):
    for table in (KINDS, FUNCTIONS, vars(functions)):
        if name in table and not name.startswith("_") and not name.endswith("_"):
            return table[name]
    raise AttributeError(f"levels_more.torch has no {name!r}; it knows the names that small programs use", name=name)
