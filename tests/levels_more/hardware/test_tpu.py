"""The simulated TPU: its numbers to the bit, its cycles against the closed form, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.reader.figures import tpu as tpu_figures
from levels_more.hardware import (
    Activate,
    Multiply,
    Pool,
    ReadWeights,
    Tpu,
    Write,
    bfloat16,
    copy,
    dense_program,
    pool,
    systolic,
)
from levels_more.hardware.tpu import SIDE

pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.usefixtures("words_can_be_read")]


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def ascending(x, w):
    """float32 sums over ascending k of the products of what is there."""
    sums = np.zeros((len(x), w.shape[1]), "f4")
    for k in range(len(w)):
        sums += x[:, k : k + 1] * w[k]
    return sums


def through_the_array(x, w):
    """What the array should give: sums of SIDE products each, added up in ascending order."""
    x, w, sums = bfloat16(x), bfloat16(w), np.zeros((len(x), w.shape[1]), "f4")
    for k in range(0, len(w), SIDE):
        sums += ascending(x[:, k : k + SIDE], w[k : k + SIDE])
    return sums


# bfloat16


@pytest.mark.quick
def test_every_bfloat16_is_itself_and_every_nan_stays_one():
    every = (np.arange(2**16, dtype=np.uint32) << 16).view("f4")
    numbers = ~np.isnan(every)
    assert (bfloat16(every).view("u4") == every.view("u4"))[numbers].all()  # subnormals, infinities and -0.0 among them
    low = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF80FFFF], np.uint32).view("f4")
    assert np.isnan(bfloat16(np.r_[every[~numbers], low])).all() and (~numbers).sum() == 254


@pytest.mark.quick
def test_bfloat16_takes_the_nearest_and_in_a_tie_the_even_one():
    bits = np.random.default_rng(0).integers(0, 2**31, 100_000, np.uint32)
    bits[::4] = bits[::4] & np.uint32(0xFFFF0000) | np.uint32(0x8000)  # ties
    x = bits.view("f4")[np.isfinite(bits.view("f4"))]
    below = x.view("u4") & np.uint32(0xFFFF0000)
    above = below + np.uint32(0x10000)
    values = [np.where(b == 0x7F800000, 2.0**128, b.view("f4").astype("f8")) for b in (below, above)]
    down, up = x - values[0], values[1] - x  # exact in float64
    even = np.where(below >> np.uint32(16) & np.uint32(1), above, below)
    nearest = np.where(down == up, even, np.where(down < up, below, above))
    assert (down == up).sum() > 20_000
    assert (bfloat16(x).view("u4") == nearest).all()
    assert (bfloat16(-x) == -bfloat16(x)).all()
    assert bfloat16(1 + 2**-9) == 1 and bfloat16(1 + 3 * 2**-8) == 1 + 2**-6 and bfloat16(3.4e38) == np.inf


# The array


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**32), st.integers(-30, 30))
def test_sums_run_upwards(m, k, n, seed, power):
    x, w = random(m, k, seed=seed) * np.float32(2.0**power), random(k, n, seed=seed + 1)
    assert (systolic(x, w) == ascending(x, w)).all()


@pytest.mark.parametrize(
    ("m", "k", "n"), [(10, 2, 1), (4, 100, 8), (100, 4, 8), (3, 128, 128), (2, 129, 130), (7, 300, 257), (1, 1, 1)]
)
def test_a_product_of_any_shape_to_the_bit(m, k, n):
    x, w = random(m, k), random(k, n, seed=1)
    product = Tpu("tpu:0").matmul(x, w)
    assert product.dtype == np.float32 and (product == through_the_array(x, w)).all()
    assert (Tpu("tpu:0").matmul(np.asfortranarray(x), w[:, ::-1])[:, ::-1] == product).all()


def test_infinities_and_nan_stay_in_their_rows_and_columns():
    x, w = random(6, 4), random(4, 5, seed=1)
    x[2, 1], w[3, 0] = np.inf, np.nan
    product = Tpu("tpu:0").matmul(x, w)
    assert np.isnan(product[:, 0]).all() and np.isinf(product[2, 1:]).all() and np.isfinite(product).sum() == 20
    big = np.full((2, 2), 3e38, "f4")
    assert (Tpu("tpu:0").matmul(big, big) == np.inf).all()


# The clock


@pytest.mark.parametrize("m", [1, 10, 127, 128, 500])
def test_the_cycles_of_one_tile(m):
    tpu = Tpu("tpu:0")
    tpu.matmul(np.ones((m, 7), "f4"), np.ones((7, 3), "f4"))
    spans = [(unit, start, end) for unit, start, end, _ in tpu.timeline]
    out = SIDE + m + 2 * SIDE - 2
    written = [("activation", out, out + m), ("host", out + m, out + 2 * m)]
    assert spans == [("weights", 0, SIDE), ("array", SIDE, out), *written]
    assert tpu.busy == m + 2 * SIDE - 2 and tpu.cycles == out + 2 * m
    tpu.matmul(np.ones((m, 7), "f4"), np.ones((7, 3), "f4"))
    assert tpu.cycles == 2 * (out + 2 * m) and tpu.busy == 2 * (m + 2 * SIDE - 2)


@pytest.mark.parametrize("m", [1, 128, 256])
@pytest.mark.parametrize(("down", "across"), [(1, 3), (3, 1), (2, 2)])
def test_the_cycles_of_several_tiles(m, down, across):
    tpu, count = Tpu("tpu:0"), down * across
    tpu.matmul(np.ones((m, down * SIDE), "f4"), np.ones((down * SIDE, across * SIDE), "f4"))
    assert tpu.busy == (count - 1) * max(m, SIDE) + m + 2 * SIDE - 2
    assert [end - start for unit, start, end, _ in tpu.timeline if unit == "host"] == [m * across]
    if m >= SIDE:
        assert tpu.busy == count * m + 2 * SIDE - 2  # no gap
    assert tpu.utilisation == pytest.approx(tpu_figures.useful(m, count, SIDE))


# Programs


@pytest.mark.parametrize(
    ("inputs", "units", "function"), [(2, 4, "identity"), (130, 5, "relu"), (5, 300, "sigmoid"), (260, 129, "relu")]
)
def test_a_layer_of_any_size(inputs, units, function):
    x, w, b = random(9, inputs), random(inputs, units, seed=1), random(1, units, seed=2)
    program = [*dense_program(inputs, units, function, b="b"), Write("y")]
    y = Tpu("tpu:0").run(program, x=x, w=w, b=b)["y"]
    z = through_the_array(x, w) + b
    expected = {"identity": z, "relu": np.maximum(z, 0), "sigmoid": 1 / (1 + np.exp(-z.astype("f8")))}[function]
    np.testing.assert_allclose(y, expected, rtol=1e-6 if function == "sigmoid" else 0)
    assert y.dtype == np.float32


ONES = dict(x=np.ones((4, 3), "f4"), w=np.ones((3, 2), "f4"), b=np.ones((1, 2), "f4"))
READ, GELU = ReadWeights("w", 0, 0), Activate(0, "gelu", None, "y")


@pytest.mark.parametrize(
    ("error", "number", "words", "program"),
    [
        (LookupError, 0, "no weights wait in the cells; put a ReadWeights", [Multiply("x")]),
        (LookupError, 0, r"w is \(3, 2\), and has no such tile of 128 x 128", [ReadWeights("w", 1, 0)]),
        (ValueError, 1, r"ReadWeights.* still waits in the cells; put a Multiply", [READ, READ]),
        (LookupError, 2, "there is no activation 'gelu'; there are identity, relu, s", [READ, Multiply("x"), GELU]),
        (TypeError, 1, "expected ReadWeights, Multiply, Activate or Write", [READ, "multiply"]),
    ],
)
def test_a_wrong_instruction_is_named(error, number, words, program):
    with pytest.raises(error, match=rf"^tpu:0, instruction {number}, .*{words}"):
        Tpu("tpu:0").run(program, **ONES)


# The device


def test_it_is_in_the_pool_with_published_figures():
    tpu = pool()["tpu:0"]
    assert isinstance(tpu, Tpu) and tpu.simulated and tpu.kind == "tpu" and tpu is pool()["tpu:0"]
    assert tpu.peak == 2 * 128 * 128 * 700e6 and tpu.bandwidth == 350e9
    table = repr(Pool({"tpu:0": tpu}))
    assert "22.9 Tflop/s, published" in table and "350 GB/s, published" in table and "measured" not in table
    with pytest.raises(LookupError, match="tpu:0: no program measures its launch_time"):
        tpu.launch_time  # noqa: B018
    assert isinstance(pool(tpus=2)["tpu:1"], Tpu)


def test_memory_and_dtypes():
    tpu = Tpu("tpu:0")
    buffers = [tpu.alloc((3, 2), "f4"), tpu.put(np.arange(3)), tpu.put(np.array([True]))]
    assert tpu.used == 24 + 24 + 1 and buffers[1].numpy().tolist() == [0, 1, 2]
    there = copy(pool()["cpu:0"].put(np.ones(2, "f4")), tpu)
    assert there.device is tpu and tpu.used == 49 + 8
    double = pool()["cpu:0"].put(np.ones(2))
    for attempt in (lambda: tpu.put(np.ones(2)), lambda: tpu.alloc((2,), "f8"), lambda: copy(double, tpu)):
        with pytest.raises(
            TypeError, match=r"^tpu:0 has float32, int64, bool, and no float64; convert first: x.astype"
        ):
            attempt()
    with pytest.raises(MemoryError, match="tpu:0"):
        tpu.alloc((2**32,), "f4")
