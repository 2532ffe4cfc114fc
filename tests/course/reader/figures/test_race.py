"""The optimizer race: its map is exact, its findings follow from the losses, and it draws whatever a reader sets."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from course import figures, tasks
from course.reader.figures import race
from levels_more.low_level import GradientTape, constant, function
from levels_more.mid_level import SGD, Adam, Dense, MeanSquaredError

pytestmark = pytest.mark.usefixtures("words_can_be_read")

TABLE = np.array([row[:4] for row in tasks.penguins() if None not in row[:4]])
DEPTH, MASS = TABLE[:, 1:2], TABLE[:, 3:] / 1000
DEPTHS = {"raw": DEPTH, "standardised": tasks.standardise(DEPTH, DEPTH)[0]}


def run(optimizer, x, updates=1000):
    """As in notebook 04."""
    model, mean_squared = Dense(1, kernel_initializer="zeros"), MeanSquaredError()
    model(x)

    @function
    def step(x, y):
        w, b = map(constant, model.variables)
        with GradientTape() as tape:
            loss = mean_squared(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables, strict=True))
        return loss, w, b

    losses, w, b = step.over(x, MASS, np.broadcast_to(np.arange(len(x)), (updates + 1, len(x))))
    return losses.numpy(), np.column_stack([w.numpy(), b.numpy()])


# The map.


@pytest.mark.quick
def test_a_valley_by_hand():
    place = race.valley(np.array([[-1.0], [-1.0], [1.0], [1.0]]), np.array([[0.0], [2.0], [2.0], [4.0]]))
    np.testing.assert_allclose(place.best, [1.0, 2.0], atol=1e-14)  # 1·x + 2, and each point is 1 above or below
    assert place.loss == pytest.approx(1.0) and place.curvature.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    np.testing.assert_allclose(np.hypot(*(place.contour(4.0) - place.best).T), 2.0)


@given(
    st.lists(st.tuples(*[st.floats(-100, 100)] * 2), min_size=3, max_size=20),
    st.sampled_from(race.CLIMBS),
)
def test_the_loss_is_the_same_all_along_a_contour(points, climb):
    x, y = np.array(points)[:, :1], np.array(points)[:, 1:]
    if x.std() < 0.1 or np.linalg.lstsq(np.column_stack([x, x**0]), y, rcond=None)[1][0] < 1e-3:
        return  # no bowl, or no loss at the bottom of it
    place = race.valley(x, y)
    losses = [np.mean((w * x + b - y) ** 2) for w, b in place.contour(climb)]
    np.testing.assert_allclose(losses, (1 + climb) * place.loss, rtol=1e-6)


@pytest.mark.quick
def test_a_path_ends_where_it_leaves_for_good():
    path = np.array([[0.0, 0.0], [5.0, -5.0], [900.0, 0.0], [1e5, 0.0], [0.0, 0.0], [np.inf, np.nan]])
    kept = race.inside(path, np.array([[-1.0, -1.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(kept[:3], path[:3])
    assert np.isnan(kept[3:]).all()


# What a race says.

NAN, INF = np.nan, np.inf
ARRIVALS = {
    "there from the start": ([1.01, 1.0, 1.0], 0),
    "there at last": ([9.0, 2.0, 1.005], 2),
    "there, gone, and there again": ([9.0, 1.0, 5.0, 1.0, 1.0], 3),
    "gone at the end": ([9.0, 1.0, 1.0, 1.02], None),
    "never": ([9.0, 8.0], None),
    "infinite": ([9.0, 1e300, INF], None),
    "no number": ([9.0, 1.0, NAN], None),
    "no number in between": ([9.0, NAN, 1.0], 2),
}


@pytest.mark.parametrize("case", ARRIVALS)
def test_to_arrive_is_to_stay(case):
    losses, updates = ARRIVALS[case]
    assert race.arrival(losses, 1.0) == updates


FINDINGS = {
    "b arrives first, after 1 update": dict(a=[9, 9, 1], b=[9, 1, 1], c=[9, 9, 9]),
    "a and c arrive first, after 2 updates": dict(a=[9, 9, 1], b=[9, NAN, NAN], c=[9, 9, 1]),
    "none of them arrives; c comes nearest": dict(a=[9, 9, 8], b=[9, INF, NAN], c=[9, 9, 3]),
    "none of them arrives; a and b come nearest": dict(a=[9, 9, 3], b=[9, 9, 3], c=[9, 9, 1e9]),
    "none of them arrives; all end equally near": dict(a=[9, 9, 3], b=[9, 9, 3.001], c=[9, 9, 2.999]),
    "all of them diverge": dict(a=[9, 1e9, NAN], b=[9, NAN, NAN], c=[9, 1e9, 1e9]),
}


@pytest.mark.parametrize("found", FINDINGS)
def test_the_finding_names_who_is_first(found):
    assert race.finding(FINDINGS[found], 1.0) == found


@pytest.mark.parametrize(
    "losses, text",
    [
        ([9, 1], "arrives after 1"),
        ([9, 3], "is 200 % above"),
        ([9, 1.0126], "is 1.3 % above"),
        ([9, NAN], "diverges"),
        ([9, 2e3], "diverges"),
    ],
)
def test_how_it_ended_for_one(losses, text):
    assert race.result(losses, 1.0) == text


@given(st.lists(st.floats(0, 1), min_size=1, max_size=3))
def test_labels_keep_their_order_and_their_distance(heights):
    placed = race.apart(np.array(heights), 0.16, 0.09)
    order = np.argsort(heights, kind="stable")
    assert placed.min() >= 0.09 - 1e-12 and placed.max() <= 1.0
    assert (np.diff(placed[order]) >= 0.16 - 1e-12).all()


# The picture.

PICTURE = figures.Picture
SETTINGS = [("raw", 0.0001, 0), ("raw", 0.002, 0.9), ("raw", 0.002, 0.99), ("raw", 1, 0.99)]
SETTINGS += [("standardised", 0.005, 0.99), ("standardised", 0.05, 0.5), ("standardised", 0.5, 0.9)]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_every_setting_is_drawn_without_a_warning_or_an_overlap(setting, monkeypatch):
    inputs, rate, momentum = setting
    racers = {"SGD": SGD(rate), f"momentum {momentum}": SGD(rate, momentum), "Adam": Adam(rate)}
    runs, made = {name: run(racer, DEPTHS[inputs]) for name, racer in racers.items()}, []
    monkeypatch.setattr(
        "course.reader.figures.picture.Picture", lambda figure, text: made.append(figure) or PICTURE(figure, text)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = race.drawn(inputs, rate, DEPTHS[inputs], MASS, runs)
    assert picture.png.startswith(b"\x89PNG")
    assert picture.text.startswith(f"{inputs}, rate {rate:g}: ") and f"momentum {momentum} " in picture.text
    (figure,) = made
    assert all(np.nanmax(np.abs(line.get_xydata())) < 1e5 for axes in figure.axes for line in axes.lines)
    boxes = [text.get_window_extent() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert [box.count_overlaps(boxes) for box in boxes] == [1] * len(boxes)  # each meets itself alone
    assert all(figure.bbox.count_contains(box.get_points()) == 2 for box in boxes)


def test_a_reader_may_race_with_nonsense():
    path = np.full((4, 2), NAN)
    runs = {"nothing": (np.full(4, NAN), path), "one": (np.array([9.0]), np.zeros((1, 2)))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = race.drawn("raw", 0.1, DEPTH, MASS, runs).text
    assert "nothing diverges; one is 1,706 % above" in text


def test_a_fourth_racer_is_refused():
    runs = {name: (np.ones(2), np.zeros((2, 2))) for name in "abcd"}
    with pytest.raises(ValueError, match=r"race: 4 runs \(a, b, c, d\); a picture has room for 3"):
        race.drawn("raw", 0.1, DEPTH, MASS, runs)
