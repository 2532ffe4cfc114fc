"""`course programs --differences`: libraries answer lines, and what has changed since they were stored is told."""

import importlib.util
import json
import sys

import numpy as np
import pytest

from course.author.programs import differences
from course.reader.programs import lines

TABLE = """
[nan_in_max]
about = "order"
asked = "The largest of 1, NaN?"
guess = {numpy = "nan", levels = "1.0"}
ours = "NaN"
line.numpy = "float(np.max(np.array([1, nan])))"
line.levels = "float(low.reduce_max(low.constant([1.0, nan])))"

[no_number]
about = "order"
asked = "The largest of nothing?"
guess = "ValueError"
ours = "refused"
line.numpy = "np.max([])"
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    file = tmp_path / "differences.toml"
    file.write_text(TABLE, encoding="utf-8")
    monkeypatch.setattr(lines, "DIFFERENCES", file)
    return file


def test_what_has_changed_is_told(table, capsys):
    assert differences.differences({}, store=False) == 1 and not table.with_suffix(".json").exists()
    assert "new: nan_in_max: nan" in capsys.readouterr().out
    assert differences.differences({}, store=True) == 0
    assert "3 asked, 0 as stored, 0 changed, 1 not guessed" in capsys.readouterr().out
    stored = lines.stored(table)
    here = np.__version__
    wanted = {
        "nan_in_max": {"numpy": {here: "nan"}, "levels": {"": "nan"}},
        "no_number": {"numpy": {here: "ValueError"}},
    }
    assert stored == wanted
    assert differences.differences({}, store=False) == 0
    assert "3 asked, 3 as stored, 0 changed" in capsys.readouterr().out

    stored["nan_in_max"]["numpy"] = {"1.9.0": "0.0", "1.10.0": "1.0"}  # of older releases: the newest is compared
    table.with_suffix(".json").write_text(json.dumps(stored), encoding="utf-8")
    assert differences.differences({}, store=True) == 0
    told = capsys.readouterr().out
    assert f"The largest of 1, NaN?\n    1.10.0: 1.0\n    {here}: nan" in told and "1 changed" in told
    assert [*lines.stored(table)["nan_in_max"]["numpy"]] == ["1.9.0", "1.10.0", here]


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed beside the course")
def test_a_library_that_is_not_here_is_skipped(table, capsys):
    table.write_text(TABLE.replace("line.numpy", "line.torch"), encoding="utf-8")
    differences.differences({"torch": sys.executable}, store=True)
    assert "torch: skipped" in capsys.readouterr().out and "torch" not in lines.stored(table)["nan_in_max"]
