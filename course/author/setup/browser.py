"""Run the notebooks as a reader does: in JupyterLab on a copy of the course, in a browser installed on this system."""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from course.author.builder.files import environment
from course.author.setup import workspace
from course.reader.notebooks.names import ROOT

SHOTS = ROOT / ".course" / "screenshots"
COMMANDS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "chrome",
    "msedge",
)
PLACES = [  # where browsers are installed on systems that have no command for them: macOS and Windows
    os.path.join(home, "Applications", f"{name}.app", "Contents", "MacOS", name)
    for home in ("/", os.path.expanduser("~"))
    for name in ("Chromium", "Google Chrome", "Microsoft Edge")
] + [
    os.path.join(os.environ[folder], place)
    for folder in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
    for place in (
        "Chromium/Application/chrome.exe",
        "Google/Chrome/Application/chrome.exe",
        "Microsoft/Edge/Application/msedge.exe",
    )
    if folder in os.environ
]
MISSING = """No Chromium, Chrome or Edge is found on this system. Install Google Chrome (https://www.google.com/chrome)
or Chromium:  sudo apt install chromium   (Fedora: sudo dnf install chromium; macOS: brew install --cask chromium)"""
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false"}  # otherwise a question about news covers the page
}


# JupyterLab adds the cells of a notebook to the page a few at a time, while it is idle.
ALL_CELLS = """() => {
    const [, cells] = document.querySelector("#jp-main-statusbar").innerText.match(/Cell \\d+\\/(\\d+)/);
    return document.querySelectorAll(".jp-Notebook .jp-Cell").length == cells;
}"""


def find():
    """Return the path of Chromium, Chrome or Edge on this system, or None if there is none."""
    commands = filter(None, map(shutil.which, COMMANDS))
    return next(commands, None) or next(filter(os.path.isfile, PLACES), None)


def main(arguments):
    """Run the browser tests on all five notebooks. Arguments go to pytest. Raises SystemExit if there is no browser."""
    if not find():
        sys.exit(MISSING)
    tests = str(ROOT / "tests" / "house" / "test_browser.py")
    return subprocess.call([sys.executable, "-m", "pytest", tests, "--all-notebooks", *arguments])


@contextlib.contextmanager
def launched():
    """Yield a headless browser that is controlled by Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=["--disable-gpu"])
        yield browser
        browser.close()


@contextlib.contextmanager
def jupyterlab(root, scratch):
    """Run `course lab` in the project at `root`, for a test. Yields a function from a notebook's name to its address.

    Settings, log and state are in the folder `scratch`, not in the user's. Raises RuntimeError if it does not start.
    """
    workspace.open_desk(root)
    with served(root, scratch, lambda options: workspace.lab_command(root, options)) as address:
        yield address


@contextlib.contextmanager
def plain_jupyterlab(root, scratch):
    """Run JupyterLab on the folder `root` without anything of the course's. It trusts no notebook. See `jupyterlab`."""
    root_too = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with served(root, scratch, lambda options: [sys.executable, "-m", "jupyterlab", *options, *root_too]) as address:
        yield address


@contextlib.contextmanager
def served(root, scratch, command):
    """Run the command that `command(options)` returns in the folder `root`. See `jupyterlab`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server, token = f"http://127.0.0.1:{port}", secrets.token_hex(16)
    kinds = ("_CONFIG", "_DATA", "_RUNTIME", "LAB_SETTINGS", "LAB_WORKSPACES")
    own = {f"JUPYTER{kind}_DIR": str(scratch / kind) for kind in kinds} | {"JUPYTER_TOKEN": token}
    for place, setting in SETTINGS.items():
        file = scratch / "LAB_SETTINGS" / "@jupyterlab" / f"{place}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(setting))
    options = ["--no-browser", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"]
    with open(scratch / "log", "w") as log:
        running = subprocess.Popen(command(options), cwd=root, env=environment(root) | own, stdout=log, stderr=log)
    try:
        for _ in range(1200):  # two minutes, on a busy machine
            try:
                urllib.request.urlopen(f"{server}/api?token={token}", timeout=1)
                break
            except OSError:
                if running.poll() is not None:
                    raise RuntimeError(f"JupyterLab did not start:\n{Path(scratch, 'log').read_text()}") from None
                time.sleep(0.1)
        yield lambda name: f"{server}/lab/tree/{name}.ipynb?token={token}&reset"
    finally:
        running.terminate()
        running.wait(20)


def run_all(tab):
    """Run all cells of the notebook in a tab, until the end or the first error. Returns the texts of the errors."""
    tab.locator("#jp-main-statusbar :text('| Idle')").wait_for(timeout=60_000)
    # Save: the last cell compares what ran with the file, and opening its text pair may have changed the notebook.
    tab.keyboard.press("ControlOrMeta+s")
    tab.get_by_role("menuitem", name="Run", exact=True).click()
    tab.locator("[data-command='runmenu:run-all']").click()
    waiting = tab.locator(".jp-InputPrompt:text('*')")
    errors = tab.locator(".jp-OutputArea [data-mime-type$=stderr]")
    waiting.first.wait_for(timeout=60_000)
    tab.wait_for_function(ALL_CELLS, timeout=120_000)
    waiting.first.wait_for(state="detached", timeout=600_000)  # an error cancels all waiting cells
    tab.locator("#jp-main-statusbar :text('| Idle')").wait_for(timeout=60_000)
    return errors.all_text_contents()
