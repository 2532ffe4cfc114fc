"""Make notebooks from their text, read them, and write them."""

import hashlib
import json
from pathlib import Path

from course.reader.files import replace
from course.reader.notebooks.cells import BuildError, read_text
from course.reader.notebooks.names import MINE, language_of, notebook_path, original, text_path
from course.reader.notebooks.translated import translate

# nbformat and jupytext are imported inside functions, because they take two seconds to load, and the first cell of
# every notebook imports this module.

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read_notebook(root: Path, name: str, folder: str = "notebooks"):
    import nbformat

    try:
        return nbformat.read(root / folder / f"{name}.ipynb", 4)
    except Exception as error:  # a damaged file may raise any error in the parser
        raise BuildError(f"{folder}/{name}.ipynb {unread(error, name, folder)}") from None


def unread(error: Exception, name: str, folder: str) -> str:
    """Return why a notebook could not be read, and what to do."""
    if isinstance(error, FileNotFoundError):
        if folder == MINE:
            return f"is missing. Is it renamed? Rename it back to {name}.ipynb. `python3 -m course lab` makes a new one"
        return "is missing: `python3 -m course build` makes it from its text"
    cure = "`python3 -m course build` makes it from its text"
    if folder == MINE:
        cure = f"`python3 -m course reset {name}` puts the course's in its place, and keeps this one in .course/aside/"
    return f"cannot be read ({type(error).__name__}: perhaps it was cut off). {cure}"


def from_text(root: Path, name: str):
    """Return the notebook of a text, not executed. A cell's id is a hash of its source: it stays if others change.

    In another language, its code is that of the English text, and its prose comes from `po/`.
    """
    import jupytext

    notebook = jupytext.reads(read_text(text_path(root, name)), fmt="py:percent")
    notebook.metadata = dict(METADATA)
    notebook.nbformat_minor = 5
    ids = set()
    for cell in notebook.cells:
        if language_of(name) and cell.cell_type == "markdown":
            cell.source = translate(root, language_of(name), original(name), cell.source)
        cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
        if "hide-input" in cell.metadata.get("tags", []):  # JupyterLab shows it collapsed
            cell.metadata["jupyter"] = {"source_hidden": True}
        cell.id = hash_of(cell.cell_type, cell.source)[:8]
        while cell.id in ids:
            cell.id = hash_of(cell.id)[:8]
        ids.add(cell.id)
    return notebook


def essence(notebook) -> list[list]:
    """Return the content of a notebook: the type, source and tags of each cell, without its outputs."""
    return [[c.cell_type, c.source.strip(), sorted(c.metadata.get("tags", []))] for c in notebook.cells]


def hash_of(*parts) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def write_notebook(root: Path, name: str, notebook) -> None:
    import nbformat

    replace(root, {notebook_path(root, name): nbformat.writes(notebook).rstrip("\n") + "\n"})
