"""At the end of a notebook of the trail, copy the reader's functions into that level's own notebook in `mine`."""

from course.reader.files import replace
from course.reader.language import say
from course.reader.notebooks import blanks
from course.reader.notebooks.cells import BuildError, blank_in
from course.reader.notebooks.names import MINE, ROOT, core_of
from course.reader.notebooks.running import HOME, WATCHED, WRITTEN
from course.reader.notebooks.stored import read_notebook


def take_along() -> None:
    """Print which functions of this notebook are the reader's, and copy them into the level's own notebook in `mine`.

    A function is copied only if it is right, and only into a blank that the reader has not touched there.
    """
    name = core_of(WATCHED[0])
    yours = {key: source for key, source in WRITTEN.items() if blanks.is_right(source, name, key)}
    others = [key for key in WRITTEN if key not in yours]
    counted = say("blanks: yours {yours}, the course's {others}", yours=len(yours), others=len(others))
    print(counted + f" ({', '.join(others)})" * bool(others))
    if HOME[0] == ROOT / MINE and yours:
        taken = fill(name, yours)
        if taken:
            where = f"{MINE}/{name}.ipynb"
            print(say("Your functions are now in {where}, too: {taken}", where=where, taken=", ".join(taken)))


def fill(name: str, yours: dict[str, str]) -> list[str]:
    """Write these functions into the untouched blanks of a notebook in `mine`. Return the keys that were written."""
    try:
        notebook = read_notebook(ROOT, name, MINE)
    except BuildError:  # the notebook was removed or is damaged: nothing is copied
        return []
    taken = []
    for cell in notebook.cells:
        key = blank_in(cell.source) if cell.cell_type == "code" else ""
        if key in yours and untouched(cell.source, key):
            cell.source = cell.source.split("\n")[0] + "\n" + yours[key].partition("\n")[2]
            taken.append(key)
    if taken:
        import nbformat

        replace(ROOT, {ROOT / MINE / f"{name}.ipynb": nbformat.writes(notebook).rstrip("\n") + "\n"})
    return taken


def untouched(source: str, key: str) -> bool:
    try:
        return blanks.is_stub(blanks.function_of(source, key))
    except blanks.Unfit:
        return False
