"""The card of a machine: the digits that are the same on all of them, and numbers that stand where they belong."""

import re
import xml.etree.ElementTree as ET
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from matplotlib.transforms import Bbox

from course import build, figures, reference, tasks
from course.reader.inspection import compare, share_card, tour
from levels_more.hardware import pool

DIGITS = "aba007ec7ceeaf70"  # of all losses of the line and of the net: on every machine
SVG = "{http://www.w3.org/2000/svg}"
STAIRS = {2**k: 1e-9 * 1.3 ** (k - 10) for k in range(12, 29)}


def machine_code(name):
    return getattr(import_module("levels.hardware.tasks"), name)


@pytest.fixture(scope="module")
def line():
    return compare.measure(
        tasks.linear(), reference.linear_regression, machine_code("linear_regression"), last=5, repeats=1
    )


@pytest.fixture(scope="module")
def net():
    return compare.measure(tasks.rings(), reference.dnn_classifier, machine_code("dnn_classifier"), last=5, repeats=1)


@pytest.fixture(scope="module")
def mine(line, net):
    return share_card.machine_card(pool()["cpu:0"], STAIRS, line, net)


def test_the_digits_are_the_same_on_every_machine(line, net):
    assert share_card.fingerprint(line, net) == DIGITS
    assert DIGITS in (build.ROOT / "notebooks" / "more" / "text" / "05_cost.py").read_text(encoding="utf-8")


def with_losses(comparison, losses):
    return comparison._replace(rows=[comparison.rows[0]._replace(losses=losses)])


def test_any_bit_of_any_loss_counts(line, net):
    losses = line.rows[0].losses
    assert share_card.fingerprint(with_losses(line, losses), net) == DIGITS
    for step in (0, 4000, 7999):
        other = losses.copy()
        other[step] = np.nextafter(other[step], 0.0)
        assert share_card.fingerprint(with_losses(line, other), net) != DIGITS
    assert share_card.fingerprint(net, line) != DIGITS


def test_the_card_is_a_picture_with_words(mine, line, net, tmp_path):
    root = ET.fromstring(mine.svg)
    assert root.get("role") == "img" and root.get("viewBox") == f"0 0 {share_card.WIDTH} {share_card.HEIGHT}"
    assert root.get("aria-labelledby").split() == [root.find(f"{SVG}{tag}").get("id") for tag in ("title", "desc")]
    assert root.find(f"{SVG}desc").text == mine.text == repr(mine)
    assert mine._repr_mimebundle_() == {"image/svg+xml": mine.svg, "text/plain": mine.text}
    written = [text.text for text in root.iter(f"{SVG}text")]
    for comparison in (line, net):
        assert f"{comparison.title}, µs per step" in written
        for row in comparison.rows:
            assert tour.micro(row.measured).removesuffix(" µs") in written and row.name in written
            assert f"{row.name} {tour.micro(row.measured)}" in mine.text
    cpu = pool()["cpu:0"]
    for number in (cpu.peak / 1e9, cpu.bandwidth / 1e9, cpu.launch_time * 1e6, STAIRS[2**28] * 1e9):
        assert figures.short(number) in written and f"{figures.short(number)} " in mine.text
    assert DIGITS in written and f"32,000 losses in float64, sha256 {DIGITS}" in mine.text
    mine.save(tmp_path / "card.svg")
    assert (tmp_path / "card.svg").read_text(encoding="utf-8") == mine.svg


def test_dots_stand_in_the_order_of_their_times(mine, line, net):
    dots = list(ET.fromstring(mine.svg).iter(f"{SVG}circle"))
    for k, comparison in enumerate((line, net)):
        places = [float(dot.get("cx")) for dot in dots[6 * k : 6 * k + 6]]
        times = [time for row in comparison.rows for time in (row.predicted, row.measured)]
        assert np.corrcoef(places, np.log(times))[0, 1] > 0.9999  # on one log scale
        fills = [dot.get("fill") for dot in dots[6 * k : 6 * k + 6]]
        assert fills == [fill for row in comparison.rows for fill in ("white", tour.hue(row))]


def test_the_staircase_rises_as_the_times_do(monkeypatch, line):
    cpu = pool()["cpu:0"]
    for caches in ({"L1": 2**15, "L2": 2**21, "L3": 2**25}, {"L3": 2**40}, {}):
        monkeypatch.setattr(share_card, "host_caches", lambda: caches)  # noqa: B023 - called at once
        drawn = share_card.machine_card(cpu, STAIRS, line)
        lines = ET.fromstring(drawn.svg).iter(f"{SVG}polyline")
        (steps,) = [each.get("points").split() for each in lines if each.get("stroke") == figures.DATA]
        x, y = np.array([point.split(",") for point in steps], float).T
        assert np.ptp(np.diff(x)) < 0.2 and np.ptp(np.diff(y)) < 0.2 and y[0] > y[-1] and len(x) == len(STAIRS)
        shown = re.findall(r">(L\d)<", drawn.svg)
        assert shown == [name for name, size in caches.items() if size < 2**28]
        assert ("a load from memory" in drawn.text) == (len(shown) == 3)


def box_of(text):
    """Where an SVG text stands, in Matplotlib's own font, which is wider than those of most systems."""
    size, anchor = float(text.get("font-size")), text.get("text-anchor")
    family = "monospace" if text.get("font-family") == "monospace" else "sans-serif"
    font = FontProperties(family=family, size=size, weight=text.get("font-weight"))
    width, height, _ = TextToPath().get_text_width_height_descent(text.text, font, False)
    x, y = float(text.get("x")) - {"start": 0.0, "middle": width / 2, "end": width}[anchor], float(text.get("y"))
    return Bbox.from_bounds(x, y - height, width, height)


@pytest.mark.parametrize("scale", [0.001, 1.0, 40.0])
def test_words_keep_apart(scale, line, net, monkeypatch):
    """On slow machines and on fast ones, with near caches and with large ones."""
    monkeypatch.setattr(share_card, "host_caches", lambda: {"L1": 2**15, "L2": 2**19, "L3": 2**27})
    cpu = pool()["cpu:0"]
    device = SimpleNamespace(
        peak=cpu.peak / scale, bandwidth=cpu.bandwidth / scale, launch_time=cpu.launch_time * scale
    )
    slower = [
        comparison._replace(
            rows=[
                row._replace(measured=row.measured * scale, predicted=row.predicted * scale) for row in comparison.rows
            ]
        )
        for comparison in (line, net)
    ]
    stairs = {size: seconds * scale for size, seconds in STAIRS.items()}
    drawn = share_card.machine_card(device, stairs, *slower)
    texts = list(ET.fromstring(drawn.svg).iter(f"{SVG}text"))
    boxes = [box_of(text) for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert 0 <= box.x0 < box.x1 <= share_card.WIDTH and 0 <= box.y0 < box.y1 <= share_card.HEIGHT, text.text
        met = [
            other.text for other, there in zip(texts, boxes, strict=True) if other is not text and box.overlaps(there)
        ]
        assert not met, (text.text, met)
