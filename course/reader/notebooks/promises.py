"""What a notebook says of itself: its title and its promise, for the map, README and the site."""

import re
from pathlib import Path
from typing import NamedTuple

from course.reader.notebooks.cells import read_text
from course.reader.notebooks.names import language_of, original, text_path
from course.reader.notebooks.translated import translate


class Entry(NamedTuple):
    """A notebook on the map."""

    name: str
    title: str
    promise: str  # its first sentence in bold


def entry(root: Path, name: str) -> Entry:
    """Return the title and the promise of a notebook.

    They are read from the text, without parsing it as a notebook: JupyterLab opens on this page and should not wait.
    """
    text = read_text(text_path(root, name))
    first = re.sub(r"^# ?", "", text.split("\n# %%", 1)[0], flags=re.MULTILINE)
    if language_of(name):
        first = translate(root, language_of(name), original(name), first.partition("\n")[2])
    title = re.search(r"^# (?:(?:Trail|小径) )?(?:\d+ (?:more )?· )?(.+)$", first, re.MULTILINE)
    promise = re.search(r"^\*\*(.+?)\*\*", first, re.MULTILINE | re.DOTALL)
    told = " ".join(promise[1].split()) if promise else ""
    return Entry(name, title[1] if title else name, told)


def plain(promise: str) -> str:
    """Return a promise without the words with which all of them begin."""
    told = re.sub(r"^(?:In this notebook |这一篇里，)", "", promise)
    return told[:1].upper() + told[1:]
