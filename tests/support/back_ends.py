"""What a graph may become, for tests that try each of them."""

from levels_more.compiler.fused import backend
from levels_more.compiler.fused.backend import FusedProgram
from levels_more.compiler.fused.replay import FusedReplay
from levels_more.compiler.quick_rows import QuickRowProgram
from levels_more.low_level import BACK_ENDS, RowProgram

# What a graph may become, the best first; where none of these can hold it, a Replay. "": by the rule.
CHOICES = {
    "": list(BACK_ENDS),
    "RowProgram": [QuickRowProgram, RowProgram],
    "FusedProgram": [FusedProgram],
    "FusedReplay": [FusedReplay],
    "Replay": [],
}


def choose(monkeypatch, name):
    """From here on, functions become programs of this kind."""
    monkeypatch.setattr("levels.low_level.functions.BACK_ENDS", CHOICES[name])


def kinds(compiled):
    """The back ends that a function was compiled for; the quicker row program counts as one."""
    return {type(program).__name__.removeprefix("Quick") for program, _ in compiled.programs.values()}


def on_threads(monkeypatch, threads):
    """From here on a fused program runs on so many threads, however small it is and however many cores there are."""
    choose(monkeypatch, "FusedProgram")
    monkeypatch.setattr(backend, "WORTH_SHARING", 1)
    monkeypatch.setattr(backend, "most_threads", lambda graph: 100)
    monkeypatch.setattr(backend, "threads_for", lambda most: threads)
