"""Checks of a tape and of its rules, and its place in the stack of tapes. Notebook 03 uses them."""

import functools
import inspect

from .operators import check_recorded


def leave(door, tape):
    """Take a tape out of the stack of this thread, from `door.top` down. Raises RuntimeError if it is not there."""
    if door.top is tape:
        door.top = tape.below
        return
    later = door.top  # a tape that was opened later, and is still open: that of another generator, for one
    while getattr(later, "below", tape) is not tape:
        later = later.below
    if not hasattr(later, "below"):
        raise RuntimeError("this tape was opened in another thread, or outside of a traced function; close it there")
    later.below = tape.below


def check_taped(tape, given, tensors, kind):
    """Raise RuntimeError for a tape that was read, TypeError or ValueError for a target or source that does not fit."""
    if tape.records is None:
        cure = "GradientTape(persistent=True) of levels_more.low_level can be read again"
        raise RuntimeError(f"gradient: this tape was read; {cure}")
    for k, (x, now) in enumerate(zip(given, tensors)):  # the target and the sources, and the tensors they are now
        name = f"source {k - 1}" if k else "the target"
        check_recorded(name, x, kind)
        if now.spec.dtype.kind != "f":
            raise TypeError(f"gradient: {name} is {now.dtype}; only floats have a gradient")
        if tape.variables.get(x, now) is not now:
            raise ValueError(f"gradient: {name} was assigned while the tape was open; assign after the gradient")


@functools.lru_cache(maxsize=1024)  # to ask for a signature takes longer than an op
def _takes(rule, *names):
    """Return whether a rule takes attributes of these names."""
    taken = inspect.signature(rule).parameters
    return {*names} <= {*taken} or any(each.kind is each.VAR_KEYWORD for each in taken.values())


def check_rules(op, attrs, rules):
    """Raise LookupError unless an op has rules, one for each input or None, that take its attributes."""
    if rules is None:
        raise LookupError(f"gradient: {op} has no rule yet; add a row to VJPS (levels_more.low_level has more)")
    if attrs and isinstance(rules, (tuple, list)) and not all(_takes(rule, *attrs) for rule in rules if rule):
        told = f"gradient: {op} with {' and '.join(attrs)} has no rule here"
        raise LookupError(f"{told}; levels_more.low_level has second derivatives")


def check_reached(sources, gradients):
    """Return the gradients of the sources. Raises ValueError if one has none."""
    for k, source in enumerate(sources):
        if source not in gradients:
            what = f"source {k}, {source.spec}"
            raise ValueError(f"gradient: {what}, was not used on the way to the target while the tape was open")
    return [gradients[source] for source in sources]
