"""Write files so that each is at any time the old one or the new one, and never half of it; and tables into pages."""

import importlib.util
import os
import re
import secrets
import tempfile
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


def replace(root: Path, texts: dict[Path, str | bytes]) -> list[Path]:
    """Write these files: first all to a temporary folder, then each in one step over the old. Returns changed paths."""
    contents = {path: text.encode() if isinstance(text, str) else text for path, text in texts.items()}
    changed = [path for path, new in contents.items() if not path.exists() or path.read_bytes() != new]
    (root / ".course").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root / ".course", prefix="new-") as aside:
        for number, path in enumerate(changed):
            (Path(aside) / str(number)).write_bytes(contents[path])
        for number, path in enumerate(changed):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(aside) / str(number), path)
            if path.suffix == ".py":  # else Python may use a cached file, of the same size and second
                Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
    return changed


def with_tables(text, tables, writer):
    """Return the text of a page with its tables written anew: {name: a function that returns the table}.

    Each stands between the comments "<!-- NAME: written by WRITER -->" and "<!-- end of NAME -->". Raises ValueError
    unless both are there once.
    """
    for name, table in tables.items():
        begin = f"<!-- {name}: written by {writer} -->\n"
        end = f"<!-- end of {name} -->\n"
        parts = re.split(f"(?<={re.escape(begin)})[^<]*(?={re.escape(end)})", text)
        if len(parts) != 2:
            raise ValueError(f"expected the lines {begin}{end}once, with nothing but the table between them")
        text = f"{parts[0]}{table()}\n{parts[1]}"
    return text
