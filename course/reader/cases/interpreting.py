"""Run kernels as Python, for cases."""

import functools
from contextlib import contextmanager


@contextmanager
def interpreted():
    """Inside this context, kernels run as Python: for a few numbers in many shapes that is faster than to compile them.

    Also, a kernel that is given arrays of a wrong shape raises an IndexError instead of writing to other memory.
    """
    from levels.kernels import BACKENDS, PLANNERS, PLANS

    plans = dict(PLANS)
    compiler = BACKENDS["cpu"].compiler
    PLANS.clear()
    others = {key: PLANNERS.pop(key) for key in [*PLANNERS] if key[1:] == ("cpu",)}  # of levels_more: these compile
    BACKENDS["cpu"].compiler = lambda function, *_, **__: function
    try:
        yield
    finally:
        BACKENDS["cpu"].compiler = compiler
        PLANNERS.update(others)
        PLANS.clear()
        PLANS.update(plans)


def all_interpreted(cases_of):
    """Decorate the cases of a blank: kernels run as Python in all of them."""

    @functools.wraps(cases_of)
    def cases_in_python(mine, draw):
        with interpreted():
            yield from cases_of(mine, draw)

    return cases_in_python
