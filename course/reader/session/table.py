"""`python3 -m course progress`: what the reader has answered, written and solved on each level, and what comes next."""

import unicodedata

from course.reader import progress
from course.reader.language import say
from course.reader.notebooks.names import all_in, names_in
from course.reader.session import resume


def table() -> str:
    """A table as text: a row for each level (with its notebooks in `trail` and `more`), the sum, and the next step."""
    noted = progress.load()
    names = all_in(progress.ROOT)
    rows = {}
    for core in names_in(progress.ROOT):
        rows[core] = progress.counts(noted, [n for n in names if progress.level_of(n) == progress.level_of(core)])
    rows[say("in all")] = progress.counts(noted, names)
    lines = [padded("", say("predictions"), say("blanks")) + say("exercises")]
    lines += [padded(name, row["predictions"], row["blanks"]) + row["exercises"] for name, row in rows.items()]
    lines.append(resume.next_step(progress.ROOT))
    where = progress.FILE.relative_to(progress.ROOT).as_posix()
    lines.append(say("All this is stored in {where}, on this computer only.", where=where))
    return "\n".join(lines)


WIDTHS = 16, 28, 20  # of the columns; a Chinese sign takes two places


def padded(*texts: str) -> str:
    """Return texts as columns of a terminal."""
    wide = [sum(unicodedata.east_asian_width(sign) in "WF" for sign in text) for text in texts]
    return "".join(text.ljust(width - more) for text, width, more in zip(texts, WIDTHS, wide, strict=True))
