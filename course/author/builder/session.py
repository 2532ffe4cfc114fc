"""Functions for a notebook's kernel: the first cell calls `watch`, the last one `level`.

A reader's notebook, in `mine/`, builds `mine/levels`; `levels` itself is written on the command line (`cli.py`).
"""

import contextlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from course.author.builder.export import export
from course.author.builder.files import COPY, environment, write_level
from course.reader import tasks
from course.reader.exercises.blanks import try_blank
from course.reader.language import spoken
from course.reader.notebooks import blanks, own_file
from course.reader.notebooks.cells import BuildError, blank_in, code_lines, title
from course.reader.notebooks.names import MINE, ROOT, all_in, core_of, level_of, names_in, translated_in
from course.reader.notebooks.running import HOME, RAN, WATCHED, WRITTEN, find_home
from course.reader.notebooks.stored import read_notebook
from course.reader.session import replay, stops


def watch(name: str, *packages: str) -> None:
    """Record the cells that run in this notebook, for `level` to compare, and explain imports of levels not built yet.

    In a reader's notebook, `levels` are those that the reader built. The trail and the five import only the core; those
    in `more` import `levels_more`, and some need `packages` that not every environment has. Raises BuildError if one of
    these is missing, if there is no notebook called `name`, or if the reader has renamed it.
    """
    from IPython import get_ipython

    if missing := [each for each in packages if importlib.util.find_spec(each) is None]:
        adds = "`python3 -m course setup`, in a terminal, adds what is missing. Then restart the kernel"
        raise BuildError(f"this notebook needs {' and '.join(missing)}: {adds}")
    if name not in all_in(ROOT):
        raise BuildError(f"no notebook is called {name}: there are {', '.join(all_in(ROOT))}")
    if (translated := f"{spoken()}/{name}") in translated_in(ROOT):
        name = translated
    WATCHED[:] = [name]
    find_home()
    get_ipython().events.register("post_run_cell", remember)
    if not any(isinstance(finder, NotBuilt) for finder in sys.meta_path):
        sys.meta_path.append(NotBuilt())
    if not any(isinstance(handler, Notes) for handler in logging.getLogger("levels").handlers):
        logging.getLogger("levels").addHandler(Notes())
    if HOME[0] == ROOT / MINE:
        if told := own_file.missing(ROOT, name):
            raise BuildError(told)
        if told := own_file.another(ROOT, name):
            print(f"Note: {told}.")


class Notes(logging.Handler):
    """Prints what `levels` logs for the reader. Python writes it to stderr, which Jupyter shows like an error."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"Note: {record.getMessage()}")


def remember(result) -> None:
    source = result.info.raw_cell
    cell_id = getattr(result.info, "cell_id", None)
    if cell_id:  # JupyterLab sends it; nbclient and nbval do not, and run the saved file anyway
        RAN[cell_id] = source
    if key := blank_in(source):
        WRITTEN[key] = source
        print(try_blank(source, core_of(WATCHED[0]), key, result.success))
    if HOME[0] == ROOT / MINE and source.strip() and not replay.restore_state(WATCHED[0]):
        stops.note_cell(WATCHED[0], cell_id, source)


class NotBuilt:
    """The last finder on `sys.meta_path`. A level that no other finder found is not built."""

    def find_spec(self, module: str, path=None, target=None) -> None:
        for name in names_in(ROOT) if module.startswith("levels") else ():
            if module in ("levels", f"levels.{level_of(name)}"):
                notebook = f"notebooks/{name}.ipynb"
                command = "build"
                if HOME[0] != ROOT:
                    notebook = f"{MINE}/{name}.ipynb"
                    command = f"reset {name} --level"
                cure = f"run all cells of {notebook}, or `python3 -m course {command}`"
                raise ModuleNotFoundError(f"{module} is not built yet: {cure}")


def level(name: str, *tasks) -> None:
    """Build the level of the saved notebook `name`, and check that these tasks give the same losses in it as here."""
    if HOME[0] != ROOT and (told := own_file.missing(ROOT, name) or own_file.another(ROOT, name)):
        raise BuildError(told)
    names = [task.__name__ for task in tasks]
    with (
        site() as root,
        tempfile.TemporaryDirectory() as folder,
        started(root, FRESH, level_of(name), folder, *names) as fresh,
    ):
        build_level(root, name)
        compare_fresh(fresh, Path(folder), level_of(name), tasks)


def build_level(root: Path, name: str) -> None:
    """Write the level of the saved notebook `name` into a folder, and print its rooms."""
    notebook = read_notebook(ROOT, name, MINE if HOME[0] != ROOT else "notebooks")
    find_unsaved(notebook, RAN)
    files = export(notebook, name)
    write_level(root, name, files)
    importlib.invalidate_caches()
    print(place_of(root, name))
    for file, (text, _) in files.items():
        if file != "__init__.py":
            print(f"  {file:<20} {code_lines(text):>4} lines of code")
    if told := written_by(notebook, name):
        print(told)


def started(root: Path, code: str, *arguments: str) -> subprocess.Popen:
    """Start a process that runs `code` with the `levels` in this folder. It reads a line of its input before it imports
    the level, so that it can prepare its work while the level is built."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, cwd=root, env=environment(root, ROOT), text=True, **pipes)


def written_by(notebook, name: str) -> str:
    """Return whose functions fill the blanks: "blanks: yours 4, the course's 1 (through_relu)", or "" if none."""
    cells = {blank_in(cell.source): cell.source for cell in notebook.cells if cell.cell_type == "code"}
    keys = [key for key in cells if key]
    others = [key for key in keys if not blanks.is_right(cells[key], name, key)]
    yours = f"blanks: yours {len(keys) - len(others)}, the course's {len(others)}"
    return yours + f" ({', '.join(others)})" * bool(others) if keys else ""


def place_of(root: Path, name: str) -> str:
    """Return where the level of a notebook has been built.

    In the course's own notebook a line says whose it is. So it does in a copy, where nothing is temporary: the line is
    a stored output, and nbval compares it wherever the notebook runs.
    """
    if HOME[0] != ROOT:
        return f"{MINE}/" * (root == ROOT / MINE) + f"levels/{level_of(name)}"
    yours = f"`python3 -m course lab` opens yours, which builds {MINE}/levels."
    return f"This notebook is the course's own. {yours}\nlevels/{level_of(name)}"


@contextlib.contextmanager
def site():
    """Yield the folder in whose `levels` this kernel builds: the reader's, or that of a copy that the course made.

    Otherwise, the course's own notebook builds in a temporary folder, and changes nothing.
    """
    if HOME[0] != ROOT:
        yield HOME[0]
        return
    if os.environ.get(COPY) == str(ROOT):
        yield ROOT
        return
    with tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True) as folder:
        shutil.copytree(ROOT / "levels", Path(folder) / "levels", ignore=shutil.ignore_patterns("__pycache__"))
        yield Path(folder).resolve()


def find_unsaved(notebook, ran: dict[str, str]) -> None:
    """Raise BuildError if an exported cell that ran differs from the saved file."""
    saved = {cell.get("id"): (title(number, cell.source), cell.source) for number, cell in enumerate(notebook.cells, 1)}
    sources = {source for _, source in saved.values()}
    for cell_id, source in ran.items():
        where, there = saved.get(cell_id, ("", ""))
        if source == there or not (source.startswith("#| export") or there.startswith("#| export")):
            continue
        again = "save the notebook (Ctrl+S), then run this cell again"
        if where:
            raise BuildError(f"{where} is not saved, or has not run since it was changed: run it, {again}")
        if source not in sources:  # otherwise the file was reopened, and its cells have other ids
            raise BuildError(f"{title(0, source)} is not saved: {again} (if you deleted it, restart the kernel first)")


STEPS = 1000  # enough to see a difference; the tests run every task to its end
FRESH = f"""
import importlib, sys
import numpy as np
from course.reader import tasks

level, folder, *names = sys.argv[1:]
given = {{name: tasks.FOR[name]() for name in names}}
input()
importlib.invalidate_caches()
for name, task in given.items():
    fit = getattr(importlib.import_module("levels." + level), name)
    losses = fit(task.x, task.y, task.weights, task.batches[:{STEPS}], task.learning_rate).losses
    np.save(f"{{folder}}/{{name}}.npy", losses)
"""


def compare_fresh(fresh: subprocess.Popen, folder: Path, level: str, fits) -> None:
    """Run tasks here and in the new process, which saves its losses in `folder`. Raises BuildError if a bit differs."""
    with contextlib.suppress(OSError):  # if the process has ended, its error is read below
        fresh.stdin.write("\n")
        fresh.stdin.flush()
    here = [losses_here(fit) for fit in fits]  # at the same time
    _, errors = fresh.communicate()
    paths = [folder / f"{fit.__name__}.npy" for fit in fits]
    if fresh.returncode:
        failed = next((path.stem for path in paths if not path.exists()), paths[-1].stem)
        last = "\n".join(errors.strip().split("\n")[-5:])
        raise BuildError(f"{failed} of levels.{level} fails in a fresh process:\n{last}")
    for fit, ours, path in zip(fits, here, paths, strict=True):
        compare_losses(level, fit.__name__, ours, np.load(path))


def losses_here(fit):
    task = tasks.FOR[fit.__name__]()
    return fit(task.x, task.y, task.weights, task.batches[:STEPS], task.learning_rate).losses


def compare_losses(level: str, name: str, here, there) -> None:
    """Print that a task has the same losses in the new process. Raises BuildError, with the first step, if not."""
    cure = "Does a cell that is not exported change something? Restart the kernel and run all cells"
    if (here.shape, here.dtype) != (there.shape, there.dtype):
        what = f"{there.shape} losses of {there.dtype} in a fresh process, {here.shape} of {here.dtype} here"
        raise BuildError(f"{name} of levels.{level} gives {what}. {cure}")
    for step, (ours, theirs) in enumerate(zip(here, there, strict=True)):
        if ours.tobytes() != theirs.tobytes():
            what = f"{shown(theirs)} in a fresh process, {shown(ours)} here"
            raise BuildError(f"{name} of levels.{level}: the loss of step {step} is {what}. {cure}")
    last = f"last loss {shown(here[-1])}" if len(here) else "no loss"
    print(f"{name}: {len(here):,} steps in a fresh process, {last}, the same as here")


def shown(loss) -> str:
    return f"{loss:.6g} ({float(loss).hex()})"
