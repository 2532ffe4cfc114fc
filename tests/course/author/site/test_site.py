"""The site: written without a warning, whole, reachable by every link, and alive in a browser without a network."""

import ast
import os
import re
import struct
import time
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("sphinx", reason="the site is written with the group `site`: `python3 -m course setup`")

from course import tasks  # noqa: E402
from course.author import site as reading
from course.author.build import ROOT
from course.author.house import LEVELS  # noqa: E402
from course.author.site import names, trains  # noqa: E402
from course.terminal import stage  # noqa: E402
from levels.hardware.tasks import linear_regression  # noqa: E402


class Page(HTMLParser):
    """What can be led to on a page, what it leads to, and its images."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.leads, self.images = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        self.leads += [(tag, given[key]) for key in ("href", "src") if given.get(key)]
        self.images += [given] * (tag == "img")


@pytest.fixture(scope="session")
def site():
    """The site's folder. It is written once, and kept until something changes that it is made of."""
    folder = ROOT / ".course" / "tested-site"
    folder.parent.mkdir(exist_ok=True)
    with open(folder.with_suffix(".lock"), "a") as lock:
        while not stage.try_lock(lock):  # another process writes it
            time.sleep(0.5)
        assert reading.main([str(folder)]) == 0, "Sphinx's warnings stand above: each is an error"
    return folder


@pytest.fixture(scope="session")
def pages(site):
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    return {path.resolve(): Page(path) for path in paths}


pytestmark = pytest.mark.timeout(600)


def test_every_notebook_has_its_page(site):
    expected = [path.relative_to(ROOT).with_suffix(".html") for path in reading.notebooks()]
    assert len(expected) >= 40
    assert [path for path in expected if not (site / path).exists()] == []


def test_every_link_leads_somewhere(pages):
    lost, followed = [], 0
    for path, page in pages.items():
        for _, link in page.leads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else {unquote(parts.fragment)}
            if not target.exists() or parts.fragment and unquote(parts.fragment) not in anchors:
                lost.append((path.name, link))
    assert lost == [] and followed > 5000


def test_nothing_is_fetched_from_elsewhere(pages):
    fetched = [link for page in pages.values() for tag, link in page.leads if tag != "a" and urlsplit(link).netloc]
    assert fetched == []


def test_every_picture_has_words(pages):
    images = [image for page in pages.values() for image in page.images]
    assert len(images) > 80
    assert [image["src"] for image in images if len(image.get("alt") or "") < 12] == []


def test_every_public_name_has_its_place(site):
    """Those of the levels lead to the cell in which they are written, those of levels_more to who takes them apart."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html")}
    anchors = {name: text for text in texts.values() for name in re.findall(r'id="(levels[\w.]+)"', text)}
    written, apart = names.written(), names.explained()
    lost, found, led = [], 0, 0
    own = [path for path in ROOT.glob("levels/*/[a-z]*.py") if path.parent.name != "support"]  # no level hands it on
    for path in sorted((*own, *ROOT.glob("levels_more/**/*.py"))):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in filter(names.told, ast.parse(path.read_text(encoding="utf-8")).body):
            name = f"{module}.{node.name}"
            ours = module.startswith("levels.")
            place = written.get(name) if ours else apart.get(name, apart.get(module))
            if name not in anchors or ours and not place or place and f'href="{place[1]}"' not in anchors[name]:
                lost.append(name)
            found, led = found + 1, led + bool(place)
    assert lost == [] and found > 850 and found - led < 60, (found, led)  # the rest is plain code: see `names.entry`


def test_every_name_that_is_handed_on_is_told(site):
    """What stands in the fronts of the levels, and what the contents of levels_more add to them."""
    handed = set()
    for front in (
        *ROOT.glob("levels/*/__init__.py"),
        *(ROOT / "levels_more" / level / "__init__.py" for level in LEVELS),
    ):
        for node in ast.parse(front.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (
                node.level or node.module.split(".")[:2] == ["levels_more", front.parent.name]
            ):
                handed |= {(f"levels.{front.parent.name}", each.name) for each in node.names}
    text = "".join(path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))
    words = {*re.findall(r"\w+", re.sub(r"<[^>]*>", " ", text))}
    assert len(handed) > 450 and sorted(name for _, name in handed if name not in words) == []


def test_the_real_ones_lead_to_the_cells_that_write_them(site, pages):
    """All twelve stand on one page: 12 links to cells here, 24 to files elsewhere."""
    leads = [link for _, link in pages[(site / "real_ones.html").resolve()].leads]
    ours = [link for link in leads if re.fullmatch(r"notebooks/0\d_\w+\.html#cell-\d+", link)]
    theirs = [link for link in leads if re.match(r"https://github\.com/[\w/-]+/blob/[0-9a-f]{40}/", link)]
    assert len(ours) == 12 and len(theirs) == 24 and "{{" not in (site / "real_ones.html").read_text(encoding="utf-8")
    assert 'href="real_ones.html"' in (site / "index.html").read_text(encoding="utf-8")


def test_words_lead_to_the_glossary_once_on_a_page(site):
    text = (site / "notebooks" / "01_hardware.html").read_text(encoding="utf-8")
    led = re.findall(r'<a class="[^"]*term[^"]*" href="\.\./glossary\.html#([\w-]+)"', text)
    assert len(led) > 10 and len(led) == len(set(led))
    assert 'class="term' not in (site / "TEACHING.html").read_text(
        encoding="utf-8"
    )  # its "two plans" are no plan of an op


def test_another_folder_is_not_replaced(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert reading.main([str(tmp_path)]) == 1
    assert os.listdir(tmp_path) == ["mine.txt"] and str(tmp_path) in capsys.readouterr().out


@pytest.fixture(scope="module")
def chromium(launched):
    """One browser for all of these tests."""
    with launched() as running:
        yield running


@pytest.fixture
def tab(chromium, site):
    """Opens a page of the site, from its file, and keeps what went wrong and what was asked of a network."""
    contexts = []

    def opened(name, width=1280, scheme="light"):
        contexts.append(chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme))
        tab = contexts[-1].new_page()
        tab.wrong = []
        tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
        tab.on("request", lambda asked: asked.url.startswith("http") and tab.wrong.append(asked.url))
        tab.goto((site / f"{name}.html").as_uri())
        return tab

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize(
    "name, slider",
    [
        ("notebooks/01_hardware", "batch"),
        ("notebooks/02_kernels", "step"),
        ("notebooks/03_low_level", "step"),
        ("notebooks/04_mid_level", "rate"),
    ],
)
def test_a_figure_moves(tab, name, slider):
    page = tab(name)
    figure = page.locator(".alive")
    image, status = figure.locator("img"), figure.locator("[role=status]")
    before = image.get_attribute("src"), status.inner_text()
    figure.get_by_label(slider).press("ArrowRight")
    after = image.get_attribute("src"), status.inner_text()
    assert before[0] != after[0] and before[1] != after[1] and image.get_attribute("alt") == after[1]
    assert page.evaluate("document.querySelector('.alive img').decode().then(() => true)")
    assert page.wrong == []


def test_the_first_five_minutes(tab):
    page = tab("index")
    house = page.locator(".side-by-side")
    assert "model.fit(" in house.inner_text() and "a.store(" in house.inner_text()
    assert house.bounding_box()["y"] < 500, "the five levels stand on the first screen"
    assert {"Begin with the trail", "Run it yourself"} <= {link.inner_text() for link in page.locator("a.read").all()}
    loss = house.locator(".task[open] > p").first
    assert "9.209 0x1.26b37bd4bf3c0p+3, the same 64 bits on every level" in loss.inner_text()
    for level in (5, 1):
        house.locator(f".task[open] th.level-{level} summary").click()
    assert house.locator(".task[open] th[class]:visible").count() == 2
    for level in (5, 1):
        house.locator(f".task[open] th.level-{level} summary").click()
    assert house.locator(".task[open] th[class]:visible").count() == 5

    answer = page.locator(".prediction details")
    assert not answer.evaluate("told => told.open")
    page.get_by_label("about a minute").check()
    page.get_by_role("button", name="Commit").click()
    assert (
        answer.evaluate("told => told.open") and "You said about a minute." in page.locator(".prediction").inner_text()
    )

    told, field = page.locator(".mend [role=status]"), page.get_by_label("gradients[x] =")
    for text, expected in (
        ("share", "w gets 6"),
        ("before + share", "heart"),
        ("12", "But b gets 12, by hand 4."),
        ("alert(1)", "cannot"),
        ("share +", "cannot"),
    ):
        field.fill(text)
        page.get_by_role("button", name="Walk back").click()
        assert expected in told.inner_text(), text
    assert page.wrong == []


def test_a_number_is_predicted_and_its_answer_stands_after_the_result(tab):
    page = tab("notebooks/05_high_level")
    asked, told = (
        page.locator(".prediction", has_text="An epoch has two steps"),
        page.locator("[data-answer='05-epoch']"),
    )
    assert told.locator("p").first.inner_text() == "Answer: 1.75"
    asked.get_by_role("textbox").fill("2.5")
    asked.get_by_role("button", name="Commit").click()
    assert "You said 2.5. The answer comes after the result." in asked.inner_text() and "1.75" not in asked.inner_text()
    assert told.locator("p").first.inner_text() == "You said 2.5. Answer: 1.75"
    top, below = (place.bounding_box()["y"] for place in (asked, told))
    result = page.locator("div.cell_output", has_text=re.compile(r"^\s*1\.75\s*$")).bounding_box()["y"]
    assert top < result < below and page.wrong == []


def test_a_choice_is_predicted(tab):
    page = tab("notebooks/01_hardware")
    asked, told = page.locator(".prediction").first, page.locator("[data-answer='01-ones'] p").first
    assert asked.get_by_role("radio").count() == 4 and "○" not in asked.inner_text()
    asked.get_by_label("33554432 and 16777216", exact=True).check()
    asked.get_by_role("button", name="Commit").click()
    assert told.inner_text() == "Right. Answer: 33554432 and 16777216" and page.wrong == []


def test_the_walk_goes_down_and_to_the_cells(tab):
    page = tab("notebooks/05_high_level")
    assert page.locator(".walk .head b:visible").inner_text() == "5a · fit"
    page.locator(".walk label.down:visible").click()
    assert page.locator(".walk .head b:visible").inner_text() == "5b · train_step"
    page.goto(page.url.split("#")[0] + "#walk-1a")
    assert page.locator(".walk .head b:visible").inner_text() == "1a · the loop"
    link = page.get_by_role("link", name="StepWriter.write, written in 03_low_level").first
    link.click()
    page.wait_for_url(re.compile(r"03_low_level\.html#cell-\d+$"))
    cell = page.locator(f"div.cell:near({page.url[page.url.index('#') :]})").filter(has_text="class StepWriter(").first
    top = cell.evaluate("cell => cell.getBoundingClientRect().top")
    assert 0 <= top < 300, "the cell that wrote it is the first thing to be seen"
    assert page.wrong == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_loss_of_the_walk_stays_beneath_the_bar(tab, width):
    page = tab("notebooks/05_high_level", width)
    page.evaluate("document.querySelector('.walk').scrollIntoView(); scrollBy(0, 300)")
    bar = page.locator(".bd-header-article").first.bounding_box()
    assert abs(page.locator(".walk .loss:visible").bounding_box()["y"] - bar["height"]) < 1


def test_a_link_to_the_walk_leads_to_the_stage_of_its_level():
    words = "[The walk](05_high_level.ipynb#From-fit-to-the-multiply) follows one step."
    for name, mark in {
        "01_hardware": "1a",
        "02_kernels": "2",
        "03_low_level": "3a",
        "04_mid_level": "4",
        "05_high_level": "5a",
    }.items():
        notebook = {"cells": [{"cell_type": "markdown", "source": words}]}
        reading.link_walk(notebook, name, {})
        link = f'<a href="05_high_level.html#walk-{mark}">The walk</a> follows one step.'
        assert notebook["cells"][0]["source"] == link


def test_a_link_of_the_walk_leads_to_its_cell_from_the_trail_too():
    for up in ("", "../"):
        page = f'<a href="{up}05_high_level.ipynb#cell-id=abc">run_epochs</a>'
        notebook = {"cells": [{"cell_type": "code", "source": "", "outputs": [{"data": {"text/html": page}}]}]}
        reading.link_walk(notebook, "5_high_level", {("05_high_level", "abc"): "cell-30"})
        data = notebook["cells"][0]["outputs"][0]["data"]
        assert data["text/html"] == f'<a href="{up}05_high_level.html#cell-30">run_epochs</a>'


def test_search_works_from_a_file(tab):
    page = tab("search")
    page.goto(page.url + "?q=roofline")
    page.locator("#search-results li a").first.wait_for(timeout=60_000)
    assert page.locator("#search-results li").count() > 3 and page.wrong == []


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
def test_all_can_read_it(tab, serious, scheme, width):
    kinds = ["index", "notebooks/03_low_level", "notebooks/05_high_level", "notebooks/more/05_cost", "install"]
    kinds += [
        "real_ones",
        "glossary",
        "api/mid_level_more",
        "course/author/bench/results",
        "notebooks/trail/3_low_level",
    ]
    for name in kinds:
        page = tab(name, width, scheme)
        assert serious(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than {width}"
        page.context.close()
    page = tab("search", width, scheme)
    page.goto(page.url + "?q=tape")
    page.get_by_text("Search finished").wait_for(timeout=60_000)
    page.locator("#search-results .highlighted").first.wait_for(timeout=60_000)
    assert serious(page) == []


# The page trains.


def trained(page, task, level):
    """The part of a page that trains, when it has."""
    place = page.locator(".train")
    place.get_by_label("task").select_option(task)
    place.get_by_label("level").select_option(str(level))
    place.get_by_role("button").click()
    page.wait_for_function("document.querySelector('.train').losses", timeout=60_000)
    page.wait_for_function("!document.querySelector('.train .said').textContent.startsWith('Training')")
    return place


def losses_on(page):
    return page.evaluate("[...document.querySelector('.train').losses]")


@pytest.mark.parametrize("level", trains.LEVELS)
@pytest.mark.parametrize(
    "task, digits", [("linear_regression", "0x1.26b37bd4bf3c0p+3"), ("dnn_classifier", "0x1.4ce27bff798c5p-3")]
)
def test_the_page_trains_to_the_bit(tab, task, digits, level, tell):
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
    tell("a step in the browser, and as machine code", f"level {level} {task:<18} {times(place)}")
    assert page.wrong == []


def times(place):
    yours, course = (place.locator(f"tr.{row} td").last.inner_text() for row in ("yours", "course"))
    assert re.fullmatch(r"[\d.]+ µs", yours) and re.fullmatch(r"[\d.]+ µs", course)
    return f"{yours}, {course}"


def test_other_settings_give_another_number_which_is_python_s(tab):
    page = tab("index")
    place = trained(page, "linear_regression", 1)
    place.get_by_label("batch").press("ArrowRight")
    place.get_by_label("learning rate").press("ArrowLeft")
    assert page.evaluate("document.querySelector('.train').losses") is None, "what is seen belongs to what is chosen"
    place.get_by_role("button").press("Enter")
    page.wait_for_function("document.querySelector('.train').losses")
    task = tasks.linear()
    batches = tasks.batch_order(400, 20, 200, seed=1)
    fit = linear_regression(task.x, task.y, task.weights, batches, 0.0002)
    assert losses_on(page) == fit.losses.tolist()
    said = place.locator("p[role=status]").inner_text()
    expected = f"another number, {float(f'{fit.losses[-1]:.4g}')}. There is no record to compare it with."
    assert said == f"Another learning rate and batch: {expected}"
    place.get_by_label("learning rate").press("End")
    place.get_by_label("batch").press("Home")
    place.get_by_role("button").press("Enter")
    page.wait_for_function("document.querySelector('.train').losses")
    assert "the loss is larger than 64 bits can hold" in place.locator("p[role=status]").inner_text()
    assert page.wrong == []


def test_it_trains_by_keyboard_and_nothing_jumps(tab):
    page = tab("notebooks/trail/1_hardware", 360)
    place = page.locator(".train")
    place.get_by_role("button").focus()
    for key in ("Tab", "ArrowDown", "Tab", "ArrowDown", "ArrowDown", "Shift+Tab", "Shift+Tab", "Enter"):
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


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 360), ("light", 360), ("dark", 1280)])
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
