"""The reader's desk: the folder `mine/`, in which notebooks are worked on, and the `levels` that they build.

`python3 -m course lab` opens it. The notebooks there are copies of the course's, without outputs: a prediction is made
before its answer can be seen, and no file of the course changes. What a copy was made from is kept beside it, so that a
newer course reaches it without taking anything away (`merge.py`).
"""

import hashlib
import json
import os
import re
import sys
import webbrowser
from pathlib import Path

from course.builder.cells import MARKER, BuildError
from course.builder.export import LEVELS, export
from course.builder.files import replace, support_in
from course.builder.names import MINE, all_in, level_of, names_in, text_path
from course.builder.notebooks import from_text, read_notebook
from course.setup import backup, depth, index_page, lab
from course.setup.merge import content, merge

EXTENSIONS = Path(__file__).resolve().parent / "labextensions"  # of JupyterLab, written by hand
BASE = f"{MINE}/.course/base"  # each notebook as the course had it when it last came here


def open_desk(root: Path) -> list[str]:
    """Make what is missing of `mine/`, and bring a newer course into the rest. Returns what the reader should know."""
    files, told = {}, []
    for name in all_in(root):
        wanted, news = changes_for(root, name)
        files |= wanted
        told += news
    replace(root, {root / MINE / index_page.FILE: index_page.page(root)})
    replace(root, {root / MINE / path: text for path, text in support_in(root).items()})  # no reader edits it
    if not told:  # nothing of the reader's is replaced
        replace(root, {root / path: text for path, text in files.items() if text is not None})
    elif kept := backup.apply(root, "update", files):
        told.append(backup.how_to_undo(root, kept))
    return told


def lab_command(root: Path, arguments: list[str], opened: str | None = None) -> list[str]:
    """The command that opens JupyterLab on the desk, on a notebook or, where none is named, on the map of all.

    The course's own files are out of its reach.
    """
    settings = root / ".course" / "lab"  # defaults only: the reader's own Jupyter settings win
    settings.mkdir(parents=True, exist_ok=True)
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    read = {"@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}}}
    wrap = {"@jupyterlab/notebook-extension:tracker": {"codeCellConfig": {"lineWrap": True}}}  # at 1280 pixels, too
    (settings / "overrides.json").write_text(json.dumps(quiet | read | wrap), encoding="utf-8")
    # Its part of JupyterLab looks for clusters that nobody has started, and lays an error over the page.
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
    ]
    if not any(re.search("log.level|^--debug", each) for each in arguments):  # JupyterLab takes it once only
        options += ["--log-level=WARN", "--LabApp.log_level=WARN"]
    if not has_browser():
        options.append("--no-browser")  # else the server says that it found none
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # a container, most likely: Jupyter refuses root unless told
        options.append("--allow-root")
    return [sys.executable, "-m", "jupyterlab", *options, *arguments]


def page_of(opened: str | None) -> str:
    """Where a notebook is in JupyterLab or, where none is named, the map."""
    return f"lab/tree/{f'{opened}.ipynb' if opened else index_page.FILE}"


def has_browser() -> bool:
    try:
        return bool(webbrowser.get())
    except webbrowser.Error:
        return False


def changes_for(root: Path, name: str) -> tuple[dict[str, str | None], list[str]]:
    """What must be written for one notebook and its level, as {path: text, or None: no such file}; what to tell."""
    known = stamp_of(root, name) == stamp_in(root / BASE / f"{name}.ipynb") and (root / MINE / f"{name}.ipynb").exists()
    built = name not in names_in(root) or (root / MINE / "levels" / level_of(name)).is_dir()
    if known and built:
        return {}, []
    today = course_copy(root, name)
    level = level_files(root, name, today)
    if not (root / MINE / f"{name}.ipynb").exists():
        return new_copy(name, today) | ({} if built else level), []
    try:
        mine = read_notebook(root, name, MINE)
    except BuildError as error:
        return {}, [str(error)]
    if known:
        return level, []
    return merged(root, name, mine, today, level)


def merged(root: Path, name: str, mine, today, level: dict) -> tuple[dict[str, str | None], list[str]]:
    """A notebook that the reader has, with the news of the course in it, and the level that goes with it."""
    try:
        base = read_notebook(root, name, BASE)
    except BuildError:
        base = today  # nobody knows what it was made from: all that differs is the reader's
    before = [content(cell) for cell in mine.cells]
    mine.cells, disputed = merge(base.cells, mine.cells, today.cells)
    files = new_copy(name, today)
    files[f"{MINE}/{name}.ipynb"] = as_json(mine)
    told = [f"{name}: the course has changed, and {MINE}/{name}.ipynb with it. What you wrote is still there."]
    told += [
        f"  {cell}: you have changed it, too. Your cell stays, and the course's is beneath it." for cell in disputed
    ]
    if on_disk(root, level) != {path: text for path, text in level_files(root, name, base).items() if text is not None}:
        try:  # the reader has built it
            level = level_files(root, name, mine)
        except BuildError as error:
            told.append(f"  It cannot be built now, so {MINE}/levels/{level_of(name)} is the course's own: {error}")
    return files | level, told if [content(cell) for cell in mine.cells] != before else []


def course_copy(root: Path, name: str):
    """A notebook as the course has it today, at the depth of the desk, not executed. It knows its text."""
    notebook = from_text(root, name)
    notebook.cells = depth.on_the_desk(root, name, notebook.cells)
    notebook.metadata["course"] = {"text": stamp_of(root, name)}
    return notebook


def new_copy(name: str, notebook) -> dict[str, str]:
    """A new copy on the desk, and what it was made from."""
    text = as_json(notebook)
    return {f"{MINE}/{name}.ipynb": text, f"{BASE}/{name}.ipynb": text}


def level_files(root: Path, name: str, notebook) -> dict[str, str | None]:
    """The level that a notebook builds on the desk, as {path: text}; None for a file there that is no part of it."""
    if not any(MARKER.match(cell.source) for cell in notebook.cells):
        return {}  # it builds none
    folder = f"{MINE}/levels/{level_of(name)}"
    others = [path.relative_to(root).as_posix() for path in (root / folder).glob("*.py")]
    files = {f"{folder}/{file}": built.text for file, built in export(notebook, name).items()}
    support = {f"{MINE}/{path}": text for path, text in support_in(root).items()}
    return dict.fromkeys(others) | {f"{MINE}/levels/__init__.py": LEVELS} | support | files


def on_disk(root: Path, files: dict) -> dict[str, str]:
    """What these files hold now, of those that are there."""
    paths = [path for path in files if (root / path).is_file()]
    return {path: (root / path).read_bytes().decode("utf-8", "replace").replace("\r\n", "\n") for path in paths}


def as_json(notebook) -> str:
    import nbformat

    return nbformat.writes(notebook).rstrip("\n") + "\n"


def stamp_of(root: Path, name: str) -> str:
    """What decides a copy on the desk: the notebook's text, and what was chosen for the desk."""
    text = text_path(root, name).read_bytes().replace(b"\r\n", b"\n")
    return hashlib.sha256(text + depth.decided_by(root, name).encode()).hexdigest()


def stamp_in(path: Path) -> str:
    """The stamp of the text from which a copy was made, or nothing."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["metadata"]["course"]["text"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
