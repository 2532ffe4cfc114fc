"""The picture class of the course, its colours and sizes, and helpers that all figures share."""

import base64
import functools
import io
from pathlib import Path

import matplotlib.font_manager
import matplotlib.style
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from matplotlib.ticker import LogLocator, NullLocator
from PIL import Image

from course.reader.language import say, spoken

STYLE = Path(__file__).with_name("course.mplstyle")
# Noto Sans SC, with the signs of the Chinese figures alone: `course.author.font` makes it
FONTS = {weight: Path(__file__).parent / "fonts" / f"NotoSansSC-{weight}.ttf" for weight in ("regular", "bold")}
LEVELS = ("hardware", "kernels", "low_level", "mid_level", "high_level")
HUES = ("#D55E00", "#E69F00", "#CC79A7", "#56B4E9", "#009E73")  # one a level, the same everywhere (Okabe and Ito, 2008)
DATA = "#0072B2"
MODEL = "#D55E00"
GREY = "#666666"
READABLE = 4.5  # the least contrast of text (WCAG 2.2, 1.4.3)


def contrast(one, other):
    """The contrast of two colours, from 1 to 21, by WCAG 2.2's relative luminance."""
    bright, dark = sorted(map(luminance, (one, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(color):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@functools.cache
def ink(hue):
    """This hue for text on white: darkened until its contrast is READABLE."""
    parts = np.array(to_rgb(hue))
    while contrast(parts, "white") < READABLE:
        parts = 0.98 * parts
    return to_hex(parts)


def tint(hue):
    """This hue as a background for black text. The text is also readable in a dark theme, which inverts the colours."""
    return to_hex(0.5 + 0.5 * np.array(to_rgb(hue)))


class Picture:
    """A figure as a PNG, with a sentence for readers who cannot see it.

    `live` has all colours and is encoded quickly, because a reader waits. `png` is for storage: at most 256 colours.
    """

    def __init__(self, figure, text):
        canvas = FigureCanvasAgg(figure)
        quick = io.BytesIO()
        canvas.draw()
        Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").save(quick, "png", compress_level=1)
        self.live = quick.getvalue()
        self.text = text

    @functools.cached_property
    def png(self):
        small = io.BytesIO()
        Image.open(io.BytesIO(self.live)).quantize(256, dither=Image.Dither.NONE).save(small, "png")
        return small.getvalue()

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.text}


def style():
    """Return matplotlib's settings for a figure: for a Chinese reader with a font that has the signs."""
    return [STYLE, {"font.family": ["DejaVu Sans", chinese_font()]}] if spoken() else STYLE


@functools.cache
def chinese_font():
    """Make the course's Chinese font known to matplotlib, and return its name."""
    for path in FONTS.values():
        matplotlib.font_manager.fontManager.addfont(path)
    return matplotlib.font_manager.FontProperties(fname=FONTS["regular"]).get_name()


def styled(width=7.0, height=3.2, **margins):
    """Decorate a function that fills a new figure and returns its sentence, so that it returns a Picture in our style.

    With margins (`subplots_adjust`) the axes have their final place before drawing starts, which is faster."""

    def decorate(draw):
        @functools.wraps(draw)
        def picture(*args, **kwargs):
            with matplotlib.style.context(style()):
                figure = Figure((width, height), layout="none" if margins else None)
                if margins:
                    figure.subplots_adjust(**margins)
                return Picture(figure, draw(figure, *args, **kwargs))

        return picture

    return decorate


@styled(height=2.7, left=0.006, right=0.994, bottom=0.015, top=0.985)
def you_are_here(figure, level):
    """The five levels as a house, with a mark at the level of this notebook (1 to 5)."""
    ideas = (
        say("a program is loads, arithmetic and stores"),
        say("an op is a name; a kernel is its program"),
        say("every op passes one door"),
        say("a part owns its variables"),
        say("a model owns its training loop"),
    )
    house = say("ground"), say("clay"), say("bricks"), say("walls"), say("house")
    axes = figure.subplots()
    axes.set(xlim=(-0.4, 7.3), ylim=(-0.1, 5.8))
    axes.axis("off")
    for i, (name, stuff, idea, hue) in enumerate(zip(LEVELS, house, ideas, HUES, strict=True)):
        here = i + 1 == level
        alpha = 0.6 if i + 1 <= level else 0.2  # dark text is readable on both
        left, right = (-0.1, 2.5) if i == 0 else (0.2, 2.2)
        if i == 4:
            axes.add_patch(Polygon([(0.0, i), (1.2, i + 1.5), (2.4, i)], color=hue, alpha=alpha, lw=0))
        else:
            axes.add_patch(Rectangle((left, i), right - left, 0.94, color=hue, alpha=alpha, lw=0))
        axes.text(1.2, i + 0.42, stuff, ha="center", va="center", color="black" if i + 1 <= level else "#555555")
        weight = "bold" if here else "normal"
        axes.text(2.75, i + 0.42, f"{i + 1}  {name}", va="center", weight=weight)
        axes.text(4.15, i + 0.42, idea, va="center", color="#222222" if here else GREY, size=8.5)
    axes.plot(-0.27, level - 0.58, marker=">", color="black", markersize=9)
    here = {"level": level, "name": LEVELS[level - 1], "stuff": house[level - 1]}
    return say("You are here: level {level} of 5, {name} ({stuff}).", **here)


def short(x):
    """x as text without an exponent: a whole number from ten on, otherwise two significant digits."""
    return f"{x:,.0f}" if x >= 9.95 else np.format_float_positional(x, 2, fractional=False, trim="-")


def binary(nbytes):
    """A number of bytes as text, in KiB or MiB."""
    return f"{nbytes / 2**20:g} MiB" if nbytes >= 2**20 else f"{nbytes / 2**10:g} KiB"


def plain(axis, multiples=(1,)):
    """Set the ticks of a log axis to these multiples of each power of ten, written without exponents."""
    axis.set_major_locator(LogLocator(subs=multiples))
    axis.set_major_formatter(lambda x, _: short(x))
    axis.set_minor_locator(NullLocator())


BLANK = dict(color="white", pad=0.5)  # the background of text that a line may cross
