"""The pictures' titles and sentences are computed from the data, for machines of every kind."""

import pytest
from matplotlib.figure import Figure

from course import figures

SIZES = [2**k for k in range(12, 29)]
MACHINE = dict(peak=100e9, bandwidth=10e9, launch_time=1e-6, flops=500, nbytes=100)


def axes_of(picture, *args, **kwargs):
    """The axes that a figure function fills."""
    figure = Figure()
    picture.__wrapped__(figure, *args, **kwargs)
    return figure.axes


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.00000234, "0.0000023"), (1.0, "1"), (9.94, "9.9"), (9.96, "10"), (118.4, "118"), (12345, "12,345")],
)
def test_numbers_are_written_without_exponents(x, text):
    assert figures.short(x) == text


@pytest.mark.parametrize(
    ("caches", "source"),
    [
        ({"L1": 2**15, "L2": 2**20, "L3": 2**25}, "from memory."),
        ({"L1": 2**15, "L2": 2**20, "L3": 384 * 2**20}, "from 256 MiB of data."),
        ({}, "from 256 MiB of data."),
    ],
)
def test_memory_is_named_only_where_no_cache_holds_the_data(caches, source):
    values = [1.2] * 10 + [96.0] * 7
    assert figures.staircase(SIZES, values, caches).text.endswith(f"and 96 ns {source}")
    assert figures.bandwidths(SIZES, [1e9 * v for v in values[::-1]], caches).text.endswith(f"1.2 GB/s {source}")


def test_near_caches_are_labelled_in_two_rows():
    (axes,) = axes_of(figures.staircase, SIZES, [1.0] * 17, {"L2": 2**19, "L3": 2**20, "L1": 2**15})
    assert [text.get_text() for text in axes.texts[2:]] == ["L1 32 KiB", "L2 512 KiB", "L3 1 MiB\n"]


def test_accumulators_find_the_knee():
    speeds = [10e9 * min(n, 8) for n in range(1, 17)]
    text = figures.accumulators(range(1, 17), speeds).text
    assert "8 sums are 8 times as fast" in text and "80 billion operations/s" in text
    assert "one sum keeps the core busy" in figures.accumulators(range(1, 17), [4e9] * 16).text


def test_roofline_labels_do_not_overlap():
    near = [(f"matmul {k}", 1e9, 1e7, seconds) for k, seconds in enumerate((0.02, 0.019, 0.011))]
    points = [*near, ("cached sum", 1e3, 4e3, 2.5e-8)]
    (axes,) = axes_of(figures.roofline, 100e9, 10e9, points)
    boxes = [text.get_window_extent() for text in axes.texts if "roof" in text.get_text()]
    assert len(boxes) == 4
    assert all(box.count_overlaps(boxes) == 1 for box in boxes)  # each meets itself alone
    assert "cached sum: 16 times the memory roof: its data is in a cache" in figures.roofline(100e9, 10e9, points).text


def test_the_cost_of_a_step_is_the_formula_of_the_course():
    text = figures.step_cost(**MACHINE, batch=1000, launches=2).text
    assert "predicted 12 µs a step, most of it memory (launches 2 µs, arithmetic 5 µs, memory 10 µs); 83 %" in text
    assert "most of it launches" in figures.step_cost(**MACHINE, batch=1, launches=2).text


def test_the_axes_of_step_cost_stand_still():
    corners = [(batch, launches) for batch in figures.BATCHES for launches in figures.LAUNCHES]
    drawn = [axes_of(figures.step_cost, **MACHINE, batch=batch, launches=launches) for batch, launches in corners]
    assert len({tuple((axes.get_xlim(), axes.get_ylim()) for axes in both) for both in drawn}) == 1
    for left, right in drawn:
        (x,), (y,) = left.lines[-1].get_data()
        assert left.get_xlim()[0] < x < left.get_xlim()[1] and left.get_ylim()[0] < y < left.get_ylim()[1]
        assert all(right.get_xlim()[0] < bar.get_width() < right.get_xlim()[1] for bar in right.patches)
