"""A record on a tape that brings its own rule along: a function `back(dy)`, which gives a gradient for each input."""

import itertools

from levels.low_level import DOOR, VJPS, GradientTape


class _Rules:
    """The rules of such a record, one for each input, however many there are: their parts of what `back(dy)` gives."""

    def __iter__(self):
        return (lambda dy, y, *inputs, back, k=k: back(dy)[k] for k in itertools.count())


VJPS["own_backward"] = _Rules()


def told(y, inputs, back):
    """y, a new tensor, of which every open tape writes down that `back(dy)` gives the gradients of these inputs."""
    stands = DOOR.stands
    while isinstance(stands, GradientTape):
        if stands.records is not None:
            stands.records.append(("own_backward", inputs, {"back": back}, y))
        stands = stands.below
    return y
