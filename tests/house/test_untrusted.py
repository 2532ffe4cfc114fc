"""What a fresh clone shows in JupyterLab as it is installed, before anything runs: without trust, so without styles."""

import json

import pytest
from code_edges import cut_names, drawn, uneven_edges

from course import build
from course.author.setup import browser
from course.reader.notebooks.names import names_in

NAMES = *names_in(build.ROOT), "trail/5_high_level"
CODE = ".jp-RenderedHTML pre"
WIDTHS = 1280, 880
# JupyterLab leaves out what is not in sight.
PAINTED = ".jp-Notebook * { content-visibility: visible !important; }"
OPEN = "document.querySelectorAll('.jp-RenderedHTML details').forEach(part => part.open = true)"


@pytest.fixture(scope="module")
def address(lasting_chromium, tmp_path_factory):
    """The address of one notebook in a JupyterLab that knows nothing of the course.

    It has the cells with HTML in their stored outputs, of all notebooks: a whole one takes long to show.
    """
    root, every = tmp_path_factory.mktemp("clone"), []
    for name in NAMES:
        notebook = json.loads((build.ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if '"text/html"' in json.dumps(cell.get("outputs", ""))]
        assert cells, name
        every += [cell | {"id": f"cell-{len(every) + k}"} for k, cell in enumerate(cells)]
    (root / "all.ipynb").write_text(json.dumps(notebook | {"cells": every}), encoding="utf-8")
    with browser.plain_jupyterlab(root, tmp_path_factory.mktemp("lab")) as address:
        yield address("all")


def test_code_keeps_its_indentation_and_its_names(lasting_chromium, address):
    tab = lasting_chromium.new_page(viewport={"width": WIDTHS[0], "height": 800})
    tab.goto(address)
    tab.locator("[title*='Notebook not trusted']").wait_for(timeout=120_000)
    tab.wait_for_function(browser.ALL_CELLS, timeout=120_000)
    tab.add_style_tag(content=PAINTED)
    tab.evaluate(OPEN)
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 800})
        blocks = drawn(tab, CODE)
        assert sum(map(len, blocks)) > 40 * len(NAMES), "the levels side by side, with the functions that they call"
        assert cut_names(blocks) == [] and uneven_edges(blocks) == []
    assert tab.locator("style", has_text=".side-by-side").count() == 0, "they are seen without their styles"
    tab.close()
