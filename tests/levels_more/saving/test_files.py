"""What a reader saves is there whole, or as it was before; and it is where the path says."""

import contextlib
import itertools
import os
from pathlib import Path

import numpy as np
import pytest

from course.author import pretrained
from course.reader.inspection import framework_programs, side_by_side, xray
from course.terminal.arguments import parser
from levels_more import torch
from levels_more.high_level import CSVLogger, ModelCheckpoint, Sequential
from levels_more.mid_level import Dataset, Dense
from levels_more.saving import export_page, from_pretrained, load_model, save_pretrained

SAVES = {
    "an X-ray": lambda: xray.opened(fitted(), X, X[:, :1]).save,
    "a model to take home": lambda: lambda path: export_page(load_model(pretrained.MODELS / "rings"), path),
    "levels on paper": lambda: (
        lambda path: side_by_side.on_paper(path, framework_programs.three("tf", "Two rings", "rings"))
    ),
}


@contextlib.contextmanager
def full_disk(nbytes):
    """Inside this `with` block no file grows beyond so many bytes."""
    resource = pytest.importorskip("resource", reason="this system limits no files")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("what", SAVES)
def test_what_cannot_be_written_whole_is_not_written(what, tmp_path):
    save, path = SAVES[what](), tmp_path / "saved"
    for before in (None, b"what was there"):
        if before:
            path.write_bytes(before)
        with full_disk(1000), pytest.raises(OSError, match="too large"):
            save(path)
        assert [file.read_bytes() for file in tmp_path.iterdir()] == [before] * bool(before)
    save(path)
    assert [*tmp_path.iterdir()] == [path] and path.stat().st_size > 1000
    with pytest.raises(OSError, match="folder|directory|denied"):
        save(tmp_path)
    assert [*tmp_path.iterdir()] == [path]


X = np.ones((4, 2))


@pytest.mark.parametrize("limit", [0, 100])
def test_a_full_disk_leaves_the_old_model_and_nothing_else(limit, tmp_path):
    old, new = fitted(), fitted(units=30)
    old.save(tmp_path / "m")
    old.export(tmp_path / "m.onnx")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    for write, name in ((new.save, "m"), (new.save, "new"), (new.export, "m.onnx")):
        with full_disk(limit), pytest.raises(OSError, match="too large"):
            write(tmp_path / name)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m.onnx"]


def fitted(*callbacks, units=1):
    model = Sequential([Dense(units), Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, X[:, :1], verbose=0, callbacks=[*callbacks])
    return model


def same_prediction(load):
    """A check that the model at a path predicts what the present one does."""
    return lambda model, path: np.array_equal(load(path).predict(X), model.predict(X))


def table_written(model, path):
    Path(os.path.expanduser(path)).write_text("a,b\n1,2\n")
    return [*next(iter(Dataset.from_csv(path)))] == ["a", "b"]


PATHS = {  # what takes a path: (write there, and return the model; whether it can be read from there)
    "save": (lambda model, path: model.save(path), same_prediction(load_model)),
    "save_pretrained": (save_pretrained, same_prediction(from_pretrained)),
    "export": (lambda model, path: model.export(f"{path}.onnx"), None),
    "ModelCheckpoint": (lambda model, path: fitted(ModelCheckpoint(path)), None),
    "CSVLogger": (lambda model, path: fitted(CSVLogger(path)), None),
    "torch.save": (
        lambda model, path: torch.save([1, 2], path),
        lambda model, path: torch.load(path) == [1, 2],
    ),
    "from_csv": (lambda model, path: None, table_written),
}


@pytest.fixture
def places(tmp_path, monkeypatch):
    """(an empty working folder, an empty home folder)."""
    here, home = tmp_path / "here", tmp_path / "home"
    for folder in (here, home):
        folder.mkdir()
    monkeypatch.chdir(here)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    return here, home


@pytest.mark.parametrize("what, kind", [*zip(PATHS, itertools.cycle([str, Path]), strict=False)])
def test_a_tilde_is_the_home_folder(what, kind, places):
    here, home = places
    write, read = PATHS[what]
    model = fitted()
    write(model, kind("~/saved"))
    assert read is None or read(model, kind("~/saved"))
    assert [path.stem for path in home.iterdir()] == ["saved"] and not [*here.iterdir()]


@pytest.mark.parametrize("what", PATHS)
def test_what_is_no_path_of_this_computer_is_refused(what, places):
    """An address would become a folder called "gs:", an empty text the working folder, 0 a file descriptor."""
    here, _ = places
    write, read = PATHS[what]
    write = write if what != "from_csv" else lambda model, path: Dataset.from_csv(path)
    model = fitted()
    for path in ("gs://models/saved", "file:///tmp/saved"):
        with pytest.raises(ValueError, match=f"is '{path}.*, an address; expected a file or folder of this computer"):
            write(model, path)
    for path in (b"saved", "", 0, None) if what != "export" else ():  # "export" adds .onnx to a text
        with pytest.raises(TypeError, match="expected the name of a file"):
            write(model, path)
    assert not [*here.iterdir()]


@pytest.mark.parametrize("command", ["grade", "site", "wheelhouse"])
def test_commands_take_a_tilde_as_the_home_folder(command, places):
    """A shell leaves the ~ in --csv=~/marks.csv as it is, and some leave every ~."""
    home = str(places[1])
    options = parser(command).parse_args(["~/folder"] + ["--csv=~/marks.csv"] * (command == "grade"))
    assert options.folder == f"{home}/folder"
    assert command != "grade" or options.csv == f"{home}/marks.csv"
