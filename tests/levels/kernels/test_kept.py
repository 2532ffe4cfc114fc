"""What was compiled is kept: a damaged file, a folder that cannot be written, a full disk only cost time."""

import numpy as np
import pytest

from course import tasks
from levels import hardware
from levels.kernels import KERNELS, matmul_ikj
from levels.support import cache, compiled

TASK = tasks.linear()
X = np.arange(6.0).reshape(2, 3)


def run(folder):
    """[what level 1's program and numba's give, how many numba compiled], where this folder keeps what is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "_CACHE", folder)
        patch.setattr(compiled, "_PROGRAMS", {})
        fit = hardware.tasks.linear_regression(TASK.x, TASK.y, TASK.weights, TASK.batches[:20])
        found = [fit.losses.tolist()]
        for op in ("relu", "sigmoid", "log", "negative"):
            found.append(compiled.compile_cpu(KERNELS[op, "cpu"], X.dtype)(2.5))
        product = np.empty((2, 2))
        compiled.compile_cpu(matmul_ikj, X.dtype)(product, X, X.T.copy())
        found.append(product.tolist())
        made = sum(sum(program._cache_misses.values()) for program in compiled._PROGRAMS.values())
    return found, made


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of programs that were kept, what they give, and how many there are."""
    folder = tmp_path_factory.mktemp("programs")
    found, made = run(folder)
    assert made > 5 and run(folder) == (found, 0)
    assert not [path for path in folder.iterdir() if path.suffix]  # nothing lies half written
    return folder, found, made


def test_no_damaged_file_passes_for_a_whole_one(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_CACHE", tmp_path)
    cache.cache_put("its text", b"a program")
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    cut = [data[:n] for n in range(len(data))]
    flipped = [(int.from_bytes(data, "big") ^ 1 << n).to_bytes(len(data), "big") for n in range(8 * len(data))]
    for damaged in (*cut, *flipped):
        path.write_bytes(damaged)
        assert cache.cache_get("its text") is None
    path.write_bytes(data)
    assert cache.cache_get("its text") == b"a program"


def test_damaged_files_are_compiled_again(whole, tmp_path):
    folder, found, made = whole
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes()[:-1])
    assert run(tmp_path) == (found, made)
    assert run(tmp_path) == (found, 0)  # and whole again


def test_a_folder_that_cannot_be_made_costs_time_only(whole, tmp_path):
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "folder") == whole[1:]


def test_a_full_disk_costs_time_only(whole, tmp_path, monkeypatch):
    def cut_short(path, data):
        with path.open("wb") as file:
            file.write(data[:100])
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cache.Path, "write_bytes", cut_short)
        assert run(tmp_path) == whole[1:]
    assert [*tmp_path.iterdir()]
    assert run(tmp_path) == whole[1:] and run(tmp_path) == (whole[1], 0)
