"""The language of the reader: English, or Chinese in a notebook under `zh/` and in the commands of a Chinese desk.

The translations stand in `po/`, as entries of gettext: the key of each is the English text. `say` looks up what code
shows; `course.reader.notebooks.translated` puts the prose of a notebook together.
"""

import contextlib
import functools
import io
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CATALOGS = {
    "zh": "zh_CN"
}  # a language, which is also the folder of its notebooks, and the folder of its entries in po/
SHOWN = "shown"  # the file of entries that code shows
MARK = "〔未译〕"  # stands after an English text whose entry is missing or fuzzy
SPOKEN = []  # the language that a command or a page of the site has chosen: the last one counts


@contextlib.contextmanager
def speaking(language: str):
    """Let `say` speak this language ("" for English), wherever the process runs."""
    SPOKEN.append(language)
    try:
        yield
    finally:
        SPOKEN.pop()


def spoken() -> str:
    """Return the language of this process: what was chosen, else that of the folder of the running notebook."""
    if SPOKEN:
        return SPOKEN[-1]
    try:
        folder = Path(os.getcwd())
    except OSError:  # it has been removed
        return ""
    parts = folder.relative_to(ROOT).parts if ROOT in folder.parents else ()
    return parts[1] if parts[1:2] and parts[0] in ("notebooks", "mine") and parts[1] in CATALOGS else ""


def say(text: str, **values) -> str:
    """Return a text in the reader's language, with the values in its {fields}. English with MARK if it is missing."""
    language = spoken()
    if language and has_words(text):
        text = entries(po_path(ROOT, language, SHOWN)).get(text) or f"{text}{MARK}"
    return text.format(**values) if values else text


def later(text: str) -> str:
    """Return the text as it is. It has an entry, because it is given to `say` later."""
    return text


def po_path(root: Path, language: str, catalog: str) -> Path:
    """Return the path of a file of entries: `catalog` is SHOWN, or the name of a text, such as trail/1_hardware."""
    return root / "po" / CATALOGS[language] / f"{catalog}.po"


def has_words(text: str) -> bool:
    """Return whether a text has words to translate, besides numbers, code, pictures, addresses and HTML."""
    bare = re.sub(r"```(?:python|\{toctree\}|\{raw\}).*?```|<pre>.*?</pre>", " ", text, flags=re.DOTALL).replace(
        "```", " "
    )
    bare = re.sub(r"!\[[^]]*\]\([^)]*\)|`[^`]*`|\]\([^)]*\)|<[^>]*>|\{\{.*?\}\}", " ", bare)
    return bool(re.search(r"[A-Za-z]{2}", bare))


def entries(path: Path) -> dict[str, str]:
    """Return {English text: translation} of a file of entries, without those that are fuzzy or empty."""
    return parsed(path.read_text(encoding="utf-8")) if path.exists() else {}


@functools.lru_cache(64)
def parsed(text: str) -> dict[str, str]:
    from babel.messages.pofile import read_po  # only where a text is translated

    return {
        entry.id: entry.string for entry in read_po(io.StringIO(text)) if entry.id and entry.string and not entry.fuzzy
    }
