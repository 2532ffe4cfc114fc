"""Atomic file writes: the old file stays until the new one is complete."""

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path


def write_aside(file, data):
    """Write bytes to a temporary file beside `file`; once they are on the disk, rename it to `file`."""
    aside = file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(aside, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


def patiently(act, *errors):
    """Return act(). After one of these errors, retry it for about a second, then raise the error."""
    for left in reversed(range(100)):
        try:
            return act()
        except errors:
            if not left:
                raise
            time.sleep(0.01)


def replace(file, data):
    """Write these bytes to a file, new or in place of an old one. Raises FileExistsError if it is a folder."""
    file = Path(file).resolve()
    if file.is_dir():
        raise FileExistsError(f"{file.as_posix()} is a folder; choose another name")
    left = [other for other in file.parent.glob("*.new") if other.name.startswith(f"{file.name}.")]
    # retried: another save may have deleted the temporary file, or, on Windows, the old file is open
    patiently(lambda: write_aside(file, data), FileNotFoundError, PermissionError)
    for other in left:
        with suppress(OSError):
            other.unlink()
