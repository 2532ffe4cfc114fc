"""The prose of a page or of a notebook in another language, block by block. Code stays as it is."""

import re
from pathlib import Path

from course.reader.language import MARK, entries, has_words, po_path

MINUTES = re.compile(r"(?<=\S) \((\d+) min\)$")  # at the end of a heading; they change more often than its words
KEPT = re.compile(r"^(?:```|---|<div|  \S)", re.MULTILINE)  # where line breaks have a meaning
ITEM = re.compile(r"^(?:- |\d+\. )")
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


def pieces(block: str) -> list[str]:
    """Return the parts of a block that have entries of their own: the rows of a table, the items of a list."""
    if block.startswith("|"):
        return block.split("\n")
    return re.split(r"\n(?=- |\d+\. )", block)


def key(piece: str) -> str:
    """Return the English text of an entry: without the minutes, and in one line if breaks have no meaning."""
    return piece if KEPT.search(piece) and not ITEM.match(piece) else MINUTES.sub("", " ".join(piece.split()))


def keys(text: str) -> list[str]:
    """Return the English texts of all entries of a page or of a cell."""
    return [key(piece) for block in blocks(text) for piece in pieces(block) if has_words(piece)]


def translate(root: Path, language: str, catalog: str, text: str) -> str:
    """Return Markdown in another language. What has no entry stays English, with a mark."""
    kept = entries(po_path(root, language, catalog))

    def told(piece: str) -> str:
        if not has_words(piece):
            return piece
        if found := kept.get(key(piece)):
            minutes = MINUTES.search(piece) if piece.startswith("#") else None
            return found + (f"（{minutes[1]} 分钟）" if minutes else "")
        if piece.startswith("|"):
            return f"{piece.removesuffix('|')}{MARK} |"
        return f"{piece}\n\n{MARK}"

    return "\n\n".join("\n".join(map(told, pieces(block))) for block in blocks(text))
