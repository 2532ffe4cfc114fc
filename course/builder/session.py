"""Text -> executed notebooks -> `levels`, in this one direction, and the check that all three agree.

In a notebook, the first cell calls `watch` and the last one `level`. A reader's notebook, in `mine/`, builds
`mine/levels`; `levels` itself is written on the command line, where `main` builds what is stale and `run` executes
everything from nothing. Content decides what is stale, never a modification time. Whatever is written is
first written aside, whole, and then replaces the old file in one step.
"""

import ast
import contextlib
import difflib
import functools
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import numpy as np
from tqdm import tqdm

from course.builder import blanks, minutes
from course.builder.rooms import LEVELS, BuildError, File, blank_in, code_lines, export, read, read_text, title

# nbformat, jupytext and nbclient are imported where they are used: together they take two seconds to load, and the
# first cell of every notebook imports this module.

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "course",
    "data",
    "levels",
    "levels_more",
    "notebooks",
    "solutions",
    "tests",
)  # the folders that a copy of the project needs
SUPPORT = "levels/support"  # what is written by hand there: part of every copy of the levels
MINE = "mine"  # the reader's folder: see course/setup/desk.py
CORE = "LEVELS_CORE"  # an environment variable: set, `levels` have nothing of `levels_more`
COPY = "COURSE_COPY"  # an environment variable: the folder in which notebooks write `levels`, a copy of the project
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

# In a notebook: watch what runs, build what is saved.

RAN = {}  # cell id -> the source that ran last in this kernel
WRITTEN = {}  # the key of a blank -> its cell, as it ran last in this kernel
WATCHED = []  # the name of the notebook that this kernel runs
HOME = [ROOT]  # where its `levels` are: in the course's folder, or in `mine`


def watch(name: str, *packages: str) -> None:
    """Remember what runs in this notebook, for `level` to compare, and explain imports of levels not built yet.

    In a reader's notebook, `levels` are those that the reader built. The trail and the five see the core alone; those in
    `more` see `levels_more` too, and some need packages that not every environment has. Raises BuildError where one of
    these is missing.
    """
    from IPython import get_ipython

    if missing := [each for each in packages if importlib.util.find_spec(each) is None]:
        adds = "`python3 -m course setup`, in a terminal, adds what is missing. Then restart the kernel"
        raise BuildError(f"this notebook needs {' and '.join(missing)}: {adds}")
    if name not in all_in(ROOT):
        raise BuildError(f"no notebook is called {name}: there are {', '.join(all_in(ROOT))}")
    WATCHED[:] = [name]
    os.environ.pop(CORE, None)
    if name not in more_in(ROOT):  # what the core shows depends on the core alone
        os.environ[CORE] = "yes"
    find_home()
    get_ipython().events.register("post_run_cell", remember)
    if not any(isinstance(finder, NotBuilt) for finder in sys.meta_path):
        sys.meta_path.append(NotBuilt())


def find_home() -> None:
    """Let a notebook in the reader's folder import the `levels` that the reader built."""
    here = Path.cwd().resolve()
    if HOME[0] == ROOT and ROOT / MINE in (here, *here.parents):
        HOME[:] = [ROOT / MINE]
        sys.path.insert(0, str(ROOT / MINE))


def remember(result) -> None:
    source, cell_id = result.info.raw_cell, getattr(result.info, "cell_id", None)
    if cell_id:  # Lab sends it; nbclient and nbval do not, and run the saved file anyway
        RAN[cell_id] = source
    if key := blank_in(source):
        from course.practice import filling  # it needs more than this module may ask of who only builds

        WRITTEN[key] = source
        print(filling.ran(source, core_of(WATCHED[0]), key, result.success))
    if HOME[0] == ROOT / MINE:
        from course.practice import resuming  # where the reader is, and whether he has just come back

        if source.strip() and not resuming.bring_back(WATCHED[0]):
            resuming.note(WATCHED[0], cell_id, source)


class NotBuilt:
    """The last finder that an import asks: whatever level gets as far as this is not built."""

    def find_spec(self, module: str, path=None, target=None) -> None:
        for name in names_in(ROOT) if module.startswith("levels") else ():
            if module in ("levels", f"levels.{level_of(name)}"):
                notebook, command = f"notebooks/{name}.ipynb", "build"
                if HOME[0] != ROOT:
                    notebook, command = f"{MINE}/{name}.ipynb", f"reset {name} --level"
                cure = f"run all cells of {notebook}, or `python3 -m course {command}`"
                raise ModuleNotFoundError(f"{module} is not built yet: {cure}")


def level(name: str, *tasks) -> None:
    """Build the level of the saved notebook `name`, and see that these tasks have the same losses in it as here."""
    notebook = read_notebook(ROOT, name, MINE if HOME[0] != ROOT else "notebooks")
    find_unsaved(notebook, RAN)
    files = export(notebook, name)
    with site() as root:
        write_level(root, name, files)
        importlib.invalidate_caches()
        print(f"{MINE}/" * (root == ROOT / MINE) + f"levels/{level_of(name)}")
        for file, (text, _) in files.items():
            if file != "__init__.py":
                print(f"  {file:<20} {code_lines(text):>4} lines of code")
        if told := written_by(notebook, name):
            print(told)
        for task in tasks:
            compare_fresh(root, level_of(name), task)


def written_by(notebook, name: str) -> str:
    """Whose the functions are that a reader may write: "blanks: yours 4, the course's 1 (through_relu)", or nothing."""
    cells = {blank_in(cell.source): cell.source for cell in notebook.cells if cell.cell_type == "code"}
    keys = [key for key in cells if key]
    others = [key for key in keys if not blanks.is_right(cells[key], name, key)]
    yours = f"blanks: yours {len(keys) - len(others)}, the course's {len(others)}"
    return yours + f" ({', '.join(others)})" * bool(others) if keys else ""


@contextlib.contextmanager
def site():
    """The folder in whose `levels` this kernel builds: the reader's, or that of a copy which the course made.

    Who opens one of the course's own notebooks changes nothing: it builds in a folder that is thrown away. What is said
    then is said in a copy, too: it is stored, and nbval compares it wherever the notebook runs.
    """
    if HOME[0] != ROOT:
        yield HOME[0]
        return
    print(f"This notebook is the course's own. `python3 -m course lab` opens yours, which builds {MINE}/levels.")
    if os.environ.get(COPY) == str(ROOT):
        yield ROOT
        return
    with tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True) as folder:
        shutil.copytree(ROOT / "levels", Path(folder) / "levels", ignore=shutil.ignore_patterns("__pycache__"))
        yield Path(folder).resolve()


def find_unsaved(notebook, ran: dict[str, str]) -> None:
    """Raise BuildError if an exported cell that ran is not what the file holds."""
    saved = {cell.get("id"): (title(number, cell.source), cell.source) for number, cell in enumerate(notebook.cells, 1)}
    sources = {source for _, source in saved.values()}
    for cell_id, source in ran.items():
        where, there = saved.get(cell_id, ("", ""))
        if source == there or not (source.startswith("#| export") or there.startswith("#| export")):
            continue
        again = "save the notebook (Ctrl+S), then run this cell again"
        if where:
            raise BuildError(f"{where} is not saved, or has not run since it was changed: run it, {again}")
        if source not in sources:  # else the file was opened anew, and its cells have other ids
            raise BuildError(f"{title(0, source)} is not saved: {again} (if you deleted it, restart the kernel first)")


STEPS = 4000  # enough to see a difference; the tests run every task to its end
FRESH = f"""
import importlib, sys
import numpy as np
from course import tasks

level, name, path = sys.argv[1:]
task = tasks.FOR[name]()
fit = getattr(importlib.import_module("levels." + level), name)
np.save(path, fit(task.x, task.y, task.weights, task.batches[:{STEPS}], task.learning_rate).losses)
"""


def compare_fresh(root: Path, level: str, fit) -> None:
    """Run a task here and, from the `levels` in this folder, in a new Python: the losses must be equal, bit by bit."""
    from course import tasks

    name = fit.__name__
    task = tasks.FOR[name]()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "losses.npy")
        command = [sys.executable, "-c", FRESH, level, name, path]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=root, env=environment(root, ROOT), **pipes) as fresh:
            # While the other one runs, here too.
            here = fit(task.x, task.y, task.weights, task.batches[:STEPS], task.learning_rate).losses
            errors = fresh.communicate()[1]
        if fresh.returncode:
            last = "\n".join(errors.strip().split("\n")[-5:])
            raise BuildError(f"{name} of levels.{level} fails in a fresh process:\n{last}")
        there = np.load(path)
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


# Files: which there are, and how they are replaced.


def support_in(root: Path) -> dict[str, str]:
    """The files of `levels/support`, which no notebook builds, as {path: text}."""
    paths = sorted((root / SUPPORT).glob("*.py"))
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def names_in(root: Path) -> list[str]:
    """The course's notebooks: whatever else a reader saves beside them has a text, too."""
    return sorted(path.stem for path in root.glob("notebooks/text/[0-9][0-9]_*.py"))


def more_in(root: Path) -> list[str]:
    """The notebooks that branch off, as "more/01_gpu": they run on what the five have built, and build nothing."""
    return sorted(f"more/{path.stem}" for path in root.glob("notebooks/more/text/[0-9][0-9]_*.py"))


def trail_in(root: Path) -> list[str]:
    """The notebooks of the trail, as "trail/1_hardware": the course in two hours, on top of all that the five have built."""
    return sorted(f"trail/{path.stem}" for path in root.glob("notebooks/trail/text/[0-9]_*.py"))


def all_in(root: Path) -> list[str]:
    """All notebooks: the five, then the trail, then those in `more`."""
    return names_in(root) + trail_in(root) + more_in(root)


def core_of(name: str) -> str:
    """Of a notebook on the trail the core that it leads to, whose blanks it has; any other is its own."""
    return re.sub(r"^trail/(\d)_", r"0\1_", name)


def level_of(name: str) -> str:
    return name.split("_", 1)[1]


def named(root: Path, given: str) -> str:
    """The notebook that is meant by 02, 2, kernels, 02_kernels, 01_gpu, 2_kernels (the trail's) or a path. Raises BuildError, with the nearest names."""
    known, stem = names_in(root), Path(given).stem
    for name in more_in(root) + trail_in(root):
        if given.replace("\\", "/") in (name, Path(name).name) or stem == Path(name).name:
            return name
    for name in known:
        number, level = name.split("_", 1)
        if stem in (name, level) or stem.isdecimal() and stem.lstrip("0") == number.lstrip("0"):
            return name
    near = [name for name in known if stem and stem in name]
    if not near:
        words = {word: name for name in known for word in (name, level_of(name))}
        near = list(dict.fromkeys(words[word] for word in difflib.get_close_matches(stem, words, 3)))
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise BuildError(f"no notebook is called {given!r}: {hint}")


def replace(root: Path, texts: dict[Path, str | bytes]) -> list[Path]:
    """Write these files, all of them aside first, then each in one step over the old one. Returns those that changed."""
    contents = {path: text.encode() if isinstance(text, str) else text for path, text in texts.items()}
    changed = [path for path, new in contents.items() if not path.exists() or path.read_bytes() != new]
    (root / ".course").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root / ".course", prefix="new-") as aside:
        for number, path in enumerate(changed):
            (Path(aside) / str(number)).write_bytes(contents[path])
        for number, path in enumerate(changed):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(aside) / str(number), path)
            if path.suffix == ".py":  # Python trusts its cache of a file of the same size and second
                Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
    return changed


def write_level(root: Path, name: str, files: dict[str, File]) -> bool:
    """Make a level exactly these files, its `__init__.py` last, and say whether that changed anything."""
    folder = root / "levels" / level_of(name)
    texts = {folder / file: files[file].text for file in sorted(files, key=lambda file: (file == "__init__.py", file))}
    for path, text in texts.items():
        compile(text, str(path), "exec")
    stale = [path for path in folder.glob("*.py") if path not in texts]
    changed = replace(root, texts | {root / "levels" / "__init__.py": LEVELS})
    for path in stale:
        path.unlink()
    return bool(changed or stale)


def copy_project(root: Path, target: Path, levels: list[str]) -> Path:
    """Copy the project into the folder `target`, with only these levels built, and `levels/support`. Returns `target`."""
    for part in PARTS:
        if (root / part).exists():
            shutil.copytree(root / part, target / part, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.rmtree(target / "levels", ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for part in [*levels, "support"] if (root / SUPPORT).is_dir() else levels:
        shutil.copytree(root / "levels" / part, target / "levels" / part, ignore=ignored)
    # this file is never missing: without it, Python would prefer any other `levels` that it can find
    replace(target, {target / "levels" / "__init__.py": LEVELS})
    return target


def environment(*roots: Path) -> dict[str, str]:
    """An environment in which `course` and `levels` are those in the first of these folders that has them.

    Whatever else is installed does not count. Notebooks in the last folder write its `levels`.
    """
    path = os.pathsep.join(filter(None, [*map(str, roots), os.environ.get("PYTHONPATH")]))
    plain = {"PYTHON_COLORS": "0"}  # what a child says is read and quoted; a kernel's own children colour it, else
    own = {"IPYTHONDIR": str(roots[-1] / ".course" / "ipython"), COPY: str(roots[-1])}
    own["COURSE_SERVING"] = os.environ.get("COURSE_SERVING") or str(ROOT / ".course" / "serving")  # one for all copies
    return os.environ | {"PYTHONPATH": path} | own | plain


# Notebooks: made from their text, executed, compared.


def notebook_path(root: Path, name: str) -> Path:
    return root / "notebooks" / f"{name}.ipynb"


def text_path(root: Path, name: str) -> Path:
    path = notebook_path(root, name)
    return path.parent / "text" / f"{path.stem}.py"


def read_notebook(root: Path, name: str, folder: str = "notebooks"):
    import nbformat

    try:
        return nbformat.read(root / folder / f"{name}.ipynb", 4)
    except Exception as error:  # whatever a damaged file does to its parser
        what = "is missing" if isinstance(error, FileNotFoundError) else f"is damaged ({type(error).__name__}: {error})"
        command = f"reset {name}" if folder == MINE else "build"
        cure = f"`python3 -m course {command}` makes it from its text"
        raise BuildError(f"{folder}/{name}.ipynb {what}: {cure}") from None


def from_text(root: Path, name: str):
    """The notebook that a text describes, not executed. A cell's id is a hash of its source, so it stays when others go."""
    import jupytext

    notebook = jupytext.reads(read_text(text_path(root, name)), fmt="py:percent")
    notebook.metadata, notebook.nbformat_minor = dict(METADATA), 5
    ids = set()
    for cell in notebook.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
        if "hide-input" in cell.metadata.get("tags", []):  # Lab shows it collapsed
            cell.metadata["jupyter"] = {"source_hidden": True}
        cell.id = hash_of(cell.cell_type, cell.source)[:8]
        while cell.id in ids:
            cell.id = hash_of(cell.id)[:8]
        ids.add(cell.id)
    return notebook


def essence(notebook) -> list[list]:
    """What a notebook says: the type, source and tags of each cell, without its outputs."""
    return [[c.cell_type, c.source.strip(), sorted(c.metadata.get("tags", []))] for c in notebook.cells]


def hash_of(*parts) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


# What a notebook may import besides the levels beneath it. `data` lies beside them, and holds no modules.
PACKAGES = ("course", "solutions", "levels_more")


def inputs_of(root: Path, name: str, text) -> str:
    """A hash of all that decides a notebook's outputs: its text, the levels and headings beneath, and what it uses.

    A notebook in `more` may use whatever there is of the levels and of `levels_more`.
    """
    texts = {other: source_of(text_path(root, other)) for other in all_in(root)}
    beneath = [other for other in names_in(root) if other < name]
    headings = [re.findall(r"^# #+ .*$", texts[other], re.MULTILINE) for other in beneath]  # `where` names them
    cells = [read(cell.source, name, n) for n, cell in enumerate(text.cells, 1) if cell.cell_type == "code"]
    modules = {path for other in beneath for path in (root / "levels" / level_of(other)).glob("*.py")}
    modules |= {*(root / SUPPORT).glob("*.py")}
    modules |= {*root.glob("levels_more/**/*.py")} if name in more_in(root) else set()
    modules |= imported_by(root, ast.Module([statement for cell in cells for statement in cell.body], []), modules)
    sources = [*(cell.source for cell in cells), *map(source_of, modules)]
    paths = modules | named_by(root, sources, list(texts.values()))
    files = [(p.relative_to(root).as_posix(), p.read_bytes().replace(b"\r\n", b"\n").hex()) for p in paths]
    keys = [(cell.source, blank_in(cell.source)) for cell in text.cells if cell.cell_type == "code"]
    fillings = [blanks.in_place(source, core_of(name), key) for source, key in keys if key]
    return hash_of(essence(text), headings, sorted(files), *fillings)


def imported_by(root: Path, tree: ast.AST, modules: set[Path]) -> set[Path]:
    """The modules of PACKAGES that this tree and these modules import, inside functions too, and those import in turn."""
    found, asked = set(), set()
    waiting = imports_in(tree, "").union(*(imports_of(root, path) for path in modules))
    while waiting:
        asked |= waiting
        parts = [names for names in (module.split(".") for module in waiting) if names[0] in PACKAGES]
        places = {root.joinpath(*names[:depth]) for names in parts for depth in range(1, len(names) + 1)}
        files = {file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")}
        new = {file for file in files - found if file.is_file()}  # else a name in a module
        found |= new
        waiting = set().union(*(imports_of(root, path) for path in new)) - asked
    return found


def imports_of(root: Path, path: Path) -> set[str]:
    return imports_in_source(source_of(path), ".".join(path.relative_to(root).parent.parts))


@functools.cache  # most modules are asked about again for the next notebook
def imports_in_source(source: str, package: str) -> set[str]:
    try:
        return imports_in(ast.parse(source), package)
    except SyntaxError:  # perhaps of a reader's own level: whoever imports it is told
        return set()


def imports_in(tree: ast.AST, package: str) -> set[str]:
    """The modules, and names in modules, that a tree in this package imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            home = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found |= {f"{home}.{alias.name}" for alias in node.names}
    return found


def named_by(root: Path, sources: list[str], texts: list[str]) -> set[Path]:
    """The files of data/ and beside the modules that these sources name, themselves or their folder, in quotes.

    What no source of the project names, nor a text, may be read by any.
    """
    every = [source_of(path) for package in (*PACKAGES, "levels") for path in root.glob(f"{package}/**/*.py")] + texts
    found = set()
    for folder in (root / part for part in ("data", *PACKAGES)):
        for path in folder.rglob("*"):
            beside = next((p for p in path.parents if p > folder and (p / "__init__.py").exists()), folder)
            within = path.relative_to(beside).parts
            if path.is_file() and path.suffix != ".py" and not any(part.startswith((".", "__")) for part in within):
                name = re.compile("|".join(rf"""["'/]{re.escape(part)}["'/]""" for part in (within[0], within[-1])))
                if any(map(name.search, sources)) or not any(map(name.search, every)):
                    found.add(path)
    return found


def source_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def stale(root: Path, name: str, text, notebook) -> str:
    """Why a notebook must be executed again, or nothing."""
    if essence(notebook) != essence(text):
        return "its cells differ from its text"
    if notebook.metadata.get("course", {}).get("inputs") != inputs_of(root, name, text):
        return "its text, a level beneath, or what it uses of course/ or data/ changed since it ran"
    return ""


def execute(notebook, name: str, root: Path) -> None:
    """Run a notebook in the project at `root`, top to bottom, with this very Python. Raises BuildError naming the cell."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    # with no folder to search, "python3" is this interpreter, and not another that is registered under that name
    kernel = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    options = {"timeout": 600, "record_timing": False, "coalesce_streams": True, "store_widget_state": False}
    options["extra_arguments"] = ["--IPKernelApp.log_level=ERROR"]
    at = 0
    with tqdm(total=len(notebook.cells), desc=f"{name:<14}", unit=" cells", leave=False, disable=None) as bar:

        def show(cell, cell_index):
            nonlocal at
            at = cell_index
            bar.update(at - bar.n)

        try:
            client = NotebookClient(notebook, km=kernel, on_cell_start=show, **options)
            client.execute(cwd=str(notebook_path(root, name).parent), env=environment(root), cleanup_kc=True)
        except Exception as error:  # a failing cell, a kernel that died, a cell that takes too long
            message = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip() or "it was interrupted"
            raise BuildError(f"{name}.ipynb, {title(at + 1, notebook.cells[at].source)} failed: {message}") from None
    notebook.metadata = dict(METADATA)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):  # what would differ from run to run, or name a folder of this machine
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
            if "traceback" in output:
                output["traceback"] = output["traceback"][-1:]


def write_notebook(root: Path, name: str, notebook) -> None:
    import nbformat

    replace(root, {notebook_path(root, name): nbformat.writes(notebook).rstrip("\n") + "\n"})


def set_aside(root: Path, name: str) -> None:
    """Keep a copy of a notebook whose cells are not those of its last build: somebody worked in it."""
    path = notebook_path(root, name)
    try:
        notebook = read_notebook(root, name)
        kept = notebook.metadata.get("course", {}).get("cells") != hash_of(essence(notebook))
    except BuildError:
        kept = path.exists()  # damaged, but perhaps not beyond help
    if kept:
        copy = root / ".course" / "aside" / f"{name}-{datetime.now():%Y%m%d-%H%M%S-%f}.ipynb"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
        print(f"{name:<14} was changed since its last build: a copy is {copy.relative_to(root).as_posix()}")


# On the command line: build, check, run.


def build(root: Path, name: str) -> None:
    """Bring a notebook and its level up to date with the text. If that fails, both stay as they were."""
    text, builds = from_text(root, name), name in names_in(root)
    try:
        notebook = read_notebook(root, name)
        why = stale(root, name, text, notebook)
    except BuildError:
        why = "it is missing or damaged"
    if not why:
        changed = builds and write_level(root, name, export(notebook, name))
        print(f"{name:<14} is up to date" + (", its level is written again" if changed else ""))
        return
    print(f"{name:<14} runs, because {why}", flush=True)
    start = time.perf_counter()
    if builds:
        export(text, name)  # finds a cell that cannot be exported before anything runs
    inputs = inputs_of(root, name, text)
    beneath = [level_of(other) for other in names_in(root) if other < name]
    with tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True) as folder:
        copy = copy_project(root, Path(folder).resolve(), beneath)
        write_notebook(copy, name, text)
        execute(text, name, copy)
    text.metadata["course"] = {"cells": hash_of(essence(text)), "inputs": inputs}
    set_aside(root, name)
    write_notebook(root, name, text)
    if builds:
        write_level(root, name, export(text, name))
    print(f"{name:<14} is built ({time.perf_counter() - start:.1f} s)")
    if broken := minutes.broken(minutes.sections(text.cells, root)):
        print(
            f"{name:<14} says other minutes than are counted: {'; '.join(broken)}. `python3 -m course build --minutes {name}`"
        )


def check(root: Path, names: list[str]) -> list[str]:
    """Where text, notebook and level disagree, naming file and cell. Nothing is executed or written."""
    front = root / "levels" / "__init__.py"
    found, files = [], {front: LEVELS}
    for name in names:
        folder = root / "levels" / level_of(name)
        try:
            text, notebook = from_text(root, name), read_notebook(root, name)
            differing = compare_cells(name, text, notebook)
            why = stale(root, name, text, notebook)
            found += differing or [f"notebooks/{name}.ipynb is stale: {why}"] * bool(why)
            for file, built in export(notebook, name).items() if name in names_in(root) else ():
                files[folder / file] = built.text
                found += compare_file(root, folder / file, built, name, notebook)
        except BuildError as error:
            found.append(str(error))
            files |= dict.fromkeys(folder.glob("*"), "")
    if names == all_in(root):
        if not front.exists() or front.read_text(encoding="utf-8") != LEVELS:
            found.append("levels/__init__.py is not the one that `python3 -m course build` writes")
        extra = [path for path in (root / "levels").rglob("*") if path.is_file() and path not in files]
        extra = [path for path in extra if root / SUPPORT not in path.parents]
        extra = [path.relative_to(root).as_posix() for path in extra if "__pycache__" not in path.parts]
        found += [f"{path}: no notebook builds this file" for path in sorted(extra)]
    return found


def compare_cells(name: str, text, notebook) -> list[str]:
    found, ours, theirs = [], essence(text), essence(notebook)
    for number in range(max(len(ours), len(theirs))):
        if ours[number : number + 1] != theirs[number : number + 1]:
            cells = notebook.cells if number < len(theirs) else text.cells
            where = title(number + 1, cells[number].source)
            told = text_path(Path(), name).as_posix()
            found.append(f"notebooks/{name}.ipynb, {where}: differs from {told}")
    return found


def compare_file(root: Path, path: Path, built: File, name: str, notebook) -> list[str]:
    there = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    ours = built.text.split("\n")
    if ours == there:
        return []
    line = next((n for n in range(len(there)) if ours[n : n + 1] != there[n : n + 1]), len(there))
    number = next(filter(None, built.cells[line:]), 0)  # imports, which stand in no cell, count with the next cell
    where = f", {title(number, notebook.cells[number - 1].source)}" if number else ""
    return [f"{path.relative_to(root).as_posix()}: line {line + 1} differs from notebooks/{name}.ipynb{where}"]


def main(argv: list[str], root: Path = ROOT) -> int:
    """`python3 -m course build`: bring notebooks and levels up to date with the texts."""
    from course.setup.arguments import parser  # a notebook, which imports this module, has no use for it

    options, found = parser("build").parse_args(argv), []
    try:
        names = sorted({named(root, given) for given in options.names}) or all_in(root)
        if options.minutes:
            minutes.write(root, names)
        elif options.check:
            found = check(root, names)
            print("\n".join(found) or "text, notebooks and levels agree")
        else:
            for name in names:
                build(root, name)
    except BuildError as error:
        found = [error]
        print(error, file=sys.stderr)
    return 1 if found else 0


def run(argv: list[str], root: Path = ROOT) -> int:
    """`python3 -m course run`: execute all notebooks from nothing, in a copy of the project that is kept."""
    from course.setup.arguments import parser

    parser("run").parse_args(argv)
    copy = copy_project(root, Path(tempfile.mkdtemp(prefix="levels-run-")).resolve(), [])
    print(f"The executed notebooks go to {copy / 'notebooks'}")
    try:
        for name in all_in(copy):
            start, notebook = time.perf_counter(), read_notebook(copy, name)
            execute(notebook, name, copy)
            write_notebook(copy, name, notebook)
            print(f"{name:<14} ran in {time.perf_counter() - start:.1f} s", flush=True)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
