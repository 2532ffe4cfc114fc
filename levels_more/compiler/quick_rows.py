"""The core's program by rows, with two things quicker: rows come from memory ahead, and sums in lanes are added up together."""

from levels.low_level import BACK_ENDS, RowProgram
from levels_more.compiler.lane_reduction import totals
from levels_more.compiler.prefetching import load


class QuickRowProgram(RowProgram):
    """The same bits, sooner. Raises what that of the core raises."""

    load = staticmethod(load)
    totals = staticmethod(totals)


BACK_ENDS.append((QuickRowProgram, lambda graph: 0.5))  # before that of the core
