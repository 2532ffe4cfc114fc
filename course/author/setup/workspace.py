"""The reader's desk: the folder `mine/`, with the reader's copies of the notebooks, and the `levels` that they build.

`python3 -m course lab` opens it. The copies have no outputs, so that a reader predicts before seeing an answer, and no
file of the course changes. The version from which a copy was made is stored too (BASE), so that a newer course can be
merged into the copy without losing the reader's work (`merge.py`).
"""

import hashlib
import json
import os
import re
import sys
import webbrowser
from pathlib import Path
from typing import NamedTuple

from course.author.builder.export import LEVELS, export
from course.author.builder.files import support_in
from course.author.setup import backup, depth, index_page, lab
from course.author.setup.merge import ASIDE, content, merge, without_place
from course.reader.files import replace
from course.reader.language import po_path, say
from course.reader.notebooks.cells import MARKER, BuildError
from course.reader.notebooks.names import (
    MINE,
    all_in,
    language_in,
    language_of,
    level_of,
    names_in,
    original,
    text_path,
    translated_in,
)
from course.reader.notebooks.stored import from_text, read_notebook

EXTENSIONS = Path(__file__).resolve().parent / "labextensions"  # JupyterLab extensions, written by hand
BASE = f"{MINE}/.course/base"  # the course's version of each notebook at the last copy or merge
WORKSPACE = "default-37a8.jupyterlab-workspace"  # the file in which JupyterLab stores what is open
CLOSED = {  # the list of files is closed at the first start: the map has links to all notebooks
    "data": {"layout-restorer:data": {"left": {"collapsed": True, "widgets": ["filebrowser"]}}},
    "metadata": {"id": "default"},
}


def open_desk(root: Path) -> list[str]:
    """Make what is missing in `mine/`, and merge a newer course into the rest. Returns messages for the reader."""
    files = {}
    told = []
    renewed = []
    for name in all_in(root) + [name for name in translated_in(root) if language_of(name) == language_in(root)]:
        change = changes_for(root, name)
        files |= change.files
        told += change.told
        if change.renewed:
            renewed.append(name)
    if renewed:
        which = say("{count} notebooks", count=len(renewed)) if renewed[1:] else f"{MINE}/{renewed[0]}.ipynb"
        told.append(say("The course has changed, and with it {which} in which you had written nothing.", which=which))
    replace(root, {root / MINE / index_page.FILE: index_page.page(root)})
    replace(root, {root / MINE / path: text for path, text in support_in(root).items()})  # readers do not edit these
    if not told:  # no file of the reader is replaced
        replace(root, {root / path: text for path, text in files.items() if text is not None})
    elif kept := backup.apply(root, "update", files):
        told.append(backup.how_to_undo(root, kept))
    return told


def lab_command(root: Path, arguments: list[str], opened: str | None = None) -> list[str]:
    """Return the command that opens JupyterLab on the desk, showing a notebook or, if `opened` is None, the map.

    Its root folder is `mine/`, so it does not show the course's own files.
    """
    settings = root / ".course" / "lab"  # defaults only: the user's own Jupyter settings take precedence
    settings.mkdir(parents=True, exist_ok=True)
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    read = {"@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}}}
    wrap = {"@jupyterlab/notebook-extension:tracker": {"codeCellConfig": {"lineWrap": True}}}  # also at 1280 pixels
    names = {"@jupyterlab/filebrowser-extension:browser": {"showLastModifiedColumn": False}}  # so that names are whole
    (settings / "overrides.json").write_text(json.dumps(quiet | read | wrap | names), encoding="utf-8")
    first = settings / "workspaces" / WORKSPACE
    if not first.exists():  # JupyterLab stores what the reader opens and closes there
        first.parent.mkdir(exist_ok=True)
        first.write_text(json.dumps(CLOSED), encoding="utf-8")
    # ipyparallel's extension looks for clusters, which are not running here, and shows an error over the page.
    page = {"disabledExtensions": ["ipyparallel-labextension"]}
    (settings / "page_config.json").write_text(json.dumps(page), encoding="utf-8")
    options = [
        f"--ServerApp.root_dir={root / MINE}",
        f"--LabApp.default_url=/{page_of(opened)}",
        f"--LabApp.app_settings_dir={settings}",
        f"--LabApp.workspaces_dir={settings / 'workspaces'}",  # no tabs left over from other projects
        f"--LabApp.extra_labextensions_path={EXTENSIONS}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
        "--LabApp.custom_css=True",
        f"--ServerApp.jpserver_extensions={lab.__name__}=True",
        "--ServerApp.jpserver_extensions=ipyparallel=False",  # otherwise the first line is a warning about it
    ]
    if not any(re.search("log.level|^--debug", each) for each in arguments):  # JupyterLab accepts it only once
        options += ["--log-level=WARN", "--LabApp.log_level=WARN"]
    if not has_browser():
        options.append("--no-browser")  # otherwise the server says that it found none
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # probably a container: Jupyter refuses root by default
        options.append("--allow-root")
    return [sys.executable, "-m", "jupyterlab", *options, *arguments]


def page_of(opened: str | None) -> str:
    """Return the path in JupyterLab of a notebook or, if `opened` is None, of the map."""
    return f"lab/tree/{f'{opened}.ipynb' if opened else index_page.FILE}"


def has_browser() -> bool:
    try:
        return bool(webbrowser.get())
    except webbrowser.Error:
        return False


class Change(NamedTuple):
    """What a newer course brings to one notebook on the desk, and to the level that it builds."""

    files: dict[str, str | None] = {}  # {path: text, or None to delete the file}
    told: tuple[str, ...] = ()  # messages for the reader
    renewed: bool = False  # whether the notebook is a new version, and the reader had written nothing in the old one


def changes_for(root: Path, name: str) -> Change:
    there = (root / MINE / f"{name}.ipynb").exists()
    known = there and stamp_of(root, name) == stamp_in(root / BASE / f"{name}.ipynb")
    built = name not in names_in(root) or (root / MINE / "levels" / level_of(name)).is_dir()
    try:
        mine = read_notebook(root, name, MINE) if there else None
    except BuildError as error:  # damaged, perhaps cut off because the disk was full
        return Change(told=(str(error),))
    if known and built:
        return Change()
    today = course_copy(root, name)
    level = level_files(root, name, today)
    if not there:
        return Change(new_copy(name, today) | ({} if built else level))
    return Change(level) if known else merged(root, name, mine, today, level)


def merged(root: Path, name: str, mine, today, level: dict) -> Change:
    """Return the change that merges the current course into a reader's notebook and updates its level."""
    try:
        base = read_notebook(root, name, BASE)
    except BuildError:
        base = today  # its origin is unknown: all differences count as the reader's
    before = [content(cell) for cell in mine.cells]
    untouched = before == [content(cell) for cell in base.cells]
    gone = without_place(mine.cells, today.cells)
    mine.cells, disputed = merge(base.cells, mine.cells, today.cells)
    files = new_copy(name, today)
    files[f"{MINE}/{name}.ipynb"] = as_json(mine)
    where = f"{MINE}/{name}.ipynb"
    told = [
        say(
            "{name}: the course has changed, and {where} with it. What you wrote is still there.",
            name=name,
            where=where,
        )
    ]
    told += [
        "  " + say("{cell}: you have changed it, too. Your cell stays, and the course's is beneath it.", cell=cell)
        for cell in disputed
    ]
    told += [
        "  "
        + say(
            "The course no longer asks for `{key}`. What you wrote is kept there in a cell that does not run.", key=key
        )
        for key in gone
        if any(ASIDE.format(key=key) == cell.source for cell in mine.cells)
    ]
    if built_by_reader(root, name, base, level):
        try:
            level = level_files(root, name, mine)
        except BuildError as error:
            told.append(f"  It cannot be built now, so {MINE}/levels/{level_of(name)} is the course's own: {error}")
    if [content(cell) for cell in mine.cells] == before:
        return Change(files | level)
    return Change(files | level, () if untouched else tuple(told), renewed=untouched)


def built_by_reader(root: Path, name: str, base, level: dict) -> bool:
    """Return whether the level on the desk is another one than the notebook `base`, as it was given, builds."""
    try:
        given = level_files(root, name, base)
    except BuildError:  # it has blanks that the course no longer has, so nobody knows
        return True
    return on_disk(root, level) != {path: text for path, text in given.items() if text is not None}


def course_copy(root: Path, name: str):
    """Return the course's current version of a notebook, at the desk's depth, not executed, with its stamp."""
    notebook = from_text(root, name)
    notebook.cells = depth.on_the_desk(root, name, notebook.cells)
    notebook.metadata["course"] = {"text": stamp_of(root, name)}
    return notebook


def new_copy(name: str, notebook) -> dict[str, str]:
    """Return {path: text} of a new copy on the desk, and of the version from which it is made."""
    text = as_json(notebook)
    return {f"{MINE}/{name}.ipynb": text, f"{BASE}/{name}.ipynb": text}


def level_files(root: Path, name: str, notebook) -> dict[str, str | None]:
    """Return the level that a notebook builds on the desk, as {path: text, or None to delete an old file}."""
    if not any(MARKER.match(cell.source) for cell in notebook.cells):
        return {}  # it builds none
    folder = f"{MINE}/levels/{level_of(name)}"
    others = [path.relative_to(root).as_posix() for path in (root / folder).glob("*.py")]
    files = {f"{folder}/{file}": built.text for file, built in export(notebook, name).items()}
    support = {f"{MINE}/{path}": text for path, text in support_in(root).items()}
    return dict.fromkeys(others) | {f"{MINE}/levels/__init__.py": LEVELS} | support | files


def on_disk(root: Path, files: dict) -> dict[str, str]:
    """Return the current text of those of these files that exist, as {path: text}, with newlines as line endings."""
    paths = [path for path in files if (root / path).is_file()]
    return {path: (root / path).read_bytes().decode("utf-8", "replace").replace("\r\n", "\n") for path in paths}


def as_json(notebook) -> str:
    import nbformat

    return nbformat.writes(notebook).rstrip("\n") + "\n"


def stamp_of(root: Path, name: str) -> str:
    """Return a hash of what decides a copy on the desk: the notebook's text, its translation, the desk's settings."""
    text = text_path(root, name).read_bytes().replace(b"\r\n", b"\n")
    if language_of(name):
        text += po_path(root, language_of(name), original(name)).read_bytes().replace(b"\r\n", b"\n")
    return hashlib.sha256(text + depth.decided_by(root, name).encode()).hexdigest()


def stamp_in(path: Path) -> str:
    """Return the stamp stored in a copy when it was made, or "" if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["metadata"]["course"]["text"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
