"""Files of tensors and numbers: `save` and `load`."""

import io
import json
from pathlib import Path

import numpy as np

from levels_more.checks import expect, file_name
from levels_more.saving.files import write_aside
from levels_more.torch.functions import tensor
from levels_more.torch.storage import Viewing

_TREE = "tree"


def _written(value, arrays):
    """Return a value as JSON can hold it, and append its tensors to `arrays`. Raises TypeError for other types."""
    if isinstance(value, Viewing):
        arrays.append(value.held.numpy())
        return {"leaf" if value.requires_grad else "tensor": str(len(arrays) - 1)}
    if isinstance(value, dict):
        return {"dict": [[_written(key, arrays), _written(each, arrays)] for key, each in value.items()]}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"  # also of one's own kind, as a shape is
        return {kind: [_written(each, arrays) for each in value]}
    value = value.item() if isinstance(value, np.generic) else value
    plain = value is None or isinstance(value, bool | int | float | str)
    return expect(
        plain, "save: a part", value, "tensors, numbers, texts, dicts and lists; of a model, its state_dict()"
    )


def _read(value, stored):
    """Return the value that `_written` encoded. stored: {number: array} of its tensors."""
    if not isinstance(value, dict):
        return value
    ((what, inside),) = value.items()
    if what in ("tensor", "leaf"):
        return tensor(stored[inside]).requires_grad_(what == "leaf")
    if what == "dict":
        return {_read(key, stored): _read(each, stored) for key, each in inside}
    return (tuple if what == "tuple" else list)(_read(each, stored) for each in inside)


def save(obj, f):
    """Write tensors, numbers and strings, in nested dicts, lists and tuples, to a file. Raises TypeError for others."""
    arrays = []
    buffer = io.BytesIO()
    text = json.dumps(_written(obj, arrays))
    np.savez(buffer, **{_TREE: np.array(text)}, **{str(k): array for k, array in enumerate(arrays)})
    if hasattr(f, "write"):
        f.write(buffer.getvalue())
    else:  # the old file stays until the new one is complete
        write_aside(Path(file_name("save: f", f)), buffer.getvalue())


def load(f, map_location=None, weights_only=True):
    """Read what `save` wrote: tensors, numbers, strings, dicts and lists, no code. The options have no effect.

    Raises ValueError for another file, FileNotFoundError.
    """
    data = f.read() if hasattr(f, "read") else Path(file_name("load: f", f)).read_bytes()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return _read(json.loads(str(stored[_TREE])), stored)
    except (ValueError, KeyError, OSError, EOFError) as error:
        raise ValueError(f"load: {f} was not written by `save` here, or is damaged ({error})") from error
