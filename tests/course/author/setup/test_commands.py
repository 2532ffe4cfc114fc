"""What the commands have in common: how a notebook is named, and what they say of a text that holds a merge conflict."""

import pytest

from course import build, commands
from course.reader import progress
from course.reader.notebooks import names
from course.reader.notebooks.cells import BuildError

CONFLICT = """\
# %%
<<<<<<< HEAD
x = 1
=======
x = 2
>>>>>>> theirs
"""


@pytest.mark.parametrize(
    "given",
    ["02", "2", "kernels", "02_kernels", "notebooks/02_kernels.ipynb", "mine/02_kernels.ipynb", "levels/kernels/"],
)
def test_a_notebook_has_many_names(built, given):
    assert build.named(built, given) == "02_kernels"


@pytest.mark.parametrize(
    "given, hint",
    [
        ("kernel", "did you mean 02_kernels?"),
        ("hardwear", "did you mean 01_hardware?"),
        ("3", "there are 01_hardware, 02_kernels"),
        ("", "there are 01_hardware, 02_kernels"),
        ("²", "there are 01_hardware, 02_kernels"),
    ],
)
def test_a_name_that_is_none_gets_the_nearest(built, given, hint):
    with pytest.raises(BuildError) as error:
        build.named(built, given)
    assert str(error.value) == f"no notebook is called {given!r}: {hint}"


def test_build_takes_any_of_them(built, capsys):
    assert build.main(["kernels", "2", "--check"], built) == 0
    assert build.main(["hardwear"], built) == 1
    assert "did you mean 01_hardware?" in capsys.readouterr().err


def test_a_merge_conflict_is_called_one(project, monkeypatch, capsys):
    """By whatever reads a text: build, its check, the table of what was solved, and Lab."""
    text = project / "notebooks" / "text" / "02_kernels.py"
    before = text.read_text(encoding="utf-8")
    text.write_text(before + CONFLICT, encoding="utf-8")
    line = len(before.splitlines()) + 2
    told = f"notebooks/text/02_kernels.py, line {line}: holds a merge conflict: resolve it, then try again\n"
    assert build.main([], project) == 1
    assert capsys.readouterr().err == told
    assert build.main(["--check"], project) == 1
    assert capsys.readouterr().out == told
    monkeypatch.setattr(progress, "ROOT", project)
    monkeypatch.setattr(names, "ROOT", project)
    for command in (commands.progress, commands.lab):
        with pytest.raises(SystemExit, match="line .* holds a merge conflict"):
            command([])
