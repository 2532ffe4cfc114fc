"""What was compiled is kept in a folder, for the next process: each entry under the hash of what made it."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

_CACHE = Path(os.environ.get("LEVELS_CACHE") or os.path.expanduser("~/.cache/levels"))


def kept(key):
    """The bytes that were kept under this key, a text, if they are there and whole; else None."""
    with suppress(OSError):
        data = (_CACHE / hashlib.sha256(key.encode()).hexdigest()).read_bytes()
        if hashlib.sha256(data[32:]).digest() == data[:32]:
            return data[32:]
    return None


def keep(key, data):
    """Keep these bytes, and their checksum, under a key. A full or read-only disk only costs time."""
    with suppress(OSError):
        _CACHE.mkdir(parents=True, exist_ok=True)
        (_CACHE / hashlib.sha256(key.encode()).hexdigest()).write_bytes(hashlib.sha256(data).digest() + data)
