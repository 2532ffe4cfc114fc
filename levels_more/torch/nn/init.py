"""`torch.nn.init`: starting values, put in the place of a tensor's numbers."""

from levels_more import filling
from levels_more.filling import cut_normal as trunc_normal_  # noqa: F401
from levels_more.filling import filled as constant_
from levels_more.filling import gain as calculate_gain  # noqa: F401
from levels_more.filling import identity as eye_  # noqa: F401
from levels_more.filling import normal as normal_  # noqa: F401
from levels_more.filling import orthogonal as orthogonal_  # noqa: F401
from levels_more.filling import uniform as uniform_  # noqa: F401
from levels_more.missing import room

xavier_uniform_, xavier_normal_ = filling.uniform_by(filling.glorot), filling.normal_by(filling.glorot)
kaiming_uniform_, kaiming_normal_ = filling.uniform_by(filling.he), filling.normal_by(filling.he)


def zeros_(tensor):
    """All its numbers 0."""
    return constant_(tensor, 0.0)


def ones_(tensor):
    """All its numbers 1."""
    return constant_(tensor, 1.0)


__getattr__, __dir__ = room("torch.nn.init", globals())
