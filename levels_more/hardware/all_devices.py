"""The other kinds of device, of which there may be one in the pool: importing them enters them in `MAKERS`."""

from levels_more.hardware.devices import fill
from levels_more.hardware.gpu import device as gpu

# isort: split
# behind the GPU, for the pool lists devices in the order in which they were entered
from levels_more.hardware import tpu

__all__ = ["fill", "gpu", "tpu"]
