"""Write levels, copy the project, and make the environment for processes that use a copy of it."""

import os
import shutil
from pathlib import Path

from course.author.builder.export import LEVELS, File
from course.reader.files import replace
from course.reader.notebooks.names import ROOT, level_of

# the folders that a copy of the project needs
PARTS = "course", "data", "levels", "levels_more", "notebooks", "po", "solutions", "tests"
SUPPORT = "levels/support"  # written by hand, and part of every copy of the levels
COPY = "COURSE_COPY"  # environment variable: the copy of the project in which notebooks write `levels`


def support_in(root: Path) -> dict[str, str]:
    """Return the files of `levels/support`, which no notebook builds, as {path: text}."""
    paths = sorted((root / SUPPORT).glob("*.py"))
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def write_level(root: Path, name: str, files: dict[str, File]) -> bool:
    """Make a level consist of exactly these files; its `__init__.py` is written last. Returns whether any changed."""
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
    """Copy the project into the folder `target`, with only these levels and `levels/support`. Returns `target`.

    What Python has compiled of `course` goes along, and stays valid, because a copy has the time of its file. To
    compile it anew takes a second. (`x.pyc.*` is a file that another process is writing.)
    """
    for part in PARTS:
        compiled = "*.pyc.*" if part == "course" else "__pycache__"
        if (root / part).exists():
            shutil.copytree(root / part, target / part, ignore=shutil.ignore_patterns(compiled, ".*"))
    shutil.rmtree(target / "levels", ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for part in [*levels, "support"] if (root / SUPPORT).is_dir() else levels:
        shutil.copytree(root / "levels" / part, target / "levels" / part, ignore=ignored)
    # this file is always written: without it, Python would prefer any other `levels` on its path
    replace(target, {target / "levels" / "__init__.py": LEVELS})
    return target


def environment(*roots: Path) -> dict[str, str]:
    """Return an environment in which `course` and `levels` are imported from the first of these folders that has them.

    They take precedence over installed packages. Notebooks in the last folder write its `levels`.
    """
    path = os.pathsep.join(filter(None, [*map(str, roots), os.environ.get("PYTHONPATH")]))
    plain = {"PYTHON_COLORS": "0"}  # output is read and quoted; children of a kernel would colour it
    own = {"IPYTHONDIR": str(roots[-1] / ".course" / "ipython"), COPY: str(roots[-1])}
    own["COURSE_SERVING"] = os.environ.get("COURSE_SERVING") or str(ROOT / ".course" / "serving")  # one for all copies
    return os.environ | {"PYTHONPATH": path} | own | plain
