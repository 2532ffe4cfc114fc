"""`reset`, `catch-up`, `undo`: the course's own comes back to the desk, and whatever a reader had is still there."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course import build
from course.author.setup import backup, reset, workspace

NOTEBOOK = "mine/02_kernels.ipynb"


@pytest.fixture
def kept(project) -> Path:
    """The tiny project, with its desk."""
    assert workspace.open_desk(project) == []
    return project


def course(root: Path, *arguments: str) -> int:
    return reset.main(arguments[0], list(arguments[1:]), root)


def files(root: Path) -> dict[str, bytes]:
    """Everything in the folder that the commands touch, and in those that they must not."""
    paths = [path for part in ("notebooks", "levels", "mine") for path in (root / part).rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths if path.suffix != ".pyc"}


def set_aside(root: Path) -> list[Path]:
    return sorted((root / ".course" / "aside").glob("*"))


def work(root: Path, line: str = "mine = 1") -> None:
    """What a reader's work in Lab leaves: a notebook with another cell."""
    notebook = nbformat.read(root / NOTEBOOK, 4)
    notebook.cells.append(nbformat.v4.new_code_cell(line))
    nbformat.write(notebook, root / NOTEBOOK)


DAMAGED = {NOTEBOOK: b"\xff\x00 not a notebook"}
HALF_A_ROOM = {"mine/levels/kernels/registry.py": b"KERNELS = {\r\n"}
ANOTHER_ROOM = {"mine/levels/kernels/tasks.py": None, "mine/levels/kernels/mine.py": b"print('mine')\n"}


def spoil(root: Path, changes: dict[str, bytes | None]) -> None:
    """Leave these files on the desk; None: a file, or a folder, is gone."""
    for path, text in changes.items():
        if text is not None:
            (root / path).write_bytes(text)
        elif (root / path).is_dir():
            shutil.rmtree(root / path)
        else:
            (root / path).unlink()


CHANGES = [(changes, ["02_kernels"]) for changes in (DAMAGED, {NOTEBOOK: None})]
CHANGES += [(each, ["mine/levels/kernels/", "--level"]) for each in (HALF_A_ROOM, ANOTHER_ROOM, {"mine/levels": None})]


@pytest.mark.parametrize("changes, arguments", CHANGES)
def test_a_notebook_or_a_level_comes_back_and_the_readers_too(kept, changes, arguments, capsys):
    built = files(kept)
    spoil(kept, changes)
    theirs = files(kept)
    assert course(kept, "reset", *arguments) == 0
    others = [path for path in built if path.startswith("mine/levels/hardware/") and path not in theirs]
    assert files(kept) == {path: text for path, text in built.items() if path not in others}
    assert course(kept, "undo") == 0
    assert files(kept) == theirs
    assert "course undo" in capsys.readouterr().out


def test_catch_up_installs_the_levels_beneath_and_nothing_else(kept, capsys):
    built = files(kept)
    work(kept)
    spoil(kept, HALF_A_ROOM | {"mine/levels/hardware/tasks.py": b"raise SystemExit\n"})
    theirs = files(kept)
    assert course(kept, "catch-up", "mine/02_kernels.ipynb") == 0
    assert files(kept) == theirs | {"mine/levels/hardware/tasks.py": built["mine/levels/hardware/tasks.py"]}
    assert "mine/levels/hardware" in capsys.readouterr().out
    assert course(kept, "undo") == 0
    assert files(kept) == theirs


def test_a_readers_own_notebook_is_none_of_the_courses(kept, capsys):
    (kept / "mine" / "Untitled.ipynb").write_text("")
    assert course(kept, "catch-up", "02") == 0
    assert course(kept, "reset", "Untitled") == 1
    assert "there are 01_hardware, 02_kernels" in capsys.readouterr().err
    assert (kept / "mine" / "Untitled.ipynb").exists()


def test_the_first_notebook_stands_on_nothing(kept, capsys):
    assert course(kept, "catch-up", "01") == 0
    assert "first notebook" in capsys.readouterr().out and not set_aside(kept)


@pytest.mark.parametrize("arguments", [("reset", "02_kernels"), ("reset", "kernels", "--level"), ("catch-up", "02")])
def test_what_is_unchanged_is_said_to_be(kept, arguments, capsys):
    for path in (kept / "mine" / "levels").rglob("*.py"):  # as git may check files out on Windows
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = files(kept)
    assert course(kept, *arguments) == 0
    assert "the course's own already. Nothing was done." in capsys.readouterr().out
    assert files(kept) == before and not set_aside(kept)


def test_undo_goes_back_one_by_one_and_keeps_later_work(kept, capsys):
    built = files(kept)
    work(kept)
    spoil(kept, HALF_A_ROOM)
    theirs = files(kept)
    assert course(kept, "reset", "02_kernels") == course(kept, "reset", "kernels", "--level") == 0
    work(kept, "later = 1")
    later = (kept / NOTEBOOK).read_bytes()
    assert course(kept, "undo") == 0
    assert files(kept)["mine/levels/kernels/registry.py"] == theirs["mine/levels/kernels/registry.py"]
    assert files(kept)[NOTEBOOK] == later != built[NOTEBOOK]
    assert course(kept, "undo") == 0
    assert files(kept) == theirs
    assert later in [(folder / NOTEBOOK).read_bytes() for folder in set_aside(kept) if (folder / NOTEBOOK).exists()]
    assert course(kept, "undo") == 1
    assert "nothing to undo" in capsys.readouterr().err


COMMANDS = [("reset", "01_hardware"), ("reset", "02_kernels"), ("reset", "kernels", "--level"), ("catch-up", "02")]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(COMMANDS), max_size=5))
def test_as_many_undos_as_commands_lead_back_to_the_last_byte(built, commands):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(built, Path(folder).resolve() / "project"))
        workspace.open_desk(root)
        spoil(root, DAMAGED | ANOTHER_ROOM | {"mine/levels/hardware/tasks.py": b"\xff\r\n"})
        theirs = files(root)
        for command in commands:
            assert course(root, *command) == 0
        for _ in set_aside(root):
            assert course(root, "undo") == 0
        assert files(root) == theirs


# What cannot be done.


def refused(root: Path, capsys, *arguments: str) -> str:
    """One line says why, and nothing was changed."""
    before = files(root)
    assert course(root, *arguments) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and files(root) == before
    return said


def test_a_read_only_file_stops_it_before_anything_is_changed(kept, capsys):
    work(kept)
    os.chmod(kept / NOTEBOOK, stat.S_IREAD)
    assert f"{NOTEBOOK} is read-only" in refused(kept, capsys, "reset", "02_kernels")
    os.chmod(kept / NOTEBOOK, stat.S_IREAD | stat.S_IWRITE)
    assert not set_aside(kept)


def test_a_folder_where_a_file_belongs(kept, capsys):
    (kept / NOTEBOOK).unlink()
    (kept / NOTEBOOK).mkdir()
    assert NOTEBOOK.split("/")[-1] in refused(kept, capsys, "reset", "02_kernels")


def test_stopped_half_way_nothing_is_lost(kept, capsys):
    work(kept)
    shutil.rmtree(kept / "mine/levels/kernels")
    (kept / "mine/levels/kernels").write_text("a file where a folder belongs\n")
    (kept / "mine/levels/__init__.py").write_text("mine = 1\n")
    theirs = files(kept)
    assert course(kept, "reset", "kernels", "--level") == 1
    assert "Nothing is lost" in capsys.readouterr().err
    assert course(kept, "undo") == 0
    assert files(kept) == theirs


def test_what_was_set_aside_is_gone_or_damaged(kept, capsys):
    work(kept)
    assert course(kept, "reset", "02_kernels") == 0
    (folder,) = set_aside(kept)
    (folder / NOTEBOOK).unlink()
    assert "no longer holds" in refused(kept, capsys, "undo")
    (folder / backup.LIST).write_text(json.dumps([1]))
    assert "is damaged" in refused(kept, capsys, "undo")


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="the tests run in no environment")
def test_through_the_door(project):
    """As a reader calls it, before there is a desk."""
    shutil.copytree(build.ROOT / "course", project / "course", dirs_exist_ok=True)
    for name in ("pyproject.toml", "requirements.lock", "requirements-test.lock"):
        shutil.copy(build.ROOT / name, project / name)

    def door(*arguments):
        command = [sys.executable, "-m", "course", *arguments]
        return subprocess.run(command, cwd=project, env=build.environment(project), capture_output=True, text=True)

    assert door("reset", "02").returncode == 0
    fresh = files(project)
    work(project)
    done = door("reset", "kernels")
    assert done.returncode == 0 and "kept in .course/aside" in done.stdout, done
    assert files(project) == fresh
    assert "nothing to undo" not in door("undo").stderr
    assert files(project) != fresh
