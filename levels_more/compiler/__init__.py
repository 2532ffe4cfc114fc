"""Passes, lowering rules and back ends that turn graphs into programs. The import adds them to tables of `levels`."""

from levels.low_level import BACK_ENDS
from levels_more.compiler import functions, passes, quick_rows
from levels_more.compiler.eager import backward, small_ops
from levels_more.compiler.fused import backend, replay

__all__ = ["backend", "backward", "functions", "passes", "quick_rows", "replay", "small_ops"]

# before the core's RowProgram; `back_ends` describes them
BACK_ENDS[:0] = [quick_rows.QuickRowProgram, backend.FusedProgram, replay.FusedReplay]
