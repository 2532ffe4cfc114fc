"""The benchmark: its protocol, its proof that all do the same work, what it says of what is absent, and its tables."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from course import reference, tasks
from course.author.bench import cases, cli, formulas, libraries, machines, measure, report
from course.author.bench.work import Trainer, load

FAST = measure.Pace(rounds=2, seconds=0.0, limit=60.0)
PEER = """
from course.author.bench.work import Trainer

NAME, VERSION, PACKAGES = "Other", "1", []


def trained(work, rate):
    w, b = (a.copy() for a in work.weights)

    def epoch(order):
        losses = []
        for i in work.batches(order):
            e = work.x[i] @ w + b - work.y[i]
            losses.append((e * e).mean())
            w[...] -= rate * 2 * work.x[i].T @ e / len(i)
            b[...] -= rate * 2 * e.sum(0) / len(i)
        print("a library prints this")
        return losses

    return Trainer(epoch, lambda: [w, b])


def cannot(work):
    raise NotImplementedError("has no exp")


MODES = {
    "right": ("eager", lambda work: trained(work, work.rate)),
    "rate 0.1 % too high": ("eager", lambda work: trained(work, 1.001 * work.rate)),
    "cannot": ("eager", cannot),
}
"""
ENDS = """
import os

NAME, VERSION, PACKAGES, MODES = "Ends", "1", [], {"ends": ("eager", lambda work: os._exit(3))}
"""
HANGS = """
import time

NAME, VERSION, PACKAGES, MODES = "Hangs", "1", [], {"hangs": ("eager", lambda work: time.sleep(600))}
"""
LINE = cases.Case("training", "linear", "", lambda: cases.of_task(tasks.linear(), 10, "sgd"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The benchmarks' folder with a library more."""
    folder = tmp_path_factory.mktemp("benchmarks")
    peers = folder / "course" / "author" / "bench" / "peers"
    peers.mkdir(parents=True)
    own = "bench/__init__", "bench/worker", "bench/work", "bench/formulas", "bench/peers/numpy"
    for name in ("course/__init__.py", "course/author/__init__.py", *(f"course/author/{each}.py" for each in own)):
        (folder / name).write_text((libraries.ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (peers / "other.py").write_text(PEER, encoding="utf-8")
    (peers / "ends.py").write_text(ENDS, encoding="utf-8")
    (peers / "hangs.py").write_text(HANGS, encoding="utf-8")
    return folder


@pytest.mark.parametrize("mode", ["naive", "in_place"])
@pytest.mark.parametrize("task", [tasks.linear, tasks.rings])
def test_the_reference_is_the_arithmetic_of_record(task, mode):
    from course.author.bench.peers import numpy as numpy_

    train = reference.linear_regression if task is tasks.linear else reference.dnn_classifier
    task = task()
    work = cases.of_task(task, len(task.batches[0]), "sgd")
    work = work._replace(x=task.x, y=task.y, weights=task.weights, order=work.order[:1000])
    trainer = getattr(numpy_, mode)(work)
    trainer.epoch(work.order)
    _, weights = train(work.x.tolist(), work.y.tolist(), work.weights, work.batches(work.order), work.rate)
    for ours, theirs in zip(trainer.weights(), weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)


def test_who_does_the_same_is_timed_and_others_are_told(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(libraries, "ROOT", folder)
    peers = {name: libraries.Peer(name, sys.executable) for name in ("numpy", "other", "ends")}
    measured = {result.mode: result for result in measure.measure(LINE, peers, FAST, tmp_path)}
    for peer in peers.values():
        peer.close()
    assert {mode for mode, result in measured.items() if result.seconds} == {"naive", "in place", "right"}
    assert all(len(measured[mode].seconds) == 2 and min(measured[mode].seconds) > 0 for mode in ("naive", "right"))
    assert measured["right"].apart < 1e-6
    assert measured["rate 0.1 % too high"].why.startswith("computes something else: 0.0")
    assert measured["cannot"].why == "has no exp"
    assert measured["ends"].why == "its process ended (3)"


def test_a_library_that_hangs_is_ended_and_named(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(libraries, "ROOT", folder)
    LINE.make().save(tmp_path / "work.npz")
    peer = libraries.Peer("hangs", sys.executable)
    assert peer.modes == {"hangs": "eager"}
    monkeypatch.setattr(libraries, "PATIENCE", 0.5)
    assert peer.ask("make", "hangs", str(tmp_path / "work.npz")) == {"skipped": "gave no answer within 0.5 s"}
    assert peer.process.poll() is not None and peer.gone
    assert peer.ask("drop", 0) == {"skipped": "its process has ended"}
    assert measure.first_epoch(peer, "hangs", str(tmp_path / "work.npz"), tmp_path) is None
    peer.close()


@pytest.mark.quick
@pytest.mark.parametrize("steps", [1, 10, 100])
def test_the_corrections_of_adam_keep_their_digits(steps):
    """In float32, where 1 - 0.999ᵗ from the power is 1.3e-5 of itself away."""
    for beta in formulas.BETAS["adam"]:
        c = np.zeros(1, "f4")
        for _ in range(steps):
            c = formulas.corrected(beta, c)
        assert c.dtype == np.float32 and c[0] == pytest.approx(1.0 - beta**steps, rel=1.2e-6)


def test_a_loss_that_is_wrong_counts_as_something_else(tmp_path):
    start, way = [np.zeros(3)], np.ones(3)
    np.savez(tmp_path / "a.npz", w0=way, loss=1.0)
    np.savez(tmp_path / "b.npz", w0=way, loss=1.1)
    np.savez(tmp_path / "c.npz", w0=way * math.nan, loss=1.0)
    np.savez(tmp_path / "d.npz", w0=np.ones(2), loss=1.0)
    away = [measure.apart(tmp_path / f"{name}.npz", tmp_path / "a.npz", start) for name in "abcd"]
    assert away[0] == 0.0 and away[1] == pytest.approx(0.1) and away[2] == away[3] == math.inf


def test_what_a_library_prints_is_no_answer(folder, tmp_path):
    work = LINE.make()
    work.save(tmp_path / "work.npz")
    requests = [["make", "right", str(tmp_path / "work.npz")], ["time", 0, 2], ["drop", 0], ["time", 0, 1], ["dance"]]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    command, env = libraries.command("other", sys.executable), libraries.environment(1, PYTHONPATH=str(folder))
    told = subprocess.run(command, input=lines, env=env, capture_output=True, text=True, check=True)
    about, made, timed, dropped, late, unknown = map(json.loads, told.stdout.splitlines())
    modes = dict.fromkeys(["right", "rate 0.1 % too high", "cannot"], "eager")
    assert about == {"name": "Other", "version": "1", "bytes": 0, "modes": modes}
    assert made["made"] == 0 and timed["seconds"] > 0 and dropped == {}
    assert "skipped" in late and "KeyError: 'dance'" in unknown["skipped"]
    assert "a library prints this" in told.stderr


def test_a_work_comes_back_from_its_file(tmp_path):
    work = cases.of_net(200, (3, 4, 10), 100, "cross_entropy", "adam", 0.1)._replace(drawn=True)
    work.save(tmp_path / "work.npz")
    again = load(tmp_path / "work.npz")
    assert again[4:] == work[4:] == ("cross_entropy", "adam", 0.1, 100, True)
    arrays = ((*each[:2], *each.weights, each.order) for each in (again, work))
    for ours, theirs in zip(*arrays, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("drawn", "own", "told"), [(False, False, 33), (True, False, 3), (True, True, 5)])
def test_an_order_is_drawn_in_the_time_of_an_epoch_or_before_it(drawn, own, told, monkeypatch):
    """To draw takes 10 s here, an epoch one, and three epochs that shuffle for themselves five."""
    now, orders = [0], []

    def took(seconds, *result):
        now[0] += seconds
        return result

    clock = SimpleNamespace(perf_counter=lambda: now[0])
    draw = SimpleNamespace(permutation=lambda count: took(10, count, now[0]))
    monkeypatch.setattr("course.author.bench.work.time", clock)
    monkeypatch.setattr("course.author.bench.work.DRAW", draw)
    trainer = Trainer(lambda order: orders.append(took(1, order)), None, (lambda epochs: took(5)) if own else None)
    assert trainer.train(LINE.make()._replace(drawn=drawn), 3) == told
    assert len({*orders}) == (0 if own else 3)


def test_a_library_that_is_absent_is_told_and_skipped(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(libraries, "PEERS", tmp_path)  # as long as nothing was installed
    peers = libraries.open_peers(["micrograd"], {}, 1, print)
    assert peers == {}
    assert capsys.readouterr().out == (
        "micrograd: skipped (No module named 'micrograd'; python3 -m course bench --peer micrograd)\n"
    )


def test_an_interpreter_is_the_given_one_or_that_of_peer_or_this(monkeypatch, tmp_path):
    monkeypatch.setattr(libraries, "PEERS", tmp_path)
    assert libraries.python_of("jax", {"jax": "/its/python"}) == "/its/python"
    assert libraries.python_of("jax", {}) == sys.executable
    made = tmp_path / "jax" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    made.parent.mkdir(parents=True)
    made.touch()
    assert Path(libraries.python_of("jax", {})) == made
    with pytest.raises(SystemExit, match="--peer numpy: there are torch, tensorflow, jax, tinygrad, micrograd"):
        libraries.install("numpy")


@pytest.mark.quick
def test_flops_and_bytes_of_a_step():
    work = cases.of_net(200, (3, 4, 1), 100, "bce", "adam", 0.1)
    products = 2 * 100 * (3 * 4 + 4 * 1)  # forward; backward the same again for the weights, and 4 · 1 for h
    assert cases.traffic(work) == (2 * products + 2 * 100 * 4, 4 * (100 * 4 + 6 * (12 + 4 + 4 + 1)))
    assert cases.traffic(cases.of_op("matmul", 10)) == (2000, 1200)


def table_in(text):
    """The rows of a page's tables."""
    lines = (line.removeprefix("# ").strip() for line in text.splitlines())
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def made_up(library, mode, api, *seconds, **more):
    return measure.Result(LINE, library, mode, api, seconds, 1e-6, 1e-7, **more)


def test_the_page_says_who_is_ahead_and_who_is_not():
    results = [
        made_up("levels", "3 eager", "eager", 4e-6, 2e-6, 9e-6),
        made_up("PyTorch", "eager", "eager", 1e-5, 1e-5, 1e-5),
        made_up("levels", "5 fit", "fit", 3e-6),
        made_up("TensorFlow", "Keras fit", "fit", 1.5e-6),
        made_up("JAX", "jit", "step", why="computes something else"),
    ]
    page = report.report(results, "today", "here", "these")
    rows = table_in(page)
    assert ["linear: eager", "3 eager", "4.00", "PyTorch eager", "10.0", "2.50", "4.00"] in rows
    assert ["linear: fit", "5 fit", "3.00", "TensorFlow Keras fit", "1.50", "0.500 **behind**", "3.00"] in rows
    assert ["**levels 3 eager**", "eager", "4.00", "2.40 to 8.00", "1.00", "4.00", "1e-07"] in rows
    assert "- JAX jit: computes something else (linear)" in page
    widths = {len(line) for line in page.splitlines() if line.startswith("|")}
    assert len(widths) == 2  # two tables, each as wide in every line


@pytest.mark.parametrize("ranks", [1, 2])
def test_several_ranks_train_as_one_process_does(ranks, tmp_path):
    if ranks > 1 and "mpi4py" in (machines.missing(sys.executable) or ""):
        pytest.skip("MPI is not here")
    from levels.high_level.tasks import dnn_classifier

    work = cases.of_task(tasks.rings(), 100, "sgd")
    work = work._replace(order=np.tile(work.order[:1000], 3))
    work.save(tmp_path / "work.npz")
    found = machines.trained("levels", sys.executable, ranks, str(tmp_path / "work.npz"), libraries.environment(1))
    plain = dnn_classifier(work.x, work.y, work.weights, work.batches(work.order), work.rate)
    assert found["seconds"] > 0 and found["losses"] == pytest.approx(plain.losses, rel=1e-5)


@pytest.mark.parametrize("why", [lambda python: "MPI is not there", lambda python: subprocess.run([python, "-c", "1"])])
def test_several_ranks_that_cannot_be_measured_are_told_and_the_page_is_not_lost(why, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(machines, "missing", why)
    assert measure.several({"torch": str(tmp_path / "no python")}, 1, tmp_path) == []
    told = capsys.readouterr().out
    assert told.startswith("machines: skipped (") and ("MPI is not there" in told or "no python" in told)


def rows_of(text):
    """The rows of a page's tables that are about a training and a way to write it."""
    return [tuple(row) for row in table_in(text) if ": " in row[0]]


MEASURED = rows_of((report.FOLDER / "results.md").read_text(encoding="utf-8"))


def test_the_results_are_those_of_the_scripts_as_they_stand():
    last = (report.FOLDER / "results.md").read_text(encoding="utf-8").splitlines()[-1]
    assert last == report.made_by(), (
        "course/author/bench: a script changed: measure anew, with all peers: python3 -m course bench"
    )


@pytest.mark.parametrize("page", ["course/author/site/pages/beside.md", "notebooks/more/text/05_cost.py"])
def test_the_headline_is_what_was_measured(page):
    text = (libraries.ROOT / page).read_text(encoding="utf-8")
    part = re.split("\n(?:# )?## ", text.split("## Beside other libraries")[1])[0]
    told = rows_of(part)
    assert len(told) >= 6 and set(told) <= {row[:6] for row in MEASURED}


@pytest.mark.parametrize("page", ["course/author/site/pages/beside.md", "course/author/bench/README.md"])
def test_as_many_are_ahead_as_is_told(page):
    said = re.search(r"In (\d+) of (\d+) ", (libraries.ROOT / page).read_text(encoding="utf-8"))
    assert said.groups() == (str(sum("behind" not in row[5] for row in MEASURED)), str(len(MEASURED)))


def test_a_name_that_nothing_has_is_refused_with_the_names_there_are():
    with pytest.raises(
        SystemExit, match="--only zzz: nothing that is measured has this in its name. There are: .*rings"
    ):
        cli.main(["--quick", "--only", "zzz"])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the processor seconds of a child")
def test_a_cold_start_counts_the_whole_process_and_names_who_computes_something_else(tmp_path, monkeypatch, capsys):
    """All programs for libraries that the course has print the same loss; one for another data set does not."""
    pythons = {"levels": sys.executable, "sklearn": sys.executable}
    found = dict(measure.colds(pythons, 1, tmp_path))
    assert [*found] == ["levels 3", "levels 5", "levels 5, levels_more", "scikit-learn MLP"]
    assert all(len(spent) == 1 and spent[0] > 0.05 for spent in found.values())  # Python and NumPy take more
    spent = {
        "level_3": (0.5, "4.97"),
        "level_5": (0.7, "4.98"),
        "level_5_more": (0.4, "4.97"),
        "sklearn": (1.5, "4.97"),
    }
    monkeypatch.setattr(measure, "processor_seconds", lambda command, env: spent[Path(command[1]).stem])
    rows = measure.colds(pythons, 3, tmp_path)
    assert dict(rows) == {"levels 3": [0.5] * 3, "levels 5, levels_more": [0.4] * 3, "scikit-learn MLP": [1.5] * 3}
    assert "levels 5: left out of the cold start (the loss is 4.98" in capsys.readouterr().out
    page = report.report([], "today", "here", "these", cold_rows=rows)
    assert ["scikit-learn MLP", "1.50", "1.50 to 1.50", "3.00"] in table_in(page)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the processor seconds of a child")
def test_the_seconds_of_a_child_count_its_own_children():
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); print('a'); print('b')"
    spent, printed = measure.processor_seconds([sys.executable, "-c", parent], libraries.environment(1))
    assert spent >= 0.3 and printed == "b"
