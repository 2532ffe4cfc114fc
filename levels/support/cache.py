"""A cache on disk for compiled code: each entry is stored under the hash of what it was made from."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

_CACHE = Path(os.environ.get("LEVELS_CACHE") or os.path.expanduser("~/.cache/levels"))


def kept(key):
    """Return the bytes that are stored under this key, a string, or None if they are missing or damaged."""
    with suppress(OSError):
        data = (_CACHE / hashlib.sha256(key.encode()).hexdigest()).read_bytes()
        if hashlib.sha256(data[32:]).digest() == data[:32]:
            return data[32:]
    return None


def keep(key, data):
    """Store these bytes, and their checksum, under a key. Errors of the disk (full, read-only) are ignored."""
    with suppress(OSError):
        _CACHE.mkdir(parents=True, exist_ok=True)
        (_CACHE / hashlib.sha256(key.encode()).hexdigest()).write_bytes(hashlib.sha256(data).digest() + data)
