"""Write parts of README.md, TEACHING.md and the site: the list of notebooks, three pictures and their descriptions.

`python -m course.author.pages` rewrites the list of notebooks in `more/`. With the word `pictures` it also makes the
pictures again, or only those whose names follow. `five_levels` measures on this machine. `side_by_side`, which
README.md shows on light and on dark pages, and `sliders` need a browser.
"""

import functools
import html
import importlib
import io
import json
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from PIL import Image

from course.author import site
from course.author.builder.files import copy_project
from course.author.setup import browser, index_page
from course.reader import figures, files, reference, tasks
from course.reader.inspection import compare, side_by_side, tour
from course.reader.notebooks.stored import METADATA, write_notebook

ROOT = Path(__file__).resolve().parents[2]


def five_levels():
    """Measure and draw the figure of all five levels. Return its PNG, and its description in words."""
    levels = [importlib.import_module(f"levels.{level}").tasks for level in figures.LEVELS]
    on_all = [reference.linear_regression, *(level.linear_regression for level in levels)]
    picture = tour.five_levels(compare.measure(tasks.linear(), *on_all))
    return picture.png, picture.text


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
    notebook = json.loads((ROOT / "notebooks" / "05_high_level.ipynb").read_text(encoding="utf-8"))
    page = next(page for page, _ in site.outputs(notebook) if site.HOUSE in page)
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


CONTENTS = "course/author/site/prose/contents.md"
PAGES = "README.md", "TEACHING.md", CONTENTS


def what_branches_off():
    """The map's list of the notebooks in `more/`, with links from the page that shows it."""
    return index_page.more(ROOT, "../../../../notebooks/")


def main(arguments):
    page = ROOT / CONTENTS
    tables = {"what branches off": what_branches_off}
    files.write(page, files.with_tables(page.read_text(encoding="utf-8"), tables, "course/author/pages.py"))
    for name in (arguments[1:] or PICTURES) if arguments[:1] == ["pictures"] else ():
        png, text = PICTURES[name]()
        (ROOT / "pictures" / f"{name}.png").write_bytes(png)
        if name in DARK:
            (ROOT / "pictures" / f"{name}_dark.png").write_bytes(DARK[name]()[0])
        for page in PAGES:
            files.write(ROOT / page, with_description((ROOT / page).read_text(encoding="utf-8"), name, text))


if __name__ == "__main__":
    main(sys.argv[1:])
