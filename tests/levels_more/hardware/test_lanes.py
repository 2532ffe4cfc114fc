"""Lanes on level 1's assembler: one source runs on a number at a time, or on as many as a register holds."""

import numpy as np
import pytest
from random_programs import buffer_on

from course import tasks
from levels import hardware
from levels.support.machine import machine_code
from levels_more.hardware import Assembler, Lanes, pool

CPU = pool()["cpu:0"]
LANES = [("f4", None), ("f4", 1), ("f4", 4), ("f8", None), ("f8", 4), ("f8", 8)]
TASKS = {"linear": hardware.line_row, "rings": hardware.net_row}


def trained(a, name, dtype, batches):
    """The losses and weights of a task, from level 1's own program written by this assembler."""
    task = getattr(tasks, name)()
    x, y, *weights = (np.asarray(array, dtype) for array in (task.x, task.y, *task.weights))
    hardware.write_steps(a, TASKS[name], [w.shape for w in weights])
    held = {f"w{k}": CPU.put(w) for k, w in enumerate(weights)}
    losses = CPU.alloc((len(batches),), dtype)
    given = {"x": CPU.put(x), "y": CPU.put(y), "batches": CPU.put(np.asarray(batches, np.int64)), "losses": losses}
    a.assemble()(**given, **held, rate=task.learning_rate)
    return [losses.numpy(), *(buffer.numpy() for buffer in held.values())]


@pytest.mark.parametrize("batch", [1, 7, 17])
@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(
    "dtype, lanes, most", [("f8", None, 0.0), ("f8", 1, 0.0), ("f8", 4, 1e-12), ("f4", None, 1e-4)]
)
def test_a_batch_need_not_fill_the_lanes_and_one_lane_gives_the_bits_of_level_1(name, batch, dtype, lanes, most):
    rows = np.random.default_rng(batch).integers(0, len(getattr(tasks, name)().x), (50, batch))
    found = trained(Lanes("train", dtype, lanes), name, dtype, rows)
    exact = trained(Assembler("train", "f8"), name, "f8", rows)
    for ours, theirs in zip(found, exact, strict=True):
        assert np.max(np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))) <= most


def test_the_machine_code_is_that_of_the_text_with_an_aligned_stack():
    a = Lanes("p", "f4", 8)
    hardware.write_steps(a, hardware.net_row, [w.shape for w in tasks.rings().weights])
    program = a.assemble()
    assert "define void @program(ptr %words) nounwind alignstack(64) {" in program.text
    assert machine_code(program.text)[0] is program.engine


def call(a, **given):
    """Run a program on copies of NumPy arrays, and return what is then in its array `out`."""
    buffers = {name: CPU.put(value) if isinstance(value, np.ndarray) else value for name, value in given.items()}
    a.assemble()(**buffers)
    return buffers["out"].numpy()


@pytest.mark.parametrize("dtype, lanes", LANES)
@pytest.mark.parametrize("n", [0, 5, 16, 33])
def test_arithmetic_and_masked_lanes(dtype, lanes, n):
    a = Lanes("p", dtype, lanes)
    x, y, out = (a.array(name, "n") for name in ("x", "y", "out"))
    with a.loop("n", a.lanes) as i:
        v = a.load(x, i)
        a.store((v + 1) * a.load(y, i) / 2 - v, out, i)
    x, y = np.arange(n, dtype=dtype), np.linspace(1, 2, n).astype(dtype)
    guarded = np.full(n + 32, -7, dtype)  # nothing past the end may be written
    a.assemble()(x=CPU.put(x), y=CPU.put(y), out=buffer_on(CPU, guarded[:n]))
    np.testing.assert_allclose(guarded[:n], (x + 1) * y / 2 - x, rtol=0 if dtype == "f8" else 1e-6)
    assert (guarded[n:] == -7).all()


@pytest.mark.parametrize("dtype, lanes", LANES)
@pytest.mark.parametrize("n", [0, 7, 16, 100])
def test_sums_and_gathers(dtype, lanes, n):
    a = Lanes("p", dtype, lanes)
    x, rows = a.array("x", "rows", 3), a.array("picked", "n", rows_of="rows")
    out, scale = a.array("out", 2), a.number("scale")
    total, count = a.sum(), a.count("n")
    with a.loop("n", a.lanes) as i:
        total += a.load(x, a.load(rows, i), 1) * scale
    a.store(total.total(), out, 0)
    a.store(count, out, 1)
    data, picked = np.arange(30.0).reshape(10, 3).astype(dtype), np.arange(n) * 7 % 10
    found = call(a, x=data, picked=picked, out=np.zeros(2, dtype), scale=0.5)
    assert found.tolist() == [data[picked, 1].sum() * 0.5, n]


@pytest.mark.parametrize("dtype, lanes", LANES)
@pytest.mark.parametrize("n", [0, 5, 16, 35])
def test_a_number_counts_once_outside_of_lanes_and_once_a_row_inside(dtype, lanes, n):
    a = Lanes("p", dtype, lanes)
    x, out, once, rows, both = a.array("x", "n"), a.array("out", 5), a.sum(), a.sum(), a.sum()
    once += 3
    both += 100
    with a.loop("n", a.lanes) as i:
        rows += 3
        both += a.load(x, i)
        inner = a.sum()
        inner += 1
    with a.loop("n"):
        once += 1
    both += both.total()
    for k, number in enumerate([once.total(), rows.total(), both.total(), a.count("n"), a.sum().total()]):
        a.store(number, out, k)
    found = call(a, x=np.full(n, 2, dtype), out=np.ones(5, dtype))
    assert found.tolist() == [3 + n, 3 * n, 200 + 4 * n, n, 0]
