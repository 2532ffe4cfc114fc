"""What the framework notes about a part, such as its last shapes: apart from the attributes, which are the reader's."""

from types import SimpleNamespace

NOTES = "_of_levels"  # the attribute that holds the notes on a part


class _Notes(SimpleNamespace):
    """The notes on one part. (It is no dict, so a module does not look for variables in it.)"""

    untraced = True  # no trace depends on them


def note(part, **found):
    """Write notes on a part, by name."""
    vars(part).setdefault(NOTES, _Notes()).__dict__.update(found)


def noted(part, name, default=None):
    """Return the note of that name on a part, or the default."""
    notes = vars(part).get(NOTES)
    return default if notes is None else getattr(notes, name, default)
