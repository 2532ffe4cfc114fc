"""Tensors and numbers in dicts and lists, in one file, and back. No code is in it."""

import io
import json
from pathlib import Path

import numpy as np

from levels_more.checks import expect, file_name
from levels_more.saving.files import write_aside
from levels_more.torch.storage import Viewing

_TREE = "tree"


def _written(value, arrays):
    """What JSON can hold of a value; tensors go to `arrays`. Raises TypeError for what can be neither."""
    if isinstance(value, Viewing):
        arrays.append(value.held.numpy())
        return {"tensor": str(len(arrays) - 1)}
    if isinstance(value, dict):
        return {"dict": [[_written(key, arrays), _written(each, arrays)] for key, each in value.items()]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_written(each, arrays) for each in value]}
    value = value.item() if isinstance(value, np.generic) else value
    plain = value is None or isinstance(value, bool | int | float | str)
    return expect(
        plain, "save: a part", value, "tensors, numbers, texts, dicts and lists; of a model, its state_dict()"
    )


def _read(value, make):
    """The value again; `make(array)` for each tensor."""
    if not isinstance(value, dict):
        return value
    ((what, inside),) = value.items()
    if what == "tensor":
        return make(inside)
    if what == "dict":
        return {_read(key, make): _read(each, make) for key, each in inside}
    return (tuple if what == "tuple" else list)(_read(each, make) for each in inside)


def save(tree, path):
    """Write tensors, numbers and texts, in dicts and lists of any depth, to a file. Raises TypeError for others."""
    arrays, buffer = [], io.BytesIO()
    text = json.dumps(_written(tree, arrays))
    np.savez(buffer, **{_TREE: np.array(text)}, **{str(k): array for k, array in enumerate(arrays)})
    if hasattr(path, "write"):
        path.write(buffer.getvalue())
        return
    write_aside(
        Path(file_name("save: path", path)), buffer.getvalue()
    )  # what was there stays until the new file is whole


def load(path, make):
    """What `save` wrote, each tensor as `make(array)`. Raises ValueError, or FileNotFoundError."""
    data = path.read() if hasattr(path, "read") else Path(path).read_bytes()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return _read(json.loads(str(stored[_TREE])), lambda key: make(stored[key]))
    except (ValueError, KeyError, OSError, EOFError) as error:
        raise ValueError(f"load: {path} was not written by `save` here, or is damaged ({error})") from error
