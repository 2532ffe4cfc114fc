"""Files that are whole or not there: what was there stays until the new one is written."""

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path


def write_aside(file, data):
    """Write bytes beside a file; when they are on the disk, give them its name."""
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
    """What act() returns. After one of these errors it is tried again, for about a second."""
    for left in reversed(range(100)):
        try:
            return act()
        except errors:
            if not left:
                raise
            time.sleep(0.01)


def replace(file, data):
    """Make a file of these bytes, new or in the place of an old one. Raises FileExistsError where it is a folder."""
    file = Path(file).resolve()
    if file.is_dir():
        raise FileExistsError(f"{file.as_posix()} is a folder; choose another name")
    left = [other for other in file.parent.glob("*.new") if other.name.startswith(f"{file.name}.")]
    # swept away by another save, or, on Windows, somebody is reading the old file
    patiently(lambda: write_aside(file, data), FileNotFoundError, PermissionError)
    for other in left:
        with suppress(OSError):
            other.unlink()
