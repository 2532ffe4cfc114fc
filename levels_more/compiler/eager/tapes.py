"""A tape that can be read repeatedly, and a quicker walk over a tape."""

from levels import low_level
from levels.low_level import backward_pass
from levels.support.checks import check_bool
from levels_more.compiler.eager.backward import backward_pass as as_program


def quickest_walk(records, target, sources):
    """Return the gradients by a program for tapes like this one, else by `backward_pass`, with its errors."""
    found = as_program(records, target, sources)
    return backward_pass(records, target, sources) if found is None else found


class GradientTape(low_level.GradientTape):
    """The core's tape. With `persistent`, `gradient` can be called repeatedly."""

    walk = staticmethod(quickest_walk)

    def __init__(self, persistent=False):
        super().__init__()
        self.persistent = check_bool("persistent", persistent)

    def gradient(self, target, sources):
        """Return d target / d source: a tensor like the source, or a list for a list; see the core's tape.

        Raises RuntimeError for a tape that was read or is being read.
        """
        records = self.records
        if records is None and self.persistent:
            raise RuntimeError("gradient: this tape is being read")
        try:
            return super().gradient(target, sources)
        finally:
            if self.persistent:
                self.records = records
