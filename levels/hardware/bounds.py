"""Each index of a program stays below the size of its array."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

from levels.support import writing
from levels.support.calls import check_bound

from .formulas import flat
from .values import Index, Whole


def index_of(a, i):
    """Return a Python number as an Index. An Index is returned as it is."""
    if isinstance(i, Index):
        writing.live(a, i)
        return i
    i = writing.constant_index(a, i)
    return Index(a, str(i), i + 1)


def indices_of(a, array, indices):
    """Return the indices, each checked now, or at the call where a size has a name."""
    writing.check_indices(a, array, indices)
    indices = [index_of(a, i) for i in indices]
    for axis, index in enumerate(indices):
        check_bound(a.name, array, axis, index.extent, {})  # {}: no name is known yet
        a.bounds.append((array, axis, index.extent))
    return indices


def address_of(a, array, indices):
    """Return the register with the address of array[indices]."""
    place, *columns = [Whole(a, i.register) for i in indices_of(a, array, indices)]
    for column, size in zip(columns, array.shape[1:]):
        place = flat(place, Whole(a, a.size(size)), column)
    at = f"ptr %word.{array.name}, i64 {place.register}"
    return a.write(f"getelementptr {array.kind}, {at}")
