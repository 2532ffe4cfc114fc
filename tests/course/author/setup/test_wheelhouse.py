"""`wheelhouse`: what it downloads is enough for a setup without a network, and a wheelhouse that does not fit is not used."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
import small_course
from small_course import WHEEL, open_door

from course.author.setup import environment, wheelhouse
from course.terminal import causes, stage

NOWHERE = {"PIP_INDEX_URL": "http://127.0.0.1:9", "UV_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A small course whose wheel lies on a shelf, which stands for the package index."""
    root = small_course.made(tmp_path / "a course")
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (root / WHEEL).rename(shelf / WHEEL)
    for lock in small_course.LOCKS:
        (root / lock).write_text((root / lock).read_text(encoding="utf-8").replace(f"./{WHEEL}", "tiny==1.0"))
    for module in (environment, stage, wheelhouse):
        monkeypatch.setattr(module, "ROOT", str(root))
    monkeypatch.delenv("COURSE_WHEELHOUSE", raising=False)
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": shelf.as_uri(), "PIP_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(name, value)
    return root


needs_pip = pytest.mark.skipif(
    not importlib.util.find_spec("pip"), reason="the tests run in an environment without pip"
)


@needs_pip
def test_what_is_downloaded_is_enough_for_a_setup_without_a_network(root, capsys):
    assert wheelhouse.wheelhouse([]) == 0
    assert sorted(path.name for path in (root / "wheelhouse").iterdir()) == [wheelhouse.LIST, WHEEL]
    assert "is complete" in capsys.readouterr().out
    done = open_door(root, "setup", **NOWHERE)
    assert done.returncode == 0 and "All packages come from" in done.stdout, done
    python = root / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    answer = subprocess.run([python, "-E", "-c", "import tiny; print(tiny.answer)"], capture_output=True, text=True)
    assert answer.stdout == "42\n", answer


@needs_pip
def test_a_package_that_is_not_the_locked_one_stops_it(root, capsys):
    lock = root / environment.TEST
    lock.write_text("tiny==1.0 --hash=sha256:" + "0" * 64 + "\n")
    (root / "wheelhouse").mkdir()
    (root / "wheelhouse" / wheelhouse.LIST).touch()
    with pytest.raises(SystemExit, match="a downloaded file does not match its hash in the lock"):
        wheelhouse.wheelhouse([])
    assert not (root / "wheelhouse" / wheelhouse.LIST).exists()  # so nobody takes it for a finished one


def test_a_wheelhouse_is_used_where_it_fits(root, monkeypatch, capsys):
    version = environment.version_text(sys.version_info)
    assert wheelhouse.from_wheelhouse(version) == [] and capsys.readouterr().out == ""
    shared = root.parent / "shared"
    shared.mkdir()
    monkeypatch.setenv("COURSE_WHEELHOUSE", str(shared))
    fitting = {"system": causes.machine(version), "lock": environment.digest(environment.TEST)}
    for text, said in (
        (None, "it is not a complete wheelhouse"),
        ('{"system": ', "it is not a complete wheelhouse"),
        (json.dumps(fitting | {"system": "Plan9 mips, Python 3.11"}), "it is for Plan9 mips, Python 3.11, and this is"),
        (json.dumps(fitting | {"lock": "0"}), "it is for another version of the course"),
    ):
        if text is not None:
            (shared / wheelhouse.LIST).write_text(text)
        assert wheelhouse.from_wheelhouse(version) == []
        assert said in capsys.readouterr().out
    (shared / wheelhouse.LIST).write_text(json.dumps(fitting))
    assert wheelhouse.from_wheelhouse(version) == ["--no-index", "--find-links", str(shared)]
