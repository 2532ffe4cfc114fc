"""One browser for all tests of a module, a tab of it for each test, and what shows itself as HTML as a page in it."""

import pytest


@pytest.fixture(scope="module")
def chromium(launched):
    with launched() as running:
        yield running


@pytest.fixture
def tab(chromium):
    tab = chromium.new_page()
    yield tab
    tab.close()


@pytest.fixture
def show(tab):
    """show(shown, width): in a window that is so wide."""

    def show(shown, width=1280):
        tab.set_viewport_size({"width": width, "height": 1000})
        head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Shown</title>'
        tab.set_content(f'{head}<body style="margin: 0"><main>{shown._repr_html_()}</main>')

    return show
