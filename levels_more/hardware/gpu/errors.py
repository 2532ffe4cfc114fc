"""The errors of a simulated GPU, for mistakes with which a real one may crash, hang, or silently give wrong numbers."""


class GpuError(ValueError):
    """A mistake in a kernel or in its launch. A real GPU may crash, hang, or silently give wrong numbers."""


class OutOfBounds(GpuError):
    """An index is negative or past the end."""


class Uninitialised(GpuError):
    """A thread reads shared or local memory that was never written."""


class Race(GpuError):
    """Two threads access one element with no barrier between. Two reads, or two atomic updates, are no race."""


class BarrierError(GpuError):
    """A thread waits at a barrier that another thread of its block does not reach."""


class Endless(GpuError):
    """A launch takes longer than LAUNCH_LIMITS allows."""
