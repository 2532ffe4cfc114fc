"""Merge a newer version of the course into a reader's notebook: a three-way merge of cells. The reader's edits stay.

The three versions are the course's cells with which the reader began, the reader's cells, and the course's current
cells. A cell that only one side changed is taken from that side. If both changed a cell, the reader's version stays,
and the course's new one is added beneath it as a raw cell, which is neither run nor built. A filled-in exercise or
blank is identified by its key, and stays even if the course has moved it. If the course no longer has its key, it
becomes a raw cell beneath a note that names it.
"""

import copy
import difflib
import re

from course.reader.notebooks.cells import blank_in, most_in, title

EXERCISE = re.compile(r"""^exercises\.check\(\s*["']([\w-]+)["']""", re.MULTILINE)
ALIKE = 0.6  # the least similarity, from 0 to 1, of a cell to its new version
NOTE = """\
**Both you and the course have changed the cell above.** Your version stays. The course's new version
is the cell below. It does not run.
To use it, delete your cell and this one, select the new one, and press Esc, then {key}."""
ASIDE = "**The course no longer asks for `{key}`.** What you wrote is kept in the cell below. It does not run."


def merge(base: list, mine: list, course: list) -> tuple[list, list[str]]:
    """Return the reader's cells with the course's changes, and the titles of the cells that both have changed.

    base, mine, course: the cells with which the reader began, the reader's cells, and the course's current cells.
    """
    theirs = paired(base, mine)
    today = paired(base, course)
    for b in range(len(base)):  # if the reader changed a cell, find the course's new version of it by similarity
        if b not in today and b in theirs and not same(base[b], mine[theirs[b]]):
            successor(base, course, today, b)
    began = {c: b for b, c in today.items()}
    # places: {index of a reader's cell: index of its end in `merged`}
    merged = []
    disputed = []
    places = {}
    for c, new in enumerate(course):
        old = base[began[c]] if c in began else None
        m = theirs.get(began[c]) if c in began else None
        if m is None:
            if old is None or not same(old, new):  # a cell that the reader deleted returns only if it has changed
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
    # {index in `merged`: the cells that only the reader has, to insert after it}
    own = {}
    gone = without_place(mine, course)
    at = -1
    for m, cell in enumerate(mine):
        at = places.get(m, at)
        if m not in places and m not in dropped:
            own.setdefault(at, []).extend(aside(cell) if key_of(cell) in gone else [cell])
    result = own.get(-1, [])
    for k, cell in enumerate(merged):
        result += [cell, *own.get(k, [])]
    return result, disputed


def content(cell) -> tuple[str, str]:
    return cell.cell_type, cell.source.strip()


def same(cell, other) -> bool:
    return content(cell) == content(other)


def key_of(cell) -> str:
    """Return the key of the exercise or blank in a cell, or ""."""
    found = EXERCISE.search(cell.source)
    key = blank_in(cell.source) or (found[1] if found else "")
    return key if cell.cell_type == "code" else ""


def without_place(mine: list, course: list) -> list[str]:
    """Return the keys of the reader's exercises and blanks that the course no longer has."""
    known = {"", *(key_of(cell) or most_in(cell.source) for cell in course)}
    return sorted({key_of(cell) for cell in mine} - known)


def aside(cell) -> list:
    """Return the cells that keep a reader's cell without running it: a note that names it, and a raw cell."""
    import nbformat

    note = ASIDE.format(key=key_of(cell))
    return [nbformat.v4.new_markdown_cell(note), nbformat.v4.new_raw_cell(cell.source)]


def paired(base: list, others: list) -> dict[int, int]:
    """Return {index in `base`: index in `others`}, pairing cells by their id, else their key, else their content."""
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
    """Pair a cell of `base` with the most similar unpaired cell of the course, if one is similar enough."""
    old = base[b]
    if key_of(old):
        return  # it is known by its key only
    taken = set(pairs.values())
    rest = [c for c, cell in enumerate(course) if c not in taken and cell.cell_type == old.cell_type]
    near = difflib.get_close_matches(old.source, [course[c].source for c in rest], 1, ALIKE)
    if near:
        pairs[b] = next(c for c in rest if course[c].source == near[0])


def renamed(cell, new):
    """Return the reader's cell with the id of the course's cell, by which the next merge pairs them.

    A cell marked `most` that the reader has changed is marked `blank` if the course's cell now is.
    """
    cell = copy.deepcopy(cell)
    cell["id"] = new["id"]
    first, newline, rest = cell.source.partition("\n")
    if re.sub(r"\bmost\b", "blank", first) == new.source.partition("\n")[0]:
        cell.source = new.source.partition("\n")[0] + newline + rest
    return cell


def beneath(new) -> list:
    """Return the cells to put beneath the reader's: a note, and the course's version as a raw cell."""
    import nbformat

    note = NOTE.format(key="M" if new.cell_type == "markdown" else "Y")
    return [nbformat.v4.new_markdown_cell(note), nbformat.v4.new_raw_cell(new.source)]
