"""The pictures' titles and sentences are computed from the data, for machines of every kind."""

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
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


# Two rows of two numbers, a line a row: six lines in all, with room for three. Worked out by hand.
BY_HAND = {"ijk": (2, 8, 2), "ikj": (2, 4, 2), "jik": (4, 8, 4), "kij": (4, 2, 4), "jki": (8, 4, 8), "kji": (8, 2, 8)}


@pytest.mark.parametrize("order", BY_HAND)
def test_the_loads_of_a_tiny_product(order):
    loads, held = figures.cache_loads(order, n=2, line=2, lines=3)
    assert loads.shape == (9, 3) and len(held) == 9 and tuple(loads[-1]) == BY_HAND[order]
    assert list(loads[0]) == [0, 0, 0] and held[0] == []
    assert list(loads[1]) == [1, 1, 1] and held[1] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    roomy, all_of_them = figures.cache_loads(order, n=2, line=2, lines=6)
    assert tuple(roomy[-1]) == (2, 2, 2) and len(all_of_them[-1]) == 6  # nothing is loaded twice


def test_the_line_untouched_for_longest_leaves_the_cache():
    loads, held = figures.cache_loads("ijk", n=2, line=2, lines=3)
    # step 2 touches row 0 of x again, so that row 1 of w drives out row 0 of w: first in, first out would drop x
    assert held[2] == [(0, 0, 0), (1, 1, 0), (2, 0, 0)] and list(loads[2]) == [1, 2, 1]
    assert held[3] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)] and list(loads[3]) == [1, 3, 1]


def test_without_room_or_reuse_every_touch_is_a_load():
    for order in figures.ORDERS:
        assert list(figures.cache_loads(order, n=3, line=1, lines=1)[0][-1]) == [27, 27, 27]
        assert list(figures.cache_loads(order, n=1, line=1, lines=3)[0][-1]) == [1, 1, 1]


TOTALS = {"ikj": 160, "kij": 208, "ijk": 656, "jik": 704, "kji": 1040, "jki": 1088}


def test_the_orders_stand_from_few_loads_to_many():
    assert {order: figures.cache_loads(order)[0][-1].sum() for order in figures.ORDERS} == TOTALS
    assert [*TOTALS] == [*figures.ORDERS] and sorted(TOTALS.values()) == [*TOTALS.values()]
    rows, lines = figures.SIDE, figures.SIDE**2 // figures.LINE
    assert list(figures.cache_loads("ikj")[0][-1]) == [
        lines,
        rows * lines,
        lines,
    ]  # w is loaded again for each row of x
    assert list(figures.cache_loads("jki")[0][-1]) == [rows**3, rows**2, rows**3]  # x and out at every step


@pytest.mark.parametrize("order", TOTALS)
def test_loop_order_tells_the_step(order):
    last = f"{TOTALS[order]:,}"
    assert f"{order}: 0 lines loaded by step 0 (x 0, w 0, out 0)" in figures.loop_order(order, 0).text
    assert f"{order}: 3 lines loaded by step 1 (x 1, w 1, out 1)" in figures.loop_order(order, 1).text
    text = figures.loop_order(order, 512).text
    assert text.startswith(f"{order}: {last} lines loaded by step 512 (") and text.endswith(f"it is {last}.")
    ways = {"i": "down x and out", "j": "along w and out", "k": "along x and down w"}
    assert f"room for 6 lines of 4 numbers. The inner loop, over {order[2]}, goes {ways[order[2]]}." in text


def test_loop_order_marks_what_the_step_touches():
    left, _ = axes_of(figures.loop_order, "ijk", 303)
    tiles = left.collections[0]
    colors, widths = [to_hex(color).upper() for color in tiles.get_facecolors()], tiles.get_edgecolors()[:, 3]
    assert [colors.count(c) - 1 for c in (figures.HELD, figures.LOADED)] == [5, 1] and widths.sum() == 2  # one a legend
    dots, reads, writes = left.lines
    assert len(dots.get_xdata()) == 3 * figures.SIDE**2
    touched = [*zip(*reads.get_data(), strict=True)][1:] + [*zip(*writes.get_data(), strict=True)][1:]
    expected = [  # step 303 is i = 4, j = 5, k = 6
        (x + column + 0.5, y + row + 0.5)
        for (x, y), (row, column) in zip(figures.CORNERS.values(), [(4, 6), (6, 5), (4, 5)], strict=True)
    ]
    assert touched == expected


def test_loop_order_stands_still_and_its_words_keep_apart(monkeypatch):
    monkeypatch.setattr(figures, "Picture", lambda figure, text: figure)
    frames = set()
    for order in figures.ORDERS:
        for step in (0, 1, 10, 64, 256, 303, 512):
            figure = figures.loop_order(order, step)
            FigureCanvasAgg(figure)
            left, right = figure.axes
            frames.add((*left.get_xlim(), *left.get_ylim(), *right.get_xlim(), *right.get_ylim()))
            words = [*figure.texts, *left.texts, *right.texts, *right.get_xticklabels(), *right.get_yticklabels()]
            boxes = [text.get_window_extent() for text in words]
            assert len(boxes) == 1 + 11 + 6 + 6 and all(box.count_overlaps(boxes) == 1 for box in boxes)
            assert all(figure.bbox.x0 <= b.x0 <= b.x1 <= figure.bbox.x1 and b.y1 <= figure.bbox.y1 for b in boxes)
    assert len(frames) == 1
