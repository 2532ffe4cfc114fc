"""`python3 -m course progress`: what the reader has answered, written and solved on each level, and what comes next."""

from course.reader import progress
from course.reader.notebooks.names import all_in, names_in
from course.reader.session import resume


def table() -> str:
    """A table as text: a row for each level (with its notebooks in `trail` and `more`), the sum, and the next step."""
    noted = progress.load()
    names = all_in(progress.ROOT)
    rows = {}
    for core in names_in(progress.ROOT):
        rows[core] = progress.counts(noted, [n for n in names if progress.level_of(n) == progress.level_of(core)])
    rows["in all"] = progress.counts(noted, names)
    lines = [f"{'':16}{'predictions':28}{'blanks':20}exercises"]
    lines += [f"{name:16}{row['predictions']:28}{row['blanks']:20}{row['exercises']}" for name, row in rows.items()]
    lines.append(resume.next_step(progress.ROOT))
    lines.append(f"All this is stored in {progress.FILE.relative_to(progress.ROOT).as_posix()}, on this computer only.")
    return "\n".join(lines)
