"""The numbers of the course: the files, the splits, the order of the rows, and the arithmetic of record."""

import itertools
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from course import reference, tasks

ALL = [tasks.linear, tasks.rings, tasks.penguins_mass, tasks.penguins_sex]


@pytest.mark.quick
@pytest.mark.parametrize(
    "make, train, test, features, steps, batch",
    [
        (tasks.linear, 400, 100, 2, 8000, 10),
        (tasks.rings, 4000, 1000, 2, 24000, 100),
        (tasks.penguins_mass, 270, 72, 3, 2700, 10),
        (tasks.penguins_sex, 260, 73, 4, 2600, 20),
    ],
)
def test_sizes(make, train, test, features, steps, batch):
    task = make()
    assert task.x.shape == (train, features) and task.y.shape == (train, 1)
    assert task.x_test.shape == (test, features) and task.y_test.shape == (test, 1)
    assert task.batches.shape == (steps, batch) and len(task.names) == features
    assert {a.dtype for a in (task.x, task.y, task.x_test, task.y_test, *task.weights)} == {np.dtype("f8")}
    assert all(a.flags.c_contiguous for a in task[:4])


@pytest.mark.parametrize("make", ALL)
def test_an_epoch_has_all_rows_in_the_order_of_pythons_own_draws(make):
    """Which all differ, so the order does not depend on how equal draws are sorted."""
    rows, batches = len(make().x), make().batches
    draw = random.Random(1).random
    draws = np.array([draw() for _ in range(batches.size)]).reshape(-1, rows)
    assert all(len(np.unique(epoch)) == rows for epoch in draws)
    assert (batches == np.argsort(draws, axis=1).reshape(batches.shape)).all()


@pytest.mark.parametrize("make", [tasks.penguins_mass, tasks.penguins_sex])
def test_penguins_are_standardised_by_the_training_rows_alone(make):
    task = make()
    assert np.allclose(task.x.mean(axis=0), 0, atol=1e-12) and np.allclose(task.x.std(axis=0), 1, atol=1e-12)
    assert np.abs(task.x_test.mean(axis=0)).max() > 1e-3


@pytest.mark.parametrize("name, make", [("linear", tasks.make_linear), ("rings", tasks.make_rings)])
def test_files_are_what_their_makers_make(name, make):
    """To 12 digits, not to the last: `cos` and `log` may differ between machines, which is why the files ship."""
    stored = tasks.read(f"{name}.csv", ("x1", "x2", "y", "split"), (float, float, float, str))
    made = list(make())
    assert [row[3] for row in stored] == [row[3] for row in made]
    np.testing.assert_allclose([row[:3] for row in stored], [row[:3] for row in made], rtol=1e-12)


def test_starting_weights_are_what_their_maker_makes():
    stored = json.loads((tasks.DATA / "starting_weights.json").read_text())
    assert {*stored} == {*tasks.STARTS}
    for name, start in tasks.STARTS.items():
        for w, made in zip(stored[name], tasks.make_weights(*start), strict=True):
            np.testing.assert_allclose(w, made, rtol=1e-12)


@pytest.fixture
def data(tmp_path, monkeypatch):
    for file in filter(Path.is_file, tasks.DATA.iterdir()):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(tasks, "DATA", tmp_path)
    for make in ALL:
        make.cache_clear()
    yield tmp_path
    for make in ALL:
        make.cache_clear()


@pytest.mark.parametrize("file, make", [("linear.csv", tasks.linear), ("penguins.csv", tasks.penguins_mass)])
@pytest.mark.parametrize("damage", ["missing", "cut", "shorter", "header", "word", "nan", "quote", "long", "encoding"])
def test_missing_or_damaged_data_is_one_clear_error(data, file, make, damage):
    path = data / file
    text = path.read_text()
    lines = text.splitlines()
    number = "18.7" if file == "penguins.csv" else lines[1].split(",")[0]
    damaged = dict(
        cut=text[: text.rindex(",") - 12],
        shorter="\n".join(lines[:-1]) + "\n",
        header=text.replace("x1" if file == "linear.csv" else "sex", "?", 1),
        word=text.replace(number, "oops", 1),
        nan=text.replace(number, "nan", 1),
        quote=text.replace(number, f'"{number}', 1),
        long=text.replace(number, "1" * 200_000, 1),
        encoding=text.replace(number, "\xfc", 1),
    )
    path.unlink() if damage == "missing" else path.write_text(damaged[damage], encoding="latin-1")
    with pytest.raises((FileNotFoundError, ValueError), match=f"data/{file}.*git checkout -- data/{file}"):
        make()


@pytest.mark.parametrize("text", [None, "{", "{}"])
def test_missing_or_damaged_weights_are_one_clear_error(data, text):
    path = data / "starting_weights.json"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(ValueError, match="git checkout -- data/starting_weights.json"):
        tasks.linear()


@pytest.mark.quick
@pytest.mark.parametrize("make, step", [(tasks.linear, "linear"), (tasks.rings, "dnn"), (tasks.penguins_sex, "dnn")])
def test_reference_gradients_are_slopes(make, step):
    """Every gradient of the record against a central difference."""
    task = make()
    rows = task.batches[0]
    x, y, weights = task.x[rows].tolist(), task.y[rows].tolist(), [w.tolist() for w in task.weights]

    def run():
        if step == "linear":
            return reference.linear_step(x, y, weights)
        return reference.dnn_step(x, y, weights, math.exp, math.log)

    _, gradients = run()
    for row, slopes in zip(itertools.chain(*weights), itertools.chain(*gradients), strict=True):
        for j, w in enumerate(row):
            row[j] = w + 1e-6
            above, _ = run()
            row[j] = w - 1e-6
            below, _ = run()
            row[j] = w
            assert slopes[j] == pytest.approx((above - below) / 2e-6, rel=1e-5, abs=1e-7)
