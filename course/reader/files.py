"""Write a file atomically."""

import os
import secrets
from pathlib import Path


def write(path, text):
    """Write a text to a temporary file beside the file, then replace the file in one step. Returns the path.

    At the start of the path, `~` is the home folder. Raises OSError if the file cannot be written. The temporary file
    is then removed, and the old file is unchanged.
    """
    path = Path(os.path.expanduser(path))
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        aside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    return path
