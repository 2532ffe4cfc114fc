"""The exercises of notebook 03: what their messages say, and that a check leaves the level as it was."""

import numpy as np
import pytest

from course.reader import cases, exercises
from course.reader.exercises import low_level as checks
from levels_more.kernels import BACKENDS, PLANS
from levels_more.low_level import DOOR, GradientTape, Variable  # noqa: F401 (what a notebook has at hand)
from solutions import low_level

HINTS = {  # what the message must say of these
    ("03-1", "no unbroadcast"): "db: no_unbroadcast, for x[3, 2], w[2, 4] and b[1, 4], gives float64[3, 4]",
    ("03-1", "right only for symmetric w"): "it multiplies by w: transpose w",
    ("03-1", "right only for square w"): "inner sizes 4 and 2 differ",
    ("03-1", "ignores the dtype"): "all need the same dtype",
    ("03-1", "a mean"): "it divides by the rows: that is a mean",
    ("03-1", "beside the door"): "so no tape recorded it",
    ("03-2", "right only for one number"): "`if` becomes where(mask, x, y)",
    ("03-2", "right only for positive errors"): "it treats a negative error below -1 as a small one",
    ("03-2", "no gradient beyond 1"): "the gradient of cut_off",
    ("03-3", "the sum of all"): "each row is the sum of all",
    ("03-3", "the parts were not heard"): "while the tape was open",
    ("03-3", "the tape is read"): "GradientTape(persistent=True)",
    ("03-3", "ignores the dtype"): "gives float64[2, 3], expected float32[2, 3]",
    ("03-4", "only at the right"): "1.0 * x - y, has 2 ops, expected 1: a product with 1.0 stays",
    ("03-4", "a variable that is 1 today"): "w, with a variable w that is 1.0 today, has 0 ops",
    ("03-4", "whatever the shape"): "whose result is larger than y",
    ("03-4", "the old inputs"): "reads a node that is not in the list before it",
    ("03-5", "breadth first"): "for u + u * u places `multiply` before the `multiply` that makes its input",
    ("03-5", "no memory"): "twice: remember which you have seen",
    ("03-5", "right only for chains"): "records are missing",
    ("03-5", "all there are"): "some did not go into the target",
    ("03-6", "never reset"): "gradients of earlier steps are still in `grad`",
    ("03-6", "reset for each loss"): "only the last loss of a step counts",
    ("03-6", "an update for each loss"): "it makes an update for each loss",
    ("03-6", "another name"): "the variables never change",
}


@pytest.mark.parametrize("key, why", HINTS)
def test_the_message_names_the_mistake(key, why):
    assert HINTS[key, why] in exercises.verdict(key, low_level.WRONG[key][why]).text


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
