"""`predict`: cells that ask the reader for a prediction before the page shows the answer."""

import html
import inspect
import math
import os
import re
import textwrap
import traceback
from numbers import Number, Real

import ipywidgets
import numpy as np

from course.practice import progress

ANSWERS = "COURSE_ANSWERS"  # set to 1 by `python3 -m course lab --answers`


def predict(question, answer, because, *, choices=None, slider=None, unit=""):
    """Ask a question, let the reader commit to an answer, then show the right one and why.

    With `choices`, the answer is one of them. With `slider=(low, high)` or `(low, high, step)` it is a number between
    low and high. With neither it is a number that the reader types. `unit` is shown after the answer. A slider without
    a step moves by a hundredth of its range or, if 0 < 100 * low < high, by equal factors, 20 per power of ten.
    Question and explanation may hold `code`, **bold** and paragraphs. All of it is stored and compared from run to run,
    so no answer may be a measured number. If readers measure it on their own machines, `answer=(low, high)` is the
    range of usual results. The first committed answer counts in `python3 -m course progress`.
    A cell with the tag hide-input still shows its first line: make it `# a question: run me`, or break the line after
    `predict(`.
    Raises ValueError if the arguments do not fit together.
    """
    return Prediction(question, answer, because, choices, slider, unit)


def show_answers(shown=True):
    """From now on, show each question with its answer: for a projector, a screen reader, or a second reading."""
    os.environ[ANSWERS] = "1" if shown else ""


def in_one_line(error, function):
    """An exception as one line of text, with the line of the function's cell or file that raised it."""
    file = inspect.unwrap(function).__code__.co_filename
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f", in line {frames[-1].lineno}: `{frames[-1].line}`" if frames else ""
    return " ".join(f"{type(error).__name__}: {error}".split()) + where


def plain(value):
    """Convert NumPy arrays and numbers to Python lists and numbers, also inside lists and tuples."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def brief(value):
    text = repr(plain(value))
    return text if len(text) <= 200 else text[:200] + " ..."


def agree(result, expected):
    if isinstance(result, list) and isinstance(expected, list):
        return len(result) == len(expected) and all(map(agree, result, expected))
    if isinstance(result, Number) and isinstance(expected, Number):
        return result == expected or abs(result - expected) <= 1e-9 * abs(expected) + 1e-15
    return result == expected


def spelled(value, unit=""):
    """A number or a range as text, with commas, whole or to six digits, and its unit; str() of anything else."""
    text = str(value)
    if isinstance(value, tuple):  # a range
        text = " to ".join(map(spelled, value))
    elif isinstance(value, Real) and not isinstance(value, bool):
        text = f"{int(value):,}" if abs(value) < 1e15 and value == int(value) else f"{value:,.6g}"
    return f"{text} {unit}".strip()


def parsed(text, unit):
    """The number that a reader typed, or None if it is no finite number."""
    text = re.sub(r",(?=\d{3}(?!\d))", "", text.strip().removesuffix(unit))
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def positions(low, high, step=None):
    """The positions of a slider: equal factors apart, rounded to three digits, or equal steps apart, rounded to six."""
    if step is None and 0 < 100 * low < high:
        return [float(f"{number:.3g}") for number in np.geomspace(low, high, round(20 * math.log10(high / low)) + 1)]
    step = step or (high - low) / 100
    return [float(f"{low + step * k:.6g}") for k in range(int((high - low) / step + 1e-9) + 1)]


def misfit(answer, choices, slider):
    """What `predict` expects instead of these arguments, in words; "" or None if they fit."""
    if choices is not None and slider is not None:
        return "choices or a slider, not both"
    if choices is not None:
        good = answer in choices and len(set(map(spelled, choices))) == len(choices) > 1
        return "" if good else "two or more choices that differ, and the answer among them"
    ends = answer if isinstance(answer, tuple) else (answer,)
    if not all(isinstance(end, Real) and not isinstance(end, bool) and math.isfinite(end) for end in ends):
        return "choices, or a finite number as the answer"
    if isinstance(answer, tuple) and not (len(ends) == 2 and ends[0] < ends[1]):
        return "a range answer=(low, high), low < high"
    if slider is not None:
        good = len(slider) in (2, 3) and slider[0] < slider[1] and slider[0] <= ends[0] and ends[-1] <= slider[1]
        good = good and all(step <= slider[1] - slider[0] <= 1000 * step for step in slider[2:])
        return "" if good else "slider=(low, high) or (low, high, step), low <= answer <= high, at most 1,000 steps"


def paragraphs(*texts):
    return [paragraph for text in texts for paragraph in inspect.cleandoc(text).split("\n\n")]


def rich(*texts):
    """HTML of texts with `code`, **bold** and paragraphs."""

    def mark(found):  # one pattern for both: the stars in the code `2**24` are not bold
        return f"<code>{found[1]}</code>" if found[1] else f"<b>{found[2]}</b>"

    marked = [re.sub(r"`([^`]+)`|\*\*(.+?)\*\*", mark, html.escape(p)) for p in paragraphs(*texts)]
    return '<div class="jp-RenderedHTMLCommon">' + "".join(f"<p>{p}</p>" for p in marked) + "</div>"


class Prediction:
    """A question and its answer. Each display makes new widgets, in which nothing is chosen yet."""

    def __init__(self, question, answer, because, choices, slider, unit):
        if expected := misfit(answer, choices, slider):
            given = f"answer={answer!r}, choices={choices!r}, slider={slider!r}"
            raise ValueError(f"predict: given {given}: expected {expected}")
        self.question = question
        self.answer = answer
        self.because = because
        self.unit = unit
        self.choices = choices
        self.slider = slider
        self.told = f"Answer: {spelled(answer, unit)}"

    def __repr__(self):
        wrap = textwrap.TextWrapper(100, break_long_words=False, break_on_hyphens=False).fill
        choices = [f"  ( ) {spelled(choice, self.unit)}" for choice in self.choices or ()]
        asked = paragraphs("Predict: " + self.question)
        told = paragraphs(self.told, self.because)
        return "\n".join([*map(wrap, asked), *choices, *map(wrap, told)])

    def _repr_mimebundle_(self, include=None, exclude=None):
        told = rich(self.told, self.because)
        folded = f"{self.asked()}<details><summary>the answer</summary>{told}</details>"  # for a page without a kernel
        return self.box()._repr_mimebundle_() | {"text/html": folded, "text/plain": repr(self)}

    def asked(self):
        """The question and its choices, in HTML."""
        return rich(
            "**Predict:** " + self.question, *(f"( ) {spelled(choice, self.unit)}" for choice in self.choices or ())
        )

    def box(self):
        """The question, the control, the button, and the place where the answer appears."""
        if os.environ.get(ANSWERS):
            return ipywidgets.HTML(self.asked() + rich(self.told, self.because))
        control, read, prompt = self.control()
        beside, reveal = ipywidgets.Label(prompt, layout={"margin": "2px 12px"}), ipywidgets.HTML()
        button = ipywidgets.Button(description="Commit", disabled=True)
        given = None

        def choose(change):
            nonlocal given
            given = read(change["new"])
            beside.value = prompt if given is None else spelled(given, self.unit)
            button.disabled = given is None
            if control.disabled:  # typed before Enter, but it arrives later, because the kernel was busy
                commit()

        def commit(*_):
            if given is not None:
                control.disabled = True
                button.layout.display = "none"
                verdict = self.verdict(given)
                reveal.value = rich(f"{verdict} {self.told}", self.because)
                progress.predicted(self.question, not verdict.startswith("**Not so"))  # "Close" counts as right

        control.observe(choose, "value")
        control.on_msg(lambda _, content, buffers: content.get("event") == "submit" and commit())  # Enter in the field
        button.on_click(commit)
        row = [control, button] if self.choices else [control, beside, button]
        row = ipywidgets.HBox(row, layout={"flex_flow": "row wrap"})
        return ipywidgets.VBox([ipywidgets.HTML(rich("**Predict:** " + self.question)), row, reveal])

    def control(self):
        """The input widget, a function from its value to an answer or None, and the text beside the widget."""
        if self.choices is not None:
            options = [(spelled(choice, self.unit).replace("`", ""), choice) for choice in self.choices]
            radio = ipywidgets.RadioButtons(options=options, value=None, layout={"width": "100%"})
            return radio, lambda value: value, ""
        if self.slider is not None:
            layout = {"margin": "2px 2px 2px 10px"}  # otherwise the handle is cut off at the left end
            slider = ipywidgets.SelectionSlider(options=positions(*self.slider), readout=False, layout=layout)
            return slider, lambda value: value, "move the slider"
        return ipywidgets.Text(placeholder="a number"), lambda text: parsed(text, self.unit), self.unit

    def verdict(self, given):
        said = f"You said {spelled(given, self.unit)}"
        right = self.answer if self.choices is not None else self.nearest(given)
        if agree(given, right):
            return "**Right.**"
        if self.choices is not None:
            return f"**Not so.** {said}."
        if self.slider and given == min(positions(*self.slider), key=lambda p: abs(p - self.nearest(p))):
            return f"**Right:** no position of the slider is nearer. {said}."
        way, low, high = "too high" if given > right else "too low", *sorted((given, right))
        far = spelled(high - low, self.unit)
        if low > 0 and high >= 2 * low:
            far = f"a factor of {spelled(float(f'{high / low:.3g}'))}"
        return f"**{'Close' if 0 < high < 1.5 * low else 'Not so'}.** {said}, {far} {way}."

    def nearest(self, given):
        """The right answer; if it is a range, the number in it that is nearest to the given one."""
        return sorted((given, *self.answer))[1] if isinstance(self.answer, tuple) else self.answer
