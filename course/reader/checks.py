"""Predictions: `predict` asks before the page shows a result, `answer_to` tells after it who was right, and why."""

import html
import inspect
import math
import os
import re
import textwrap

import ipywidgets
import numpy as np
from IPython.display import DisplayHandle

from course.reader import answers, progress
from course.reader.language import say
from course.reader.words import spelled

ANSWERS = "COURSE_ANSWERS"  # set to 1 by `python3 -m course lab --answers`
VERDICTS = {}  # a question's key -> what was said of the answer that was committed last in this kernel
TOLD = set()  # the keys of the questions whose answer has been shown in this kernel
MARKS = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*")  # one pattern for both: the stars in the code `2**24` are not bold


def predict(key, question, *, choices=None, slider=None):
    """Ask a question, and let the reader commit to an answer. `answer_to` tells the right one, after the result.

    The right answer and its reason stand under the key in `course/reader/answers`. With `choices`, the answer is one
    of them. With `slider=(low, high)` or `(low, high, step)` it is a number between low and high. With neither it is a
    number that the reader types. A slider without a step moves by a hundredth of its range or, if 0 < 100 * low < high,
    by equal factors, 20 per power of ten. Question and reason may hold `code`, **bold** and paragraphs. All of it is
    stored and compared from run to run, so no answer may be a measured number. If readers measure it on their own
    machines, the answer is the range of usual results. The first committed answer counts in `python3 -m course
    progress`. A cell with the tag hide-input still shows its first line: make it `# a question: run me`.
    Raises ValueError if there is no such key, or if the arguments do not fit the answer.
    """
    return Prediction(key, question, answers.of(key), choices, slider)


def answer_to(key):
    """Show the answer to the question with this key, why, and whether the reader was right if one was committed.

    It stands after the cell whose output shows the result. Raises ValueError if there is no such key.
    """
    return Told(key, answers.of(key))


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
    """What `predict` expects of the answer that the course keeps, in words; "" if it fits."""
    if choices is not None:
        return "" if answer in choices else "the answer among the choices"
    if isinstance(answer, str):
        return "choices, or a number as the answer"
    low, high = answer if isinstance(answer, tuple) else (answer, answer)
    if slider is not None and not slider[0] <= low <= high <= slider[1]:
        return "an answer from one end of the slider to the other"
    return ""


def paragraphs(*texts):
    return [" ".join(paragraph.split()) for text in texts for paragraph in inspect.cleandoc(text).split("\n\n")]


def marked(text):
    """HTML of a text with `code` and **bold**."""
    return MARKS.sub(lambda found: f"<code>{found[1]}</code>" if found[1] else f"<b>{found[2]}</b>", html.escape(text))


def block(paragraphs, name=""):
    """Paragraphs of HTML as one block. `name` is an attribute, by which a page can find it."""
    opened = f'<div class="jp-RenderedHTMLCommon"{" " * bool(name)}{name}>'
    return opened + "".join(f"<p>{each}</p>" for each in paragraphs) + "</div>"


def rich(*texts, name=""):
    """HTML of texts with `code`, **bold** and paragraphs."""
    return block(map(marked, paragraphs(*texts)), name)


def wrapped(*texts):
    """Texts as lines of at most 100 characters, in which **bold** has lost its stars."""
    fill = textwrap.TextWrapper(100, break_long_words=False, break_on_hyphens=False).fill
    return "\n".join(fill(MARKS.sub(lambda found: found[2] or found[0], p)) for p in paragraphs(*texts))


class Told:
    """The answer to a question, its reason, and what was said of the reader's own answer, if there is one."""

    def __init__(self, key, answer):
        TOLD.add(key)
        verdict = VERDICTS.get(key) or progress.verdict(key)
        self.key = key
        self.texts = f"{verdict} {right_one(answer)}".strip(), say(answer.because.strip())

    def __repr__(self):
        return wrapped(*self.texts)

    def _repr_html_(self):
        return rich(*self.texts, name=f'data-answer="{self.key}"')


def right_one(answer):
    return say("Answer: {right}", right=worded(answer.right, answer.unit))


def worded(value, unit):
    """An answer as a text: a choice in the reader's language, or a number or a range with its unit."""
    return say(value) if isinstance(value, str) else spelled(value, unit)


class Prediction:
    """A question. Each display makes new widgets, in which nothing is chosen yet."""

    def __init__(self, key, question, answer, choices, slider):
        if expected := misfit(answer.right, choices, slider):
            given = f"answer={answer.right!r}, choices={choices!r}, slider={slider!r}"
            raise ValueError(f"predict: given {given}: expected {expected}")
        self.key = key
        self.question = question
        self.answer = answer
        self.choices = choices
        self.slider = slider

    def __repr__(self):
        return wrapped(*self.asked(), *self.shown_answer())

    def asked(self, given=None):
        """The question in Markdown, and each choice, with a mark at the one that is given."""
        span = ""
        if self.slider is not None:
            ends = {"low": spelled(self.slider[0]), "high": spelled(self.slider[1], self.answer.unit)}
            span = say(" (from {low} to {high})", **ends)
        choices = [f"{'○●'[choice == given]} {worded(choice, self.answer.unit)}" for choice in self.choices or ()]
        return [say("**Predict:** {question}", question=say(self.question.strip())) + span, *choices]

    def shown_answer(self):
        """The texts of the answer if all answers are shown: then there is no secret to keep."""
        return (right_one(self.answer), say(self.answer.because.strip())) if os.environ.get(ANSWERS) else ()

    def stored(self, given=None, *said):
        """The question as text and HTML, which a page without a kernel shows."""
        question, *choices = self.asked(given)
        lines = [*map(marked, paragraphs(question)), "<br>".join(map(marked, choices)), *map(marked, paragraphs(*said))]
        page = block(filter(None, lines), f'data-question="{self.key}"')
        return {"text/html": page, "text/plain": wrapped(question, *choices, *said)}

    def _ipython_display_(self):
        handle = DisplayHandle()
        told = self.shown_answer()
        bundle = self.stored(None, *told) if told else self.box(handle)._repr_mimebundle_() | self.stored()
        handle.display(bundle, raw=True)

    def box(self, handle=None):
        """New widgets: the question, the control, the button, and the place where the page says what was chosen.

        What is committed also replaces the output that `handle` displays, as HTML, so that it is saved with the
        notebook: a notebook that is opened again has no widgets.
        """
        control, read, prompt = self.control()
        beside = ipywidgets.Label(prompt, layout={"margin": "2px 12px"})
        reveal = ipywidgets.HTML()
        button = ipywidgets.Button(description=say("Commit"), disabled=True)
        given = None

        def choose(change):
            nonlocal given
            given = read(change["new"])
            beside.value = prompt if given is None else worded(given, self.answer.unit)
            button.disabled = given is None
            if control.disabled:  # typed before Enter, but it arrives later, because the kernel was busy
                commit()

        def commit(*_):
            if given is None:
                return
            said = self.committed(given)
            if handle:
                handle.update(self.stored(given, said), raw=True)
            control.disabled = True
            button.layout.display = "none"
            reveal.value = rich(said)

        control.observe(choose, "value")
        control.on_msg(lambda _, content, buffers: content.get("event") == "submit" and commit())  # Enter in the field
        button.on_click(commit)
        row = [control, button] if self.choices else [control, beside, button]
        row = ipywidgets.HBox(row, layout={"flex_flow": "row wrap"})
        return ipywidgets.VBox([ipywidgets.HTML(rich(self.asked()[0])), row, reveal])

    def committed(self, given):
        """Note an answer, and return what the page says at once: the verdict only if the result has been told."""
        verdict = self.verdict(given)
        VERDICTS[self.key] = verdict
        progress.note_prediction(
            self.key, not verdict.startswith(say("**Not so.**")), verdict
        )  # "Close" counts as right
        if self.key in TOLD:
            return verdict
        return say("You said {given}. Run the next cell.", given=worded(given, self.answer.unit))

    def control(self):
        """The input widget, a function from its value to an answer or None, and the text beside the widget."""
        unit = self.answer.unit
        if self.choices is not None:
            options = [(worded(choice, unit).replace("`", ""), choice) for choice in self.choices]
            radio = ipywidgets.RadioButtons(options=options, value=None, layout={"width": "100%"})
            return radio, lambda value: value, ""
        if self.slider is not None:
            layout = {"margin": "2px 2px 2px 10px"}  # otherwise the handle is cut off at the left end
            slider = ipywidgets.SelectionSlider(options=positions(*self.slider), readout=False, layout=layout)
            return slider, lambda value: value, say("move the slider")
        return ipywidgets.Text(placeholder=say("a number")), lambda text: parsed(text, unit), unit

    def verdict(self, given):
        unit = self.answer.unit
        said = say("You said {given}", given=worded(given, unit))
        not_so = say("**Not so.**")
        if self.choices is not None:
            return (
                say("**Right.**") if given == self.answer.right else say("{not_so} {said}.", not_so=not_so, said=said)
            )
        right = self.nearest(given)
        if math.isclose(given, right, rel_tol=1e-9, abs_tol=1e-15):
            return say("**Right.**")
        if self.slider and given == min(positions(*self.slider), key=lambda p: abs(p - self.nearest(p))):
            return say("**Right:** no position of the slider is nearer. {said}.", said=said)
        low, high = sorted((given, right))
        far = spelled(high - low, unit)
        if low > 0 and high >= 2 * low:
            far = say("a factor of {factor}", factor=spelled(float(f"{high / low:.3g}")))
        judged = say("**Close.**") if 0 < high < 1.5 * low else not_so
        if given > right:
            return say("{judged} {said}, {far} too high.", judged=judged, said=said, far=far)
        return say("{judged} {said}, {far} too low.", judged=judged, said=said, far=far)

    def nearest(self, given):
        """The right answer; if it is a range, the number in it that is nearest to the given one."""
        right = self.answer.right
        return sorted((given, *right))[1] if isinstance(right, tuple) else right
