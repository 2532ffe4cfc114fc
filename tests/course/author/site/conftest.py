"""The site, written once for all of its tests, and its pages in a browser without a network."""

import time

import pytest

from course.author.build import ROOT
from course.terminal import stage

ADDRESS = "https://levels.example/course"  # where the site says that it stands


@pytest.fixture(scope="session")
def site():
    """The site's folder. It is written once, and kept until something changes that it is made of."""
    from course.author import site as reading

    folder = ROOT / ".course" / "tested-site"
    folder.parent.mkdir(exist_ok=True)
    with open(folder.with_suffix(".lock"), "a") as lock:
        while not stage.try_lock(lock):  # another process writes it
            time.sleep(0.5)
        assert reading.main([str(folder), "--address", ADDRESS]) == 0, "Sphinx's warnings stand above: each is an error"
    return folder


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
