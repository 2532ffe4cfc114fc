"""Where the answers to the predictions are kept, `course/reader/answers`, and which of them a cell needs."""

import re
import tomllib
from pathlib import Path

FOLDER = Path("course", "reader", "answers")
ASKED = re.compile(r"checks\.(?:predict|answer_to)\(\s*[\"']([\w-]+)[\"']")


def kept(folder: Path) -> dict[str, dict]:
    """Return {key: its table} of all TOML files in this folder. Raises ValueError for a key that two files have."""
    found = {}
    for path in sorted(folder.glob("**/*.toml")):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        if twice := found.keys() & tables:
            raise ValueError(f"{path.relative_to(folder).as_posix()}: another file has {', '.join(sorted(twice))}, too")
        found |= tables
    return found


def keys_in(source: str) -> list[str]:
    """Return the keys of the questions that a cell asks or answers."""
    return ASKED.findall(source)
