"""The core's program by rows, quicker in two ways: rows come from memory ahead, sums in lanes are added up together."""

from levels.low_level import BACK_ENDS, RowProgram
from levels_more.compiler.eager import ACCELERATION
from levels_more.compiler.lane_reduction import totals
from levels_more.compiler.prefetching import load


class QuickRowProgram(RowProgram):
    """The same bits, sooner. Raises what that of the core raises."""

    load = staticmethod(load)
    totals = staticmethod(totals)


def rank(graph):
    """Before the core's program by rows, which has 1; behind it where the switch is off."""
    return 0.5 if ACCELERATION.on else 1.5


BACK_ENDS.append((QuickRowProgram, rank))
