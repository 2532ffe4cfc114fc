"""A model as a page: in a real browser, from its file, it computes what `predict` says."""

import functools
import json
import math

import numpy as np
import pytest
import sklearn.datasets

from levels_more.high_level import Input, Model, Sequential
from levels_more.mid_level import Adam, BatchNormalization, Dense, Embedding, Flatten, Layer
from levels_more.saving import export_page, load_model, webpage

POINTS = np.concatenate([np.random.default_rng(0).uniform(-11, 11, (300, 2)), [[0, 0], [11, -11], [-0.0, 1e-300]]])


@pytest.fixture(scope="module")
def chromium(launched):
    """One browser for all of these tests."""
    with launched() as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def packed_once():
    """onnxruntime-web is compressed once for all of these tests: 14 MB take a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webpage, "packed", functools.cache(webpage.packed))
        yield


@pytest.fixture
def opened(chromium, tmp_path):
    """A function that takes a model home and opens its page. The page asks for no other file, and reports no error."""
    faults = []
    tab = chromium.new_page(viewport={"width": 960, "height": 700})
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    path = tmp_path / "net.html"
    own = path.as_uri(), "blob:"  # a blob is made of what stands in the page
    tab.on("request", lambda request: faults.append(request.url) if not request.url.startswith(own) else None)

    def open_page(model, **words):
        export_page(model, path, **words)
        tab.goto(path.as_uri())
        tab.wait_for_selector("body[data-ready]", timeout=60_000)
        return tab

    yield open_page
    tab.close()
    assert faults == []


RINGS = {"inputs": {"x1": (-11, 11), "x2": (-11, 11)}, "outputs": ["inner ring", "outer ring"]}


@pytest.fixture(scope="module")
def rings():
    return load_model("rings")


def told(tab):
    """Where the point of a page stands, and the probability that it tells."""
    point = tab.locator("#point")
    return json.loads(point.get_attribute("data-place")), float(point.get_attribute("aria-valuenow"))


def values(tab):
    """What the page shows that the model says."""
    return json.loads(tab.locator("output").get_attribute("data-values"))


def predicted(tab, x):
    return np.array(tab.evaluate("rows => predict(rows)", x.tolist()))


def forward(tab, points):
    """[units] of each layer: the values of all points."""
    found = tab.evaluate("points => points.map(forward)", points.tolist())
    return [np.array(layer) for layer in zip(*found, strict=True)]


def test_the_page_computes_what_the_model_does(opened, rings):
    """Sums and products in float64 are equal; exp belongs to the browser."""
    x, h1, h2, p = forward(opened(rings, **RINGS), POINTS)
    assert (x == POINTS).all()
    assert (h1 == Sequential(rings.layers[:1]).predict(POINTS)).all()
    assert (h2 == Sequential(rings.layers[:2]).predict(POINTS)).all()
    assert np.abs(p - rings.predict(POINTS)).max() < 1e-15


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_other_layers(opened, dtype):
    layers = [Dense(5, "tanh", use_bias=False), Dense(3), Dense(4, "relu"), Dense(1, "sigmoid")]
    model = built(*layers, dtype=dtype, name="</script><b>& TITLE DATA = {}")
    tab, points = opened(model), POINTS.astype(dtype)
    assert np.abs(forward(tab, points)[-1] - model.predict(points)).max() < 1e-6
    assert tab.title() == tab.inner_text("h1") == "</script><b>& TITLE DATA = {}: a net of 49 numbers"


def test_the_point_is_dragged(opened, rings):
    tab = opened(rings, **RINGS)
    box, seen = tab.locator("#plane").bounding_box(), set()
    side = box["width"]
    assert side == box["height"]
    before = tab.locator("#net").inner_html()
    tab.locator("#point").hover()
    tab.mouse.down()
    for x, y in ((0, 0), (3, 5), (-9.5, 2), (6.4, -1), (-20, 4)):
        tab.mouse.move(box["x"] + (x / 11 + 1) / 2 * side, box["y"] + (1 - y / 11) / 2 * side)
        place, p = told(tab)
        assert place == pytest.approx([max(x, -11), y], abs=0.03)  # a point of the screen is 0.05 wide
        assert p == pytest.approx(rings.predict(np.array([place]))[0, 0], abs=1e-6)
        ring = "outer" if p > 0.5 else "inner"
        sentence = f"x1 = {place[0]:.1f}, x2 = {place[1]:.1f}: {ring} ring. The probability of outer ring is "
        assert tab.inner_text("output").replace("-0.0", "0.0") == f"{sentence}{100 * p:.1f} %.".replace("-0.0", "0.0")
        seen.add(ring)
    tab.mouse.up()
    tab.mouse.move(box["x"] + 100, box["y"] + 100)
    assert told(tab)[0] == place and seen == {"inner", "outer"}  # let go, it stays
    assert tab.locator("#net").inner_html() != before


def test_the_point_is_moved_by_keys(opened, rings):
    tab = opened(rings, **RINGS)
    (x, y), _ = told(tab)
    tab.keyboard.press("Tab")
    for key, dx, dy in (
        ("ArrowLeft", -0.11, 0),
        ("ArrowUp", 0, 0.11),
        ("Shift+ArrowRight", 1.1, 0),
        ("Shift+ArrowRight", 1.1, 0),
        ("Shift+ArrowDown", 0, -1.1),
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
    assert spoken == "x1 = 11.0, x2 = 2.3: outer ring. The probability of outer ring is 100.0 %."


def test_the_regions_are_those_of_the_model(opened, rings):
    """Blue where it says 0, orange where it says 1."""
    pixels = opened(rings, **RINGS).evaluate(
        """() => {
            const all = document.querySelector("canvas").getContext("2d");
            const places = [...Array(44)].map((_, k) => 5 * k + 2);
            return places.map(y => places.map(x => [...all.getImageData(x, y, 1, 1).data]));
        }"""
    )
    red, _, blue, alpha = np.moveaxis(np.array(pixels), 2, 0)
    side = (5 * np.arange(44) + 2.5) / 110 - 1
    p = rings.predict(11 * np.stack([*np.meshgrid(side, -side)], axis=2).reshape(-1, 2)).reshape(44, 44)
    sure = np.abs(p - 0.5) > 0.01
    assert (alpha == 255).all() and ((red > blue) == (p > 0.5))[sure].all() and 0.2 < (p > 0.5).mean() < 0.9


def built(*layers, dtype="f8", name="net"):
    model = Sequential([*layers], name=name)
    model.build((1, 2), np.dtype(dtype))
    draw = np.random.default_rng(2)
    model.set_weights([draw.normal(0, 0.5, w.shape).astype(w.dtype) for w in model.get_weights()])
    return model


def test_sliders_have_names_and_move_what_is_said(opened):
    sex = load_model("penguins_sex")
    names = {
        "bill length, mm": (np.float32(32), np.int64(60)),
        "bill <b>depth</b>, mm": (13, 22),
        "flipper, mm": (170, 232),
        "mass, g": (2700, 6300),
    }
    tab = opened(sex, inputs=names, outputs=["female", "male"])
    assert tab.locator("#table th").all_text_contents() == [*names]
    for k, value in enumerate((39.1, 18.7, 181, 3750)):
        tab.locator("#table [type=number]").nth(k).fill(str(value))
    assert values(tab) == pytest.approx(sex.predict(np.array([[39.1, 18.7, 181, 3750]]))[0], abs=1e-6)
    before = tab.inner_text("output")
    assert before.startswith("male. The probability of male is ")
    tab.locator("#table [type=range]").nth(3).fill("2700")
    light = sex.predict(np.array([[39.1, 18.7, 181, 2700.0]]))[0]
    assert values(tab) == pytest.approx(light, abs=1e-6) and tab.inner_text("output") != before
    assert tab.locator("#table [type=number]").nth(3).input_value() == "2700"
    tab.locator("#table [type=number]").nth(3).fill("")  # no number: what was said stays
    assert values(tab) == pytest.approx(light, abs=1e-6)


@pytest.mark.parametrize(("last", "outputs"), [(Dense(1), 1), (Dense(3, "softmax"), 3)])
def test_what_is_not_a_number_is_never_shown_as_one(opened, last, outputs):
    """A weight that training drove to NaN goes through a relu, as in `predict`, and the page says so."""
    model = built(Dense(4, "relu"), last)
    weights = model.get_weights()
    weights[0][0, 0] = np.nan
    model.set_weights(weights)
    tab = opened(model)
    said, want = np.array(predicted(tab, POINTS), float), model.predict(POINTS)
    assert np.isnan(want).all() and np.isnan(said).all() and said.shape == (len(POINTS), outputs)
    assert "not a number" in tab.inner_text("output")
    pixel = "document.querySelector('canvas').getContext('2d').getImageData(9, 9, 1, 1).data"
    assert tab.evaluate(f"[...{pixel}]") == [0, 0, 0, 255]


def test_three_classes_in_the_plane(opened):
    model = built(Dense(8, "tanh"), Dense(3, "softmax"))
    tab = opened(model, outputs=["a", "b", "c"])
    assert np.abs(predicted(tab, POINTS) - model.predict(POINTS)).max() < 1e-6
    said = "abc"[model.predict(np.array([[3.0, 3.0]]))[0].argmax()]
    assert f"{said}. Its probability is " in tab.inner_text("output")
    assert tab.locator("#bars .best").first.inner_text() == said


@pytest.fixture(scope="module")
def digits():
    """A net that reads scikit-learn's digits, 8 times 8 pixels from 0 to 16."""
    data = sklearn.datasets.load_digits()
    model = Sequential([Dense(32, "relu"), Dense(10, "softmax")], name="digits")
    model.compile(Adam(0.002), "sparse_categorical_crossentropy")
    model.fit((data.data / 16).astype("f4"), data.target, batch_size=50, epochs=15, seed=1, verbose=0)
    return model


ONE = (0.40, 0.22), (0.54, 0.08), (0.54, 0.92)
ZERO = [(0.5 - 0.23 * math.sin(angle), 0.5 - 0.44 * math.cos(angle)) for angle in np.linspace(0, 2 * math.pi, 9)]


def test_a_digit_is_drawn(opened, digits):
    tab = opened(digits, picture=(8, 8, 1))
    x = (sklearn.datasets.load_digits().data[:300] / 16).astype("f4")
    assert np.abs(predicted(tab, x) - digits.predict(x)).max() < 1e-6
    canvas = tab.locator("#drawing canvas")
    for said, stroke in (("1", ONE), ("0", ZERO)):
        tab.get_by_role("button", name="Clear").click()
        assert sum(tab.evaluate("state")) == 0
        box = canvas.bounding_box()
        first, *others = [(box["x"] + u * box["width"], box["y"] + v * box["height"]) for u, v in stroke]
        tab.mouse.move(*first)
        tab.mouse.down()
        for place in others:
            tab.mouse.move(*place, steps=5)
        tab.mouse.up()
        state = np.array(tab.evaluate("state"), "f4")
        assert state.min() >= 0 and 0.9 < state.max() <= 1
        assert values(tab) == pytest.approx(digits.predict(state[None])[0], abs=1e-6)
        assert tab.inner_text("output").startswith(f"{said}. Its probability is ")
    tab.get_by_role("button", name="Clear").click()
    canvas.focus()
    for key in ("Space", "ArrowUp", "Space"):
        tab.keyboard.press(key)
    assert sum(tab.evaluate("state")) > 0.5


class Doubled(Layer):
    """A layer of a reader's own. It computes with ops that ONNX has, so it goes along."""

    def call(self, x):
        return x * 2.0


def test_other_layers_and_a_graph_of_layers_run_in_onnxruntime_web(opened):
    try:
        webpage.onnxruntime_web()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    normed = built(Dense(16, "relu"), BatchNormalization(), Dense(3, "softmax"), dtype="f4")
    normed.set_weights([np.abs(w) for w in normed.get_weights()])  # a variance is no number below 0
    x = Input((2,))
    graph = Model(x, Dense(1, "sigmoid")(Doubled()(x)))
    for model, points in ((normed, POINTS.astype("f4")), (graph, POINTS)):
        tab = opened(model)
        assert np.abs(predicted(tab, points) - model.predict(points)).max() < 1e-6
        assert tab.evaluate("typeof layers") == "undefined" and values(tab)


def test_without_onnxruntime_web_the_cure_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webpage, "TEMPLATE", tmp_path / "a" / "page.html")
    model = built(Dense(2), BatchNormalization(), Dense(1, "sigmoid"))
    with pytest.raises(FileNotFoundError, match="more than Dense layers .* npm install onnxruntime-web@1.30.0$"):
        export_page(model, tmp_path / "net.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Sequential([Dense(1, "sigmoid")], name="net"), "export_page: net is not built"),
        (lambda: built(Embedding(5, 3), Flatten(), dtype="i8"), "takes int64.*; a page maps one table of numbers"),
        (lambda: Model(x := Input((3,)), [Dense(1)(x), Dense(2)(x)]), r"gives \[rows, 1\], \[rows, 2\]; a page"),
    ],
)
def test_a_model_that_no_page_can_run_stays(make, why, tmp_path):
    with pytest.raises(ValueError, match=why):
        export_page(make(), tmp_path / "net.html")
    assert not list(tmp_path.iterdir())
