"""Passes, lowering rules and back ends that turn graphs into programs. The import adds them to tables of `levels`."""

from levels_more.compiler import passes, quick_rows, reads
from levels_more.compiler.eager import backward, small_ops
from levels_more.compiler.fused import backend, replay

__all__ = ["backend", "backward", "passes", "quick_rows", "reads", "replay", "small_ops"]
