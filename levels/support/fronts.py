"""What a level says of a name that it does not have."""

import dis
import sys


def absent(front):
    """A module's `__getattr__` (PEP 562) for the level `front`: the error names the package that has more.

    An AttributeError, so that `hasattr` is false; but in a `from … import …`, where Python drops its text, an ImportError.
    """

    def __getattr__(name):
        level = front.partition(".")[2]
        told = f"{front} has no {name!r}: what the notebooks build is here, and there is more in levels_more.{level}"
        asking = sys._getframe(1)
        importing = dis.opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM"
        if importing and not name.startswith("__"):
            raise ImportError(told, name=name)
        raise AttributeError(told, name=name)

    return __getattr__
