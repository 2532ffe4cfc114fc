"""`python3 -m course test` and its `--weekly`: what is marked, and no more; of the sample, that it has every part."""

import re

import pytest
from fresh import printed

from course import build

MARKED = """
import pytest

@pytest.mark.{mark}
def test_marked():
    pass

def test_unmarked():
    assert False
"""


@pytest.mark.parametrize("mark", ["quick", "weekly"])
def test_marked_tests_run_and_a_file_without_one_is_not_read(tmp_path, mark):
    (tmp_path / "test_marked.py").write_text(MARKED.format(mark=mark))
    (tmp_path / "test_unmarked.py").write_text("raise SystemExit('it was read')")
    options = ["-m", "pytest", f"--config-file={build.ROOT / 'pyproject.toml'}", "-p", "conftest"]
    options += ["-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-m", mark, str(tmp_path)]
    options += ["--numprocesses=2"] if mark == "quick" else ["-p", "no:xdist"]
    told = printed(*options, cwd=tmp_path, paths=[build.ROOT / "tests"], PYTEST_ADDOPTS="")
    assert "1 passed" in told
    if mark == "quick":  # how many there are, and what runs the others
        assert "\n1 tests, about two minutes on two processors\n" in told
        assert told.endswith(":  python3 -m course test --all\n")


def test_each_room_of_the_course_and_each_level_is_in_the_sample():
    """A file with a marked test imports it. (The site is tried by what it has made.)"""
    files = [path.read_text(encoding="utf-8") for path in (build.ROOT / "tests").rglob("test_*.py")]
    marked = [text for text in files if "\n@pytest.mark.quick\n" in text]
    rooms = {path.parent for path in build.ROOT.glob("course/*/*/__init__.py")} - {build.ROOT / "course/author/site"}
    assert len(rooms) > 12
    for room in rooms:
        found = re.compile(rf"^(from|import) course(\.{room.parent.name})?(\.| import .*\b){room.name}\b", re.MULTILINE)
        assert any(map(found.search, marked)), room
    for room in [f"levels.{build.level_of(name)}" for name in build.names_in(build.ROOT)]:
        assert any(re.search(rf"\b{re.escape(room)}\b", text) for text in marked), room
