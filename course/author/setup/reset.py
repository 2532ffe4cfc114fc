"""`python3 -m course reset`, `catch-up` and `undo`: restore the course's version of files, keeping the reader's."""

import sys
from pathlib import Path

from course.author.setup import backup, workspace
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.names import MINE, ROOT, level_of, named, names_in
from course.terminal.arguments import parser

RELOAD = "Is it open in JupyterLab? Then choose File > Reload Notebook from Disk, and restart its kernel."


def reset(root: Path, name: str, level: bool) -> None:
    """Replace the reader's copy of a notebook, or with `level` the level that it has built, with the course's."""
    name = named(root, name)
    if level:
        what = f"{MINE}/levels/{level_of(name)}"
        files = workspace.level_files(root, name, workspace.course_copy(root, name))
        after = f"The last cell of {MINE}/{name}.ipynb builds yours again."
    else:
        what = f"{MINE}/{name}.ipynb"
        files = workspace.new_copy(name, workspace.course_copy(root, name))
        after = RELOAD
    kept = backup.apply(root, f"reset {level_of(name) if level else name}", files)
    if kept:
        print(f"{what} is the course's own again.\n{backup.how_to_undo(root, kept)}\n{after}")
    else:
        print(f"{what} is the course's own already. Nothing was done.")


def catch_up(root: Path, name: str) -> None:
    """Replace the levels beneath a notebook with the course's, so that the reader can go on there."""
    name = named(root, name)
    beneath = [each for each in names_in(root) if each < name]
    if not beneath:
        print(f"{name} is the first notebook: there is no level beneath it. Nothing was done.")
        return
    files = {}
    for each in beneath:
        files |= workspace.level_files(root, each, workspace.course_copy(root, each))
    kept = backup.apply(root, f"catch-up {name}", files)
    levels = ", ".join(f"{MINE}/levels/{level_of(each)}" for each in beneath)
    if kept is None:
        print(f"{levels}: these are the course's own already. Nothing was done.")
        return
    print(
        f"{levels}: these are the course's own now. "
        f"Continue with {MINE}/{name}.ipynb (restart its kernel if it is open)."
    )
    print(backup.how_to_undo(root, kept))
    print("Your notebooks are unchanged. The last cell of each builds your level again.")


def undo(root: Path) -> None:
    """Restore what the last reset, catch-up or update of the course replaced."""
    print(backup.undo(root))


COMMANDS = {"reset": reset, "catch-up": catch_up, "undo": undo}


def main(command: str, argv: list[str], root: Path = ROOT) -> int:
    """Run `python3 -m course reset`, `catch-up` or `undo`. Returns the exit status."""
    options = parser(command).parse_args(argv)
    try:
        COMMANDS[command](root, **vars(options))
    except (BuildError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
