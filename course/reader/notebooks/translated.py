"""The prose of a page or of a notebook in another language, block by block. Code stays as it is."""

import re
from pathlib import Path

from course.reader.language import MARK, entries, has_words, po_path

MINUTES = re.compile(r"(?<=\S) \((\d+) min\)$")  # at the end of a heading; they change more often than its words
KEPT = re.compile(r"^(?:```|\||- |\d+\. |---|<div|  \S)", re.MULTILINE)  # where line breaks have a meaning
GLOSSARY = "```{glossary}"


def blocks(text: str) -> list[str]:
    """Return the blocks of Markdown between blank lines. A block of code is one, but each word of a glossary is one."""
    found = [""]
    fenced = False
    for line in text.strip("\n").split("\n"):
        if line.startswith("```") and line != GLOSSARY:
            fenced = not fenced
        if line.strip() or fenced:
            found[-1] += f"{line}\n"
        else:
            found.append("")
    return [each.strip("\n") for each in found if each.strip()]


def key(block: str) -> str:
    """Return the English text of a block's entry: without the minutes, and in one line if breaks have no meaning."""
    return block if KEPT.search(block) else MINUTES.sub("", " ".join(block.split()))


def translate(root: Path, language: str, catalog: str, text: str) -> str:
    """Return Markdown in another language. A block without an entry stays English, with a mark beneath it."""
    kept = entries(po_path(root, language, catalog))
    found = []
    for block in blocks(text):
        if not has_words(block):
            found.append(block)
        elif told := kept.get(key(block)):
            minutes = MINUTES.search(block) if block.startswith("#") else None
            found.append(told + (f"（{minutes[1]} 分钟）" if minutes else ""))
        else:
            found += [block, MARK]
    return "\n\n".join(found)
