"""The other kinds of device, of which there may be one in the pool: importing them enters them in `MAKERS`."""

from levels_more import gpu, tpu
from levels_more.pooling import fill

__all__ = ["fill", "gpu", "tpu"]
