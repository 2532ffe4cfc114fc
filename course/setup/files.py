"""A file is written whole or not at all."""

import os
import secrets
from pathlib import Path


def write(path, text):
    """Write a text beside the file, then put it in the file's place in one step. Returns the path.

    Raises OSError where that cannot be done. Then nothing is left beside it, and what was there before is as it was.
    """
    path = Path(path)
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        aside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    return path
