"""What a reader sees who saves a notebook, ends its kernel, and opens it again: what is stored, and no error."""

import re

import nbformat
import pytest

from course import build
from course.author.setup import browser

pytestmark = pytest.mark.timeout(600)

NAMES = "01_hardware", "trail/1_hardware"
ASKS = re.compile(r"checks\.(predict|answer_to)\(|widgets\.explore\(")
# What the cell with the sliders of notebook 01 reads from the cells before it.
READ = """
from course import compare, tasks
from levels.hardware import Assembler, pool, write_steps
from levels.hardware.tasks import net_row
from levels.support.measure import lane_peak

cpu = pool()["cpu:0"]
net = compare.program_of(net_row, tasks.rings())
""".strip()


def shortened(cells):
    """Of a notebook's cells the first code cell, and those that ask, answer or show a slider: they run in seconds."""
    first, *others = [cell for cell in cells if cell.cell_type == "code"]
    imports = [cell for cell in others if "import checks" in cell.source and not ASKS.search(cell.source)]
    return [first, nbformat.v4.new_code_cell(READ), *imports, *(c for c in others if ASKS.search(c.source))]


@pytest.fixture(scope="module")
def desk(lasting_chromium, tmp_path_factory):
    """(the project, from a notebook's name to its address in the JupyterLab of a reader), the notebooks shortened."""
    levels = [build.level_of(name) for name in build.names_in(build.ROOT)]
    root = build.copy_project(build.ROOT, tmp_path_factory.mktemp("evening").resolve() / "copy", levels)
    with browser.jupyterlab(root, tmp_path_factory.mktemp("lab")) as address:
        for name in NAMES:
            notebook = build.read_notebook(root, name, "mine")
            notebook.cells = shortened(notebook.cells)
            nbformat.write(notebook, root / "mine" / f"{name}.ipynb")
        yield root, address


def opened(lasting_chromium, address):
    tab = lasting_chromium.new_page(viewport={"width": 1280, "height": 1000})
    tab.faults = []
    tab.on("pageerror", lambda error: tab.faults.append(str(error)))
    tab.goto(address)
    tab.locator("#jp-main-statusbar :text('| Idle')").wait_for(timeout=120_000)
    return tab


def by_menu(tab, menu, command, button=""):
    tab.get_by_role("menuitem", name=menu, exact=True).click()
    tab.locator(f"[data-command='{command}']").click()
    if button:
        tab.get_by_role("button", name=button).click()


def saved(tab, path, text):
    """Save the notebook, until its file holds this text."""
    for _ in range(100):
        tab.keyboard.press("ControlOrMeta+s")
        tab.wait_for_timeout(300)
        if text in path.read_text(encoding="utf-8"):
            return
    raise AssertionError(f"{path.name} does not hold {text}")


def answer(question):
    """Commit the last choice, or the middle of a slider, or a 2, by mouse. Returns what was chosen."""
    given = "2"
    if question.get_by_role("radio").count():
        given = question.locator("label", has=question.page.get_by_role("radio")).last.inner_text().strip()
        question.get_by_role("radio").last.click()
    elif question.locator(".noUi-target").count():
        question.locator(".noUi-target").click()
        given = question.locator(".widget-label").inner_text()
    else:
        question.get_by_role("textbox").click()
        question.page.keyboard.type(given)
    question.get_by_role("button", name="Commit").click()
    return given


BROKEN = ".jupyter-widgets-disconnected, .fa-unlink, .fa-chain-broken"


def nothing_is_broken(tab):
    tab.wait_for_timeout(2500)  # JupyterLab looks for a widget for two seconds
    assert tab.get_by_text("Error displaying widget").count() == tab.get_by_text("Loading widget").count() == 0
    assert tab.locator(f":is({BROKEN}):visible").count() == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_next_evening_shows_what_was_chosen_and_what_was_drawn(lasting_chromium, desk, name):
    root, address = desk
    path = root / "mine" / f"{name}.ipynb"
    tab = opened(lasting_chromium, address(name))
    assert browser.run_all(tab) == []
    tab.locator(".jp-OutputArea-output .widget-html", has_text="Predict:").first.wait_for()
    asked = tab.locator(".jp-OutputArea-output", has=tab.get_by_role("button", name="Commit"))
    moved = tab.locator("img.widget-image").count()
    every = asked.count()
    given = answer(asked.first)
    tab.get_by_text(f"You said {given}").wait_for()
    saved(tab, path, "You said")
    assert asked.count() == every - 1
    by_menu(tab, "Kernel", "kernelmenu:shutdown")
    tab.locator("#jp-main-statusbar :text('No Kernel')").wait_for()
    nothing_is_broken(tab)
    tab.close()

    tab = opened(lasting_chromium, address(name))
    nothing_is_broken(tab)
    questions = tab.locator("[data-question]")
    assert questions.count() == every
    assert f"You said {given}." in questions.first.inner_text() and "Predict:" in questions.first.inner_text()
    assert "You said" not in "".join(questions.all_inner_texts()[1:])
    pictures = tab.locator(".jp-OutputArea-output", has_text="This is what was stored").locator("img")
    assert pictures.count() == moved and pictures.evaluate_all("all => all.every(each => each.naturalWidth > 300)")
    assert moved == (name == "01_hardware") and tab.faults == []
    tab.close()


def test_a_page_that_is_reloaded_has_its_widgets_and_a_kernel_that_is_restarted_leaves_what_is_stored(
    lasting_chromium, desk
):
    _, address = desk
    tab = opened(lasting_chromium, address("01_hardware"))
    assert browser.run_all(tab) == []
    saved(tab, desk[0] / "mine" / "01_hardware.ipynb", "widget-view+json")
    commits = tab.get_by_role("button", name="Commit").count()
    tab.reload()
    tab.locator("img.widget-image").wait_for(timeout=120_000)
    tab.wait_for_timeout(3000)
    assert tab.get_by_role("button", name="Commit").count() == commits >= 3
    assert tab.get_by_text("This is what was stored").count() == 0
    by_menu(tab, "Kernel", "kernelmenu:restart", "Confirm Kernel Restart")
    tab.get_by_text("This is what was stored").first.wait_for(timeout=60_000)
    nothing_is_broken(tab)
    assert tab.locator("img.widget-image:visible").count() == 0
    assert tab.get_by_text("This is what was stored").count() >= 4
    tab.close()
