"""The site: written without a warning, whole, reachable by every link, and alive in a browser without a network."""

import ast
import os
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("sphinx", reason="the site is written with the group `site`: `python3 -m course setup`")

from course.author import site as reading
from course.author.build import ROOT, names_in
from course.author.house import LEVELS  # noqa: E402
from course.author.site import names  # noqa: E402
from course.reader.programs import lines  # noqa: E402
from tests.course.author.site.conftest import ADDRESS  # noqa: E402


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
def pages(site):
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    return {path.resolve(): Page(path) for path in paths}


pytestmark = pytest.mark.timeout(600)


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
    assert [link for link in fetched if not link.startswith(ADDRESS)] == []


def test_every_picture_has_words(pages):
    images = [image for page in pages.values() for image in page.images]
    assert len(images) > 80
    assert [image["src"] for image in images if len(image.get("alt") or "") < 12] == []


def test_every_public_name_has_its_place(site):
    """Those of the levels lead to the cell in which they are written, those of levels_more to the section that shows them."""
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
    assert lost == [] and found > 850 and led > 600, (found, led)  # the others are in no notebook


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
    assert len(handed) > 320 and sorted(name for _, name in handed if name not in words) == []


def test_the_real_ones_lead_to_the_cells_that_write_them(site, pages):
    """All twelve stand on one page: 12 links to cells here, 24 to files elsewhere."""
    leads = [link for _, link in pages[(site / "real_ones.html").resolve()].leads]
    ours = [link for link in leads if re.fullmatch(r"notebooks/0\d_\w+\.html#cell-\d+", link)]
    theirs = [link for link in leads if re.match(r"https://github\.com/[\w/-]+/blob/[0-9a-f]{40}/", link)]
    assert len(ours) == 12 and len(theirs) == 24 and "{{" not in (site / "real_ones.html").read_text(encoding="utf-8")
    assert 'href="real_ones.html"' in (site / "index.html").read_text(encoding="utf-8")


def test_the_differences_stand_on_one_page_made_of_the_stored_rows(site, pages):
    path = (site / "differences.html").resolve()
    keys = {row.key for row in lines.rows()}
    text = path.read_text(encoding="utf-8")
    assert len(keys) > 90 and keys <= pages[path].anchors and "{{" not in text
    assert all(text.count(f'id="{key}"') == 1 for key in keys)
    leads = [link for other, page in pages.items() if other != path for _, link in page.leads]
    rows = {link.partition("#")[2] for link in leads if "differences.html#" in link}
    assert len(rows) >= 10 and rows <= keys, "notebooks 03 to 05 lead to rows"


def test_words_lead_to_the_glossary_once_on_a_page(site):
    text = (site / "notebooks" / "01_hardware.html").read_text(encoding="utf-8")
    led = re.findall(r'<a class="[^"]*term[^"]*" href="\.\./glossary\.html#([\w-]+)"', text)
    assert len(led) > 10 and len(led) == len(set(led))
    assert 'class="term' not in (site / "TEACHING.html").read_text(
        encoding="utf-8"
    )  # its "two plans" are no plan of an op


def test_a_chinese_page_leads_to_the_chinese_glossary_and_trains_in_chinese(site, tab):
    text = (site / "notebooks" / "zh" / "trail" / "1_hardware.html").read_text(encoding="utf-8")
    led = re.findall(r'<a class="[^"]*term[^"]*" href="([^"#]*)#([\w-]+)"', text)
    assert (
        '<html lang="zh-CN"' in text and len(led) > 5 and {page for page, _ in led} == {"../../../glossary.zh-CN.html"}
    )
    assert '<html lang="en"' in (site / "index.html").read_text(encoding="utf-8")
    page = tab("index.zh-CN")
    page.get_by_role("button", name="就在这个浏览器里训练").click()
    page.get_by_text("64 个比特和课程的全都相等").wait_for(timeout=60_000)
    page.get_by_label("4", exact=True).check()
    page.get_by_role("button", name="提交").click()
    page.get_by_text("对了。").first.wait_for()
    assert page.wrong == []


def test_another_folder_is_not_replaced(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert reading.main([str(tmp_path)]) == 1
    assert os.listdir(tmp_path) == ["mine.txt"] and str(tmp_path) in capsys.readouterr().out


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
    parts = page.locator("a.read"), page.locator(".train"), house, page.locator("table.costs")
    tops = [part.first.bounding_box()["y"] for part in parts]
    assert tops == sorted(tops), "the table of the levels follows the button, and their cost follows both"
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


# Whatever can be pressed and is shown: its words, and its box.
PRESSED = """() => [...document.querySelectorAll("article :is(button, a.read, select, summary, input[type=range])")]
    .filter((each) => each.checkVisibility()).map((each) => [each.textContent.slice(0, 30), each.getBoundingClientRect()])
    .map(([words, {left, right, top, bottom}]) => ({words, left, right, top, bottom}))"""


def test_on_a_phone_the_trail_comes_first_and_nothing_touches(tab):
    page = tab("index", 360)
    assert page.locator("a.read").first.inner_text() == "Begin with the trail"
    assert page.get_by_role("button", name="Train it").bounding_box()["y"] < 500
    places = page.evaluate(PRESSED)
    assert len(places) > 10
    near = [
        (one["words"], other["words"])
        for k, one in enumerate(places)
        for other in places[:k]
        if max(one["left"], other["left"]) - min(one["right"], other["right"]) < 6
        and max(one["top"], other["top"]) - min(one["bottom"], other["bottom"]) < 4
    ]
    assert near == []
    costs = page.locator("table.costs")
    assert costs.locator("tr").count() == 9 and costs.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360 and page.wrong == []


@pytest.mark.parametrize("page", ["index", "index.zh-CN"])
def test_the_first_page_says_to_those_who_link_to_it_what_it_is_and_where_it_and_its_picture_stand(site, page):
    head = (site / f"{page}.html").read_text(encoding="utf-8").split("</head>")[0]
    found = re.findall(r'<meta content="([^"]*)" (?:name|property)="([\w:]+)" */?>', head)
    told = {name: text for text, name in found}
    assert {"description", "og:title", "og:description", "og:type", "og:site_name"} <= {*told}
    assert (80 if page == "index" else 30) < len(told["description"]) < 200 and "levels" in told["og:title"]
    assert told["og:url"] == f"{ADDRESS}/{page}.html" and told["og:image"] == f"{ADDRESS}/side_by_side.png"
    assert f'<link rel="canonical" href="{told["og:url"]}" />' in head and (site / "side_by_side.png").exists()


def test_the_menu_says_what_is_behind_it_and_begins_with_the_trail(tab):
    page = tab("index")
    entries = page.locator(".bd-links a.reference").all_inner_texts()
    assert entries[0] == "Trail 1 · Hardware" and "Where it is in PyTorch and TensorFlow" in entries
    assert {"The words: a glossary", "The names: every function and class", "Install and start"} <= {*entries}
    assert not any("real ones" in name or name in ("The words", "The names", "Results") for name in entries)
    page.locator("a.right-next").click()
    page.wait_for_url(re.compile(r"notebooks/trail/1_hardware\.html$"))


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
    for name, mark in zip(names_in(ROOT), ("1a", "2", "3a", "4", "5a"), strict=True):
        notebook = {"cells": [{"cell_type": "markdown", "source": words}]}
        reading.link_walk(notebook, name, {})
        link = f'<a href="05_high_level.html#walk-{mark}">The walk</a> follows one step.'
        assert notebook["cells"][0]["source"] == link


def test_the_words_and_the_five_are_found_before_more_and_the_names(tab):
    page = tab("search")  # from a file, without a server
    page.goto(page.url + "?q=kernel")
    page.get_by_text("Search finished").wait_for(timeout=60_000)
    led = page.locator("#search-results li > a").evaluate_all("all => all.map((each) => each.getAttribute('href'))")
    kinds = ["glossary", "notebooks/0", "notebooks/trail/", "notebooks/more/", "api/"]
    places = {kind: [k for k, link in enumerate(led) if link.startswith(kind)] for kind in kinds}
    assert all(places.values()), led
    ends = [(min(places[kind]), max(places[kind])) for kind in kinds]
    assert ends[0][0] == 0 and ends[0][1] < ends[1][0] and ends[1][1] < ends[2][0]
    assert ends[2][1] < min(ends[3][0], ends[4][0]) and page.wrong == [], led


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
