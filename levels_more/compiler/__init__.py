"""Passes, lowering rules and back ends that turn graphs into programs. The import adds them to tables of `levels`."""

from levels_more.compiler import functions, passes, quick_rows
from levels_more.compiler.eager import backward, small_ops
from levels_more.compiler.fused import backend, replay

__all__ = ["backend", "backward", "functions", "passes", "quick_rows", "replay", "small_ops"]
