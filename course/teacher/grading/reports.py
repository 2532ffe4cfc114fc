"""What `grade` writes: totals, a table of the exercises, feedback for each student, and a file for a gradebook."""

import contextlib
import errno
import os
import re
from collections import Counter
from pathlib import Path

from course.reader.exercises import EXERCISES

STATES = "right", "not yet", "still blank", "error", "no answer", "missing", "unreadable"
UNTRIED = "still blank", "missing", "unreadable"
# The columns by which Canvas finds a student. Moodle lets the teacher choose one of them.
IDENTITY = "Student", "ID", "SIS User ID", "SIS Login ID", "Section"
ADVICE = {  # what a student reads in place of the state and the text of the check
    "right": "right.",
    "still blank": "you have not written it yet.",
    "missing": "its cell is missing.",
}


@contextlib.contextmanager
def new(path: str | None):
    """Open a new file for a table, or one that is thrown away.

    Raises FileExistsError: a teacher may have written into the older file.
    """
    form = {"newline": "", "encoding": "utf-8-sig", "errors": "replace"}
    with open(path or os.devnull, "x" if path else "w", **form) as file:
        yield file


def total(rows: list, counted: set[str]) -> str:
    """A student's total: `2 right of 3`, and apart from it the optional exercises that were tried."""
    states = {row.exercise: row.state for row in rows if row.exercise}
    right = [key for key, state in states.items() if state == "right"]
    said = f"{sum(key in counted for key in right):>3} right of {sum(key in counted for key in states)}"
    optional = [key for key, state in states.items() if key not in counted and state not in UNTRIED]
    if optional:
        said += f", and {sum(key in optional for key in right)} of {len(optional)} optional exercises"
    return said


def by_exercise(class_rows: dict[str, list]) -> str:
    """A table: for each function and exercise, how many students are in which state."""
    counts = {}
    for rows in class_rows.values():
        for row in rows:
            if row.exercise:
                counts.setdefault(row.exercise, Counter())[row.state] += 1
    states = [state for state in STATES if any(count[state] for count in counts.values())]
    width = max(map(len, counts), default=0)
    lines = [" ".join([" " * width, *(f"{state:>11}" for state in states)])]
    for key, count in counts.items():
        lines.append(" ".join([f"{key:<{width}}", *(f"{count[state] or '':>11}" for state in states)]))
    return "\n" + "\n".join(line.rstrip() for line in lines)


def new_folder(path: str | None) -> Path | None:
    """Return the folder for feedback, made if need be. Raises FileExistsError if something is in it."""
    if path is None:
        return None
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(errno.EEXIST, "not empty", path)
    return folder


def write_feedback(folder: Path, student: str, rows: list) -> None:
    """Write a page for one student, in Markdown, into a folder."""
    name = re.sub(r"[^\w.@+-]+", "_", student.encode("utf-8", "replace").decode())
    page = folder / f"{name}.md"
    number = 2
    while page.exists():  # of another student, whose name differs only in other characters
        page = folder / f"{name} {number}.md"
        number += 1
    page.write_text("\n".join(feedback(student, rows)) + "\n", encoding="utf-8", errors="replace")


def feedback(student: str, rows: list) -> list[str]:
    """The lines of a student's page: a heading for each notebook, and a line for each function and exercise."""
    lines = [f"# {student.encode('utf-8', 'replace').decode()}"]
    for notebook in dict.fromkeys(row.notebook for row in rows):
        theirs = [row for row in rows if row.notebook == notebook]
        lines += ["", f"## {notebook or 'Other files'}", ""]
        if all(row.state in ("missing", "unreadable") for row in theirs):
            lines += dict.fromkeys(sentence(row.text) for row in theirs)
            continue
        for row in theirs:
            if row.exercise in EXERCISES and row.state in UNTRIED:
                continue  # optional, and not tried
            what = f"exercise {row.exercise}" if row.exercise in EXERCISES else f"`{row.exercise[3:]}`"
            said = ADVICE.get(row.state) or f"{row.state}. {sentence(row.text)}"
            lines.append(f"- {what}: {said}")
    return lines


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." * (not text.endswith((".", "?")))


def gradebook(class_rows: dict[str, list], assignment, cell) -> list[list[str]]:
    """The rows of a table that Canvas and Moodle import: a column for each notebook, with the number of right ones.

    The name of a student's folder stands for both the name and the login. A notebook without a row is left empty.
    `cell` makes a cell that no spreadsheet computes. Source of the columns: Canvas' lib/gradebook_importer.rb.
    """
    names = [name for name, keys in assignment.keys.items() if assignment.counted.intersection(keys)]
    handed = {row.notebook for rows in class_rows.values() for row in rows}
    names = [name for name in names if name in handed]
    table = [[*IDENTITY, *names]]
    for student, rows in class_rows.items():
        points = []
        for name in names:
            states = [row.state for row in rows if row.notebook == name and row.exercise in assignment.counted]
            points.append(str(states.count("right")) if states else "")
        table.append([cell(student), "", "", cell(student), "", *points])
    return table
