"""Level 1: memory that is accounted, programs that cannot leave their arrays."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levels.hardware import Assembler, Buffer, copy, pool

CPU = pool()["cpu:0"]
DTYPES = ["f4", "f8"]


def test_memory_is_counted_and_refused():
    device = pool(cpus=2)["cpu:1"]
    used = device.used
    buffer = device.alloc((3, 4), "f8")
    assert device.used == used + 96 and buffer.shape == (3, 4) and buffer.dtype == np.float64
    with pytest.raises(MemoryError, match=f"asked for {2**40:,} bytes, {device.memory - device.used:,} are free"):
        device.alloc((2**40,), "u1")
    device.free(buffer)
    assert device.used == used
    buffer = device.alloc((3,), "f4")
    del buffer
    assert device.used == used


def test_a_freed_buffer_is_refused_everywhere():
    other, buffer = pool(cpus=2)["cpu:1"], CPU.put(np.ones(3))
    CPU.free(buffer)
    a = Assembler("p", "f8")
    a.array("x", "n")
    program = a.assemble()
    for use in (lambda: CPU.free(buffer), buffer.numpy, lambda: copy(buffer, other), lambda: program(x=buffer)):
        with pytest.raises((ValueError, TypeError), match="freed"):
            use()
    with pytest.raises(ValueError, match="not a live buffer of this device"):
        other.free(CPU.put(np.ones(3)))


def test_copies_are_copies():
    array = np.arange(6.0).reshape(2, 3)
    here = CPU.put(array)
    there = copy(here, pool(cpus=2)["cpu:1"])
    array[:] = 0
    assert here.numpy().tolist() == there.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert there.device.name == "cpu:1" and there.device.simulated
    assert CPU.put(np.arange(6.0).reshape(2, 3).T).data.flags.c_contiguous
    assert CPU.put(np.float32(2)).shape == ()


def test_roofline_is_the_larger_of_two_times():
    device = type(CPU)("cpu:9", 2**20)
    device.measured.update(peak=1e9, bandwidth=1e8)
    assert device.roofline(1e9, 0) == 1 and device.roofline(0, 1e8) == 1 and device.roofline(1e9, 3e8) == 3


def test_measured_speeds_are_plausible():
    assert 1e9 < CPU.peak < 1e12 and 1e8 < CPU.bandwidth < 1e12


def elementwise(dtype, lanes):
    """out[i] = (x[i] + 1)·y[i] / 2 - x[i]"""
    a = Assembler("p", dtype)
    x, y, out = (a.array(name, "n") for name in ("x", "y", "out"))
    with a.loop("n", a.lanes if lanes else 1) as i:
        v = a.load(x, i)
        a.store((v + 1) * a.load(y, i) / 2 - v, out, i)
    return a.assemble()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("n", [0, 1, 5, 16, 33])
def test_arithmetic_and_masked_lanes(dtype, lanes, n):
    x, y = np.arange(n, dtype=dtype), np.linspace(1, 2, n).astype(dtype)
    guarded = np.full(n + 32, -7, dtype)  # nothing past the end may be written
    out = Buffer(CPU.spec((n,), dtype), guarded[:n])
    CPU.used += out.data.nbytes
    elementwise(dtype, lanes)(x=CPU.put(x), y=CPU.put(y), out=out)
    np.testing.assert_allclose(out.numpy(), (x + 1) * y / 2 - x, rtol=1e-6)
    assert (guarded[n:] == -7).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 16, 100])
def test_sums_and_gathers(dtype, n):
    a = Assembler("p", dtype)
    x, rows = a.array("x", "rows", 3), a.array("picked", "n", rows_of="rows")
    out, scale = a.array("out", 2), a.number("scale")
    total, count = a.sum(), a.count("n")
    with a.loop("n", a.lanes) as i:
        total += a.load(x, a.load(rows, i), 1) * scale
    a.store(total.total(), out, 0)
    a.store(count, out, 1)
    data, picked = np.arange(30.0).reshape(10, 3).astype(dtype), np.arange(n) * 7 % 10
    result = CPU.alloc((2,), dtype)
    a.assemble()(x=CPU.put(data), picked=CPU.put(picked), out=result, scale=0.5)
    assert result.numpy().tolist() == [data[picked, 1].sum() * 0.5, n]


def test_float64_sums_run_in_order():
    a = Assembler("p", "f8")
    x, out, total = a.array("x", "n"), a.array("out", 1), a.sum()
    with a.loop("n", a.lanes) as i:
        total += a.load(x, i)
    a.store(total.total(), out, 0)
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-500, 500).clip(-5, 5)
    result = CPU.alloc((1,), "f8")
    a.assemble()(x=CPU.put(values), out=result)
    expected = 0.0
    for v in values.tolist():
        expected += v
    assert result.numpy()[0] == expected != math.fsum(values)


def test_two_loops_and_a_store_in_the_middle():
    """Row sums: the outer counter indexes, the inner loop has lanes."""
    a = Assembler("p", "f4")
    x, out = a.array("x", "m", "n"), a.array("out", "m")
    with a.loop("m") as i:
        total = a.sum()
        with a.loop("n", a.lanes) as j:
            total += a.load(x, i, j)
        a.store(total.total(), out, i)
    x, out = np.arange(60, dtype="f4").reshape(3, 20), CPU.alloc((3,), "f4")
    a.assemble()(x=CPU.put(x), out=out)
    assert out.numpy().tolist() == x.sum(axis=1).tolist()


def writing(code):
    """Run `code(a, x, rows)` on a fresh assembler with x[n, 3] and row numbers of n."""
    a = Assembler("p", "f8")
    x, rows = a.array("x", "n", 3), a.array("rows", "m", rows_of="n")
    code(a, x, rows)
    return a.assemble()


@pytest.mark.parametrize(
    "code",
    [
        lambda a, x, rows: a.load(x, 0, 0),  # n may be 0
        lambda a, x, rows: [a.load(x, i, 3) for i in enter(a, "n")],
        lambda a, x, rows: [a.load(x, i, -1) for i in enter(a, "n")],
        lambda a, x, rows: [a.load(x, i) for i in enter(a, "n")],
        lambda a, x, rows: [a.load(x, i, 0) for i in enter(a, "m")],
        lambda a, x, rows: [a.load(x, i, j) for i in enter(a, "n") for j in enter(a, "n")],
        lambda a, x, rows: [a.store(1.0, x, i, 0) for i in enter(a, 4)],
        lambda a, x, rows: [a.store(1.0, rows, i) for i in enter(a, "m")],
        lambda a, x, rows: [a.load(rows, i) + 1 for i in enter(a, "m")],
        lambda a, x, rows: a.number("r") + Assembler("q", "f8").number("r"),
        lambda a, x, rows: a.array("x", "k"),
        lambda a, x, rows: a.array("scalar"),
        lambda a, x, rows: a.load(Assembler("q", "f8").array("x", 1), 0),
        lambda a, x, rows: list(enter(a, "unknown")),
    ],
)
def test_a_program_that_could_leave_its_arrays_is_not_written(code):
    with pytest.raises((IndexError, TypeError, ValueError), match="^p: "):
        writing(code)


def enter(a, extent):
    """A loop as an iterator, so that the programs above fit on a line."""
    with a.loop(extent) as i:
        yield i


@pytest.mark.parametrize(
    "given, message",
    [
        (dict(), "missing or unknown: rows, x"),
        (dict(x=np.ones((2, 3)), rows=np.zeros(1, int), y=1), "unknown: y"),
        (dict(x=np.ones((2, 4)), rows=np.zeros(1, int)), r"x is \(2, 4\)"),
        (dict(x=np.ones((2, 3), "f4"), rows=np.zeros(1, int)), "float32"),
        (dict(x=np.ones((2, 3, 1)), rows=np.zeros(1, int)), r"\(2, 3, 1\)"),
        (dict(x=np.ones((2, 3)), rows=np.zeros(1)), "rows is"),
        (dict(x=np.ones((2, 3)), rows=np.zeros(1, "i4")), "int32"),
        (dict(x=np.ones((2, 3)), rows=np.array([2])), "row 2; there are 2 rows"),
        (dict(x=np.ones((2, 3)), rows=np.array([0, -1])), "row -1; there are 2 rows"),
    ],
)
def test_a_call_that_could_leave_its_arrays_is_refused(given, message):
    program = writing(lambda a, x, rows: [a.load(x, a.load(rows, i), 0) for i in enter(a, "m")])
    with pytest.raises((IndexError, TypeError, ValueError), match=message):
        program(**{k: CPU.put(v) if isinstance(v, np.ndarray) else v for k, v in given.items()})


def test_plain_arrays_and_other_dtypes_are_refused():
    with pytest.raises(TypeError, match="live buffer"):
        writing(lambda a, x, rows: None)(x=np.ones((2, 3)), rows=CPU.put(np.zeros(1, int)))
    with pytest.raises(TypeError, match="int32"):
        Assembler("p", "i4")


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 5), st.integers(0, 40), st.integers(1, 4), st.sampled_from(DTYPES), st.randoms(use_true_random=False)
)
def test_random_programs_agree_with_numpy(terms, n, width, dtype, random):
    """Random chains of + - · on columns of x, in lanes where the dtype has them."""
    a = Assembler("p", dtype)
    x, out = a.array("x", "n", width), a.array("out", "n")
    data = np.array([[random.uniform(-2, 2) for _ in range(width)] for _ in range(n)], dtype).reshape(n, width)
    steps = [(random.choice("+-*"), random.randrange(width)) for _ in range(terms)]

    def run(column, value):
        for op, k in steps:
            value = value + column(k) if op == "+" else value - column(k) if op == "-" else value * column(k)
        return value

    with a.loop("n", a.lanes) as i:
        a.store(run(lambda k: a.load(x, i, k), a.load(x, i, 0)), out, i)
    result = CPU.alloc((n,), dtype)
    a.assemble()(x=CPU.put(data), out=result)
    expected = run(lambda k: data[:, k], data[:, 0])
    np.testing.assert_allclose(
        result.numpy(), expected, rtol=1e-4 if dtype == "f4" else 0, atol=1e-5 if dtype == "f4" else 0
    )


def test_listing_shows_instructions_only():
    lines = elementwise("f8", False).listing().splitlines()
    assert any("mul" in line for line in lines) and any("ret" in line for line in lines)
    assert not [line for line in lines if line.strip().startswith((".text", ".globl", ".type"))]
