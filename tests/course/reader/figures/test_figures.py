"""The pictures' titles and sentences are computed from the data, for machines of every kind."""

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from course import figures
from course.reader.figures import matrices, memory, picture, tape
from levels_more.low_level import VJPS, GradientTape, constant

pytestmark = pytest.mark.usefixtures("words_can_be_read")

SIZES = [2**k for k in range(12, 29)]
MACHINE = dict(peak=100e9, bandwidth=10e9, launch_time=1e-6, flops=500, nbytes=100)


def axes_of(picture, *args, **kwargs):
    """The axes that a figure function fills."""
    figure = Figure()
    picture.__wrapped__(figure, *args, **kwargs)
    return figure.axes


def test_contrast_is_that_of_wcag():
    """The ends of its scale, and the example of its Understanding page: #777777 on white just fails."""
    assert picture.contrast("white", "black") == pytest.approx(21) and picture.contrast("#D55E00", "#D55E00") == 1
    assert picture.contrast("#777777", "white") == pytest.approx(4.48, abs=0.005)
    for hue in (*figures.HUES, figures.GREY, figures.DATA, "#F0E442"):
        assert picture.contrast(figures.ink(hue), "white") >= 4.5 <= picture.contrast("black", figures.tint(hue))
    assert figures.ink("#0072B2") == "#0072b2"  # dark enough as it is


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


def test_caches_are_told_as_far_as_the_system_knows(monkeypatch, tmp_path):
    """Some processors do not tell the size of a cache, some tell nothing."""
    monkeypatch.setattr("course.reader.figures.memory.Path", lambda folder: tmp_path)
    monkeypatch.setattr("course.reader.figures.memory.sys.platform", "linux")
    assert figures.host_caches() == {}
    for k, files in enumerate(["1 Data 32K", "1 Instruction 32K", "2 Unified 1024K", "3 Unified"]):
        (tmp_path / f"index{k}").mkdir()
        for name, text in zip(("level", "type", "size"), files.split(), strict=False):
            (tmp_path / f"index{k}" / name).write_text(text + "\n")
    assert figures.host_caches() == {"L1": 32 * 2**10, "L2": 2**20}


@pytest.mark.quick
def test_accumulators_find_the_knee():
    speeds = [10e9 * min(n, 8) for n in range(1, 17)]
    text = figures.accumulators(range(1, 17), speeds).text
    assert "8 sums are 8 times as fast" in text and "80 billion operations/s" in text
    assert "one sum keeps the core busy" in figures.accumulators(range(1, 17), [4e9] * 16).text


@pytest.mark.quick
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
    assert "predicted 12 µs per step, most of it memory (launches 2 µs, arithmetic 5 µs, memory 10 µs); 83 %" in text
    assert "most of it launches" in figures.step_cost(**MACHINE, batch=1, launches=2).text


@pytest.mark.quick
def test_the_axes_of_step_cost_stand_still():
    corners = [(batch, launches) for batch in memory.BATCHES for launches in memory.LAUNCHES]
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
    loads, held = matrices.cache_loads(order, n=2, line=2, lines=3)
    assert loads.shape == (9, 3) and len(held) == 9 and tuple(loads[-1]) == BY_HAND[order]
    assert list(loads[0]) == [0, 0, 0] and held[0] == []
    assert list(loads[1]) == [1, 1, 1] and held[1] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    roomy, all_of_them = matrices.cache_loads(order, n=2, line=2, lines=6)
    assert tuple(roomy[-1]) == (2, 2, 2) and len(all_of_them[-1]) == 6  # nothing is loaded twice


def test_the_line_untouched_for_longest_leaves_the_cache():
    loads, held = matrices.cache_loads("ijk", n=2, line=2, lines=3)
    # step 2 touches row 0 of x again, so that row 1 of w drives out row 0 of w: first in, first out would drop x
    assert held[2] == [(0, 0, 0), (1, 1, 0), (2, 0, 0)] and list(loads[2]) == [1, 2, 1]
    assert held[3] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)] and list(loads[3]) == [1, 3, 1]


def test_loop_order_stands_still_and_its_words_keep_apart(monkeypatch):
    monkeypatch.setattr("course.reader.figures.picture.Picture", lambda figure, text: figure)
    frames = set()
    for order in figures.ORDERS:
        for step in (0, 10, 303, 512):
            figure = figures.loop_order(order, step)
            FigureCanvasAgg(figure)
            left, right = figure.axes
            frames.add((*left.get_xlim(), *left.get_ylim(), *right.get_xlim(), *right.get_ylim()))
            words = [*figure.texts, *left.texts, *right.texts, *right.get_xticklabels(), *right.get_yticklabels()]
            boxes = [text.get_window_extent() for text in words]
            assert len(boxes) == 1 + 11 + 6 + 6 and all(box.count_overlaps(boxes) == 1 for box in boxes)
            assert all(figure.bbox.x0 <= b.x0 <= b.x1 <= figure.bbox.x1 and b.y1 <= figure.bbox.y1 for b in boxes)
    assert len(frames) == 1


# A tape walked backwards. x · w + b misses y by e, which goes into the loss twice.


def walk_of(**leaves):
    return tape.walk_of_squared_error(GradientTape, constant, VJPS, **leaves)


SQUARED = walk_of(x=3.0, w=2.0, b=1.0, y=5.0)
WALKS = [SQUARED, walk_of(x=-0.75, w=1.5, b=0.0, y=0.125)]


def test_the_walk_by_hand():
    assert SQUARED.shares[0] == {"l": [1]}
    assert SQUARED.shares[1] == {"l": [1], "e": [2, 2]}
    assert SQUARED.shares[2] == {"l": [1], "e": [2, 2], "z": [4], "y": [-4]}
    assert SQUARED.shares[3] == SQUARED.shares[2] | {"p": [4], "b": [4]}
    assert SQUARED.shares[4] == SQUARED.shares[3] | {"x": [8], "w": [12]} and len(SQUARED.shares) == 5


@pytest.mark.parametrize("walk", WALKS, ids=["squared", "another"])
def test_the_bump_meets_the_walk_at_every_step(walk, monkeypatch):
    monkeypatch.setattr("course.reader.figures.picture.Picture", lambda figure, text: text)
    target, n = walk.records[-1][2], len(walk.records)
    for leaf, moves in walk.moves.items():
        assert moves[leaf] == pytest.approx((1, -1)) and moves[target][0] == pytest.approx(-moves[target][1], rel=1e-4)
        for step, shares in enumerate(walk.shares):
            walked = {output for _, _, output, _ in walk.records[n - step :]}
            met = sum(sum(shares[name]) * moves[name][0] for name in shares if name not in walked)
            assert met == pytest.approx(moves[target][0], rel=1e-5)
            text = figures.tape_backwards(walk, step, leaf)
            number = tape.measured(moves[target][0])
            assert f"raised by a millionth, {leaf} moves {target} by {number} millionths" in text
            assert text.endswith(f" = {number}.")


@pytest.mark.parametrize("walk", WALKS, ids=["squared", "another"])
def test_tape_backwards_stands_still_and_its_words_keep_apart(walk, monkeypatch):
    monkeypatch.setattr("course.reader.figures.picture.Picture", lambda figure, text: figure)
    frames = set()
    for step in range(len(walk.records) + 1):
        for leaf in walk.moves:
            figure = figures.tape_backwards(walk, step, leaf)
            FigureCanvasAgg(figure)
            rectangles = [patch for patch in figure.artists if isinstance(patch, FancyBboxPatch)]
            frames.add(tuple(patch.get_bbox().bounds for patch in rectangles))
            words = [text.get_window_extent() for text in figure.texts if text.get_text()]
            assert all(box.count_overlaps(words) == 1 for box in words)
            assert all(0 < box.x0 < box.x1 < 700 and 0 < box.y0 < box.y1 < 520 for box in words)
            tiles = [patch.get_window_extent() for patch in rectangles]
            assert all(tile.count_overlaps(tiles) == 1 for tile in tiles)
            for word in words:  # inside a box, or outside all
                met = [tile for tile in tiles if tile.overlaps(word)]
                assert all(tile.x0 < word.x0 and word.x1 < tile.x1 for tile in met)
    assert len(frames) == 1


def test_a_nudge_must_be_seen():
    with pytest.raises(ValueError, match="^walk_of_squared_error: x = 1000000000000000.0 is too large"):
        walk_of(x=1e15, w=2.0, b=1.0, y=5.0)
