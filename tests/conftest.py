"""What several tests share: a tiny project of two notebooks, nbval, and the count of notebook cells in the summary."""

import gc
import importlib.metadata
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import core_alone
import pytest

from course import build
from course.author.setup import browser

# The rooms of `course.reader` that a kernel imports with `build`.
BUILDING = "answers", "cases", "exercises", "inspection", "notebooks", "session"
TASKS = """
from types import SimpleNamespace

import numpy as np


def linear():
    batches = np.array([[0, 1], [2, 3], [3, 0]])
    x = np.arange(4.0).reshape(4, 1)
    return SimpleNamespace(x=x, y=2 * x, weights=[np.ones((1, 1))], batches=batches, learning_rate=0.1)


FOR = {"linear_regression": linear}
"""

HARDWARE = """
# %% [markdown]
# # Hardware: memory is counted

# %%
from course import build, figures, tasks

build.watch("01_hardware")

# %%
import numpy as np

# %%
#| export memory
'''Memory, counted.'''

LOG = []


# what is held
def alloc(shape):
    LOG.append(shape)
    return np.zeros(shape)

# %%
alloc(2)

# %%
#| export tasks
from dataclasses import dataclass


@dataclass
class Fit:
    losses: "np.ndarray"


def linear_regression(x, y, weights, batches, learning_rate):
    losses = alloc(len(batches))
    for step, rows in enumerate(batches):
        losses[step] = np.mean(x[rows] - y[rows])
    return Fit(losses)

# %%
linear_regression(tasks.linear().x, tasks.linear().y, [], tasks.linear().batches, 0.1).losses.tolist()

# %%
build.level("01_hardware", linear_regression)
"""

KERNELS = """
# %% [markdown]
# # Kernels: an op is a name

# %%
from course import build, figures, tasks

build.watch("02_kernels")

# %%
#| export registry
KERNELS = {}


def kernel(op):
    def add(function):
        KERNELS[op] = function
        return function

    return add

# %%
#| export tasks
from levels.hardware import Fit, alloc


@kernel("mean")
def _(x):
    return x.sum() / len(x)


def linear_regression(x, y, weights, batches, learning_rate):
    losses = alloc(len(batches))
    for step, rows in enumerate(batches):
        losses[step] = KERNELS["mean"](x[rows] - y[rows])
    return Fit(losses)

# %%
build.level("02_kernels", linear_regression)
"""


@pytest.fixture(autouse=True)
def names_from_the_start():
    """In each test, the first Dense without a name is called dense."""
    if names := sys.modules.get("levels_more.mid_level.names"):
        names.count_anew()


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """The tiny project, built once. Tests work on copies of it."""
    root = tmp_path_factory.mktemp("built")
    parts = "__init__", "author/__init__", "author/build", "author/builder/*", "reader/*", "terminal/*"
    patterns = [f"course/{part}.py" for part in parts] + [f"course/reader/{room}/**/*.py" for room in BUILDING]
    for pattern in (*patterns, "levels/support/*.py"):
        for path in build.ROOT.glob(pattern):
            write(root / path.relative_to(build.ROOT), path.read_text(encoding="utf-8"))
    write(root / "course" / "reader" / "tasks.py", TASKS)
    write(root / "course" / "reader" / "figures" / "__init__.py", "")
    write(root / "data" / "points.csv", "x,y\n1,2\n")
    write(root / "notebooks" / "text" / "01_hardware.py", HARDWARE.lstrip())
    write(root / "notebooks" / "text" / "02_kernels.py", KERNELS.lstrip())
    assert build.main([], root) == 0
    return root


@pytest.fixture
def project(built, tmp_path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "project"))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


@pytest.fixture(scope="session")
def absent() -> list[str]:
    """What can be imported here, and could not where only requirements.lock was installed."""
    lock = (build.ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = {*re.findall(r"^([\w.-]+)==", lock, re.MULTILINE), "pip", "setuptools"}
    found = importlib.metadata.packages_distributions()
    return sorted(
        module
        for module, packages in found.items()
        if not any(re.sub("[-_.]+", "-", package).lower() in locked for package in packages)
    )


def packages_of(name):
    """Which packages a notebook says it needs besides."""
    text = build.text_path(build.ROOT, name).read_text(encoding="utf-8")
    watched = re.search(r"^build\.watch\((.*?)\)", text, re.MULTILINE)
    return re.findall('"(.*?)"', watched[1])[1:]


@pytest.fixture(scope="session")
def nbval(absent):
    """A function that runs notebooks of a project, in order, and compares every output with the stored one.

    Where they name no packages that they need, they find none but those of requirements.lock.
    """

    def run(root: Path, *names: str):
        named = any(build.text_path(build.ROOT, name).exists() and packages_of(name) for name in names)
        environment = build.environment(build.ROOT / "tests" / "lean", root)
        environment["ABSENT"] = "" if named else " ".join(absent)
        config = build.ROOT / "tests" / "nbval_sanitize.cfg"
        options = ["-p", "nbval.plugin", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=300"]
        options += ["--nbval-sanitize-with", str(config), "-p", "no:cacheprovider", "--rootdir", str(root)]
        options += ["--color=no", *(f"notebooks/{name}.ipynb" for name in names)]
        # The other plugins of this environment have nothing to do there, and take a second to load.
        own = {"PYTHONUTF8": "1", "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=root,
            env=environment | own,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
        passed = re.search(r"(\d+) passed", done.stdout)
        cells, seconds = int(passed[1]) if passed else 0, time.perf_counter() - start
        output = done.stdout + done.stderr
        return SimpleNamespace(passed=done.returncode == 0, cells=cells, seconds=seconds, output=output)

    return run


@pytest.fixture(scope="session")
def launched():
    """A function that launches the browser of this system, which is in no lock, for a `with` block."""
    if not browser.find():
        pytest.skip(browser.MISSING)
    return browser.launched


AXE = build.ROOT / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = """async part => {
    const found = await axe.run({resultTypes: ["violations"], preload: false});
    const told = [];
    for (const {id, impact, nodes} of found.violations)
        if (["serious", "critical"].includes(impact))
            for (const {html, target} of nodes)
                if (document.querySelector(target[0]).closest(part)) told.push([id, html.slice(0, 200)]);
    return told;
}"""


@pytest.fixture(scope="session")
def serious():
    """serious(page, part): what axe finds serious or critical in these parts of a page, as [rule, HTML]."""
    if not AXE.exists():
        pytest.skip("axe-core is not here: npm install --no-save axe-core@4.14.1")

    def serious(page, part="html"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
        return page.evaluate(SERIOUS, part)

    return serious


@pytest.fixture
def chromium(launched):
    """The browser, for one test.

    As long as it is open, Playwright's event loop runs in this thread, and no other can.
    """
    with launched() as running:
        yield running


@pytest.fixture(scope="module")
def lasting_chromium(launched):
    """One browser for all tests of a module, which all want it."""
    with launched() as running:
        yield running


@pytest.fixture(scope="session")
def tell(request):
    """tell(section, line): a line for the end of pytest's report."""
    return lambda section, line: request.config.told.setdefault(section, []).append(line)


def pytest_addoption(parser) -> None:
    parser.addoption("--core", action="store_true", help="try levels alone: levels_more cannot be imported")
    parser.addoption("--all-notebooks", action="store_true", help="open all five notebooks in the browser, not one")
    parser.addoption("--all-answers", action="store_true", help="fill the blanks with each set of answers, not one")
    parser.addoption("--programs", type=int, default=50, metavar="N", help="how many random programs (default: 50)")
    parser.addoption("--calls", type=int, default=300, metavar="N", help="how often each thread calls (default: 300)")
    parser.addoption("--seed", type=int, metavar="N", help="the first one's seed (default: another in each run)")


def pytest_configure(config) -> None:
    config.told = {}  # section -> lines
    if config.option.core:
        core_alone.start()
    if config.option.seed is None:
        config.option.seed = getattr(config, "workerinput", {}).get("seed", random.randrange(10**6))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["seed"] = node.config.option.seed  # processes side by side have the same tests


QUICK = "quick"  # the mark of the tests that `python3 -m course test` runs
WEEKLY = "weekly"  # and of those that run only with `--weekly`
LONG = (
    "[02_kernels]",
    "[05_high_level]",
    "[trail]",
    "[03_low_level]",
    "[04_mid_level]",
    "[01_hardware]",
)  # by their time


def is_quick(config) -> bool:
    """Whether the marked tests are asked for, and no others; a process beside another one asks for the same."""
    return config.option.markexpr == QUICK and not hasattr(config, "workerinput")


def pytest_ignore_collect(collection_path, config):
    """A file that marks no test need not be read for those that are marked: to read all takes half a minute."""
    mark = config.option.markexpr
    if mark in (QUICK, WEEKLY) and collection_path.match("test_*.py") and collection_path.is_file():
        return f"mark.{mark}" not in collection_path.read_text(encoding="utf-8") or None


def place_of(item) -> int:
    """The place of a test in the sample: the runs of notebooks stand first, the longest before the others."""
    places = [place for place, name in enumerate(LONG) if item.nodeid.endswith(name)]
    return places[0] if places and "::test_notebook" in item.nodeid else len(LONG)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items) -> None:
    """In the sample the longest come first: a long test at the end has one processor wait for the other.

    They are dealt like cards, because each process begins with an equal part of the list, and in its order.
    """
    if config.option.core:
        core_alone.skip_marked(items)
    if config.option.markexpr == QUICK:
        items.sort(key=place_of)
        processes = getattr(config, "workerinput", {}).get("workercount", 1)
        items[:] = [item for first in range(processes) for item in items[first::processes]]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids) -> None:
    """The first of the processes has found the tests: how many there are is said before they begin."""
    if is_quick(node.config) and not hasattr(node.config, "counted"):
        node.config.counted = len(ids)
        terminal = node.config.pluginmanager.getplugin("terminalreporter")
        terminal.ensure_newline()
        terminal.write_line(f"{len(ids)} tests, about two minutes on two processors", flush=True)


def pytest_unconfigure(config) -> None:
    if is_quick(config):
        print(
            "All but the weekly tests, in ten to twenty-five minutes on two processors:  python3 -m course test --all"
        )


def pytest_report_header(config) -> str:
    again = f"--programs={config.option.programs} --seed={config.option.seed}"
    return f"random programs: {again} (with these, the same again)"


def pytest_generate_tests(metafunc) -> None:
    """`seeds`: the seeds of random programs, 50 to a test, so that each has a time limit and they run side by side."""
    if "seeds" in metafunc.fixturenames:
        first, count = metafunc.config.option.seed, metafunc.config.option.programs
        seeds = [range(start, min(start + 50, first + count)) for start in range(first, first + count, 50)]
        metafunc.parametrize("seeds", seeds, ids=[f"{each.start}-{each.stop - 1}" for each in seeds])


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session) -> None:
    """What the session holds to its end, half a million objects, is no garbage: `gc.collect` need not look at it each time."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session) -> None:
    if hasattr(session.config, "workeroutput"):  # one of several processes, which hands on what it has to tell
        session.config.workeroutput["told"] = session.config.told


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    for section, lines in getattr(node, "workeroutput", {}).get("told", {}).items():
        node.config.told.setdefault(section, []).extend(lines)


def pytest_terminal_summary(terminalreporter, config) -> None:
    for section, lines in config.told.items():
        terminalreporter.section(section)
        for line in sorted(lines):
            terminalreporter.line(line)


@pytest.fixture
def words_can_be_read(monkeypatch):
    """Whatever words stand in the pictures that this test draws have the contrast that WCAG 2.2 asks for (1.4.3).

    So they have as dark themes show them (`labextension.js`, `site.css`): `invert(0.92) hue-rotate(180deg)`.
    """
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import to_rgb
    from matplotlib.text import Text

    from course.reader.figures import picture

    turned = [[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]]  # W3C's Filter Effects: hue-rotate

    def in_the_dark(color):
        return (turned @ (0.92 - 0.84 * np.array(to_rgb(color)))).clip(0, 1)

    class Checked(picture.Picture):
        def __init__(self, figure, text):
            super().__init__(figure, text)
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            words = [each for each in figure.findobj(Text) if each.get_text().strip() and each.get_visible()]
            boxes = [each.get_window_extent() for each in words]
            for each in words:
                each.set_visible(False)
            canvas.draw()
            pixels = np.asarray(canvas.buffer_rgba())[::-1, :, :3] / 255
            for each, box in zip(words, boxes, strict=True):
                (x0, y0), (x1, y1) = np.floor(box.min).astype(int).clip(0), np.ceil(box.max).astype(int)
                behind, counts = np.unique(pixels[y0:y1, x0:x1].reshape(-1, 3), axis=0, return_counts=True)
                each.set_visible(True)
                if len(behind):  # else they stand outside
                    both = each.get_color(), behind[counts.argmax()]
                    found = picture.contrast(*both), picture.contrast(*map(in_the_dark, both))
                    assert min(found) >= 4.5, (
                        f"{each.get_text()!r}: {both}, contrast {found[0]:.2f}, dark {found[1]:.2f}"
                    )

    monkeypatch.setattr(picture, "Picture", Checked)
