"""`reset`, `catch-up`, `undo`: the course's own comes back, and whatever a reader had is still there."""

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

from course import __main__ as the_door
from course import build, keeping

GIT = shutil.which("git")
NOTEBOOK, TEXT = "notebooks/02_kernels.ipynb", "notebooks/text/02_kernels.py"


def commit(root: Path) -> None:
    command = ["git", "-C", str(root), "-c", "user.name=Reader", "-c", "user.email=reader@example.org"]
    for arguments in (["init", "-q"], ["add", "notebooks", "levels"], ["commit", "-qm", "as it is now"]):
        subprocess.run(command + arguments, check=True, capture_output=True)


def keep_copy(root: Path, monkeypatch) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(the_door, "ROOT", str(root))
    the_door.keep_copy()


@pytest.fixture(params=["copy", pytest.param("git", marks=pytest.mark.skipif(not GIT, reason="no git"))])
def kept(request, project, monkeypatch) -> Path:
    """The tiny project with its own version kept: by git, or as a download without git keeps it."""
    commit(project) if request.param == "git" else keep_copy(project, monkeypatch)
    return project


@pytest.fixture
def download(project, monkeypatch) -> Path:
    keep_copy(project, monkeypatch)
    return project


def course(root: Path, *arguments: str) -> int:
    return keeping.main(arguments[0], list(arguments[1:]), root)


def files(root: Path) -> dict[str, bytes]:
    """Everything in the folders that the commands touch."""
    paths = [path for part in ("notebooks", "levels") for path in (root / part).rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths if path.suffix != ".pyc"}


def aside(root: Path) -> list[Path]:
    return sorted((root / ".course" / "aside").glob("*"))


def work(root: Path, line: str = "mine = 1") -> None:
    """What a reader's work in Lab leaves: a notebook and its text with another cell."""
    notebook = nbformat.read(root / NOTEBOOK, 4)
    notebook.cells.append(nbformat.v4.new_code_cell(line))
    nbformat.write(notebook, root / NOTEBOOK)
    with open(root / TEXT, "a", encoding="utf-8") as file:
        file.write(f"\n# %%\n{line}\n")


def spoil_notebook(root):
    work(root)


def damage_notebook(root):
    (root / NOTEBOOK).write_bytes(b"\xff\x00 not a notebook")


def delete_notebook(root):
    (root / NOTEBOOK).unlink()
    (root / TEXT).unlink()


def empty_text(root):
    (root / TEXT).write_bytes(b"")


def half_a_room(root):
    (root / "levels/kernels/registry.py").write_bytes(b"KERNELS = {\r\n")


def missing_room_and_another(root):
    (root / "levels/kernels/tasks.py").unlink()
    (root / "levels/kernels/mine.py").write_text("print('mine')\n")


def no_level(root):
    shutil.rmtree(root / "levels")


@pytest.mark.parametrize("change", [spoil_notebook, damage_notebook, delete_notebook, empty_text])
def test_a_notebook_comes_back_and_the_readers_too(kept, change, capsys):
    built = files(kept)
    change(kept)
    theirs = files(kept)
    assert course(kept, "reset", "02_kernels") == 0
    assert files(kept) == built
    assert (kept / TEXT).stat().st_mtime >= (kept / NOTEBOOK).stat().st_mtime, "Lab would refuse the notebook"
    assert course(kept, "undo") == 0
    assert files(kept) == theirs
    assert "course undo" in capsys.readouterr().out


@pytest.mark.parametrize("change", [half_a_room, missing_room_and_another, no_level])
def test_a_level_comes_back_and_the_readers_too(kept, change):
    built = {path: text for path, text in files(kept).items() if not path.startswith("levels/hardware")}
    change(kept)
    theirs = files(kept)
    assert course(kept, "reset", "levels/kernels/") == 0
    assert {path: text for path, text in files(kept).items() if not path.startswith("levels/hardware")} == built
    assert course(kept, "undo") == 0
    assert files(kept) == theirs


@pytest.mark.parametrize("name", ["02", "2", "02_kernels", "notebooks/02_kernels.ipynb"])
def test_catch_up_installs_the_levels_beneath_and_nothing_else(kept, name, capsys):
    built = files(kept)
    work(kept)
    half_a_room(kept)
    (kept / "levels/hardware/tasks.py").write_text("raise SystemExit\n")
    theirs = files(kept)
    assert course(kept, "catch-up", name) == 0
    assert files(kept) == theirs | {"levels/hardware/tasks.py": built["levels/hardware/tasks.py"]}
    assert "levels/hardware" in capsys.readouterr().out
    assert course(kept, "undo") == 0
    assert files(kept) == theirs


def test_a_readers_own_notebook_is_none_of_the_courses(download, capsys):
    for path in ("notebooks/Untitled.ipynb", "notebooks/text/Untitled.py"):  # Lab pairs every notebook in the folder
        (download / path).write_text("")
    assert course(download, "catch-up", "02") == 0
    assert course(download, "reset", "Untitled") == 1
    assert "there are 01_hardware, 02_kernels, hardware, kernels" in capsys.readouterr().err


def test_the_first_notebook_stands_on_nothing(download, capsys):
    assert course(download, "catch-up", "01") == 0
    assert "first notebook" in capsys.readouterr().out and not aside(download)


@pytest.mark.parametrize("arguments", [("reset", "02_kernels"), ("reset", "kernels"), ("catch-up", "02")])
def test_what_is_unchanged_is_said_to_be(kept, arguments, capsys):
    for path in (kept / "levels").rglob("*.py"):  # as git may check files out on Windows
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = files(kept)
    assert course(kept, *arguments) == 0
    assert "unchanged" in capsys.readouterr().out
    assert files(kept) == before and not aside(kept)


@pytest.mark.skipif(not GIT, reason="no git")
def test_own_work_in_git_is_not_taken_for_the_courses(project):
    built = files(project)
    commit(project)
    for line in ("mine = 1", "mine = 2"):
        work(project, line)
        half_a_room(project)
        commit(project)
    for name in ("02_kernels", "kernels"):
        assert course(project, "reset", name) == 0
    assert files(project) == built


def test_undo_goes_back_one_by_one_and_keeps_later_work(download, capsys):
    built = files(download)
    work(download)
    half_a_room(download)
    theirs = files(download)
    assert course(download, "reset", "02_kernels") == course(download, "reset", "kernels") == 0
    work(download, "later = 1")
    later = (download / NOTEBOOK).read_bytes()
    assert course(download, "undo") == 0
    assert files(download)["levels/kernels/registry.py"] == theirs["levels/kernels/registry.py"]
    assert files(download)[NOTEBOOK] == later != built[NOTEBOOK]
    assert course(download, "undo") == 0
    assert files(download) == theirs
    assert later in [(folder / NOTEBOOK).read_bytes() for folder in aside(download) if (folder / NOTEBOOK).exists()]
    assert course(download, "undo") == 1
    assert "nothing to undo" in capsys.readouterr().err


COMMANDS = [("reset", "01_hardware"), ("reset", "02_kernels"), ("reset", "kernels"), ("catch-up", "02")]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(COMMANDS), max_size=5))
def test_as_many_undos_as_commands_lead_back_to_the_last_byte(built, commands):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        root = Path(shutil.copytree(built, Path(folder).resolve() / "project"))
        keep_copy(root, monkeypatch)
        monkeypatch.undo()  # back to a folder that stays
        damage_notebook(root)
        missing_room_and_another(root)
        (root / "levels/hardware/tasks.py").write_bytes(b"\xff\r\n")
        theirs = files(root)
        for command in commands:
            assert course(root, *command) == 0
        for _ in aside(root):
            assert course(root, "undo") == 0
        assert files(root) == theirs


# What cannot be done.


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("reset", "kernls"), ["'kernls'", "did you mean", "kernels"]),
        (("reset", "02"), ["did you mean 02_kernels"]),
        (("reset", "xyzzy"), ["there are 01_hardware, 02_kernels, hardware, kernels"]),
        (("reset", ""), ["there are"]),
        (("reset", "../kernels/../.."), ["there are"]),
        (("catch-up", "9"), ["there are 01_hardware, 02_kernels"]),
        (("catch-up", "02_kernel"), ["did you mean 02_kernels"]),
    ],
)
def test_an_unclear_name_is_refused(download, arguments, words, capsys):
    before = files(download)
    work(download)
    assert course(download, *arguments) == 1
    said = capsys.readouterr().err
    assert all(word in said for word in words) and said.count("\n") == 1, said
    assert files(download).keys() == before.keys() and not aside(download)


def refused(root: Path, capsys, *arguments: str) -> str:
    """One line says why, and nothing was changed."""
    before = files(root)
    assert course(root, *arguments) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and files(root) == before
    return said


def test_a_read_only_file_stops_it_before_anything_is_changed(download, capsys):
    work(download)
    os.chmod(download / TEXT, stat.S_IREAD)
    assert f"{TEXT} is read-only" in refused(download, capsys, "reset", "02_kernels")
    os.chmod(download / TEXT, stat.S_IREAD | stat.S_IWRITE)
    assert not aside(download)


def test_without_any_reference(project, capsys):
    work(project)
    assert "neither git nor" in refused(project, capsys, "reset", "02_kernels")
    assert "neither git nor" in refused(project, capsys, "reset", "kernels")


def test_a_copy_that_was_made_too_late_is_no_reference(project, monkeypatch, capsys):
    work(project)
    keep_copy(project, monkeypatch)
    assert "as it was built" in refused(project, capsys, "reset", "02_kernels")
    assert course(project, "reset", "01_hardware") == 0  # in which nobody had worked


def test_a_damaged_copy_is_no_reference(download, capsys):
    copy = download / keeping.COPY
    whole = bytearray(copy.read_bytes())
    whole[100] ^= 255
    for damaged in (bytes(whole), b"", b"PK"):
        copy.write_bytes(damaged)
        assert "neither git nor" in refused(download, capsys, "reset", "02_kernels")


def test_a_folder_where_a_file_belongs(download, capsys):
    (download / TEXT).unlink()
    (download / TEXT).mkdir()
    assert TEXT.split("/")[-1] in refused(download, capsys, "reset", "02_kernels")


def test_stopped_half_way_nothing_is_lost(download, capsys):
    work(download)
    shutil.rmtree(download / "levels/kernels")
    (download / "levels/kernels").write_text("a file where a folder belongs\n")
    (download / "levels/__init__.py").write_text("mine = 1\n")
    theirs = files(download)
    assert course(download, "reset", "kernels") == 1
    assert "Nothing is lost" in capsys.readouterr().err
    assert course(download, "undo") == 0
    assert files(download) == theirs


def test_what_was_set_aside_is_gone_or_damaged(download, capsys):
    work(download)
    assert course(download, "reset", "02_kernels") == 0
    (folder,) = aside(download)
    (folder / TEXT).unlink()
    assert "no longer holds" in refused(download, capsys, "undo")
    (folder / keeping.LIST).write_text(json.dumps([1]))
    assert "is damaged" in refused(download, capsys, "undo")


def test_through_the_door(project):
    """As a reader calls it: the first command of all keeps the copy, a later one puts back from it."""
    for name in ("__main__.py", "arguments.py", "keeping.py", "progress.py"):
        shutil.copy(build.ROOT / "course" / name, project / "course" / name)
    for name in ("pyproject.toml", "requirements.lock", "requirements-test.lock"):
        shutil.copy(build.ROOT / name, project / name)
    built = files(project)

    def door(*arguments):
        command = [sys.executable, "-m", "course", *arguments]
        return subprocess.run(command, cwd=project, env=build.environment(project), capture_output=True, text=True)

    if sys.prefix == sys.base_prefix:
        pytest.skip("the tests run in no environment")
    assert door("progress").returncode == 0
    work(project)
    done = door("reset", "02_kernels")
    assert done.returncode == 0 and "kept in .course/aside" in done.stdout, done
    assert files(project) == built
    assert "nothing to undo" not in door("undo").stderr
    assert files(project) != built
