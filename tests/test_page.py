"""The source of a function on a page; and a model taken home as one: in a real browser it computes what `predict` says."""

import numba
import numpy as np
import pytest

from course.data import pretrained
from course.figures import page
from levels.high_level import Input, Model, Sequential, load_model
from levels.mid_level import Dense, Dropout

POINTS = np.concatenate([np.random.default_rng(0).uniform(-11, 11, (300, 2)), [[0, 0], [11, -11], [-0.0, 1e-300]]])


@pytest.fixture(scope="module")
def chromium(launched):
    """One browser for all of these tests."""
    with launched() as running:
        yield running


@pytest.fixture
def opened(chromium, tmp_path):
    """A function that takes a model home and opens its page. The page asks for no other file, and reports no error."""
    faults = []
    tab = chromium.new_page(viewport={"width": 960, "height": 700})
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: faults.append(request.url) if request.url != address else None)
    path = tmp_path / "net.html"
    address = path.as_uri()

    def open_page(model):
        assert page.take_home(model, path) == path
        tab.goto(address)
        return tab

    yield open_page
    tab.close()
    assert faults == []


@pytest.fixture(scope="module")
def rings():
    return load_model(pretrained.MODELS / "rings")


def told(tab):
    """Where the point of a page stands, and the probability that it tells."""
    point = tab.locator("#point")
    x, y, p = (float(point.get_attribute(name)) for name in ("cx", "cy", "aria-valuenow"))
    return [x, -y], p


def forward(tab, points):
    """[units] of each layer: the values of all points."""
    return [
        np.array(layer) for layer in zip(*tab.evaluate("points => points.map(forward)", points.tolist()), strict=True)
    ]


def test_the_page_computes_what_the_model_does(opened, rings):
    """Sums and products in float64 are equal; exp belongs to the browser."""
    x, h1, h2, p = forward(opened(rings), POINTS)
    assert (x == POINTS).all()
    assert (h1 == Sequential(rings.layers[:1]).predict(POINTS)).all()
    assert (h2 == Sequential(rings.layers[:2]).predict(POINTS)).all()
    assert np.abs(p - rings.predict(POINTS)).max() < 1e-15


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_other_layers(opened, dtype):
    layers = [Dense(5, "tanh", use_bias=False), Dense(3), Dense(4, "relu"), Dense(1, "sigmoid")]
    model = Sequential(layers, name="</script><b>&")
    model.build((1, 2), np.dtype(dtype))
    draw = np.random.default_rng(1)
    model.set_weights([draw.standard_normal(w.shape).astype(dtype) for w in model.get_weights()])
    tab, points = opened(model), POINTS.astype(dtype)
    assert np.abs(forward(tab, points)[-1] - model.predict(points)).max() < 1e-6
    assert tab.title() == tab.inner_text("h1") == "</script><b>&: a net of 49 numbers"


def test_the_point_is_dragged(opened, rings):
    tab = opened(rings)
    box, seen = tab.locator("#plane").bounding_box(), set()
    side = box["width"]
    assert side == box["height"]
    before = tab.locator("#net").inner_html()
    tab.mouse.move(*middle(tab.locator("#point")))
    tab.mouse.down()
    for x, y in ((0, 0), (3, 5), (-9.5, 2), (6.25, -1), (-20, 4)):
        tab.mouse.move(box["x"] + (x / 11 + 1) / 2 * side, box["y"] + (1 - y / 11) / 2 * side)
        place, p = told(tab)
        assert place == pytest.approx([max(x, -11), y], abs=0.03)  # a point of the screen is 0.05 wide
        assert p == pytest.approx(rings.predict(np.array([place]))[0, 0], abs=1e-6)
        ring = "outer" if p > 0.5 else "inner"
        sentence = f"x1 = {place[0]:.1f}, x2 = {place[1]:.1f}: {ring} ring. The probability of the outer one is "
        assert tab.inner_text("output").replace("-0.0", "0.0") == f"{sentence}{100 * p:.1f} %.".replace("-0.0", "0.0")
        seen.add(ring)
    tab.mouse.up()
    tab.mouse.move(box["x"] + 100, box["y"] + 100)
    assert told(tab)[0] == place and seen == {"inner", "outer"}  # let go, it stays
    assert tab.locator("#net").inner_html() != before


def middle(part):
    box = part.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_the_point_is_moved_by_keys(opened, rings):
    tab = opened(rings)
    (x, y), _ = told(tab)
    tab.keyboard.press("Tab")
    for key, dx, dy in (
        ("ArrowLeft", -0.1, 0),
        ("ArrowUp", 0, 0.1),
        ("Shift+ArrowRight", 1, 0),
        ("Shift+ArrowRight", 1, 0),
        ("Shift+ArrowDown", 0, -1),
        ("x", 0, 0),
    ):
        tab.keyboard.press(key)
        x, y = x + dx, y + dy
        place, p = told(tab)
        assert place == pytest.approx([x, y])
        assert p == pytest.approx(rings.predict(np.array([place]))[0, 0], abs=1e-6)
    for _ in range(30):
        tab.keyboard.press("Shift+ArrowRight")
    assert told(tab)[0][0] == 11
    spoken = tab.locator("#point").get_attribute("aria-valuetext")
    assert spoken == "x1 11.0, x2 3.1: outer ring; probability of the outer one 100.0 %"


def test_the_regions_are_those_of_the_model(opened, rings):
    """Blue where it says 0, orange where it says 1."""
    pixels = opened(rings).evaluate(
        """() => {
            const all = document.querySelector("canvas").getContext("2d"), places = [...Array(44)].map((_, k) => 5 * k + 2);
            return places.map(y => places.map(x => [...all.getImageData(x, y, 1, 1).data]));
        }"""
    )
    red, _, blue, alpha = np.moveaxis(np.array(pixels), 2, 0)
    side = (5 * np.arange(44) + 2.5) / 110 - 1
    p = rings.predict(11 * np.stack([*np.meshgrid(side, -side)], axis=2).reshape(-1, 2)).reshape(44, 44)
    sure = np.abs(p - 0.5) > 0.01
    assert (alpha == 255).all() and ((red > blue) == (p > 0.5))[sure].all() and 0.2 < (p > 0.5).mean() < 0.9


def built(*layers, inputs=2):
    model = Sequential(layers)
    model.build((1, inputs), np.dtype("f8"))
    return model


def functional():
    x = Input((2,))
    return Model(x, Dense(1, "sigmoid")(x))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Sequential([Dense(1, "sigmoid")]), r"weights \[\]"),
        (lambda: built(Dense(1, "sigmoid"), inputs=3), r"weights \[\(3, 1\)"),
        (lambda: built(Dense(2, "sigmoid")), r"weights \[\(2, 2\)"),
        (lambda: built(Dense(2), Dense(1)), "Dense linear, Dense linear"),
        (lambda: built(Dense(2, "softmax"), Dense(1, "sigmoid")), "Dense softmax"),
        (lambda: built(Dense(2), Dropout(0.5), Dense(1, "sigmoid")), "Dense linear, Dropout linear, Dense sigmoid"),
        (functional, "a Functional of"),
    ],
)
def test_a_model_that_the_page_cannot_run_stays(make, why, tmp_path):
    with pytest.raises(ValueError, match=f"^take_home: .*{why}.*; the page runs a built Sequential"):
        page.take_home(make(), tmp_path / "net.html")
    assert not list(tmp_path.iterdir())


def test_the_source_of_functions_methods_and_classes_is_shown():
    shown = page.source(page.layers_of, Dropout.call, numba.njit(page.activation_of)).data
    assert shown.startswith("```python\ndef layers_of(model):\n") and shown.endswith("\n```")
    assert "\n\ndef call(self," in shown and "\n\ndef activation_of(layer):" in shown
    assert "class Dropout(Layer):" in page.source(Dropout).data
    with pytest.raises(TypeError):
        page.source(3)
