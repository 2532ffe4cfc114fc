"""The exercises of notebook 03: a check ends in time, leaves the level as it was, and refuses what nobody could have written."""

import numpy as np
import pytest

from course.reader import cases, exercises
from course.reader.exercises import low_level as checks
from levels_more.kernels import BACKENDS, PLANS
from levels_more.low_level import DOOR, GradientTape, Variable  # noqa: F401 (what a notebook has at hand)
from solutions import low_level


def test_walking_each_road_anew_takes_too_long(monkeypatch):
    """Each op of the last program is reached on twice as many roads as the one after it."""

    def every_road(makers, target):
        def roads(tensor):
            return [r for x in makers[tensor][1] for r in roads(x)] + [makers[tensor]] if tensor in makers else []

        return list({id(record): record for record in roads(target)}.values())

    monkeypatch.setattr(cases, "TIME_LIMIT", 0.2)
    found = exercises.verdict("03-5", every_road)
    assert "60 times u + u * 0.5 takes more than 0.2 s" in found.text


def test_a_check_leaves_the_level_as_it_was():
    compiler, plans = BACKENDS["cpu"].compiler, dict(PLANS)
    for key, function in low_level.SOLUTIONS.items():
        exercises.verdict(key, function)
        exercises.verdict(key, lambda *arguments: arguments[99])
        if key != "03-1":  # whose kernels are compiled, and stay
            assert plans == PLANS
        plans = dict(PLANS)
    assert BACKENDS["cpu"].compiler is compiler and DOOR.top is DOOR.bottom


def test_a_graph_that_nobody_could_have_written_is_refused():
    """It comes from a student's process."""
    x = w = np.ones((1, 2))
    for op, read in (("exp", [0]), ("add", [0, 1]), ("add", [1, 2])):  # none of the four, too large, not yet there
        nodes = [("input", [], 0), ("constant", [], np.ones((200, 1))), (op, read, None)]
        with pytest.raises((cases.Wrong, IndexError)):
            checks.values_of("", (nodes, [2]), [x], w)
