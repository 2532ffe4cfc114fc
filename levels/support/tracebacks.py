"""Short tracebacks: what the user wrote and the line that failed, without the framework's frames, as in Keras."""

import functools
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

SHORT = True  # False: all frames are shown
Method = TypeVar("Method", bound=Callable)
KEPT = 4  # frames below the one that was called; with the caller's, and the layer's own, at most eight are shown


def short(method: Method) -> Method:
    """The method; an error that it raises shows the last frames of other files and the one in which it was raised."""

    @functools.wraps(method)
    def shortened(*args, **options):
        try:
            return method(*args, **options)
        except Exception as error:
            each = error
            while SHORT and each is not None:
                each.__traceback__ = without_ours(each.__traceback__)
                each = each.__cause__ or each.__context__
            raise

    return shortened


def without_ours(traceback):
    """The traceback without the frames of levels and levels_more, except the last one of all."""
    frames = []
    while traceback:
        frames.append(traceback)
        traceback = traceback.tb_next
    theirs = [each for each in frames[:-1] if not _is_ours(each.tb_frame)]
    found = None
    for each in reversed([*theirs, *frames[-1:]][-KEPT:]):
        found = TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return found


def _is_ours(frame):
    return frame.f_globals.get("__name__", "").split(".")[0] in ("levels", "levels_more")
