"""What brings its own rule along: a record on a tape with a function `back(dy)`, or numbers through which no gradient passes."""

import functools
import itertools

import numpy as np

from levels.low_level import DOOR, VJPS, GradientTape, Operators, Tensor, constant


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


def by_numpy(function, *args, **how):
    """What NumPy makes of the numbers of tensors, x[…] the first: a step, without a slope, where x lies; of tuples each part.

    In a traced function nobody knows the numbers: it is refused there, with a TypeError.
    """
    devices = [x.device for x in args if isinstance(x, Operators)]
    put = functools.partial(devices[0].put, kind=Tensor) if devices else constant
    y = function(*(x.numpy() if isinstance(x, Operators) else x for x in args), **how)
    made = [put(np.asarray(each, order="C")) for each in (y if isinstance(y, tuple) else (y,))]
    return tuple(made) if isinstance(y, tuple) else made[0]


def without_gradient(function):
    """The same, as a function of tensors."""
    return functools.partial(by_numpy, function)
