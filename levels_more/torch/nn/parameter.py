"""`torch.nn.parameter`."""

from levels_more.recorded_modules import Parameter  # noqa: F401
