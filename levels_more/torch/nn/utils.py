"""`torch.nn.utils`: gradients made shorter, parameters as one row."""

from levels_more.missing import room
from levels_more.torch.optimizers import clip_grad_norm_, clip_grad_value_  # noqa: F401
from levels_more.torch.optimizers import from_one_row as vector_to_parameters  # noqa: F401
from levels_more.torch.optimizers import in_one_row as parameters_to_vector  # noqa: F401

__getattr__, __dir__ = room("torch.nn.utils", globals())
