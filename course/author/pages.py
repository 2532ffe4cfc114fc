"""Write parts of README.md, TEACHING.md and the site: the list of notebooks, three pictures and their descriptions.

`python -m course.author.pages` rewrites the list of notebooks in `more/`. With the word `pictures` it also makes the
pictures again, or only those whose names follow. `side_by_side`, which README.md shows on light and on dark pages,
and `sliders` need a browser. With the word `measure` it first runs notebook 05 again: its outputs are the one run
whose numbers all pictures and the site show (course/author/site/stored_run.py).
"""

import functools
import html
import io
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from PIL import Image

from course.author.builder.cli import build
from course.author.builder.files import copy_project
from course.author.setup import browser, index_page
from course.author.site import stored_run
from course.reader import files
from course.reader.inspection import side_by_side
from course.reader.notebooks.stored import METADATA, write_notebook

ROOT = Path(__file__).resolve().parents[2]


def five_levels():
    """The figure of all five levels, as notebook 05 shows it. Return its PNG, and its description in words."""
    return stored_run.figure(ROOT, "linear_regression")


MOVED = """from course.reader import figures
from course.reader.figures import widgets

start = {"order": "ijk", "step": 303}
widgets.explore(figures.loop_order, "", start, order=figures.ORDERS, step=range(513))
"""


def sliders():
    """Take a screenshot of a figure with sliders in JupyterLab. Return its PNG, and its description in words."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scratch = Path(folder).resolve()
        root = copy_project(ROOT, scratch / "copy", [])
        cells = [nbformat.v4.new_code_cell(MOVED)]
        write_notebook(root, "one", nbformat.v4.new_notebook(cells=cells, metadata=METADATA))
        (root / "mine").mkdir(exist_ok=True)
        (root / "notebooks/one.ipynb").rename(root / "mine/one.ipynb")  # the folder that JupyterLab opens
        with browser.jupyterlab(root, scratch) as address, browser.launched() as running:
            tab = running.new_page(viewport={"width": 1200, "height": 1000})
            tab.goto(address("one"))
            if errors := browser.run_all(tab):
                raise RuntimeError("\n".join(errors))
            figure = tab.locator(".jp-OutputArea-output", has=tab.locator("img.widget-image"))
            text = figure.get_by_role("status").inner_text()
            shot = Image.open(io.BytesIO(figure.screenshot())).convert("RGB")
    small = io.BytesIO()
    shot.quantize(256, dither=Image.Dither.NONE).save(small, "png")
    return small.getvalue(), f"A figure with two sliders, order and step. {text}"


def five_side_by_side(scheme="light"):
    """Draw the five levels side by side, as notebook 05 shows them. Return a PNG, and its description in words.

    scheme: "light" or "dark", the colour scheme of the page that shows the picture.
    """
    page, _ = stored_run.side_by_side(ROOT)
    loss = re.search("<b>([^<]+)</b> <code>0x", page)[1]
    words = "One training step of the linear regression, written on each of the five levels. "
    with browser.launched() as running:
        return side_by_side.picture(running, page, scheme), f"{words}All five end on the same loss, {loss}."


PICTURES = {"five_levels": five_levels, "side_by_side": five_side_by_side, "sliders": sliders}
DARK = {"side_by_side": functools.partial(five_side_by_side, "dark")}  # the same for dark pages: pictures/NAME_dark.png


def with_description(page, name, text):
    """The page with this text as the alt text of the image `pictures/NAME.png`, in Markdown or in HTML."""
    page = re.sub(rf"!\[[^\]]*\](\([./]*pictures/{name}\.png\))", lambda found: f"![{text}]{found[1]}", page)
    image = re.compile(rf'<img alt="[^"]*"( src="[./]*pictures/{name}\.png">)')
    return image.sub(lambda found: f'<img alt="{html.escape(text)}"{found[1]}', page)


CONTENTS = "course/author/site/pages/contents.md"
PAGES = "README.md", "TEACHING.md", CONTENTS


def what_branches_off():
    """The map's list of the notebooks in `more/`, with links from the page that shows it."""
    return index_page.more(ROOT, "../../../../notebooks/")


def main(arguments):
    """Write what is named; see the top of this file."""
    measures = arguments[:1] == ["measure"]
    if measures:
        build(ROOT, stored_run.NAME, anew=True)
    page = ROOT / CONTENTS
    tables = {"what branches off": what_branches_off}
    files.write(page, files.with_tables(page.read_text(encoding="utf-8"), tables, "course/author/pages.py"))
    for name in (arguments[1:] or PICTURES) if measures or arguments[:1] == ["pictures"] else ():
        png, text = PICTURES[name]()
        (ROOT / "pictures" / f"{name}.png").write_bytes(png)
        if name in DARK:
            (ROOT / "pictures" / f"{name}_dark.png").write_bytes(DARK[name]()[0])
        for page in PAGES:
            files.write(ROOT / page, with_description((ROOT / page).read_text(encoding="utf-8"), name, text))


if __name__ == "__main__":
    main(sys.argv[1:])
