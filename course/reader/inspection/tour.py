"""The five levels in one picture: the code and the cost of each, and their loss curves, which coincide."""

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator
from matplotlib.transforms import Affine2D

from course.reader.figures import GREY, HUES, plain, short, styled
from course.reader.inspection.comparison import bits_of, launches_of, micro

# px
WIDTH = 900
HEIGHT = 660
PYTHON = "#444444"  # the color of row 0, which is on no level


def hue(row):
    return HUES[row.level - 1] if row.level else PYTHON


class Sheet:
    """A figure with coordinates in pixels from its upper left corner."""

    def __init__(self, figure, height):
        self.figure = figure
        self.height = height
        self.pixels = Affine2D().scale(1 / WIDTH, -1 / height).translate(0, 1) + figure.transFigure

    def write(self, x, y, text, size=9, **look):
        self.figure.text(x, y, text, size=size, va="center_baseline", transform=self.pixels, **look)

    def bar(self, x, y, width, height, color):
        self.figure.add_artist(Rectangle((x, y), width, height, color=color, lw=0, transform=self.pixels))

    def axes(self, left, right, top, bottom, **given):
        place = left / WIDTH, 1 - bottom / self.height, (right - left) / WIDTH, (bottom - top) / self.height
        return self.figure.add_axes(place, **given)


def times(axes, rows):
    """Draw the predicted (hollow marker) and the measured time (filled marker) of a step, one line per row."""
    all_times = [1e6 * time for row in rows for time in (row.predicted, row.measured)]
    axes.set(xscale="log", xlim=(min(all_times) / 2, max(all_times) * 25), ylim=(len(rows) - 0.5, -0.5), yticks=())
    axes.set_xlabel("µs per step: ○ predicted, ● measured")
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color="#E8E8E8", linewidth=0.8)
    axes.set_axisbelow(True)
    plain(axes.xaxis)
    axes.xaxis.set_major_locator(LogLocator(numticks=4))
    for k, row in enumerate(rows):
        both = (1e6 * row.predicted, 1e6 * row.measured)
        look = dict(color=hue(row), markersize=8, clip_on=False)
        axes.plot(both, (k, k), "o-", markevery=[1], **look)
        axes.plot(both[0], k, "o", markerfacecolor="white", markeredgewidth=1.8, **look)
        text = dict(textcoords="offset points", va="center_baseline", size=9, weight="bold")
        axes.annotate(micro(row.measured), (max(both), k), (8, 0), **text)


def stretches(losses):
    """Divide the steps into about eighty stretches. Return (the middle step of each, the mean loss of each)."""
    size = max(1, len(losses) // 80)
    parts = losses[: len(losses) // size * size].reshape(-1, size)
    return (np.arange(len(parts)) + 0.5) * size, parts.mean(axis=1)


def differences(rows):
    """(float64, float32): the largest difference of losses in rows of this dtype from the first float64 row."""
    first = next(row for row in rows if row.losses.dtype == np.float64).losses
    found = {"float64": 0.0, "float32": 0.0}
    for row in rows:
        found[str(row.losses.dtype)] = max(found[str(row.losses.dtype)], float(np.abs(row.losses - first).max()))
    return found.values()


def curves(axes, rows):
    """Draw the losses of all rows over each other, the widest line lowest, float32 as dots on top."""
    for width, row in zip(np.linspace(13, 1.5, len(rows)), rows, strict=True):
        look = dict(color=hue(row), linewidth=width, solid_capstyle="butt", solid_joinstyle="round")
        if row.losses.dtype == np.float32:
            look = dict(color="black", linewidth=1.3, linestyle=(0, (1, 3)), zorder=3)
        steps, means = stretches(row.losses)
        axes.semilogy(steps, means, label=row.name, **look)
    axes.set(xlabel="step", ylabel="loss")
    plain(axes.yaxis, (1, 2, 5))
    axes.legend(loc="center left", bbox_to_anchor=(1.03, 0.5), labelspacing=0.7, handlelength=2.4)


@styled(WIDTH / 100, HEIGHT / 100, left=0)
def five_levels(figure, comparison):
    """A compare.Comparison as one figure: a table with a plot of its times, and all loss curves over each other."""
    sheet, rows = Sheet(figure, HEIGHT), comparison.rows
    double, single = differences(rows)
    exact = [row for row in rows if row.losses.dtype == np.float64]
    slow, last = max(exact, key=lambda row: row.measured), rows[-1]
    answer = "the same last loss" if double == 0 else f"losses that differ by {short(double)}"
    ways = f"{answer} for {micro(slow.measured)} per step ({slow.name}) or {micro(last.measured)} ({last.name})"
    sheet.write(14, 20, f"{comparison.title}: {ways}", size=11, weight="bold")

    heads = [
        (184, "lines\nper step"),
        (268, "launches\nper step"),
        (342, "bytes\nper step"),
        (640, "measured /\npredicted"),
    ]
    for x, head in [*heads, (885, "test rows")]:
        sheet.write(x, 56, head, ha="right", color=GREY)
    sheet.write(662, 56, "last loss", color=GREY)
    top, pitch = 78, 28
    for k, row in enumerate(rows):
        y = top + pitch * (k + 0.5)
        sheet.bar(14, y - pitch / 2 + 2, 6, pitch - 4, hue(row))
        sheet.write(28, y, row.name, weight="bold")
        numbers = row.lines, launches_of(row), f"{row.nbytes:,.0f}", f"{row.measured / row.predicted:.1f}"
        for (x, _), text in zip(heads, numbers, strict=True):
            sheet.write(x, y, text, ha="right")
        sheet.write(662, y, bits_of(row), **(dict(family="monospace", size=8) if row in exact else {}))
        sheet.write(885, y, row.score, ha="right")
    times(sheet.axes(364, 572, top, top + pitch * len(rows)), rows)

    if len(rows[0].losses) > rows[0].own:
        note = f"Rows 0, 2 and 3 eager take only the last {rows[0].own:,} steps,"
        note += " from the weights that level 1 has by then."
        sheet.write(14, 356, note, color=GREY)
    finding = (
        f"{len(exact)} of {len(rows)} rows draw one curve: float64 losses differ by {short(double) if double else 0}"
    )
    finding += f", float32 (dotted) by at most {short(single)}"
    sheet.write(14, 386, finding, size=11, weight="bold")
    curves(sheet.axes(62, 720, 406, 592), rows)
    sheet.write(14, 648, f"Measured on {comparison.where}.", size=8, color=GREY)
    told = "; ".join(f"{row.name} {micro(row.predicted)} and {micro(row.measured)}" for row in rows)
    return f"{comparison.title}: {ways}. A step, predicted and measured: {told}. {finding}."
