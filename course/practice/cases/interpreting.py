"""Cases that run kernels as Python."""

import functools
from contextlib import contextmanager


@contextmanager
def interpreted():
    """Kernels run as Python: a few numbers in many shapes are done before a compiler has begun.

    And a kernel that is given arrays of a wrong shape raises an IndexError, and writes nowhere else.
    """
    from levels.kernels import KINDS, PLANNERS, PLANS

    plans, compiler = dict(PLANS), KINDS["cpu"].compiler
    PLANS.clear()
    others = {key: PLANNERS.pop(key) for key in [*PLANNERS] if key[1:] == ("cpu",)}  # of levels_more: they compile
    KINDS["cpu"].compiler = lambda function, *_: function
    try:
        yield
    finally:
        KINDS["cpu"].compiler = compiler
        PLANNERS.update(others)
        PLANS.clear()
        PLANS.update(plans)


def all_interpreted(cases_of):
    """Decorate the cases of a blank: kernels run as Python from the first case to the last."""

    @functools.wraps(cases_of)
    def cases_in_python(mine, draw):
        with interpreted():
            yield from cases_of(mine, draw)

    return cases_in_python
