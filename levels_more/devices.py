"""The other kinds of device, of which there may be one in the pool: importing them enters them in `MAKERS`."""

from levels_more import gpu, tpu

__all__ = ["gpu", "tpu"]
