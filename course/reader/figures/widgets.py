"""Pictures with controls: one image that is redrawn in place when a slider moves."""

import asyncio
import base64
import contextlib
import html

from ipywidgets import HTML, Image, SelectionSlider, VBox
from traitlets import Unicode

from course.reader.words import spelled


def explore(draw, text, start=(), **controls):
    """Show the picture that `draw(**values)` returns, with a slider for each control that redraws it.

    Each control is a sequence of values. It starts at the first, or at `dict(start)[control]`. `draw` returns a
    figures.Picture, which may depend only on the values, because pictures are cached. `text` is shown if there are no
    widgets. It is compared between runs, so it must contain no measured number. Raises ValueError for a control
    without values, or a start that is not one of its control's values.
    """
    return Explorer(draw, text, dict(start), controls)


class Explorer:
    """A picture and its sliders. Each display creates new widgets, with the sliders at their start."""

    def __init__(self, draw, text, start, controls):
        self.draw, self.text, self.controls = draw, text, {name: list(values) for name, values in controls.items()}
        for name, value in start.items():
            if value not in self.controls.get(name, ()):
                raise ValueError(f"explore: start has {name}={value!r}, and the controls are {self.controls}")
        if not all(self.controls.values()):
            raise ValueError(f"explore: each control needs values, and the controls are {self.controls}")
        self.start = {name: start.get(name, values[0]) for name, values in self.controls.items()}
        self.first = draw(**self.start)

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        still = base64.b64encode(self.first.png).decode()
        return self.box()._repr_mimebundle_() | {"image/png": still, "text/plain": self.text}

    def slider(self, name, values):
        look = {"layout": {"width": "480px"}, "style": {"description_width": f"{max(map(len, self.controls)) + 2}ch"}}
        options = [(spelled(value), value) for value in values]
        said = name.replace("_", " ")
        return SelectionSlider(options=options, value=self.start[name], description=said, **look)

    def box(self):
        """New widgets: the sliders, the image, and the sentence that describes it."""
        image, line = Titled(format="png", layout={"align_self": "flex-start", "margin": "2px 0"}), HTML()
        sliders = [self.slider(name, values) for name, values in self.controls.items()]

        def shown():
            return tuple(slider.index for slider in sliders)

        drawn = {shown(): self.first}

        def picture_at(key):
            if key not in drawn:
                chosen = zip(self.controls.items(), key, strict=True)
                drawn[key] = self.draw(**{name: values[k] for (name, values), k in chosen})
            return drawn[key]

        def redraw(change=None):
            # While this runs, the browser holds back all but the newest value of a slider, so no events queue up.
            key = shown()
            try:
                picture = picture_at(key)
                with image.hold_sync():  # one message
                    image.value = picture.live
                    image.tooltip = picture.text
                line.value = spoken(picture.text)
            except Exception as error:  # the old picture stays
                line.value = spoken(f"{type(error).__name__}: {error}")
            if change:  # at first, the kernel may have other cells to run
                in_idle_time(draw_ahead, key, presses(sliders, change))

        def draw_ahead(key, keys):
            """Draw the pictures that the next key press may need, one at a time, so that it is answered at once."""
            if keys and key == shown():
                with contextlib.suppress(Exception):  # an error is shown when the reader gets there
                    picture_at(keys[0])
                in_idle_time(draw_ahead, key, keys[1:])

        redraw()
        for slider in sliders:
            slider.observe(redraw, "index")
        return VBox([*sliders, image, line])


def presses(sliders, last):
    """The indices of all sliders after one press of an arrow key, for each key; first, that which repeats the last."""
    at = [slider.index for slider in sliders]
    moves = [(slider, step) for slider in sliders for step in (1, -1) if 0 <= slider.index + step < len(slider.options)]
    moves.sort(key=lambda move: move != (last["owner"], 1 if last["new"] > last["old"] else -1))
    return [tuple(k + step * (s is slider) for s, k in zip(sliders, at, strict=True)) for slider, step in moves]


def in_idle_time(call, *args):
    """Call this when the kernel is idle. Without a running event loop there is no reader, and nothing is called."""
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop().call_later(0.02, call, *args)


def spoken(text):
    """HTML of text that screen readers announce when it changes, as soon as they are idle.

    It has room for three lines, because a change of its height would move and repaint all that is below.
    """
    return f'<div role="status" style="line-height: 1.5; min-height: 4.5em">{html.escape(text)}</div>'


class Titled(Image):
    """An image whose tooltip is its name for screen readers. The browser side also requires a description."""

    description = Unicode().tag(sync=True)
