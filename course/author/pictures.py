"""Make the pictures of README, TEACHING and the site, and describe them in words."""

import functools
import html
import io
import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def five_levels():
    """The figure of all five levels, as notebook 05 shows it. Return its PNG, and its description in words."""
    from course.author.site import stored_run

    return stored_run.figure(ROOT, "linear_regression")


MOVED = """from course.reader import figures
from course.reader.figures import widgets

start = {"order": "ijk", "step": 303}
widgets.explore(figures.loop_order, "", start, order=figures.ORDERS, step=range(513))
"""


def sliders():
    """Take a screenshot of a figure with sliders in JupyterLab. Return its PNG, and its description in words."""
    import nbformat
    from PIL import Image

    from course.author.builder.files import copy_project
    from course.author.setup import browser
    from course.reader.notebooks.stored import METADATA, write_notebook

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
    from course.author.setup import browser
    from course.author.site import stored_run
    from course.reader.inspection import side_by_side

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
