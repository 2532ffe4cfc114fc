"""Make notebooks from their text, read them, and write them."""

import hashlib
import json
from pathlib import Path

from course.builder.cells import BuildError, read_text
from course.builder.files import replace
from course.builder.names import MINE, notebook_path, text_path

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
        what = "is missing" if isinstance(error, FileNotFoundError) else f"is damaged ({type(error).__name__}: {error})"
        command = f"reset {name}" if folder == MINE else "build"
        cure = f"`python3 -m course {command}` makes it from its text"
        raise BuildError(f"{folder}/{name}.ipynb {what}: {cure}") from None


def from_text(root: Path, name: str):
    """Return the notebook of a text, not executed. A cell's id is a hash of its source: it stays if others change."""
    import jupytext

    notebook = jupytext.reads(read_text(text_path(root, name)), fmt="py:percent")
    notebook.metadata = dict(METADATA)
    notebook.nbformat_minor = 5
    ids = set()
    for cell in notebook.cells:
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
