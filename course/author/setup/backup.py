"""Back up the reader's files before a command replaces them, so that `undo` can restore them.

Each backup is a folder in `.course/aside/`, with the old files and a list of all files that the command changed.
"""

import json
import shutil
import stat
from datetime import datetime
from pathlib import Path

from course.reader.files import replace
from course.reader.language import say
from course.reader.notebooks.cells import BuildError

LIST = "kept.json"


def apply(root: Path, command: str, wanted: dict[str, str | bytes | None], undoable: bool = True) -> Path | None:
    """Write these files (None: delete the file), after backing up the existing ones. Returns the backup folder.

    If no file would change, does nothing and returns None. Raises BuildError if a file is read-only, before anything is
    changed, or if writing fails.
    """
    changed = {path: new for path, new in wanted.items() if not same(root / path, new)}
    if not changed:
        return None
    there = [path for path in changed if (root / path).exists()]
    for path in there:
        if not (root / path).stat().st_mode & stat.S_IWRITE:
            raise BuildError(f"{path} is read-only: allow writing to it, then try again. Nothing was changed")
    aside = root / ".course" / "aside" / f"{datetime.now():%Y%m%d-%H%M%S-%f}-{command.replace(' ', '-')}"
    for path in there:
        (aside / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, aside / path)
    aside.mkdir(parents=True, exist_ok=True)
    write_list(aside, command=command, files={path: path in there for path in changed}, undone=not undoable)
    try:
        replace(root, {root / path: new for path, new in changed.items() if new is not None})
        for path, new in changed.items():
            if new is None:
                (root / path).unlink(missing_ok=True)
    except OSError as error:
        where = aside.relative_to(root).as_posix()
        raise BuildError(f"stopped half-way ({error}). Nothing is lost: your files are in {where}") from None
    return aside


def same(path: Path, wanted: str | bytes | None) -> bool:
    """Return whether a file has the wanted content (None: does not exist). Line endings are not compared."""
    if wanted is None or not path.exists():
        return wanted is None and not path.exists()
    wanted = wanted.encode() if isinstance(wanted, str) else wanted
    return path.read_bytes().replace(b"\r\n", b"\n") == wanted.replace(b"\r\n", b"\n")


def write_list(aside: Path, **kept) -> None:
    (aside / LIST).write_text(json.dumps(kept, indent=1), encoding="utf-8")


def read_list(path: Path) -> dict:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {key: kept[key] for key in ("command", "files", "undone")}
    except (ValueError, KeyError, TypeError):
        raise BuildError(f"{path} is damaged. The files beside it are whole: copy them back by hand") from None


def how_to_undo(root: Path, aside: Path) -> str:
    where = aside.relative_to(root).as_posix()
    return say("What was there is kept in {where}: `python3 -m course undo` puts it back.", where=where)


def undo(root: Path) -> str:
    """Restore what the last command replaced. Returns a message. Raises BuildError if there is nothing to restore."""
    for path in sorted((root / ".course" / "aside").glob(f"*/{LIST}"), reverse=True):
        aside = path.parent
        kept = read_list(path)
        if not kept["undone"]:
            break
    else:
        raise BuildError("there is nothing to undo: no reset, catch-up or update is left in .course/aside")
    missing = [path for path, was_there in kept["files"].items() if was_there and not (aside / path).exists()]
    if missing:
        raise BuildError(f"{aside.relative_to(root).as_posix()} no longer holds {missing[0]}. Nothing was changed")
    files = {path: (aside / path).read_bytes() if there else None for path, there in kept["files"].items()}
    replaced = apply(root, f"undo {kept['command']}", files, undoable=False)
    write_list(aside, **kept | {"undone": True})
    lines = [f"Undone: {kept['command']}. Put back: {', '.join(files)}"]
    if replaced:
        lines.append(f"What was there until now is kept in {replaced.relative_to(root).as_posix()}.")
    return "\n".join(lines)
