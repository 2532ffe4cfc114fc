"""The stack of tapes: two paused generators may close theirs in another order than that in which they opened them."""


def leave(door, tape):
    """Take a tape out of the stack of this thread, from `door.top` down. Raises RuntimeError if it is not there."""
    if door.top is tape:
        door.top = tape.below
        return
    later = door.top  # a tape that was opened later, and is still open
    while getattr(later, "below", tape) is not tape:
        later = later.below
    if not hasattr(later, "below"):
        raise RuntimeError("this tape was opened in another thread, or outside of a traced function; close it there")
    later.below = tape.below
