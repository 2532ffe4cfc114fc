"""What a graph may become, for tests that try each of them."""

import sys

from levels.low_level import BACK_ENDS, Function, RowProgram
from levels_more.fused import FusedProgram
from levels_more.fused_replay import FusedReplay
from levels_more.replay import Replay

REST = Replay, lambda graph: 9  # it holds every graph
# What a graph may become, the best first. "": by the rule.
CHOICES = {
    "": list(BACK_ENDS),
    "RowProgram": [(RowProgram, lambda graph: 0), REST],
    "FusedProgram": [(FusedProgram, lambda graph: 0), REST],
    "FusedReplay": [(FusedReplay, lambda graph: 0), REST],
    "Replay": [REST],
}


def choose(monkeypatch, name):
    """From here on, functions become programs of this kind."""
    monkeypatch.setattr(sys.modules[Function.__module__], "BACK_ENDS", CHOICES[name])


def kinds(compiled):
    """The back ends that a function was compiled for."""
    return {type(program).__name__ for program, _ in compiled.programs.values()}
