"""Arrays as text the way PyTorch prints them: four digits, one width for all, the middle of large ones left out."""

import numpy as np

STYLE = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


def set_printoptions(**chosen):
    """How numbers are printed from now on: `precision` digits; `edgeitems` at each end, where there are more than `threshold`;
    `linewidth` characters in a line; always with powers of ten, or never, by `sci_mode`. Raises TypeError for other options.
    """
    if unknown := chosen.keys() - STYLE.keys():
        raise TypeError(
            f"set_printoptions: there is no {', '.join(sorted(unknown))} here; there are {', '.join(STYLE)}"
        )
    STYLE.update(chosen)


def _texts(array):
    """How to write a number of the array, and how many characters the widest one takes."""
    if array.dtype.kind != "f":
        return str, max((len(str(value)) for value in array.ravel().tolist()), default=0)
    sizes = np.abs(array[np.isfinite(array) & (array != 0)].astype("float64"))
    least, most = sizes.min(initial=np.inf), sizes.max(initial=0.0)
    whole, short = bool((sizes == np.ceil(sizes)).all()), f"{{:.{STYLE['precision']}f}}"
    far = sizes.size and (most / least > 1000 or most > 1e8 or least < 1e-4 and not whole)
    if far if STYLE["sci_mode"] is None else STYLE["sci_mode"]:
        short = f"{{:.{STYLE['precision']}e}}"
    elif whole:
        short = "{:.0f}."

    def text(value):
        return short.format(value) if np.isfinite(value) else str(value)

    shown = [text(value) for value in array.ravel().tolist() if np.isfinite(value) and value]
    return text, max(map(len, shown), default=1)


def _ends(array, axes):
    """What is shown of a large array: the first numbers and the last, along each of these axes that is long."""
    edge = STYLE["edgeitems"]
    for axis in axes:
        if array.shape[axis] > 2 * STYLE["edgeitems"]:
            array = array.take([*range(edge), *range(-edge, 0)], axis)
    return array


def _rows(array, indent, cut, text, width):
    """The text of an array[…], which begins behind so many characters."""
    if array.ndim == 0:
        return text(array.item()).rjust(width)
    ends = cut and len(array) > 2 * STYLE["edgeitems"]
    parts = [_rows(row, indent + 1, cut, text, width) for row in (_ends(array, [0]) if ends else array)]
    if ends:
        parts.insert(STYLE["edgeitems"], " ..." if array.ndim == 1 else "...")
    if array.ndim > 1:
        return f"[{(',' + chr(10) * (array.ndim - 1) + ' ' * (indent + 1)).join(parts)}]"
    fit = max(1, (STYLE["linewidth"] - indent) // (width + 2))
    lines = [", ".join(parts[k : k + fit]) for k in range(0, len(parts), fit)]
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"


def printed(array, notes, prefix="tensor("):
    """The array behind its prefix, and these notes, each on a line of its own where the last one is full, and a bracket."""
    cut = array.size > STYLE["threshold"]
    body = (
        _rows(array, len(prefix), cut, *_texts(_ends(array, range(array.ndim)) if cut else array))
        if array.size
        else "[]"
    )
    told = prefix + body
    length = len(told) - told.rfind("\n") + 1
    for note in notes:
        full = length + len(note) + 2 > STYLE["linewidth"]
        told += f",\n{' ' * len(prefix)}{note}" if full else f", {note}"
        length = len(prefix) + len(note) if full else length + len(note) + 2
    return f"{told})"
