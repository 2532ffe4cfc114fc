"""`torch.nn.init`: starting values, put in the place of a tensor's numbers."""

from levels_more.missing import room
from levels_more.torch import initializing
from levels_more.torch.initializing import cut_normal as trunc_normal_  # noqa: F401
from levels_more.torch.initializing import filled as constant_
from levels_more.torch.initializing import gain as calculate_gain  # noqa: F401
from levels_more.torch.initializing import identity as eye_  # noqa: F401
from levels_more.torch.initializing import normal as normal_  # noqa: F401
from levels_more.torch.initializing import orthogonal as orthogonal_  # noqa: F401
from levels_more.torch.initializing import uniform as uniform_  # noqa: F401

xavier_uniform_, xavier_normal_ = (
    initializing.uniform_by(initializing.glorot),
    initializing.normal_by(initializing.glorot),
)
kaiming_uniform_, kaiming_normal_ = initializing.uniform_by(initializing.he), initializing.normal_by(initializing.he)


def zeros_(tensor):
    """All its numbers 0."""
    return constant_(tensor, 0.0)


def ones_(tensor):
    """All its numbers 1."""
    return constant_(tensor, 1.0)


__getattr__, __dir__ = room("torch.nn.init", globals())
