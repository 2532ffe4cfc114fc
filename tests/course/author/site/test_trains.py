"""The page trains: to the bit, on four levels, while a slider moves, by keyboard; and it says what it cannot."""

import re
import struct

import pytest

pytest.importorskip("sphinx", reason="the site is written with the group `site`: `python3 -m course setup`")

from course import tasks  # noqa: E402
from course.author.site import trains  # noqa: E402
from levels.hardware.tasks import linear_regression  # noqa: E402

pytestmark = pytest.mark.timeout(600)


def trained(page, task, level):
    """The part of a page that trains, when it has."""
    place = page.locator(".train")
    place.get_by_label("task").select_option(task)
    place.get_by_label("level").select_option(str(level))
    place.get_by_role("button").click()
    page.wait_for_function("document.querySelector('.train').losses", timeout=60_000)
    page.wait_for_function("document.querySelector('.train .yours td:last-child').textContent.endsWith('µs')")
    return place


def test_the_first_screen_trains(tab):
    """The button, the sliders, the curve and both rows of bits can be seen at once, before and after it has trained."""
    page = tab("index")
    for _ in range(2):
        shown = [page.get_by_role("button", name="Train it in this browser"), *page.locator(".train input").all()]
        shown += [page.locator(".curve"), page.locator(".bits"), page.locator("tr.yours")]
        boxes = [each.bounding_box() for each in shown]
        assert len(boxes) == 6 and all(box["height"] > 0 and box["y"] + box["height"] <= 900 for box in boxes)
        trained(page, "linear_regression", 1)


def losses_on(page):
    return page.evaluate("[...document.querySelector('.train').losses]")


@pytest.mark.parametrize("level", trains.LEVELS)
@pytest.mark.parametrize(
    "task, digits", [("linear_regression", "0x1.26b37bd4bf3c0p+3"), ("dnn_classifier", "0x1.4ce27bff798c5p-3")]
)
def test_the_page_trains_to_the_bit(tab, task, digits, level):
    page = tab("index")
    page.context.set_offline(True)
    place = trained(page, task, level)
    record = trains.trainings()[task][1].record.tolist()
    assert losses_on(page) == record and len(record) in (8000, 24000) and record[-1].hex() == digits
    assert "All 64 bits are equal" in place.locator("p[role=status]").inner_text()
    upper, lower = (page.locator(f".bits code:nth-of-type({row})").all_inner_texts() for row in (1, 2))
    assert upper == lower and "".join(upper) == f"{struct.unpack('>Q', struct.pack('>d', record[-1]))[0]:064b}"
    assert all(digits in row.inner_text() for row in place.locator("tbody tr").all())
    assert "steps" in place.locator(".curve").get_attribute("aria-label") and place.locator(".mean").count() == 1
    assert place.get_by_label("batch").is_disabled() == (level != 1)
    assert place.get_by_label("learning rate").is_disabled() == (level == 3)
    for row in ("yours", "course"):
        assert re.fullmatch(r"[\d.]+ µs", place.locator(f"tr.{row} td").last.inner_text())
    assert page.wrong == []


def test_every_level_trains_or_says_why_not(tab):
    page = tab("index")
    place = page.locator(".train")
    level = place.get_by_label("level")
    assert [int(each) for each in level.locator("option").evaluate_all("all => all.map((one) => one.value)")] == [
        *range(1, 6)
    ]
    level.select_option("2")
    assert place.get_by_role("button").is_disabled() and place.locator("input:enabled").count() == 0
    assert place.locator(".said").inner_text() == "Level 2 does not train in a browser. The other four do."
    assert "Python calls small programs" in place.locator(".why").inner_text()
    for each in trains.LEVELS:
        level.select_option(str(each))
        assert place.get_by_role("button").is_enabled() and f"Level {each} " in place.locator(".why").inner_text()
    assert page.wrong == []


def settled(page):
    page.wait_for_function("document.querySelector('.train').losses", timeout=60_000)
    return page.locator(".train p[role=status]").inner_text()


def test_a_slider_trains_while_it_moves_and_its_number_is_python_s(tab):
    """No button is pressed. What the page shows in the end belongs to where the slider stands."""
    page = tab("index")
    place = page.locator(".train")
    place.get_by_label("learning rate").press("ArrowLeft")
    task = tasks.linear()
    fit = linear_regression(task.x, task.y, task.weights, task.batches, 0.0002)
    assert settled(page).startswith("Another learning rate: another number")
    assert losses_on(page) == fit.losses.tolist() and place.locator(".mean").count() == 1
    for _ in range(3):
        place.get_by_label("batch").press("ArrowRight")
    place.get_by_label("batch").press("ArrowLeft")
    place.get_by_label("batch").press("ArrowLeft")
    fit = linear_regression(task.x, task.y, task.weights, tasks.batch_order(400, 20, 200, seed=1), 0.0002)
    expected = f"another number, {float(f'{fit.losses[-1]:.4g}')}. There is no record to compare it with."
    assert settled(page) == f"Another learning rate and batch: {expected}"
    assert losses_on(page) == fit.losses.tolist() and page.wrong == []


def test_it_goes_on_while_the_slider_of_the_long_task_moves(tab):
    """Training is cut into pieces: between two pictures there is never a whole training."""
    page = tab("index")
    trained(page, "dnn_classifier", 1)
    page.evaluate("""() => {
        const place = document.querySelector(".train");
        place.addEventListener("input", () => { window.pictures = 0; });
        const count = () => { if (!place.losses) window.pictures++; requestAnimationFrame(count); };
        count();
    }""")
    place = page.locator(".train")
    for _ in range(4):
        place.get_by_label("learning rate").press("ArrowRight")
    assert place.locator(".record").count() == 1, "the curve of the course's settings stays beneath"
    settled(page)
    assert page.evaluate("window.pictures") > 8 and page.wrong == []


def test_a_rate_that_diverges_is_called_that(tab):
    page = tab("index")
    place = page.locator(".train")
    place.get_by_label("learning rate").press("End")
    place.get_by_label("batch").press("Home")
    said = settled(page)
    assert re.match(r"It diverges: at step [\d,]+ the loss is larger than 64 bits can hold\. Choose a smaller", said)
    place.get_by_label("batch").press("End")
    said = settled(page)
    assert re.match(r"It diverges: the loss rises from 362\.\d to 1\.64e19\. Choose a smaller", said), said
    assert "rises" in place.locator(".curve").get_attribute("aria-label") and page.wrong == []


def test_it_trains_by_keyboard_and_nothing_jumps(tab):
    page = tab("notebooks/trail/1_hardware", 360)
    place = page.locator(".train")
    place.get_by_role("button").focus()
    for key in ("Tab", "ArrowDown", "Tab", *["ArrowDown"] * 4, "Shift+Tab", "Shift+Tab", "Enter"):
        page.keyboard.press(key)
    page.evaluate("""() => {
        window.jumped = [];
        const seen = (list) => window.jumped.push(...list.getEntries().filter((each) => !each.hadRecentInput));
        new PerformanceObserver(seen).observe({type: "layout-shift"});
    }""")
    said = "Training the two rings by the program of level 5"  # as soon as the file of the programs is loaded
    page.wait_for_function("said => document.querySelector('.train .said').textContent.startsWith(said)", arg=said)
    height = place.bounding_box()["height"]
    page.wait_for_function("document.querySelector('.train').losses", timeout=60_000)
    assert "All 64 bits are equal" in place.locator("p[role=status]").inner_text()
    assert place.bounding_box()["height"] == height and page.evaluate("window.jumped.length") == 0
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert "0.02" in place.locator(".slider output").first.inner_text(), "the learning rate of level 5 can be changed"
    assert page.wrong == []


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 360)])
def test_all_can_read_what_it_says(tab, serious, scheme, width):
    page = tab("index", width, scheme)
    place = trained(page, "linear_regression", 1)
    place.get_by_label("batch").press("ArrowRight")
    assert serious(page, ".train") == []
    trained(page, "dnn_classifier", 3)
    assert serious(page, ".train") == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    wide = "each => each.getBoundingClientRect().right > document.querySelector('.train').getBoundingClientRect().right + 1"
    assert (
        page.evaluate(f"[...document.querySelectorAll('.train .run *')].filter({wide}).map(each => each.outerHTML)")
        == []
    )


def test_what_is_missing_is_said(tab):
    page = tab("index")
    page.add_init_script("delete window.WebAssembly")
    page.reload()
    place = page.locator(".train")
    assert place.get_by_role("button").is_disabled()
    assert "no WebAssembly" in place.locator("p[role=status]").inner_text()
    page = tab("index")
    page.evaluate("document.querySelector('.train').dataset.file = 'lost.js'")
    page.locator(".train").get_by_role("button").click()
    page.get_by_text("The programs are not here: lost.js cannot be read.").wait_for()


def test_bits_that_differ_are_marked_and_named(tab):
    page = tab("index")
    page.evaluate("Float64Array.of = (rate) => new Float64Array([2 * rate])")  # a browser that makes a mistake
    place = trained(page, "linear_regression", 5)
    upper, lower = ("".join(page.locator(f".bits code:nth-of-type({row})").all_inner_texts()) for row in (1, 2))
    differ = [k for k in range(64) if upper[k] != lower[k]]
    said = place.locator("p[role=status]").inner_text()
    assert differ and said.endswith(f"these differ from the course's: {', '.join(str(k + 1) for k in differ)}.")
    assert "".join(page.locator(".bits b").all_inner_texts()) == "".join(lower[k] for k in differ)
