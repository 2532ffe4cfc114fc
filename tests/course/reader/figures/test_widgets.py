"""What the reader answers and moves, driven from Python. (tests/house/test_browser.py does it in JupyterLab.)"""

import asyncio
import base64
import html
import itertools
import re
from typing import NamedTuple

import numpy as np
import pytest
from ipywidgets import HTML, Button, Image, Label, RadioButtons, SelectionSlider, Text

from course import build
from course.reader import answers, checks
from course.reader.answers import Answer
from course.reader.figures import widgets
from course.reader.notebooks.answers import keys_in
from course.reader.words import spelled


def parts(widget) -> list:
    return [widget, *itertools.chain(*map(parts, getattr(widget, "children", ())))]


def part(box, kind):
    return next(widget for widget in parts(box) if isinstance(widget, kind))


def said(box) -> str:
    """The line beneath a figure, which a screen reader reads out."""
    return html.unescape(re.fullmatch('<div role="status"[^>]*>(.*)</div>', part(box, HTML).value)[1])


def revealed(box) -> str:
    return [widget for widget in parts(box) if isinstance(widget, HTML)][-1].value


# A prediction, driven from Python.


@pytest.fixture(autouse=True)
def new_kernel(monkeypatch):
    """Nothing is committed yet, and no answer has been told."""
    monkeypatch.setattr(checks, "VERDICTS", {})
    monkeypatch.setattr(checks, "TOLD", set())


def predict(question, right, because, *, unit="", choices=None, slider=None):
    return checks.Prediction("00-key", question, Answer(right, because, unit), choices, slider)


def told(question) -> str:
    """What the cell after the result shows."""
    return checks.Told(question.key, question.answer)._repr_html_()


@pytest.mark.parametrize("choice, verdict", [("twos", "<b>Right.</b>"), ("ones", "<b>Not so.</b> You said ones.")])
def test_a_choice_is_locked_and_its_verdict_waits_for_the_result(choice, verdict):
    question = predict(
        "what does `2**24 < x` count in?", "twos", "A float32 has **24** bits.", choices=["ones", "twos"]
    )
    box = question.box()
    radio, button = part(box, RadioButtons), part(box, Button)
    assert "<code>2**24 &lt; x</code>" in part(box, HTML).value
    assert radio.value is None and button.disabled and revealed(box) == ""
    button.click()  # what a disabled button does is the browser's affair
    assert revealed(box) == "" and not radio.disabled
    radio.value = choice
    assert not button.disabled and revealed(box) == ""
    button.click()
    assert radio.disabled and button.layout.display == "none"
    assert f"<p>You said {choice}. Run the next cell.</p>" in revealed(box)
    assert "24</b>" not in revealed(box) and "Right" not in revealed(box) and "Not so" not in revealed(box)
    assert f"<p>{verdict} Answer: twos</p><p>A float32 has <b>24</b> bits.</p>" in told(question)
    again = question.box()
    assert part(again, RadioButtons).value is None and revealed(again) == ""


def test_who_runs_all_cells_first_is_told_the_answer_and_then_the_verdict_at_once():
    question = predict("how many?", 12, "Twelve.")
    assert "<p>Answer: 12</p><p>Twelve.</p>" in told(question)
    box = question.box()
    part(box, Text).value = "24"
    enter(part(box, Text))
    assert "<p><b>Not so.</b> You said 24, a factor of 2 too high.</p></div>" in revealed(box)
    assert "You said 24, a factor of 2 too high. Answer: 12" in told(question)


TYPED = {
    "8": "Not so.</b> You said 8 µs, 4 µs too low",
    "13": "Close.</b> You said 13 µs, 1 µs too high",
    "12": "Right.</b>",
    " 12.0 µs ": "Right.</b>",
    "24": "Not so.</b> You said 24 µs, a factor of 2 too high",
    "19,800": "Not so.</b> You said 19,800 µs, a factor of 1,650 too high",
    "-1e400": None,
    "-3": "Not so.</b> You said -3 µs, 15 µs too low",
    "0": "Not so.</b> You said 0 µs, 12 µs too low",
    "1e308": "You said 1e+308 µs, a factor of 8.33e+306 too high",
    "": None,
    "nan": None,
    "twelve": None,
    "1,2": None,
    "1" * 5000: None,
}
RANGE = {  # each machine answers for itself
    "50": "Right.</b> Answer: 50 to 200 µs",
    "200": "Right.</b>",
    "133.7": "Right.</b>",
    "40": "Close.</b> You said 40 µs, 10 µs too low",
    "450": "Not so.</b> You said 450 µs, a factor of 2.25 too high",
}
ASKED = [(12, *each) for each in TYPED.items()] + [((50, 200), *each) for each in RANGE.items()]


@pytest.mark.parametrize("right, text, verdict", ASKED, ids=lambda each: str(each)[:9])
def test_a_number_is_typed(right, text, verdict):
    question = predict("how long?", right, "Python.", unit="µs")
    assert repr(question) == "Predict: how long?"
    box = question.box()
    field, button = part(box, Text), part(box, Button)
    field.value = text
    enter(field)
    if verdict is None:
        assert button.disabled and not field.disabled and revealed(box) == "" and part(box, Label).value == "µs"
        assert "<p>Answer: 12 µs</p>" in told(question)
    else:
        assert field.disabled and "You said " in revealed(box) and " µs. Run the next cell." in revealed(box)
        assert verdict in told(question)


def enter(field):
    field._handle_custom_msg({"event": "submit"}, [])  # what the browser sends


def test_what_was_typed_before_enter_counts_even_if_it_arrives_after():
    question = predict("how long?", 12, "Python.")
    box = question.box()
    field = part(box, Text)
    field.value = "1"
    enter(field)
    assert "You said 1. " in revealed(box)
    field.value = "12"
    assert "You said 12. " in revealed(box)
    field.value = "1e"
    assert "You said 12. " in revealed(box) and "Right" in told(question)


SLIDERS = {
    (0, 10): (3, "Right.</b> Answer: 3"),
    (0, 10, 3): (4, "Right:</b> no position of the slider is nearer. You said 3. Answer: 4"),
    (1, 1e6): (10**4, "Right.</b> Answer: 10,000"),
    (2, 1e6): (1234, "Right:</b> no position of the slider is nearer. You said 1,"),
    (-5, -1, 0.1): (-2, "Right.</b> Answer: -2"),
}


@pytest.mark.parametrize("slider", SLIDERS, ids=str)
def test_a_slider_waits_until_it_is_moved_and_reaches_the_answer(slider):
    answer, verdict = SLIDERS[slider]
    question = predict("how long?", answer, "Python.", slider=slider)
    box = question.box()
    moved, button = part(box, SelectionSlider), part(box, Button)
    assert button.disabled and part(box, Label).value == "move the slider"
    numbers = list(moved.options)
    assert numbers[0] == slider[0] and slider[1] - 1 <= numbers[-1] <= slider[1] and len(set(numbers)) == len(numbers)
    moved.index = len(numbers) - 1
    moved.index = int(np.argmin(np.abs(np.array(numbers) - answer)))
    assert part(box, Label).value == spelled(moved.value)
    button.click()
    assert verdict in told(question) and moved.disabled


@pytest.mark.parametrize("name", build.names_in(build.ROOT))
def test_who_predicts_what_the_next_cell_measures_is_given_a_range(name):
    """What such a cell prints is compared with no stored output: no single number is right on every machine."""
    code = [cell for cell in build.from_text(build.ROOT, name).cells if cell.cell_type == "code"]
    for cell, following in itertools.pairwise(code):
        if "checks.predict(" in cell.source and "nbval-ignore-output" in following.metadata.get("tags", ()):
            (key,) = keys_in(cell.source)
            assert "choices=" in cell.source or isinstance(answers.of(key).right, tuple), cell.source


def displayed(question, monkeypatch):
    """What a cell that asks displays: its output and, after them, what replaces it."""
    outputs = []
    monkeypatch.setattr(checks.DisplayHandle, "display", lambda self, bundle, raw: outputs.append(bundle))
    monkeypatch.setattr(checks.DisplayHandle, "update", lambda self, bundle, raw: outputs.append(bundle))
    boxes = []
    make = question.box
    monkeypatch.setattr(question, "box", lambda handle: boxes.append(make(handle)) or boxes[-1])
    question._ipython_display_()
    return outputs, boxes


LONG = "which is longer, " + "very " * 20 + "long?"


def test_without_widgets_a_prediction_is_a_constant_text_without_its_answer(monkeypatch):
    asked = predict(LONG, "the second", "It was measured.", choices=["the first", "the second"])
    text = f"Predict: which is longer,{' very' * 15}\n{'very ' * 5}long?\n○ the first\n○ the second"
    assert repr(asked) == text and max(map(len, text.splitlines())) <= 100
    ((first,), _), ((second,), _) = displayed(asked, monkeypatch), displayed(asked, monkeypatch)
    assert first["text/plain"] == second["text/plain"] == text
    assert first["text/html"] == second["text/html"] and "<p>○ the first<br>○ the second</p>" in first["text/html"]
    assert "measured" not in first["text/html"] and first[VIEW] != second[VIEW]


def test_what_is_committed_is_stored_without_a_widget(monkeypatch):
    """The notebook that is saved then shows it on the next evening, in every JupyterLab."""
    asked = predict(LONG, "the second", "It was measured.", choices=["the first", "the second"])
    outputs, (box,) = displayed(asked, monkeypatch)
    part(box, RadioButtons).value = "the first"
    assert len(outputs) == 1
    part(box, Button).click()
    _, stored = outputs
    assert VIEW not in stored and "measured" not in str(stored)
    assert stored["text/html"].endswith(
        "<p>● the first<br>○ the second</p><p>You said the first. Run the next cell.</p></div>"
    )
    assert stored["text/plain"].endswith("● the first\n○ the second\nYou said the first. Run the next cell.")


VIEW = "application/vnd.jupyter.widget-view+json"

# An explorer, driven from Python.


class Drawn(NamedTuple):
    png: bytes
    text: str

    @property
    def live(self):
        return self.png


class Drawing:
    """Draws (x, y), remembers what it drew, and cannot draw x = 3."""

    def __init__(self):
        self.drawn = []

    def __call__(self, x, y=0):
        self.drawn.append((x, y))
        return Drawn(f"{1 / (x - 3)} {y}".encode(), f"x < {x}, y = {y}")


def test_an_explorer_redraws_one_image():
    draw = Drawing()
    box = widgets.explore(draw, "An explorer.", start=dict(x=2), x=[1, 2, 3, 4000], y=["a", "b"]).box()
    image, sliders = part(box, Image), [w for w in parts(box) if isinstance(w, SelectionSlider)]
    assert [slider.value for slider in sliders] == [2, "a"] and sliders[0].options[-1] == ("4,000", 4000)
    assert (image.value, image.tooltip, said(box)) == (b"-1.0 a", "x < 2, y = a", "x < 2, y = a")
    sliders[0].index = 0
    sliders[1].index = 1
    assert (image.value, image.tooltip, said(box)) == (b"-0.5 b", "x < 1, y = b", "x < 1, y = b")
    assert part(box, Image) is image
    drawn = list(draw.drawn)
    sliders[0].index = 2
    assert (image.value, said(box)) == (b"-0.5 b", "ZeroDivisionError: division by zero")
    sliders[0].index = 0
    assert (image.value, said(box)) == (b"-0.5 b", "x < 1, y = b") and draw.drawn == [*drawn, (3, "b")]


async def drawn_until(draw, count):
    """Let the loop run until so many pictures are drawn, and a little longer."""
    for _ in range(100):
        if len(draw.drawn) >= count:
            break
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)


def test_an_explorer_draws_in_idle_time_what_the_next_press_asks_for():
    draw = Drawing()
    explorer = widgets.explore(draw, "", start=dict(x=2), x=[1, 2, 4, 5, 6], y=["a", "b"])

    async def press():
        sliders = [w for w in parts(explorer.box()) if isinstance(w, SelectionSlider)]
        await drawn_until(draw, 2)
        assert draw.drawn == [(2, "a")]  # nobody has moved a slider: other cells may wait for the kernel
        sliders[0].index += 1
        await drawn_until(draw, 4)
        assert draw.drawn[1:] == [(4, "a"), (5, "a"), (4, "b")]  # what was asked for, then first of all the same way
        sliders[1].index += 1
        sliders[1].index -= 1
        await drawn_until(draw, 6)
        assert draw.drawn[4:] == []  # nothing twice

    asyncio.run(press())


def test_without_widgets_an_explorer_is_its_first_picture_and_a_text():
    draw = Drawing()
    explorer = widgets.explore(draw, "An explorer.", x=np.array([1.0, 2.0]))
    first, second = explorer._repr_mimebundle_(), explorer._repr_mimebundle_(include=None, exclude=None)
    assert base64.b64decode(first["image/png"]) == b"-0.5 0" and draw.drawn == [(1.0, 0)]
    assert repr(explorer) == first["text/plain"] == second["text/plain"] == "An explorer."
    assert first[VIEW] != second[VIEW]


@pytest.mark.parametrize("controls", [dict(x=[]), dict(start=dict(x=9), x=[1]), dict(start=dict(z=1), x=[1])], ids=str)
def test_an_explorer_with_nowhere_to_start(controls):
    with pytest.raises(ValueError, match=r"^explore: .* the controls are {'x': \["):
        widgets.explore(Drawing(), "An explorer.", **controls)
