"""What a reader saves of the course's pictures and pages is there whole, or as it was before."""

import contextlib

import pytest

from course import tasks
from course.data import pretrained
from course.inspection import framework_programs, share_card, side_by_side, xray
from levels_more.high_level import Sequential
from levels_more.mid_level import Dense
from levels_more.saving import export_page, load_model

resource = pytest.importorskip("resource", reason="this system limits no files")


def opened():
    rings, model = tasks.rings(), Sequential([Dense(1, "sigmoid")])
    model.compile("sgd", "mse")
    return xray.opened(model, rings.x[:10], rings.y[:10])


SAVES = {
    "a card": lambda: share_card.Card("<svg>" + "o" * 5000 + "</svg>", "").save,
    "an X-ray": lambda: opened().save,
    "a model to take home": lambda: lambda path: export_page(load_model(pretrained.MODELS / "rings"), path),
    "levels on paper": lambda: lambda path: side_by_side.on_paper(path, framework_programs.three("tf", "Two rings", "rings")),
}


@contextlib.contextmanager
def full_disk(nbytes):
    """Inside this `with` block no file grows beyond so many bytes."""
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
