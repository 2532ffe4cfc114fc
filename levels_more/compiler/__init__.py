"""What makes programs of graphs: passes, lowering rules, back ends. Its import adds them to the tables of `levels`."""

from levels_more.compiler import guards, passes, quick_rows
from levels_more.compiler.eager import backward, small_ops
from levels_more.compiler.fused import backend, replay

__all__ = ["backend", "backward", "guards", "passes", "quick_rows", "replay", "small_ops"]
