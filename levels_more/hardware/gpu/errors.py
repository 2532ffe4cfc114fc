"""What a simulated GPU raises where a real one may crash, hang, or give wrong numbers without a word."""


class GpuError(ValueError):
    """A mistake in a kernel or in its launch. A real GPU may crash, hang, or give wrong numbers without a word."""


class OutOfBounds(GpuError):
    """An index is negative or past the end."""


class Uninitialised(GpuError):
    """A thread reads shared or local memory that was never written."""


class Race(GpuError):
    """Two threads use one element, one of them changes it, and no barrier is between."""


class BarrierError(GpuError):
    """A thread waits at a barrier that another thread of its block does not reach."""


class Endless(GpuError):
    """A launch takes longer than LAUNCH_LIMITS allows."""
