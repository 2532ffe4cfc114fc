"""Every picture of the course. A picture settles a claim: its title says what it shows, its text says it again in words."""

import base64
import ctypes
import functools
import io
import itertools
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import matplotlib.style
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon, Rectangle
from matplotlib.path import Path as Curve
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import Affine2D, Bbox
from PIL import Image

from course.figures import drawing

STYLE = Path(__file__).with_name("course.mplstyle")
LEVELS = ("hardware", "kernels", "low_level", "mid_level", "high_level")
HOUSE = ("ground", "clay", "bricks", "walls", "house")
HUES = ("#D55E00", "#E69F00", "#CC79A7", "#56B4E9", "#009E73")  # one a level, the same everywhere (Okabe and Ito, 2008)
DATA, MODEL, GREY = "#0072B2", "#D55E00", "#666666"
READABLE = 4.5  # the contrast that words need (WCAG 2.2, 1.4.3)


def contrast(one, other):
    """The contrast of two colours, from 1 to 21, by WCAG 2.2's relative luminance."""
    bright, dark = sorted(map(luminance, (one, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(color):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@functools.cache
def ink(hue):
    """This hue for words on white: as dark as it must be to be read."""
    parts = np.array(to_rgb(hue))
    while contrast(parts, "white") < READABLE:
        parts = 0.98 * parts
    return to_hex(parts)


def tint(hue):
    """This hue for what black words stand on: they can be read there, and in a dark theme, which inverts the picture."""
    return to_hex(0.5 + 0.5 * np.array(to_rgb(hue)))


class Picture:
    """A figure as a PNG, with a sentence for readers who cannot see it.

    `live` holds every colour and is made at once, while a reader waits; `png`, to be stored, has at most 256 colours.
    """

    def __init__(self, figure, text):
        canvas, quick = FigureCanvasAgg(figure), io.BytesIO()
        canvas.draw()
        Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").save(quick, "png", compress_level=1)
        self.live, self.text = quick.getvalue(), text

    @functools.cached_property
    def png(self):
        small = io.BytesIO()
        Image.open(io.BytesIO(self.live)).quantize(256, dither=Image.Dither.NONE).save(small, "png")
        return small.getvalue()

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.text}


def styled(width=7.0, height=3.2, **margins):
    """Decorate a function that fills a new figure and returns its sentence: it gives back a Picture in the course's style.

    With margins (`subplots_adjust`) the axes have their place before anything is drawn, and drawing is faster."""

    def decorate(draw):
        @functools.wraps(draw)
        def picture(*args, **kwargs):
            with matplotlib.style.context(STYLE):
                figure = Figure((width, height), layout="none" if margins else None)
                if margins:
                    figure.subplots_adjust(**margins)
                return Picture(figure, draw(figure, *args, **kwargs))

        return picture

    return decorate


@styled(height=2.7)
def you_are_here(figure, level):
    """The house of five levels, with a mark at the level of this notebook."""
    ideas = (
        "a program is loads, arithmetic and stores",
        "an op is a name, a kernel a program for it",
        "every op passes one door",
        "a part owns its variables",
        "the training loop is owned too",
    )
    axes = figure.subplots()
    axes.set(xlim=(-0.4, 7.3), ylim=(-0.1, 5.8))
    axes.axis("off")
    for i, (name, stuff, idea, hue) in enumerate(zip(LEVELS, HOUSE, ideas, HUES, strict=True)):
        here = i + 1 == level
        alpha = 0.6 if i + 1 <= level else 0.2  # black words can be read on either
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
    return f"You are here: level {level} of 5, {LEVELS[level - 1]} ({HOUSE[level - 1]})."


@styled()
def scatter_inputs(figure, task):
    """y over each input."""
    for axes, column, name in zip(figure.subplots(1, task.x.shape[1], sharey=True), task.x.T, task.names, strict=True):
        axes.plot(column, task.y[:, 0], ".", color=DATA, markersize=4)
        axes.set_xlabel(name)
    figure.axes[0].set_ylabel("y")
    figure.suptitle(
        f"{task.title}: y rises with {task.names[0]} and falls with {task.names[1]}", weight="bold", size=11
    )
    return f"{task.title}: {len(task.x)} points, y over {' and y over '.join(task.names)}."


def r_squared(y, prediction):
    """The share of the variance of y that the prediction explains."""
    return 1.0 - float(((y - prediction) ** 2).sum() / ((y - y.mean()) ** 2).sum())


@styled()
def regression(figure, task, fit):
    """The losses beside the predictions on rows the training never saw."""
    left, right = figure.subplots(1, 2)
    loss_curve(left, fit.losses)
    predicted = fit.predict(task.x_test)
    low, high = min(task.y_test.min(), predicted.min()), max(task.y_test.max(), predicted.max())
    right.plot([low, high], [low, high], color=GREY, linewidth=1)
    right.plot(task.y_test[:, 0], predicted[:, 0], ".", color=MODEL)
    score = r_squared(task.y_test, predicted)
    right.set(xlabel="true y, test rows", ylabel="predicted y", title=f"{task.title}\ntest R² {score:.3f}")
    return (
        f"{task.title}: last loss {fit.losses[-1]:.4g} after {len(fit.losses)} steps; R² {score:.3f} on the test rows."
    )


def loss_curve(axes, losses, window=50, **style):
    """Losses on a log axis: each step faint, a running mean over it."""
    losses = np.asarray(losses, float)
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    axes.semilogy(losses, color=GREY, linewidth=0.3, alpha=0.5)
    axes.semilogy(np.arange(len(smooth)) + window / 2, smooth, **(dict(color=DATA) | style))
    axes.set(xlabel="step", ylabel="loss", title=f"the loss falls to {smooth[-1]:.3g} (mean of {window})")


BINARY = ("#0072B2", "#E69F00")  # y = 0, y = 1


def points(axes, x, y):
    """The points of both classes; the markers differ too."""
    for value, color, marker in zip((0, 1), BINARY, "o^", strict=True):
        chosen = x[y[:, 0] == value]
        axes.plot(*chosen.T, marker, color=color, markersize=2.5, alpha=0.6, markeredgewidth=0, label=f"y = {value}")


@styled(width=4.2, height=4)
def classes(figure, task):
    """The points of a two-dimensional classification."""
    axes = figure.subplots()
    points(axes, task.x, task.y)
    axes.set(xlabel=task.names[0], ylabel=task.names[1], title="no line parts the rings", aspect="equal")
    axes.legend(loc="upper right", markerscale=3)
    return f"{task.title}: {len(task.x)} points of two classes."


def accuracy(y, p):
    """The share of rows whose probability lies on the right side of one half."""
    return float(((p > 0.5) == (y > 0.5)).mean())


def best_radius(x, y):
    """The accuracy of the best rule "1 outside a circle of this radius" on these points."""
    outside = y[np.argsort(np.hypot(*x.T)), 0]
    right = np.cumsum(1 - outside) + outside.sum() - np.cumsum(outside)  # the first k points called 0, the others 1
    return max(float(right.max()), float(outside.sum())) / len(y)


@styled()
def classifier(figure, task, fit):
    """Losses beside the regions in which a net says 0 and 1."""
    left, right = figure.subplots(1, 2)
    loss_curve(left, fit.losses, window=200)
    side = np.linspace(-11, 11, 120)
    grid = np.stack([v.ravel() for v in np.meshgrid(side, side)], axis=1).astype(task.x.dtype)
    p = fit.predict(grid).reshape(120, 120)
    right.contourf(side, side, p, levels=[0, 0.5, 1], colors=BINARY, alpha=0.25)
    points(right, task.x_test, task.y_test)
    score, best = accuracy(task.y_test, fit.predict(task.x_test)), best_radius(task.x_test, task.y_test)
    right.set(xlabel=task.names[0], ylabel=task.names[1], aspect="equal")
    right.set_title(f"{score:.1%} of test points right\n(the best circle: {best:.1%})")
    return f"{task.title}: {score:.1%} of the test points are right; the best circle gets {best:.1%}."


@styled()
def confusion(figure, task, fit):
    """Losses beside the counts of right and wrong answers."""
    left, right = figure.subplots(1, 2)
    loss_curve(left, fit.losses)
    said, true = fit.predict(task.x_test)[:, 0] > 0.5, task.y_test[:, 0] > 0.5
    counts = np.array([[int(((true == t) & (said == s)).sum()) for s in (False, True)] for t in (False, True)])
    right.imshow(counts, cmap="Blues", vmin=0, vmax=counts.max() * 1.6)
    for (t, s), count in np.ndenumerate(counts):
        right.text(s, t, count, ha="center", va="center", size=14)
    right.set(xticks=(0, 1), xticklabels=("says female", "says male"), yticks=(0, 1))
    right.set_yticklabels(("is female", "is male"), rotation=90, va="center")
    right.spines[:].set_visible(False)
    score, baseline = accuracy(task.y_test, fit.predict(task.x_test)), max(true.mean(), 1 - true.mean())
    right.set_title(f"{score:.1%} of test rows right\n(the commoner sex: {baseline:.1%})")
    return f"{task.title}: {score:.1%} of the test rows are right; the commoner answer alone gets {baseline:.1%}."


@styled()
def parting(figure, gaps, kinks):
    """The largest distance between the weights of two runs, step by step, with the steps at which a relu disagrees."""
    axes = figure.subplots()
    axes.semilogy(gaps, color=DATA)
    if kinks:
        axes.semilogy(
            kinks,
            [gaps[s] for s in kinks],
            "v",
            color=MODEL,
            markersize=5,
            label="a relu sees + in one, - in the other",
        )
        axes.legend(loc="lower right")
    title = (
        "the runs part where a relu falls on two sides of zero" if kinks else "no relu fell on two sides of zero here"
    )
    axes.set(xlabel="step", ylabel="largest gap between weights", title=title)
    return "The gap between the weights of the float32 run and of the float64 run, over the steps."


@styled()
def five_curves(figure, fits):
    """The loss curves of {level: Fit}, one over the other: the widest lies beneath."""
    axes, (first, *rest) = figure.subplots(), fits.values()
    difference = max(float(np.abs(fit.losses - first.losses).max()) for fit in rest)
    for k, (name, fit) in enumerate(fits.items()):
        smooth = np.convolve(fit.losses, np.ones(200) / 200, "valid")
        axes.semilogy(smooth, color=HUES[k], linewidth=13 - 2.8 * k, label=name, solid_capstyle="butt")
    plain(axes.yaxis, (1, 2, 3, 5))
    axes.legend(loc="upper right")
    axes.set(xlabel="step", ylabel="loss", title=f"{len(fits)} levels, one curve: maximum difference {difference:g}")
    return f"The loss curves of {', '.join(fits)} lie on each other: maximum difference {difference:g}."


@styled()
def by_heart(figure, history, best, patience):
    """Losses on seen and unseen rows over the epochs, with the best epoch and the one at which a patient listener stops."""
    axes, stop = figure.subplots(), best + patience
    for name, colour, label in (("loss", DATA, "penguins it learns from"), ("val_loss", MODEL, "held-out penguins")):
        losses = history[name]
        axes.semilogy(range(1, len(losses) + 1), losses, color=colour)
        axes.text(len(losses) + 1, losses[-1], label, color=ink(colour), va="center")
    axes.plot(best + 1, history["val_loss"][best], "o", color=MODEL)
    for epoch, what in ((best, "best"), (stop, "stop")):
        axes.axvline(epoch + 1, color=GREY, linewidth=1, zorder=0)
        axes.text(epoch + 1.5, 0.98, what, color=GREY, va="top", transform=axes.get_xaxis_transform())
    found = f"the loss on held-out penguins is lowest after epoch {best + 1}"
    plain(axes.yaxis, (1, 2, 5))
    axes.set(xlabel="epoch", ylabel="loss", title=found, xlim=(1, None))
    return f"The loss on seen penguins falls for {len(losses)} epochs; {found}. Training stops at epoch {stop + 1}."


def short(x):
    """x as a whole number from ten on, with two significant digits below, and never with an exponent."""
    return f"{x:,.0f}" if x >= 9.95 else np.format_float_positional(x, 2, fractional=False, trim="-")


def binary(nbytes):
    """A number of bytes in KiB or MiB."""
    return f"{nbytes / 2**20:g} MiB" if nbytes >= 2**20 else f"{nbytes / 2**10:g} KiB"


def plain(axis, multiples=(1,)):
    """Ticks of a log axis at these multiples of each power of ten, written without exponents."""
    axis.set_major_locator(LogLocator(subs=multiples))
    axis.set_major_formatter(lambda x, _: short(x))
    axis.set_minor_locator(NullLocator())


BLANK = dict(color="white", pad=0.5)  # behind words that a line may cross


def host_caches():
    """The bytes of the data caches that a core sees, {"L1": …, "L2": …}, as far as the system tells."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):  # Linux
        try:
            kind, level, size = ((folder / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:  # some systems list a cache without its size
            continue
        if kind != "Instruction":
            found[f"L{level}"] = int(size.removesuffix("K")) * 1024
    if sys.platform == "darwin":
        for level, name in (("L1", b"l1dcachesize"), ("L2", b"l2cachesize"), ("L3", b"l3cachesize")):
            for where in (b"hw.", b"hw.perflevel0."):  # the second, of the fast cores, overrides
                size, length = ctypes.c_int64(0), ctypes.c_size_t(8)
                ask = where + name, ctypes.byref(size), ctypes.byref(length), None, ctypes.c_size_t(0)
                if ctypes.CDLL(None).sysctlbyname(*ask) == 0 and size.value:
                    found[level] = size.value
    return found


def over_sizes(axes, sizes, values, caches, marked, unit, title):
    """Values over the size of the data in bytes, two of them labelled, with a thin line at the size of each cache."""
    axes.loglog(sizes, values, "o-", color=DATA, markersize=4)
    ticks = [2**k for k in range(12, 40, 3) if sizes[0] <= 2**k <= sizes[-1]]
    axes.set_xticks(ticks, map(binary, ticks))
    axes.set_xticks([], minor=True)
    axes.set(xlabel="size of the data", ylim=(min(values) / 2, max(values) * 2))
    axes.set_title(title, pad=28 if caches else 6)
    plain(axes.yaxis, (1, 2, 5))
    for k, place in zip(marked, (dict(xytext=(0, 6), ha="center"), dict(xytext=(7, 0), va="center")), strict=True):
        text = f"{short(values[k])} {unit}"
        axes.annotate(text, (sizes[k], values[k]), textcoords="offset points", bbox=BLANK, **place)
    last, row = 0, 1
    for size, name in sorted((size, name) for name, size in caches.items() if sizes[0] <= size <= sizes[-1]):
        axes.axvline(size, color=GREY, linewidth=0.8, zorder=0)
        row = 3 - row if size < 4 * last else 1  # near neighbours stand in two rows: an empty line beneath lifts one
        text = f"{name} {binary(size)}" + "\n" * (row - 1)
        axes.text(size, 1.02, text, ha="center", size=9, color=GREY, transform=axes.get_xaxis_transform())
        last = size


def farthest(sizes, caches):
    """Where the largest data lay: in memory, if no cache holds half of it; without that knowledge only its size is said."""
    return "memory" if caches and sizes[-1] >= 2 * max(caches.values()) else f"{binary(sizes[-1])} of data"


@styled()
def staircase(figure, sizes, nanoseconds, caches):
    """Nanoseconds of one load that waits for the load before, over the bytes of the data; caches {name: bytes}."""
    axes = figure.subplots()
    near, far = short(nanoseconds[0]), short(nanoseconds[-1])
    finding = f"a load takes {near} ns from the nearest cache and {far} ns from {farthest(sizes, caches)}"
    over_sizes(axes, sizes, nanoseconds, caches, (0, -1), "ns", finding)
    axes.set_ylabel("ns a load")
    return f"Latency: {finding}."


@styled()
def bandwidths(figure, sizes, bytes_per_second, caches):
    """Bytes a second of a program that goes through its data in order, over their size; caches {name: bytes}."""
    axes, speeds = figure.subplots(), np.asarray(bytes_per_second) / 1e9
    best = int(speeds.argmax())
    near, far = short(speeds[best]), short(speeds[-1])
    finding = f"{near} GB/s from {binary(sizes[best])} of data, {far} GB/s from {farthest(sizes, caches)}"
    over_sizes(axes, sizes, speeds, caches, (best, -1), "GB/s", finding)
    axes.set_ylabel("GB/s")
    return f"Bandwidth: {finding}."


@styled(height=3.0)
def accumulators(figure, counts, flops_per_second):
    """float32 operations a second over the number of independent sums that they are added to; the first count is 1."""
    axes, speeds = figure.subplots(), np.asarray(flops_per_second) / 1e9
    plateau = speeds.max()
    k = int((speeds >= 0.95 * plateau).argmax())
    axes.plot(counts, speeds, "o-", color=DATA, markersize=4)
    axes.axhline(plateau, color=GREY, linewidth=0.8, zorder=0)
    axes.text(counts[0], plateau * 1.02, f"plateau: {short(plateau)} billion operations/s", va="bottom")
    axes.plot(counts[k], speeds[k], "D", color=MODEL, markersize=8)
    share = f"{short(100 * speeds[k] / plateau)} % of it with {counts[k]}"
    axes.annotate(share, (counts[k], speeds[k]), (8, -14), textcoords="offset points")
    axes.set(xlabel="independent sums", ylabel="billions of operations/s", ylim=(0, 1.2 * plateau), xticks=counts)
    finding = f"one sum keeps the core waiting: {counts[k]} sums are {short(speeds[k] / speeds[0])} times as fast"
    if k == 0:
        finding = "one sum keeps the core busy: more of them gain less than 6 %"
    axes.set_title(finding)
    best = f"the plateau is {short(plateau)} billion operations/s, 95 % of it reached with {counts[k]}"
    return f"Arithmetic: {finding}; {best}."


def roofs(axes, peak, bandwidth, x, y):
    """A machine's roofs over operations per byte (range x), in billions a second (range y); returns the flat one's box."""
    ridge, slope = peak / bandwidth, 1.1 * bandwidth / 1e9  # the words stand a tenth above their roof
    axes.loglog([x[0], ridge, x[1]], np.array([bandwidth * x[0], peak, peak]) / 1e9, color="#C4C4C4", linewidth=4)
    start = 1.2 * max(x[0], y[0] / slope)
    turned = dict(rotation=np.degrees(np.arctan(slope)), rotation_mode="anchor", transform_rotates_text=True)
    axes.set(xlim=x, ylim=y, xlabel="operations per byte", ylabel="billions of operations/s")
    plain(axes.xaxis)
    plain(axes.yaxis)
    axes.text(start, slope * start, f"memory: {short(bandwidth / 1e9)} GB/s", size=9, va="bottom", **turned)
    text = f"peak: {short(peak / 1e9)} billion operations/s"
    words = axes.text(x[1], 1.1 * peak / 1e9, text, size=9, va="bottom", ha="right")
    corner = axes.transData.transform((ridge, peak / 1e9))
    return Bbox.union([words.get_window_extent(), Bbox([corner - 2, corner + 2])])


def reached(share, in_memory):
    """A program's share of its roof in words; far above the roof of memory, its data cannot have come from there."""
    if in_memory and share > 1.5:
        return f"{short(share)} times the memory roof:\nits data is in a cache"
    return f"{short(100 * share)} % of its roof"


def drop(axes, x, y, roof):
    """A program's point at y operations a second, with a thin line to its roof."""
    axes.plot([x, x], [y / 1e9, roof / 1e9], color=GREY, linewidth=0.8)
    axes.plot(x, y / 1e9, "o", color=DATA)


def label(axes, text, point, taken):
    """Write text at the first place beside a data point where it meets fewest of the boxes `taken`, and add its own."""
    note = axes.annotate(text, point, (0, 0), textcoords="offset points", va="center", size=9, bbox=BLANK)

    def place(side):
        note.xyann = side
        note.set_ha("left" if side[0] > 0 else "right")
        return note.get_window_extent()

    def cost(side):
        box = place(side)
        inside = axes.bbox.x0 < box.x0 and box.x1 < axes.bbox.x1 and axes.bbox.y0 < box.y0 and box.y1 < axes.bbox.y1
        return box.count_overlaps(taken) + (not inside)

    side = min([(x, y) for x in (9, -9) for y in (0, 14, -14, 28, -28, 42, -42)], key=cost)
    taken.append(place(side))
    if side[1]:
        line = dict(arrowstyle="-", color=GREY, linewidth=0.6, shrinkA=0, shrinkB=3)
        axes.annotate("", point, side, textcoords="offset points", arrowprops=line)


@styled(height=3.4, left=0.13, right=0.965, bottom=0.15, top=0.91)
def roofline(figure, peak, bandwidth, points):
    """The least time as two roofs (Williams et al., 2009), and programs [(name, flops, bytes, seconds)] beneath them."""
    axes, ridge = figure.subplots(), peak / bandwidth
    xs, ys = zip(*((flops / nbytes, flops / seconds) for _, flops, nbytes, seconds in points), strict=True)
    x_range = min(*xs, ridge) / 16, max(*xs, ridge) * 60
    y_range = min(*ys, bandwidth * x_range[0]) * 0.5e-9, max(*ys, peak) * 3e-9
    taken, words = [roofs(axes, peak, bandwidth, x_range, y_range)], []
    for (name, *_), x, y in zip(points, xs, ys, strict=True):
        roof = min(peak, x * bandwidth)
        drop(axes, x, y, roof)
        center = axes.transData.transform((x, y / 1e9))
        taken.append(Bbox([center - 4, center + 4]))
        words.append((x, y / 1e9, name, reached(y / roof, x < ridge)))
    for x, y, name, share in sorted(words):
        label(axes, f"{name}: {share}", (x, y), taken)
    finding = f"below {short(ridge)} operations per byte, memory sets the limit"
    axes.set_title(finding)
    return f"Roofline: {finding}; {'; '.join(f'{name}: {share}' for _, _, name, share in words)}.".replace("\n", " ")


BATCHES, LAUNCHES = (1, 100_000), (0.001, 100)  # the ranges of the sliders of step_cost


@styled(height=3.0, left=0.13, right=0.965, bottom=0.23, top=0.9, wspace=0.38)
def step_cost(figure, peak, bandwidth, launch_time, flops, nbytes, batch, launches, name="DNN"):
    """The predicted seconds of a step, launches · launch_time + max(batch · flops / peak, batch · nbytes / bandwidth)."""
    row = dict(arithmetic=flops / peak, memory=nbytes / bandwidth)
    parts = dict(launches=launches * launch_time) | {part: batch * seconds for part, seconds in row.items()}
    floor, decides = batch * max(row.values()), max(parts, key=parts.get)
    total = parts["launches"] + floor
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))

    x, ridge, slowest = flops / nbytes, peak / bandwidth, flops / (LAUNCHES[1] * launch_time + max(row.values()))
    limits = (min(x, ridge) / 100, max(x, ridge) * 60), (min(slowest, peak / 30) / 3e9, peak * 5e-9)
    speed, share = batch * flops / total, f"{short(100 * floor / total)} % of its roof"
    roofs(left, peak, bandwidth, *limits)
    drop(left, x, speed, batch * flops / floor)
    left.annotate(share, (x, speed / 1e9), (8, -3), textcoords="offset points", va="top", size=9)

    hidden = min(row, key=row.get)
    colors = [DATA if part == decides else "#DDDDDD" if part == hidden else GREY for part in parts]
    bars = right.barh(list(parts), [100 * v / total for v in parts.values()], color=colors)
    right.bar_label(bars, [f"{short(1e6 * v)} µs" for v in parts.values()], padding=3)
    right.set(xlim=(0, 150), xticks=(0, 50, 100), xlabel="% of the step; only the longer\nof the lower two counts")
    right.invert_yaxis()
    finding = f"{short(1e6 * total)} µs a step, most of it {decides}"  # one of two parts is always half of it or more
    left.set_title(f"{name}: {finding}")
    times = ", ".join(f"{part} {short(1e6 * seconds)} µs" for part, seconds in parts.items())
    return f"{name}, {batch:,} rows and {launches:g} launches a step: predicted {finding} ({times}); {share}."


@styled(height=2.6)
def ladder(figure, shares):
    """Speeds as shares of the peak, {name: share}, slowest first."""
    axes, names = figure.subplots(), list(shares)
    values = [100 * share for share in shares.values()]
    axes.plot(values, names, "o", color=DATA)
    for name, value in zip(names, values, strict=True):
        axes.annotate(f"{short(value)} %", (value, name), xytext=(8, 0), textcoords="offset points", va="center")
    axes.axvline(100, color=GREY, linewidth=1)
    axes.set(xscale="log", xlabel="% of one core's peak (the line)", xlim=(0.5 * min(values), 400))
    axes.invert_yaxis()
    plain(axes.xaxis)
    finding = f"512 x 512 in float32: from {short(values[0])} % of the peak to {short(values[-1])} %"
    axes.set_title(finding)
    return (
        f"The matrix product: {finding} ({', '.join(f'{name} {100 * share:.2g} %' for name, share in shares.items())})."
    )


MATRICES = dict(x="ik", w="kj", out="ij")  # what out[i, j] += x[i, k] * w[k, j] touches
ORDERS = ("ikj", "kij", "ijk", "jik", "kji", "jki")  # of its three loops, outermost first: from few loads to many
SIDE, LINE, LINES = 8, 4, 6  # numbers in a row of each matrix, numbers in a cache line, lines in the cache


@functools.cache
def cache_loads(order, n=SIDE, line=LINE, lines=LINES):
    """How many cache lines a matrix product has loaded after each step of its loops, and which ones the cache holds then.

    Rows of n numbers lie in lines of `line`. The cache has room for `lines`, anywhere in it, and drops the one untouched for
    longest. Returns loads[n³ + 1, 3], so far for x, w and out, and n³ + 1 lists of lines (matrix, row, column // line), the
    last touched last."""
    missed, held = np.zeros((n**3 + 1, 3), int), [[]]
    for step, at in enumerate(itertools.product(range(n), repeat=3), 1):
        at, cache = dict(zip(order, at, strict=True)), held[-1]
        for m, (row, column) in enumerate(MATRICES.values()):
            touched = m, at[row], at[column] // line
            missed[step, m] = touched not in cache
            cache = [*(other for other in cache if other != touched), touched][-lines:]
        held.append(cache)
    return missed.cumsum(axis=0), held


COLD, HELD, LOADED = "#EBEBEB", "#9CCBE8", "#E69F00"  # a cache line: in memory only, in the cache too, loaded just now
CORNERS = dict(x=(0, 10.0), w=(10.4, 0), out=(10.4, 10.0))  # in numbers: a row of x lies beside its row of out, w above


def tile(x, y, width=LINE):
    """The corners of a rectangle of height 1 with a little room around it."""
    return [(x + 0.07, y + 0.07), (x + width - 0.07, y + 0.07), (x + width - 0.07, y + 0.93), (x + 0.07, y + 0.93)]


def three_matrices(axes, at, held, new):
    """Every cache line of x, w and out as a tile with a dot for each number; the numbers at these indices are marked."""
    tiles, states, dots = [tile(-1.5, 3.95, 1.3), tile(-1.5, 5.15, 1.3)], [1, 2], []  # a legend comes first
    reads, writes = [(-1.15, 6.85)], [(-0.55, 6.85)]
    for m, (name, (row, column)) in enumerate(MATRICES.items()):
        left, top = CORNERS[name]
        for y, place in np.ndindex(SIDE, SIDE // LINE):
            tiles.append(tile(left + LINE * place, top + y))
            states.append(((m, y, place) in held) + ((m, y, place) in new))
            dots += [(left + LINE * place + k + 0.5, top + y + 0.5) for k in range(LINE)]
        x, y = left + at.get(column, 3.5) + 0.5, top + at.get(row, 3.5) + 0.5
        axes.text(left - 0.2, y, f"{row} = {at[row]}" if at else row, size=9, ha="right", va="center")
        axes.text(x, top - 0.2, f"{column} = {at[column]}" if at else column, size=9, ha="center")
        (writes if name == "out" else reads).extend([(x, y)] * bool(at))
    colors, edges = np.array([COLD, HELD, LOADED])[states], np.array(["none", "none", "black"])[states]
    axes.add_collection(PolyCollection(tiles, facecolors=colors, edgecolors=edges, linewidths=1.4, clip_on=False))
    axes.plot(*np.transpose(dots), "o", color="#777777", markersize=1.6, markeredgewidth=0)
    for places, shape in ((reads, "o"), (writes, "D")):
        axes.plot(*np.transpose(places), shape, color="black", markersize=5, clip_on=False)
    legend = f"in the cache: {LINES} lines\nloaded now\nread, written now"
    axes.text(0.1, 3.85, legend, size=9, va="top", linespacing=1.66)


def loads_so_far(axes, order, step):
    """The loads of this order up to now, and those of the other orders in grey."""
    for rank, other in enumerate(ORDERS):
        total, mine = cache_loads(other)[0].sum(axis=1), other == order
        axes.plot(total, color=DATA if mine else "#BBBBBB", linewidth=0.9, zorder=3 if mine else 2)
        look = dict(color=DATA, weight="bold") if mine else dict(color="#666666")
        y = total[-1] + (10 if rank % 2 else -10)  # neighbours make room for each other
        axes.text(SIDE**3 + 32, y, f"{other} {total[-1]:,}", size=9, va="center", **look)
        if mine:
            axes.plot(total[: step + 1], color=DATA, linewidth=2.6, zorder=4, solid_capstyle="round")
            axes.plot(step, total[step], "o", color=DATA, markersize=7, zorder=5, clip_on=False)
    axes.set(xlim=(0, SIDE**3), ylim=(0, 1120), xticks=(0, 256, 512), yticks=(0, 500, 1000), xlabel="steps")
    axes.set_title("lines loaded", weight="normal", size=10)


@styled(height=4.5, left=0.068, right=0.885, bottom=0.12, top=0.84, wspace=0.22)
def loop_order(figure, order, step):
    """A matrix product after `step` steps of its loops: what it touched, what its cache holds, what it has loaded."""
    (loads, held), inner = cache_loads(order), order[-1]
    at = dict(zip(order, map(int, np.unravel_index(step - 1, (SIDE,) * 3)), strict=True)) if step else {}
    new = [line for line in held[step][-3:] if loads[step, line[0]] > loads[step - 1, line[0]]]
    left, right = figure.subplots(1, 2, width_ratios=(2.5, 1))
    left.set(xlim=(0, 18.4), ylim=(18, 0))
    left.axis("off")
    nest = [f"{'  ' * depth}for {letter} in range({SIDE}):" for depth, letter in enumerate(order)]
    nest = "\n".join([*nest, "      out[i,j] += x[i,k]*w[k,j]"])
    left.text(-1.5, -1.3, nest, va="top", family="monospace", size=7.5, linespacing=1.5)
    three_matrices(left, at, held[step], new)
    counts = dict(zip(MATRICES, loads[step], strict=True))
    for name, (x, y) in CORNERS.items():
        y = -1.25 if name == "w" else y + SIDE + 0.95
        left.text(x, y, f"{name} ({SIDE}, {SIDE}): {counts[name]} loads", weight="bold", size=9)
    loads_so_far(right, order, step)

    along, down = (" and ".join(name for name, axes in MATRICES.items() if axes[k] == inner) for k in (1, 0))
    finding = f"{loads[step].sum():,} lines loaded by step {step}"
    title = f"{order}: {finding}; the inner loop goes {f'down {down}' if down else 'along rows'}"
    figure.suptitle(title, x=0.012, ha="left", weight="bold", size=11)
    ways = " and ".join(f"{way} {names}" for way, names in (("along", along), ("down", down)) if names)
    return (
        f"{order}: {finding} ({', '.join(f'{name} {count}' for name, count in counts.items())}). "
        f"The cache has room for {LINES} lines of {LINE} numbers. The inner loop, over {inner}, goes {ways}. "
        f"By step {SIDE**3} it is {loads[-1].sum():,}."
    )


NUDGE = 1e-6  # what a leaf is raised and lowered by


class Walk(NamedTuple):
    """A program of single numbers: its tape, the gradients of each step of the way back, and what nudges do to it."""

    records: list  # [(op, names of its inputs, name of its output, slope of the output over each input)]
    values: dict  # {name: number}
    shares: list  # what each name was handed by the end of each step: {name: [share]}, and 1 to the target before all
    moves: dict  # {leaf: {name: (move, move)}}: what each value gains, in units of NUDGE, with the leaf raised, lowered


def backward_walk(program, **leaves):
    """Run a program on these leaves, walk its tape from the end, and run it again with each leaf nudged: a Walk.

    `program(**leaves)` -> (records, values) of a Walk, computed in float64. The slope over an input is what the op's
    gradient rule gives for 1. A record hands each input a share: the gradient of its output times the slope. The gradient
    of a name is the sum of its shares; that of the target, the last output, is 1.
    Raises ValueError if a nudge is lost in rounding, as in float32, or changes which ops are run."""
    records, values = program(**leaves)
    shares = [{records[-1][2]: [1.0]}]
    for _, inputs, output, slopes in reversed(records):
        known = dict(shares[-1])
        if output in known:  # else the target does not depend on it
            for name, slope in zip(inputs, slopes, strict=True):
                known[name] = [*known.get(name, ()), sum(known[output]) * slope + 0.0]  # -0.0 + 0.0 is 0.0
        shares.append(known)
    moves = {}
    for leaf, number in leaves.items():
        up, down = (program(**leaves | {leaf: number + nudge})[1] for nudge in (NUDGE, -NUDGE))
        if not up.keys() == down.keys() == values.keys() or abs((up[leaf] - down[leaf]) / NUDGE - 2) > 1e-3:
            raise ValueError(f"backward_walk: nudged by {NUDGE}, {leaf} = {number} gives {up}, not nudged {values}")
        moves[leaf] = {name: ((up[name] - at) / NUDGE, (down[name] - at) / NUDGE) for name, at in values.items()}
    return Walk(records, values, shares, moves)


def tape_of_numbers(records, names, rules):
    """What backward_walk asks of a program: the records and values of a tape of single numbers, without its tensors.

    records: [(op, inputs, attrs, y)]. names {name: tensor}, one for each tensor in them. rules {op: (vjp of each input)}."""
    name, steps, values = {id(tensor): name for name, tensor in names.items()}, [], {}
    for op, inputs, attrs, y in records:
        slopes = [float(vjp(1.0, y, *inputs, **attrs)) for vjp in rules[op]]
        steps.append((op, [name[id(x)] for x in inputs], name[id(y)], slopes))
        values |= {name[id(x)]: float(x) for x in (*inputs, y)}
    return steps, values


def walk_of_squared_error(make_tape, constant, rules, **leaves):
    """The backward_walk of l = (x·w + b - y)², on tapes and tensors made so. `leaves`: x, w, b and y."""

    def program(**leaves):
        x, w, b, y = (constant(leaves[name], "f8") for name in "xwby")
        with make_tape() as tape:
            p = x * w
            z = p + b
            e = z - y
            l = e * e
        return tape_of_numbers(tape.records, dict(x=x, w=w, b=b, y=y, p=p, z=z, e=e, l=l), rules)

    return backward_walk(program, **leaves)


def handed_on(walk, record):
    """What a record hands on in its turn, [(input, gradient of its output, slope)]: nothing, if no gradient arrived."""
    _, inputs, output, slopes = walk.records[record]
    gradient = sum(walk.shares[-1].get(output, ()))
    return [(name, gradient, slope) for name, slope in zip(inputs, slopes, strict=True) if output in walk.shares[-1]]


def summed(shares):
    """A gradient as the sum that it is: 2 + 2 = 4."""
    total = f"{sum(shares):.4g}"
    return total if len(shares) == 1 else " + ".join(f"{share:.4g}" for share in shares) + f" = {total}"


def measured(move, sign=""):
    """A move to 4 digits, the last ones zeros too."""
    return f"{move:{sign}#.4g}" if abs(move) > 1e-6 else "0"


TAPE_BOX, TAPE_LINE, GRAPH, TAPE_HEIGHT = (126, 38), 262, 488, 520  # px; GRAPH is the middle of the graph
COOL, WARM, INK, WARM_INK, BUMP = "#DCEBF6", "#FCE9C4", "#00507D", "#8A5A00", "#007355"


class TapePage:
    """What tape_backwards draws on: a figure measured in pixels from its upper left corner, with a row for each record."""

    def __init__(self, figure, records):
        self.figure, height = figure, 392 / (len(records) + 1)
        self.y = [58 + (row + 0.5) * height for row in range(len(records) + 1)]
        self.pixels = Affine2D().scale(1 / 700, -1 / TAPE_HEIGHT).translate(0, 1) + figure.transFigure

    def write(self, x, y, text, size=8.5, **look):
        self.figure.text(x, y, text, size=size, va="center_baseline", transform=self.pixels, **look)

    def add(self, patch, **look):
        patch.set(transform=self.pixels, **look)
        self.figure.add_artist(patch)

    def box(self, x, row, width, **look):
        shape = dict(boxstyle="round,pad=0,rounding_size=5")
        self.add(FancyBboxPatch((x, self.y[row] - TAPE_BOX[1] / 2), width, TAPE_BOX[1], **shape), **look)

    def arrow(self, way, row, back, color):
        """A curve from the box in a row down to a box in a later one, with its point there, or, turned back, here."""
        half, thick = TAPE_BOX[1] / 2, 2.4 if back else 1
        corners, codes = [(way[0], self.y[row] + half + 9 * back)], [Curve.MOVETO]
        for k, (a, b) in enumerate(zip(way, way[1:], strict=False), row + 1):
            last = k == row + len(way) - 1
            start, goal = corners[-1][1], self.y[k] - half - 9 * (last and not back)
            between = (start + goal) / 2
            corners += [(a, between), (b, between), (b, goal), (b, goal if last else goal + 2 * half)]
            codes += [Curve.CURVE4] * 3 + [Curve.LINETO]
        self.add(PathPatch(Curve(corners, codes), fill=False), edgecolor=color, linewidth=thick)
        (x, y), high = corners[0 if back else -1], -8 if back else 8
        self.add(Polygon([(x - 5, y), (x + 5, y), (x, y + high)]), facecolor=color, linewidth=0)


def tape_lines(page, walk, first):
    """The tape, a line a record, and the shares handed on since the walk came from the end to record `first`."""
    page.write(14, page.y[0] - 9, "the tape: written down, walked up", size=9, weight="bold")
    page.write(14, page.y[0] + 9, "a share: gradient of the output × slope", color=INK)
    for record, (op, inputs, output, _) in enumerate(walk.records):
        edge, fill = (GREY, "white") if record < first else (LOADED, WARM) if record == first else (DATA, COOL)
        page.box(14, record + 1, TAPE_LINE, edgecolor=edge, facecolor=fill, linewidth=2 if record == first else 1)
        line, y = f"{record + 1}  {op} {', '.join(inputs)} → {output}", page.y[record + 1]
        page.write(22, y - 9 * (record >= first), line, family="monospace")
        if record >= first:
            shares = [f"{name} += {gradient:.4g} × {slope:.4g}" for name, gradient, slope in handed_on(walk, record)]
            page.write(43, y + 9, ",   ".join(shares) or "no gradient to hand on", color=INK)


def tape_places(records):
    """{name: (x, row)} of the boxes, and for each input of each record in turn the x of its arrow in every row.

    The output of a record stands beside it, a leaf in the row above the first record that uses it."""
    rows = {}
    for record, (_, inputs, output, _) in enumerate(records):
        rows |= {name: record for name in inputs if name not in rows} | {output: record + 1}
    names, widths = [*rows], [TAPE_BOX[0]] * len(rows)
    links = [(names.index(name), names.index(output)) for _, inputs, output, _ in records for name in inputs]
    x, ways = drawing.across(widths, links, [*rows.values()], gap=12)
    shift = GRAPH - (min(x) + max(x)) / 2
    ways = [[at + shift for at in way] for way in drawing.spread(links, ways, widths)]
    return {name: (at + shift, row) for at, (name, row) in zip(x, rows.items(), strict=True)}, ways


def tape_graph(page, walk, step, moves, meeting):
    """The values as boxes, with their gradients by now and what the bump moves them by; the last shares on arrows."""
    first = len(walk.records) - step
    places, ways = tape_places(walk.records)
    gaining, ways = set(), iter(ways)
    for record, (_, inputs, output, _) in enumerate(walk.records):
        shares = handed_on(walk, record)
        for k, name in enumerate(inputs):
            way, back, row = next(ways), record == first and len(shares) > 0, places[output][1]
            page.arrow(way, places[name][1], back, LOADED if back else DATA if record > first else GREY)
            if back:
                gaining.add(name)
                _, gradient, slope = shares[k]
                beside = abs(way[-1] - way[-2]) < 20 or inputs.count(name) > 1  # a straight arrow, or one of two
                side = beside and (1 if k else -1)
                look = dict(ha={-1: "right", 0: "center", 1: "left"}[side], color=WARM_INK, weight="bold")
                place = (way[-2] + way[-1]) / 2 + 9 * side, (page.y[row - 1] + page.y[row]) / 2
                page.write(
                    *place, f"{gradient * slope + 0.0:+.4g}", size=9, bbox=None if side else BLANK | dict(pad=0), **look
                )
    for name, (x, row) in places.items():
        shares, left, right = walk.shares[step].get(name), x - TAPE_BOX[0] / 2, x + TAPE_BOX[0] / 2
        edge = dict(edgecolor=BUMP, linewidth=2.4) if name in meeting else dict(edgecolor=GREY, linewidth=1)
        page.box(left, row, TAPE_BOX[0], facecolor=WARM if name in gaining else COOL if shares else "white", **edge)
        page.write(left + 7, page.y[row] - 9, f"{name} = {walk.values[name]:.3g}", weight="bold")
        if measured(moves[name][0]) != "0":
            page.write(right - 7, page.y[row] - 9, measured(moves[name][0], "+"), ha="right", color=BUMP)
        if shares:
            gradient = summed(shares)
            gradient = gradient if len(gradient) < 14 else f"Σ {sum(shares):.4g}"
            page.write(left + 7, page.y[row] + 9, f"grad {gradient}", color=INK)


def turn(walk, step):
    """What the record of this step does, and why it is its turn."""
    target, first = walk.records[-1][2], len(walk.records) - step
    if not step:
        finding = f"before the walk, one gradient is known: {target} has 1"
        return finding, f"When {target} moves by one, {target} moves by one."
    output, shares = walk.records[first][2], handed_on(walk, first)
    if not shares:
        return f"record {first + 1} hands nothing on", f"{target} does not depend on {output}."
    finding = " and ".join(f"{gradient * slope + 0.0:+.4g} to {name}" for name, gradient, slope in shares)
    sums = [name for name in dict.fromkeys(walk.records[first][1]) if len(walk.shares[step][name]) > 1]
    finding = "; ".join([finding, *(f"{name} has {summed(walk.shares[step][name])}" for name in sums)])
    users = [str(record + 1) for record, (_, inputs, _, _) in enumerate(walk.records) if output in inputs]
    where = f"All that uses {output}, record {' and '.join(users)}, is walked" if users else f"Nothing uses {output}"
    return f"record {first + 1} hands {finding}", f"{where}: the gradient of {output}, {shares[0][1]:.4g}, is complete."


@styled(height=TAPE_HEIGHT / 100, left=0)
def tape_backwards(figure, walk, step, bump):
    """A tape of up to six records of single numbers, walked back by `step` of them, and a leaf `bump` that is nudged.

    walk: a backward_walk. The bump goes down from the leaf, the gradients come up from the target. They meet at boxes that
    have a gradient and whose record is not walked yet: there, the sum of gradient · move is what the target moves by. So
    it is at every step, and after the last one it says the same of the leaf alone."""
    target, moves, page = walk.records[-1][2], walk.moves[bump], TapePage(figure, walk.records)
    waiting = {*walk.values} - {output for _, _, output, _ in walk.records[len(walk.records) - step :]}
    meeting = {name: sum(shares) for name, shares in walk.shares[step].items() if name in waiting}
    meeting = {name: gradient for name, gradient in meeting.items() if measured(moves[name][0]) != "0"}
    tape_lines(page, walk, len(walk.records) - step)
    tape_graph(page, walk, step, moves, meeting)

    finding, reason = turn(walk, step)
    page.write(14, 20, finding, size=11, weight="bold")
    page.write(14, 42, reason, size=9, color="#555555")
    up, down = map(measured, moves[target])
    total = measured(sum(gradient * moves[name][0] for name, gradient in meeting.items()))
    products = [f"{gradient:.4g} × {measured(moves[name][0])} ({name})" for name, gradient in meeting.items()]
    products = " + ".join(products) or "nowhere"
    nudged = f"raise {bump} by a millionth, and {target} moves by this many (lowered: {down})"
    for y, number, text, color in (
        (474, up, f"the bump (green): {nudged}", BUMP),
        (498, total, f"the walk (blue): gradient × move where the two meet: {products}", INK),
    ):
        page.write(62, y, number, size=10, weight="bold", ha="right", color=color)
        page.write(76, y, text, size=9, color=color)
    gradients = ", ".join(f"{name} {summed(shares)}" for name, shares in walk.shares[step].items())
    return (
        f"Step {step} of {len(walk.records)}: {finding}. {reason} Gradients so far: {gradients}. "
        f"The bump: raised by a millionth, {bump} moves {target} by {up} millionths; lowered, by {down}. "
        f"The walk: gradient × move where the two meet is {products} = {total}."
    )


ROW_NUMBERS, ELEMENTS = "#F2F2F2", "#FCE9C4"  # what a stage holds
HOLDS = {  # by its name: {n} is its argument, {units} is what comes to it
    "from_tensor_slices": "{count:,} rows of\n{rows}",
    "from_batches": "rows of {rows},\n{count:,} batches of\nrow numbers",
    "from_generator": "one at a time",
    "zip": "one element of each",
    "shuffle": "up to {n:,}\n{units}",
    "batch": "{n:,} {units}\nto a batch",
    "cache": "all {units}\nof a pass",
    "prefetch": "up to {n} {units},\nready",
}


def held(stages):
    """What each of the stages of a dataset holds meanwhile, in words."""
    for before, data in zip([stages[0], *stages], stages, strict=False):
        name, argument = data.stage.removesuffix(")").partition("(")[::2]
        units = "batches" if before.batches else "elements" if data.arrays is None else "row numbers"
        words = HOLDS.get(name, "{units},\none at a time")
        known = data is stages[0] and data.arrays is not None
        yield words.format(
            n=int(argument) if argument.isdigit() else 0,
            units=units,
            count=data.length if known else 0,
            rows=numbers_of(data.arrays) if known else "",
        )


def numbers_of(arrays):
    """How many numbers a row has in each of the arrays, in words: 2 + 1 numbers."""
    if isinstance(arrays, dict):
        return f"{len(arrays)} columns"
    if isinstance(arrays, tuple):
        return " + ".join(numbers_of(x).removesuffix(" numbers").removesuffix(" number") for x in arrays) + " numbers"
    size = " × ".join(map(str, arrays.shape[1:])) or "1"
    return f"{size} {'number' if size == '1' else 'numbers'}"


@styled()
def pipeline(figure, dataset, element):
    """The stages of a dataset from left to right, each with what it holds, and the shapes of an element that comes out.

    Blue: the rows themselves. Grey: no more than numbers of rows. Yellow: new arrays."""
    stages = dataset.stages
    numbers = [data.stage for data in stages if data.arrays is not None]
    hues = [ROW_NUMBERS if data.arrays is not None else ELEMENTS for data in stages[1:]]
    hues = [COOL if numbers else ELEMENTS, *hues, ELEMENTS]
    out = f"one {'batch' if dataset.batches else 'element'}:\n{shapes_of(element)}"
    boxes = [*zip((data.stage for data in stages), held(stages), strict=True), ("your loop", out)]
    across = min(len(boxes), 4 if len(boxes) != 5 else 5)
    lines = -(-len(boxes) // across)
    figure.set_size_inches(7.0, 0.35 + 1.0 * lines)
    axes = figure.subplots()
    axes.set(xlim=(0, across), ylim=(lines, 0))
    axes.axis("off")
    for k, ((name, holds), hue) in enumerate(zip(boxes, hues, strict=True)):
        x, y = k % across, k // across
        shape = FancyBboxPatch((x + 0.01, y + 0.06), 0.88, 0.86, boxstyle="round,pad=0,rounding_size=0.05")
        shape.set(facecolor=hue, edgecolor=GREY, linewidth=1)
        axes.add_patch(shape)
        look = dict(ha="center", va="center")
        width = 104 // across  # in characters of the smaller size
        filled = "\n".join(textwrap.fill(line, width) for line in holds.split("\n"))
        axes.text(x + 0.45, y + 0.24, name, weight="bold", size=8 if len(name) < 0.7 * width else 7, **look)
        axes.text(
            x + 0.45,
            y + 0.62,
            filled,
            size=7.5 if across > 4 or filled.count("\n") > 1 else 8,
            linespacing=1.05,
            **look,
        )
        if k + 1 < len(boxes) and x + 1 < across:
            axes.annotate("", (x + 1.03, y + 0.49), (x + 0.87, y + 0.49), arrowprops=dict(arrowstyle="->", color=GREY))
    finding = "each stage makes an element when the next one asks for it"
    if numbers:
        finding = f"row numbers up to {numbers[-1]}, then new arrays, made on demand"
    if dataset.arrays is not None:
        finding = "row numbers pass through the stages, the rows stay where they are"
    figure.suptitle(finding, x=0.012, ha="left", weight="bold", size=11)
    told = ". ".join(f"{name}: {' '.join(holds.split())}" for name, holds in boxes)
    return f"The pipeline: {finding}. {told}."


def shapes_of(element):
    """The shapes of the arrays in an element, in words."""
    if isinstance(element, dict):
        return ", ".join(f"{name} {shapes_of(value)}" for name, value in element.items())
    return " and ".join(map(shapes_of, element)) if isinstance(element, tuple) else str(element.shape)


@styled(height=2.6, left=0.21, right=0.97, bottom=0.18, top=0.89)
def timeline(figure, runs):
    """When data was read and when a step was trained in two runs {name: [(who, start, end)]}, in seconds."""
    axes, times, lanes = figure.subplots(), [], []
    for run, (name, spans) in enumerate(runs.items()):
        first = min(start for _, start, _ in spans)
        for lane, (who, hue) in enumerate(dict(read=DATA, train=MODEL).items()):
            y = 2.5 * run + lane
            bars = [(1e3 * (start - first), 1e3 * (end - start)) for by, start, end in spans if by == who]
            axes.broken_barh(bars, (y + 0.06, 0.88), facecolor=tint(hue), edgecolor="white", linewidth=0.8)
            for number, (start, width) in enumerate(bars, 1):
                axes.text(start + width / 2, y + 0.5, number, size=8, ha="center", va="center", clip_on=True)
            lanes.append((y + 0.5, who))
        times.append(1e3 * (max(end for _, _, end in spans) - first))
        axes.text(-0.26, 2.5 * run + 1, name.replace(" ", "\n"), va="center", transform=axes.get_yaxis_transform())
        axes.plot([times[-1]] * 2, [2.5 * run, 2.5 * run + 2], color=GREY, linewidth=1)
    axes.set_yticks(*zip(*lanes, strict=True))
    axes.set(xlim=(0, max(times) * 1.02), ylim=(4.6, -0.1), xlabel="milliseconds")
    axes.tick_params(axis="y", length=0)
    axes.spines.left.set_visible(False)
    count = sum(who == "train" for who, _, _ in spans)
    before, after = map(short, times)
    finding = f"{count} batches in {after} ms instead of {before} ms: reading hides behind training"
    if times[1] > 0.95 * times[0]:
        finding = f"nothing is hidden: {count} batches in {after} ms, and in {before} ms without prefetch"
    figure.suptitle(finding, x=0.012, ha="left", weight="bold", size=11)
    return f"Time line: {finding}."
