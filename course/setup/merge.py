"""A newer course meets a reader's notebook: three lists of cells become one, and nothing that the reader wrote is lost.

The three are the course's cells that the reader began with, the reader's, and the course's of today. A cell that only
one side changed is taken from that side. One that both changed stays as the reader has it, with the course's new one
beneath it as a raw cell, which neither runs nor is built. What a reader filled in, an exercise or a blank, is known by
its key and stays, wherever the course has moved it.
"""

import copy
import difflib
import re

from course.builder.cells import title

KEY = re.compile(r"""^#\|\s*export\s+\w+\s+blank\s+(\S+)|^exercises\.check\(\s*["']([\w-]+)["']""", re.MULTILINE)
ALIKE = 0.6  # of 1: how much two cells share, when the one was made from the other
NOTE = """\
**Both you and the course have changed the cell above.** Your version stays. The course's new version
is the cell below. It does not run.
To use it, delete your cell and this one, select the new one, and press Esc, then {key}."""


def merge(base: list, mine: list, course: list) -> tuple[list, list[str]]:
    """The reader's cells with the news of the course in them, and the names of those that both have changed.

    base, mine, course: the cells that the reader began with, the reader's own, and those of the course today.
    """
    theirs, today = paired(base, mine), paired(base, course)
    for b in range(len(base)):  # a changed cell has a successor like it, which matters where the reader changed it too
        if b not in today and b in theirs and not same(base[b], mine[theirs[b]]):
            successor(base, course, today, b)
    began = {c: b for b, c in today.items()}
    merged, disputed, places = [], [], {}  # places: behind which of `merged` a cell of the reader's stands now
    for c, new in enumerate(course):
        old = base[began[c]] if c in began else None
        m = theirs.get(began[c]) if c in began else None
        if m is None:
            if old is None or not same(old, new):  # what the reader deleted stays away, unless it has changed
                merged.append(new)
            continue
        if same(old, mine[m]) and not same(old, new):
            merged.append(new)
        else:
            merged.append(renamed(mine[m], new))
            if not (same(old, new) or same(mine[m], new) or key_of(merged[-1])):
                merged += beneath(new)
                disputed.append(title(0, new.source))
        places[m] = len(merged) - 1
    dropped = {m for b, m in theirs.items() if b not in today and same(base[b], mine[m])}
    own, at = {}, -1  # {place in `merged`: the cells that only the reader has, which follow it}
    for m, cell in enumerate(mine):
        at = places.get(m, at)
        if m not in places and m not in dropped:
            own.setdefault(at, []).append(cell)
    result = own.get(-1, [])
    for k, cell in enumerate(merged):
        result += [cell, *own.get(k, [])]
    return result, disputed


def content(cell) -> tuple[str, str]:
    return cell.cell_type, cell.source.strip()


def same(cell, other) -> bool:
    return content(cell) == content(other)


def key_of(cell) -> str:
    """The key of the exercise or blank in a cell, or nothing."""
    found = KEY.search(cell.source) if cell.cell_type == "code" else None
    return found[1] or found[2] if found else ""


def paired(base: list, others: list) -> dict[int, int]:
    """{place in `base`: place in `others`} of cells with the same id, else the same key, else the same content."""
    pairs = {}
    for mark in (lambda cell: cell.get("id"), key_of, content):
        free = {}
        for k, cell in enumerate(others):
            if k not in pairs.values() and mark(cell):
                free.setdefault(mark(cell), []).append(k)
        for b, cell in enumerate(base):
            if b not in pairs and free.get(mark(cell)):
                pairs[b] = free[mark(cell)].pop(0)
    return pairs


def successor(base: list, course: list, pairs: dict[int, int], b: int) -> None:
    """Pair a cell of `base` with the cell of the course that is most like it, if there is one."""
    old, taken = base[b], set(pairs.values())
    rest = [c for c, cell in enumerate(course) if c not in taken and cell.cell_type == old.cell_type]
    near = difflib.get_close_matches(old.source, [course[c].source for c in rest], 1, ALIKE)
    if near:
        pairs[b] = next(c for c in rest if course[c].source == near[0])


def renamed(cell, new):
    """The reader's cell under the id of the course's, by which it is known again the next time.

    A function that the reader has changed is a blank now if the course's cell has become one.
    """
    cell = copy.deepcopy(cell)
    cell["id"] = new["id"]
    first, newline, rest = cell.source.partition("\n")
    if re.sub(r"\bmost\b", "blank", first) == new.source.partition("\n")[0]:
        cell.source = new.source.partition("\n")[0] + newline + rest
    return cell


def beneath(new) -> list:
    """The course's version, to stand beneath the reader's: a note, and a cell that one key turns into what it was."""
    import nbformat

    note = NOTE.format(key="M" if new.cell_type == "markdown" else "Y")
    return [nbformat.v4.new_markdown_cell(note), nbformat.v4.new_raw_cell(new.source)]
