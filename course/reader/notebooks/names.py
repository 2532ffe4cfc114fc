"""The names and paths of the notebooks."""

import difflib
import re
from pathlib import Path

from course.reader.language import CATALOGS, po_path
from course.reader.notebooks.cells import BuildError

ROOT = Path(__file__).resolve().parents[3]
MINE = "mine"  # the reader's folder: see course/author/setup/workspace.py
# in `mine`: `most` if the reader writes most functions, `class` if solutions are hidden, `zh` if the desk is Chinese
DESK = ".course/desk"


def names_in(root: Path) -> list[str]:
    """Return the five core notebooks. Others with a text, which a reader saved beside them, are not included."""
    return sorted(path.stem for path in root.glob("notebooks/text/[0-9][0-9]_*.py"))


def more_in(root: Path) -> list[str]:
    """Return the notebooks in `more`, as "more/01_gpu": they use the levels that the five build, and build nothing."""
    return sorted(f"more/{path.stem}" for path in root.glob("notebooks/more/text/[0-9][0-9]_*.py"))


def trail_in(root: Path, language: str = "") -> list[str]:
    """Return the notebooks of the trail, as "trail/1_hardware": the short way through all five levels.

    In a language, they are those that have a translation, as "zh/trail/1_hardware".
    """
    found = sorted(f"trail/{path.stem}" for path in root.glob("notebooks/trail/text/[0-9]_*.py"))
    if not language:
        return found
    return [f"{language}/{name}" for name in found if po_path(root, language, name).exists()]


def all_in(root: Path) -> list[str]:
    """Return all notebooks that have a text: the five, then the trail, then those in `more`."""
    return names_in(root) + trail_in(root) + more_in(root)


def translated_in(root: Path) -> list[str]:
    """Return the notebooks in other languages, which are made from the English text and its translation."""
    return [name for language in CATALOGS for name in trail_in(root, language)]


def language_of(name: str) -> str:
    """Return the language of a notebook: "zh" for zh/trail/1_hardware, and "" for English."""
    first = name.split("/")[0]
    return first if first in CATALOGS else ""


def original(name: str) -> str:
    """Return the English notebook that a notebook is, or of which it is a translation."""
    return name.removeprefix(f"{language_of(name)}/")


def desk_words(root: Path) -> set[str]:
    """Return the settings of the desk, a set of words (`course.author.setup.depth`)."""
    path = root / MINE / DESK
    return set(path.read_text(encoding="utf-8").split()) if path.exists() else set()


def language_in(root: Path) -> str:
    """Return the language of the desk: that of `lab --language`, or "" for English."""
    return next((language for language in CATALOGS if language in desk_words(root)), "")


def depth_in(root: Path) -> str:
    """Return the depth of the desk, how much the reader writes: "some" or "most"."""
    return "most" if "most" in desk_words(root) else "some"


def core_of(name: str) -> str:
    """Return the core notebook whose blanks a notebook of the trail has; for any other notebook, its own name."""
    return re.sub(r"^trail/(\d)_", r"0\1_", original(name))


def level_of(name: str) -> str:
    return name.split("_", 1)[1]


def named(root: Path, given: str) -> str:
    """Return the notebook that 02, 2, kernels, 02_kernels, 01_gpu, 2_kernels (the trail's) or a path refers to.

    Raises BuildError, with the nearest names, if there is none.
    """
    known = names_in(root)
    stem = Path(given).stem
    for name in translated_in(root):
        if given.replace("\\", "/").removesuffix(".ipynb").endswith(name):
            return name
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


def notebook_path(root: Path, name: str) -> Path:
    return root / "notebooks" / f"{name}.ipynb"


def text_path(root: Path, name: str) -> Path:
    """Return the path of a notebook's text: that of the English notebook if it is a translation."""
    path = notebook_path(root, original(name))
    return path.parent / "text" / f"{path.stem}.py"
