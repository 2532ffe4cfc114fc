"""Nothing of a reader's is lost: `reset` a notebook or a level, `catch-up` on the levels beneath one, `undo` either.

What is put back is a notebook as it was built. Its metadata holds a hash of its cells, so whoever commits their own work
to git still gets the course's: the newest commit whose hash fits. Without git there is a copy, which the first
`python3 -m course` made. Levels are exported from those notebooks. Before anything is replaced, what was there goes to
a folder of `.course/aside/`, with a list of it, from which `undo` works.
"""

import difflib
import json
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from course.arguments import parser
from course.build import ROOT, essence, hash_of, level_of, names_in, replace
from course.rooms import LEVELS, BuildError, export

COPY = ".course/reference.zip"  # made by course/__main__.py
LIST = "kept.json"
UNDO = "`python3 -m course undo` puts it back"


# What the course's own version is.


def git(root: Path, *arguments: str) -> str:
    """What git answers, or nothing: there may be no git, or no history of this folder."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, stdin=subprocess.DEVNULL)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def copied(root: Path) -> dict[str, str]:
    """The files of the copy that every download keeps: {path: text}. None where it is missing or damaged."""
    try:
        with zipfile.ZipFile(root / COPY) as file:  # reading compares each file with its checksum
            return {path: file.read(path).decode("utf-8") for path in file.namelist()}
    except Exception:  # there are many ways to damage a compressed file
        return {}


def notebooks(root: Path) -> list[str]:
    """The names of all notebooks, those among them whose files are missing."""
    paths = git(root, "ls-tree", "--name-only", "HEAD", "notebooks/text/").splitlines() + list(copied(root))
    names = {Path(path).stem for path in paths} | set(names_in(root))
    return sorted(name for name in names if re.fullmatch(r"\d\d_\w+", name))


def versions(root: Path, *paths: str) -> Iterator[tuple[str, list[str]]]:
    """Earlier versions of these files, newest first: where each comes from, and the texts."""
    for line in git(root, "log", "--format=%H %h of %cs", "--", paths[0]).splitlines():
        commit, told = line.split(" ", 1)
        yield f"commit {told}", [git(root, "show", f"{commit}:./{path}") for path in paths]
    files = copied(root)
    yield f"the copy in {COPY}", [files.get(path, "") for path in paths]


def reference(root: Path, name: str):
    """The newest version of a notebook in which nobody worked: where it comes from, {path: text}, the parsed notebook."""
    import jupytext
    import nbformat

    paths = f"notebooks/{name}.ipynb", f"notebooks/text/{name}.py"
    for where, texts in versions(root, *paths):
        try:
            notebook = nbformat.reads(texts[0], 4)
            cells = essence(notebook)
            built = notebook.metadata["course"]["cells"] == hash_of(cells)
            if built and cells == essence(jupytext.reads(texts[1], "py:percent")):
                return where, dict(zip(paths, texts, strict=True)), notebook
        except Exception:  # whatever a damaged file does to its parser: it is not the one
            continue
    cure = "download the course again, into another folder, and copy the file from there"
    raise BuildError(f"neither git nor {COPY} holds {name} as it was built: {cure}")


def level_files(root: Path, name: str) -> tuple[str, dict[str, str | None]]:
    """The level of a notebook, as the course has it: where it comes from, and {path: text, or None: no such file}."""
    where, _, notebook = reference(root, name)
    folder = f"levels/{level_of(name)}"
    files = {"levels/__init__.py": LEVELS}
    files |= {f"{folder}/{file}": built.text for file, built in export(notebook, name).items()}
    here = [f"{folder}/{path.name}" for path in (root / folder).glob("*.py")]
    return where, {path: None for path in here} | files


# Keeping, replacing, undoing.


def put(root: Path, command: str, wanted: dict[str, str | bytes | None], undoable: bool = True) -> Path | None:
    """Make these files what is wanted (None: not there), after keeping what is there. Returns the folder that keeps it.

    Where all is as wanted already, nothing is done and None returned. Raises BuildError, before anything is changed,
    where a file is read-only.
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
    note(aside, command=command, files={path: path in there for path in changed}, undone=not undoable)
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
    """Whether a file holds what is wanted, whatever ends its lines."""
    if wanted is None or not path.exists():
        return wanted is None and not path.exists()
    wanted = wanted.encode() if isinstance(wanted, str) else wanted
    return path.read_bytes().replace(b"\r\n", b"\n") == wanted.replace(b"\r\n", b"\n")


def note(aside: Path, **kept) -> None:
    (aside / LIST).write_text(json.dumps(kept, indent=1), encoding="utf-8")


def listed(path: Path) -> dict:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {key: kept[key] for key in ("command", "files", "undone")}
    except (ValueError, KeyError, TypeError):
        raise BuildError(f"{path} is damaged. The files beside it are whole: copy them back by hand") from None


def told(root: Path, aside: Path) -> str:
    return f"What was there is kept in {aside.relative_to(root).as_posix()}: {UNDO}."


# The commands.


def reset(root: Path, name: str) -> None:
    """put a notebook (02_kernels) or a built level (kernels) back as the course has it"""
    known = notebooks(root)
    levels = {level_of(each): each for each in known}
    chosen = choose(name, [*known, *levels])
    if chosen in levels:
        where, files = level_files(root, levels[chosen])
        after = f"The last cell of notebooks/{levels[chosen]}.ipynb builds yours again."
    else:
        where, files, _ = reference(root, chosen)
        after = "Is it open in JupyterLab? Then choose File > Reload Notebook from Disk, and restart its kernel."
    aside = put(root, f"reset {chosen}", files)
    if aside is None:
        print(f"{chosen} is unchanged: it is that of {where} already. Nothing was done.")
        return
    if chosen in known:
        (root / "notebooks" / "text" / f"{chosen}.py").touch()  # Lab refuses a notebook that is newer than its text
    print(f"{chosen} is that of {where} again.\n{told(root, aside)}\n{after}")


def catch_up(root: Path, name: str) -> None:
    """install the course's own levels beneath a notebook (03), so that you can go on there"""
    known = notebooks(root)
    numbered = [each for each in known if name.isdecimal() and int(name) == int(each[:2])]
    chosen = numbered[0] if numbered else choose(name, known)
    beneath = [each for each in known if each < chosen]
    if not beneath:
        print(f"{chosen} is the first notebook: it stands on no level. Nothing was done.")
        return
    files = {}
    for each in beneath:
        files |= level_files(root, each)[1]
    aside = put(root, f"catch-up {chosen}", files)
    levels = ", ".join(f"levels/{level_of(each)}" for each in beneath)
    if aside is None:
        print(f"{levels}: unchanged, the course's own already. Nothing was done.")
        return
    print(f"{levels}: the course's own now. Go on with notebooks/{chosen}.ipynb (restart its kernel if it is open).")
    print(f"{told(root, aside)}\nYour notebooks stay as they are; the last cell of each builds your level again.")


def undo(root: Path) -> None:
    """put back what the last reset or catch-up replaced"""
    for path in sorted((root / ".course" / "aside").glob(f"*/{LIST}"), reverse=True):
        aside, kept = path.parent, listed(path)
        if not kept["undone"]:
            break
    else:
        raise BuildError("there is nothing to undo: no reset or catch-up is left in .course/aside")
    missing = [path for path, was_there in kept["files"].items() if was_there and not (aside / path).exists()]
    if missing:
        raise BuildError(f"{aside.relative_to(root).as_posix()} no longer holds {missing[0]}. Nothing was changed")
    files = {path: (aside / path).read_bytes() if there else None for path, there in kept["files"].items()}
    replaced = put(root, f"undo {kept['command']}", files, undoable=False)
    note(aside, **kept | {"undone": True})
    for path in files:
        if path.startswith("notebooks/text/") and (root / path).exists():
            (root / path).touch()
    print(f"Undone: {kept['command']}. Put back: {', '.join(files)}")
    if replaced:
        print(f"What was there until now is kept in {replaced.relative_to(root).as_posix()}.")


def choose(given: str, known: list[str]) -> str:
    """The name that was given, perhaps as a path. Raises BuildError, with the nearest ones, where there is none."""
    stem = Path(given).stem
    if stem in known:
        return stem
    near = [name for name in known if stem and stem in name] or difflib.get_close_matches(stem, known, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise BuildError(f"no notebook or level is called {given!r}: {hint}")


COMMANDS = {"reset": reset, "catch-up": catch_up, "undo": undo}


def main(command: str, argv: list[str], root: Path = ROOT) -> int:
    """`python3 -m course reset`, `catch-up` and `undo`."""
    options = parser(command).parse_args(argv)
    try:
        COMMANDS[command](root, **vars(options))
    except (BuildError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
