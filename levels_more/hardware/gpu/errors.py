"""The errors of a simulated GPU, for mistakes with which a real one may crash, hang, or silently give wrong numbers."""

import functools
import linecache


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


@functools.cache
def position(code, instruction):
    """(line, column) of an instruction. (Its number is no stable key: it may change when Python optimises the code.)"""
    line, _, column, _ = list(code.co_positions())[instruction // 2]
    return line, column


def source_line(code, line):
    """A line of source as an error names it: its number, its function, its text."""
    return f"line {line} of {code.co_name}: {linecache.getline(code.co_filename, line).strip()}"
