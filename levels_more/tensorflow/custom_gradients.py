"""A function with a gradient of the reader's own, on the tape: TensorFlow's `custom_gradient`."""

import functools

from levels.low_level import DOOR, GradientTape, Operators, apply, as_tensor
from levels_more.checks import called, expect
from levels_more.low_level.custom_rules import told


def custom_gradient(f):
    """Decorate f(*x) -> (y, back), tensors and a function: back(dy) gives dx for each x, a tensor or a tuple of them.

    Raises TypeError for more than one y, and where f reads a variable that it was not given: it would get no gradient.
    """
    called("custom_gradient: f", f)

    @functools.wraps(f)
    def call(*args, **options):
        args, front = tuple(map(as_tensor, args)), DOOR.stands
        while isinstance(DOOR.stands, GradientTape):  # tapes, which hear of the result alone
            DOOR.stands = DOOR.stands.below
        try:
            with GradientTape() as inner:
                y, back = f(*args, **options)
            expect(isinstance(y, Operators), f"{f.__name__}: what comes before its gradient", y, "one tensor")
            y = apply("copy", y) if any(y is x for x in args) else as_tensor(y)
        finally:
            DOOR.stands = front
        if any(v.trainable for v in inner.variables):
            raise TypeError(f"{f.__name__}: it reads a variable; give it as an argument, else it gets no gradient")

        def all_of(dy):
            found = back(dy)
            found = tuple(found) if isinstance(found, (list, tuple)) else (found,)
            return expect(
                len(found) == len(args), f"{f.__name__}: gradients", found, f"{len(args)}, one for each input"
            )

        return told(y, args, functools.lru_cache(maxsize=1)(all_of))

    return call
