"""The notebooks in JupyterLab in a real browser: every cell runs, and what can be moved answers mouse and keyboard.

`python3 -m course browser-test` opens all five; among the other tests only the last is, where there is a browser.
Screenshots are kept in .course/screenshots.
"""

import itertools
import re
import shutil
import subprocess
import sys

import pytest
from test_next_evening import answer, saved

from course import build
from course.author.setup import browser, workspace

pytestmark = pytest.mark.timeout(900)  # the first test of each notebook runs all its cells

NAMES = build.names_in(build.ROOT)
WIDTHS = 1280, 1920  # pixels: a small laptop, and a large screen
THEMES = "JupyterLab Light", "JupyterLab Dark"

# The milliseconds from the next key press to the new picture, told by the page itself: a promise, so nobody need ask
# meanwhile. (Each question from outside takes the page tens of milliseconds, in which it does nothing else.)
WATCH = """image => {
    image.answer = new Promise(answer => {
        document.addEventListener("keydown", () => {
            const pressed = performance.now();
            image.addEventListener("load", () => answer(performance.now() - pressed), {once: true});
        }, {once: true, capture: true});
        setTimeout(answer, 10_000, Infinity);  // no picture came
    });
}"""

# What a reader does not see whole: what is wider than its place, and pictures in letters whose lines break.
CUT = """() => {
    const panel = document.querySelector(".jp-NotebookPanel:not(.lm-mod-hidden)"), told = [];
    const tell = (what, part) => told.push(`${what}: ${(part.title || part.innerText || part.outerHTML).slice(0, 90)}`);
    const shown = parts => [...panel.querySelectorAll(parts)].filter(part => part.getClientRects().length);
    for (const part of shown(".jp-OutputArea-output, .jp-OutputArea-output *, .jp-RenderedMarkdown, .cm-scroller")) {
        const style = getComputedStyle(part);
        if (style.display != "inline" && style.overflowX != "visible" && part.scrollWidth > part.clientWidth + 1)
            tell(`${part.scrollWidth} pixels in ${part.clientWidth}`, part);
    }
    for (const part of shown(".jp-OutputArea-output img, .jp-OutputArea-output svg, .jp-RenderedMarkdown img")) {
        const cell = part.closest(".jp-Cell").getBoundingClientRect();
        if (part.getBoundingClientRect().right > cell.right + 1) tell("past its cell", part);
    }
    for (const part of shown(".jp-RenderedMarkdown pre")) {
        const letters = document.createRange();
        letters.selectNodeContents(part);
        const lines = part.textContent.trimEnd().split("\\n").length;
        const tops = new Set([...letters.getClientRects()].map(each => Math.round(each.bottom / 4)));
        if (!part.closest("details") && tops.size > lines) tell(`${lines} lines become ${tops.size}`, part);
    }
    return told;
}"""

# A screenful down, and whether there was one. (How high the whole is, is known when all of it has been painted.)
SCROLL = """panel => {
    const top = panel.scrollTop;
    panel.scrollBy(0, panel.clientHeight);
    return panel.scrollTop > top;
}"""


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        names = NAMES if metafunc.config.getoption("--all-notebooks") else NAMES[-1:]
        metafunc.parametrize("name", names, scope="module")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The course as a class has it: a clone, from which `git pull` fetches what is new."""
    folder = tmp_path_factory.mktemp("class")
    upstream = build.copy_project(build.ROOT, folder / "upstream", [build.level_of(name) for name in NAMES])
    for file in (".gitignore", ".gitattributes"):
        shutil.copy(build.ROOT / file, upstream)
    git(upstream, "init", "-q")
    commit(upstream)
    git(folder, "clone", "-q", str(upstream), "clone")
    return folder / "clone"


def git(root, *arguments):
    command = ["git", "-C", str(root), "-c", "user.name=Teacher", "-c", "user.email=teacher@example.org", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit(root):
    git(root, "add", "-A")
    git(root, "commit", "-qm", "the course of today")


@pytest.fixture(scope="module")
def address(lasting_chromium, clone, tmp_path_factory):
    """From a notebook's name to its address in the JupyterLab of a reader."""
    with browser.jupyterlab(clone, tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a browser is found whatever the PATH is")
def test_without_a_browser_the_cure_is_told():
    program = "from course.author.setup import browser; browser.main([])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=build.ROOT, env={"PATH": ""}, capture_output=True, text=True
    )
    assert done.returncode == 1 and "No Chromium, Chrome or Edge is found" in done.stderr
    assert "sudo apt install chromium" in done.stderr and "Traceback" not in done.stderr


class Page:
    """A notebook in a tab."""

    def __init__(self, tab, address, name):
        self.tab, self.faults, self.shots = tab, [], browser.SHOTS / name
        shutil.rmtree(self.shots, ignore_errors=True)
        self.shots.mkdir(parents=True)
        tab.on("pageerror", lambda error: self.faults.append(str(error)))
        tab.goto(address)

    def outputs(self, part):
        """The outputs that hold this part, in the order of the notebook."""
        every = self.tab.locator(".jp-OutputArea-output", has=part)
        return [every.nth(k) for k in range(every.count())]

    def save(self, part, label):
        part.screenshot(path=self.shots / f"{label}.png")

    def save_all(self):
        """The whole notebook, a screenshot for each screenful."""
        panel = self.tab.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer")
        panel.evaluate("panel => panel.scrollTo(0, 0)")
        for number in itertools.count(1):
            self.save(panel, f"page {number:02}")
            if not panel.evaluate(SCROLL):
                break


@pytest.fixture(scope="module")
def opened(lasting_chromium, address, name):
    """The notebook, no cell of which has run."""
    tab = lasting_chromium.new_page(viewport={"width": 1440, "height": 1600})
    yield Page(tab, address(name), name)
    tab.close()


@pytest.fixture(scope="module")
def page(opened):
    """The notebook, all its cells run."""
    opened.errors = browser.run_all(opened.tab)
    return opened


# How wide prose is, in its own letters, at the widest.
PROSE = """() => Math.max(...[...document.querySelectorAll(".jp-RenderedMarkdown p, .jp-RenderedMarkdown li")].map(
    part => part.getBoundingClientRect().width / parseFloat(getComputedStyle(part).fontSize)))"""


def test_prose_is_no_wider_than_the_eye_finds_back_from(opened):
    tab, size = opened.tab, opened.tab.viewport_size
    tab.locator("#jp-main-statusbar :text('| Idle')").wait_for(timeout=60_000)
    tab.set_viewport_size({"width": WIDTHS[-1], "height": size["height"]})
    tab.wait_for_timeout(500)
    try:
        assert 40 < tab.evaluate(PROSE) <= 52
    finally:
        tab.set_viewport_size(size)


def test_no_other_packages_part_of_lab_looks_for_what_is_not_there(opened):
    """ipyparallel's asks for clusters, and lays an error over the page where nobody answers."""
    assert opened.tab.locator(".jp-Dialog").count() == 0
    assert opened.tab.locator(".lm-TabBar-tab[title='IPython Parallel']").count() == 0


def test_a_copy_shows_no_answer_before_it_runs(opened):
    """Asked before `page` runs it. The answers stand in the course's own notebook."""
    tab = opened.tab
    tab.locator("#jp-main-statusbar :text('| Idle')").wait_for(timeout=60_000)
    tab.get_by_text("# a question: run me").first.wait_for(state="attached")
    assert tab.locator(".jp-OutputArea-output").count() == 0


def test_every_cell_runs(page, pytestconfig):
    if pytestconfig.getoption("--all-notebooks"):
        page.save_all()
    assert page.errors == [] and page.faults == []
    prompts = page.tab.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()  # empty where a cell is folded
    assert any(prompts) and [prompt for prompt in prompts if prompt and not prompt.strip(" []:").isdigit()] == []


@pytest.mark.parametrize(("theme", "width"), [*zip(THEMES, WIDTHS, strict=True)])
def test_nothing_is_cut_off(page, theme, width):
    tab, size = page.tab, page.tab.viewport_size
    in_theme(tab, theme)
    tab.set_viewport_size({"width": width, "height": size["height"]})
    tab.wait_for_timeout(1000)  # widgets ask for their room once more
    page.save(tab, f"{theme.split()[1].lower()}, {width} wide")
    try:
        assert tab.evaluate(CUT) == []
    finally:
        tab.set_viewport_size(size)
        in_theme(tab, THEMES[0])


def in_theme(tab, theme):
    """Have JupyterLab wear that theme, by its menu."""
    if tab.evaluate("document.body.dataset.jpThemeName") != theme:
        tab.get_by_role("menuitem", name="Settings", exact=True).click()
        tab.locator(".lm-Menu-item[data-type=submenu]", has_text="Theme").first.hover()
        tab.locator("[data-command='apputils:change-theme']", has_text=theme).first.click()
        tab.wait_for_function("theme => document.body.dataset.jpThemeName == theme", arg=theme)


# What a notebook says and shows. axe looks at nothing that is not painted yet, nor at what lies in a body without height.
SHOWN = ".jp-OutputArea-output, .jp-RenderedMarkdown"
PAINTED = "body { height: 100vh; } .jp-Notebook * { content-visibility: visible !important; }"

# For each slider, its name and its value for those who listen, and what stands beside it for those who see.
SLIDERS = """() => [...document.querySelectorAll(".jp-OutputArea-output .noUi-handle")].map(handle => {
    const [label, readout] = handle.closest(".widget-slider").querySelectorAll(".widget-label, .widget-readout");
    const beside = handle.closest(".widget-slider").nextElementSibling;
    const shown = readout.style.display == "none" ? [label.textContent || "Your prediction", beside.textContent]
        : [label.textContent, readout.textContent];
    return [[handle.getAttribute("aria-label"), handle.getAttribute("aria-valuetext")], shown];
})"""


def all_can_read(tab, serious):
    """Whoever listens to a notebook that has run, or reads it in the dark theme."""
    tab.add_style_tag(content=PAINTED)
    for theme in reversed(THEMES):
        in_theme(tab, theme)
        tab.wait_for_timeout(1000)  # the colours of a theme fade in
        assert serious(tab, SHOWN) == [], theme
    pictures = "images => images.map(image => image.alt || image.title)"
    words = tab.locator(".jp-OutputArea-output img").evaluate_all(pictures)
    assert len(words) > 5 and words[0].startswith("You are here: level ") and min(map(len, words)) > 12
    sliders = tab.evaluate(SLIDERS)
    assert sliders and [heard for heard, seen in sliders if heard != seen] == []


def test_all_can_read_it(page, serious):
    all_can_read(page.tab, serious)


def test_all_can_read_the_first(lasting_chromium, address, serious):
    tab = lasting_chromium.new_page(viewport={"width": 1440, "height": 1600})
    tab.goto(address(NAMES[0]))
    assert browser.run_all(tab) == []
    all_can_read(tab, serious)
    tab.close()


# Whether a notebook is in front, and in view a cell of code with these words. (The walk shows them, too.) The cell need
# not be the active one: JupyterLab 4.6.6 makes it so only if it was out of view.
ON_TOP = """([name, words]) => {
    const tab = document.querySelector(".lm-DockPanel-tabBar .lm-TabBar-tab.jp-mod-current");
    const cells = [...document.querySelectorAll(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell")];
    if (!tab?.textContent.includes(name)) return false;
    return cells.filter(cell => cell.textContent.includes(words)).map(cell => cell.getBoundingClientRect())
        .some(({top, bottom}) => bottom > 0 && top < 800);
}"""


def test_the_walk_answers_keys_and_mouse(page, name):
    if name != NAMES[-1]:
        pytest.skip("the walk stands in the last notebook")
    from playwright import sync_api as playwright

    tab, head = page.tab, page.tab.locator(".walk .head b:visible")
    tab.locator("#walk-5a").focus()
    tab.wait_for_timeout(300)  # Lab has the cell made the active one by then
    for stage in ("5b · train_step", "4 · a layer", "3a · an op"):
        tab.keyboard.press("ArrowDown")
        assert head.all_inner_texts() == [stage]
    tab.locator(".walk label.side:visible").click()
    assert head.all_inner_texts() == ["2 · plan and launch"]
    page.save(tab.locator(".walk"), "the walk")
    panel = tab.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer")
    top = panel.bounding_box()["y"]
    walk = tab.locator(".walk:visible")
    walk.evaluate("walk => walk.scrollIntoView()")
    panel.evaluate("panel => panel.scrollBy(0, 200)")
    tab.wait_for_timeout(300)
    assert walk.bounding_box()["y"] < top - 100 and abs(walk.locator(".loss:visible").bounding_box()["y"] - top) < 2
    for seconds in (20, 20, 60):  # on a busy machine Lab may open a notebook and lose the place in it: click again
        tab.get_by_role("link", name="matmul_ikj, written in 02_kernels").first.click()
        try:
            tab.wait_for_function(ON_TOP, arg=["02_kernels", "def matmul_ikj("], timeout=seconds * 1000)
            break
        except playwright.TimeoutError:
            assert seconds == 20, "the link leads to the cell that wrote matmul_ikj"
            tab.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text="05_high_level").click()
    tab.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text="02_kernels").locator(".lm-TabBar-tabCloseIcon").click()
    tab.wait_for_timeout(1000)
    if tab.locator(".jp-Dialog").count():  # its text pair has changed it
        tab.get_by_role("button", name="Discard").click()
    tab.locator(".jp-NotebookPanel").nth(1).wait_for(state="detached")
    assert head.all_inner_texts() == ["2 · plan and launch"] and page.faults == []


def test_figures_answer_keys_and_mouse(page, tell, name):
    if name == NAMES[-1]:
        pytest.skip("its figure that moves is the walk")
    figures = page.outputs(page.tab.locator("img.widget-image"))
    assert figures, "no figure that can be moved"
    for number, figure in enumerate(figures, 1):
        image = figure.locator("img.widget-image")
        element = image.element_handle()
        page.save(figure, f"figure {number}, at first")
        height = figure.bounding_box()["height"]
        for k in range(figure.locator("[role=slider]").count()):
            handle = figure.locator("[role=slider]").nth(k)
            at, end = (float(handle.get_attribute(f"aria-value{each}")) for each in ("now", "max"))
            there, back = ("ArrowRight", "ArrowLeft") if at < end else ("ArrowLeft", "ArrowRight")
            handle.focus()  # which brings it into view: what is out of it has no words
            page.tab.wait_for_timeout(300)  # Lab has a cell made the active one by then
            first = changed(figure, ("", "", b""))
            element.evaluate(WATCH)
            page.tab.keyboard.press(there)
            took = element.evaluate("image => image.answer")
            moved = changed(figure, first)
            told = f"{name:<16} figure {number}, slider {k + 1} {took:>7.0f} ms"
            tell("figures, from a key press to the new picture", told)
            assert float(handle.get_attribute("aria-valuenow")) != at
            handle.press(back)
            assert changed(figure, moved) == first  # there and back: the same words and the same bytes
            track = figure.locator(".noUi-target").nth(k)
            size = track.bounding_box()
            track.click(position={"x": size["width"] * (0.9 if at < end / 2 else 0.1), "y": size["height"] / 2})
            changed(figure, first)
            assert figure.bounding_box()["height"] == height  # what stands below stays where it is
            page.save(figure, f"figure {number}, slider {k + 1} moved")
        assert image.evaluate("(now, then) => now === then", element)  # one image, whose picture changes: no flicker
    assert page.faults == []


def seen(figure):
    """What a figure shows: the words for readers who cannot see it, as image and as line, and the bytes of its picture."""
    image = figure.locator("img.widget-image")
    load = "image => fetch(image.src).then(found => found.arrayBuffer()).then(b => [...new Uint8Array(b)])"
    return image.get_attribute("title"), figure.get_by_role("status").inner_text(), bytes(image.evaluate(load))


def changed(figure, before):
    """What a figure shows once it differs in words and picture from what it showed before, and all has arrived."""
    page = figure.page
    for _ in range(200):
        now = seen(figure)
        if now[0] != before[0] and now[2] != before[2] and " ".join(now[0].split()) == " ".join(now[1].split()):
            page.locator("#jp-main-statusbar :text('| Idle')").wait_for()
            return now
        page.wait_for_timeout(20)
    raise AssertionError(f"the figure still shows: {now[0]} / {now[1]}")


def test_predictions_are_committed_by_mouse_and_by_keys(page):
    """All cells have run, so the answers have been told: the verdict comes at once."""
    asked = page.outputs(page.tab.locator(".widget-html", has_text="Predict:"))
    assert len(asked) >= 2
    keys = page.tab.locator("[data-answer]").evaluate_all("all => all.map(each => each.dataset.answer)")
    for number, (key, commits) in enumerate(zip(keys[:2], (answer, by_keys), strict=True), 1):
        question = page.tab.locator(".jp-OutputArea-output", has=page.tab.get_by_role("button", name="Commit")).first
        assert question.get_by_role("button", name="Commit").is_disabled()
        page.save(question, f"question {number}, asked")
        commits(question)
        stored = page.tab.locator(f"[data-question='{key}']")
        stored.get_by_text(re.compile(r"^(Right|Not so|Close)")).wait_for()
        assert stored.locator("input, button").count() == 0
        page.save(stored, f"question {number}, answered")
    assert page.faults == []


def by_keys(question):
    if question.get_by_role("radio").count():
        question.get_by_role("radio").first.press("Space")
    elif question.locator(".noUi-target").count():
        question.get_by_role("slider").press("ArrowRight")
    else:
        question.get_by_role("textbox").focus()
        question.page.keyboard.type("2")
    question.locator("button:enabled").press("Enter")


NEWS = "# %% [markdown]\n# ## News\n#\n# The course has a new section.\n"


def test_the_course_stays_as_it_is_and_its_news_arrive(page, clone, name):
    """A reader writes a cell, saves, and pulls: no file of the course has changed, and the cell is still there."""
    tab, copy = page.tab, clone / "mine" / f"{name}.ipynb"
    tab.locator(".jp-Notebook .jp-CodeCell").last.click()
    tab.keyboard.press("Escape")
    tab.keyboard.press("b")
    tab.keyboard.press("Enter")
    tab.keyboard.type("my_own = 6 * 7")
    saved(tab, copy, "my_own = 6 * 7")
    assert git(clone, "status", "--porcelain") == ""

    upstream = clone.parent / "upstream"
    text = upstream / "notebooks" / "text" / f"{name}.py"
    text.write_text(text.read_text(encoding="utf-8") + "\n" + NEWS, encoding="utf-8", newline="\n")
    commit(upstream)
    git(clone, "pull", "-q")
    assert [line for line in workspace.open_desk(clone) if line.startswith(name)]
    cells = build.read_notebook(clone, name, "mine").cells
    mine, the_way_on, news = (cell.source for cell in cells[-3:])
    assert (mine, news) == ("my_own = 6 * 7", "## News\n\nThe course has a new section.")
    assert ".ipynb)" in the_way_on
    assert any(cell.get("outputs") for cell in cells)  # what ran, has run
    assert git(clone, "status", "--porcelain") == ""
