"""The map of the notebooks: nobody keeps it by hand, and it is where the reader begins."""

import re

import pytest

from course import build, commands
from course.author.build import MINE, ROOT
from course.author.setup import index_page, warmup, workspace

NAMES = build.all_in(ROOT)


@pytest.mark.quick
def test_every_notebook_stands_on_it_once_with_what_it_says_of_itself():
    page = index_page.page(ROOT)
    assert sorted(re.findall(r"\]\((\S+)\.ipynb\)", page)) == sorted(NAMES)
    for name in NAMES:
        each = index_page.entry(ROOT, name)
        assert each.title != name and each.promise.endswith("."), f"{name} has a title, and a promise in bold"
        assert each.title in page and (name in build.more_in(ROOT) or index_page.plain(each.promise) in page)
    assert page.index("(trail/1_hardware") < page.index("(01_hardware"), "first the trail"


def test_lab_opens_on_the_map_or_on_the_notebook_that_is_meant(project, monkeypatch, tmp_path):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))  # where no JupyterLab of the reader's is noted
    assert workspace.open_desk(project) == []
    text = (project / MINE / index_page.FILE).read_text(encoding="utf-8")
    assert "[Hardware" in text or "01_hardware.ipynb" in text
    opened = "--LabApp.default_url=/lab/tree/{}"
    assert opened.format(index_page.FILE) in workspace.lab_command(project, [])
    assert opened.format("trail/1_hardware.ipynb") in workspace.lab_command(project, [], "trail/1_hardware")
    handed = []
    monkeypatch.setattr(commands, "hand_over", handed.append)
    monkeypatch.setattr(warmup, "begin", lambda root: None)
    monkeypatch.setattr(workspace, "open_desk", lambda root: [])
    commands.lab(["--trail", "--no-browser"])
    commands.lab(["--port=9999"])
    assert opened.format("trail/1_hardware.ipynb") in handed[0] and handed[0][-1] == "--no-browser"
    assert opened.format(index_page.FILE) in handed[1] and handed[1][-1] == "--port=9999"
