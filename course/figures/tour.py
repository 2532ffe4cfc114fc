"""The five levels in one picture: what each takes to write and to run, and the one curve that all of them draw."""

import functools
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator
from matplotlib.transforms import Affine2D
from PIL import Image, ImageDraw, ImageFont

from course.figures import DATA, GREY, HUES, LEVELS, plain, short, styled
from course.inspection.comparison import bits_of, decimal_of, launches_of, launches_per_step, micro
from course.inspection.marks import MARKS

WIDTH, HEIGHT, DEPTH = 900, 640, 520  # px of the great figure; the height of one level's picture, which is as wide
PYTHON = "#444444"  # row 0 stands on no level


def hue(row):
    return HUES[row.level - 1] if row.level else PYTHON


def pale(color):
    return tuple(0.72 + 0.28 * part for part in to_rgb(color))


class Sheet:
    """A figure measured in pixels from its upper left corner."""

    def __init__(self, figure, height):
        self.figure, self.height = figure, height
        self.pixels = Affine2D().scale(1 / WIDTH, -1 / height).translate(0, 1) + figure.transFigure

    def write(self, x, y, text, size=9, **look):
        self.figure.text(x, y, text, size=size, va="center_baseline", transform=self.pixels, **look)

    def bar(self, x, y, width, height, color):
        self.figure.add_artist(Rectangle((x, y), width, height, color=color, lw=0, transform=self.pixels))

    def code(self, x, y, lines, pitch):
        """Lines of code, `pitch` apart. Pillow sets them: to Matplotlib a letter costs a tenth of a millisecond."""
        image = Image.new("RGB", (WIDTH - x, round(pitch * len(lines))), "white")
        for k, line in enumerate(lines):
            ImageDraw.Draw(image).text((0, pitch * (k + 0.5)), line, "black", mono(0.75 * pitch), anchor="lm")
        self.figure.figimage(np.asarray(image), x, self.height - round(y) - image.height)

    def axes(self, left, right, top, bottom, **given):
        place = left / WIDTH, 1 - bottom / self.height, (right - left) / WIDTH, (bottom - top) / self.height
        return self.figure.add_axes(place, **given)


@functools.cache
def mono(size):
    """Matplotlib's own fixed-width font."""
    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSansMono.ttf"), size)


def times(axes, rows, chosen):
    """A line for each row: its hollow marker stands at the predicted time of a step, its filled one at the measured.

    chosen: the levels whose rows stand out."""
    all_times = [1e6 * time for row in rows for time in (row.predicted, row.measured)]
    axes.set(xscale="log", xlim=(min(all_times) / 2, max(all_times) * 25), ylim=(len(rows) - 0.5, -0.5), yticks=())
    axes.set_xlabel("µs per step: ○ predicted, ● measured")
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color="#E8E8E8", linewidth=0.8)
    axes.set_axisbelow(True)
    plain(axes.xaxis)
    axes.xaxis.set_major_locator(LogLocator(numticks=4))
    for k, row in enumerate(rows):
        bright, both = row.level in chosen, (1e6 * row.predicted, 1e6 * row.measured)
        look = dict(color=hue(row) if bright else pale(hue(row)), markersize=8, clip_on=False)
        axes.plot(both, (k, k), "o-", markevery=[1], **look)
        axes.plot(both[0], k, "o", markerfacecolor="white", markeredgewidth=1.8, **look)
        if bright:
            text = dict(textcoords="offset points", va="center_baseline", size=9, weight="bold")
            axes.annotate(micro(row.measured), (max(both), k), (8, 0), **text)


def stretches(losses):
    """Eighty stretches of steps: their middles, and the smallest, the mean and the largest loss of each."""
    size = max(1, len(losses) // 80)
    parts = losses[: len(losses) // size * size].reshape(-1, size)
    return (np.arange(len(parts)) + 0.5) * size, parts.min(axis=1), parts.mean(axis=1), parts.max(axis=1)


def differences(rows):
    """The largest difference from the first losses in float64 among the rows in float64, and among those in float32."""
    first = next(row for row in rows if row.losses.dtype == np.float64).losses
    found = {"float64": 0.0, "float32": 0.0}
    for row in rows:
        found[str(row.losses.dtype)] = max(found[str(row.losses.dtype)], float(np.abs(row.losses - first).max()))
    return found.values()


def curves(axes, rows):
    """The losses of all rows one over the other, the widest beneath; those in float32 as dots on top of all."""
    for width, row in zip(np.linspace(13, 1.5, len(rows)), rows, strict=True):
        look = dict(color=hue(row), linewidth=width, solid_capstyle="butt", solid_joinstyle="round")
        if row.losses.dtype == np.float32:
            look = dict(color="black", linewidth=1.3, linestyle=(0, (1, 3)), zorder=3)
        steps, _, means, _ = stretches(row.losses)
        axes.semilogy(steps, means, label=row.name, **look)
    axes.set(xlabel="step", ylabel="loss")
    plain(axes.yaxis, (1, 2, 5))
    axes.legend(loc="center left", bbox_to_anchor=(1.03, 0.5), labelspacing=0.7, handlelength=2.4)


@styled(WIDTH / 100, HEIGHT / 100, left=0)
def five_levels(figure, comparison):
    """The great figure: a compare.Comparison as a table with its times drawn in, and all losses one over the other."""
    sheet, rows = Sheet(figure, HEIGHT), comparison.rows
    double, single = differences(rows)
    exact = [row for row in rows if row.losses.dtype == np.float64]
    slow, last = max(exact, key=lambda row: row.measured), rows[-1]
    answer = "the same last loss" if double == 0 else f"losses that differ by {short(double)}"
    ways = f"{answer} for {micro(slow.measured)} per step ({slow.name}) or {micro(last.measured)} ({last.name})"
    sheet.write(14, 20, f"{comparison.title}: {ways}", size=11, weight="bold")

    heads = [
        (184, "lines\nof code"),
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
    times(sheet.axes(364, 572, top, top + pitch * len(rows)), rows, range(6))

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
    told = "; ".join(f"{row.name} {micro(row.predicted)} and {micro(row.measured)}" for row in rows)
    return f"{comparison.title}: {ways}. A step, predicted and measured: {told}. {finding}."


def lines_under(row, mark):
    return [line for step in row.code.get(mark, ()) for line in step.text.splitlines()]


def write_code(sheet, row, rows, room):
    """The lines of a row's step under the marks of what they do, as large as the longest code of all rows allows."""
    codes = [[lines_under(each, mark) for mark in MARKS[1:]] for each in rows]
    longest = max(len(line) for code in codes for lines in code for line in lines)
    pitch = min(19, (room - 24) / max(sum(map(len, code)) for code in codes), 1700 / longest)
    y = 42
    for mark in MARKS[1:]:
        lines = lines_under(row, mark)
        sheet.write(22, y + pitch / 2, mark, weight="bold", color=PYTHON)
        if lines:
            sheet.bar(98, y, 3, pitch * len(lines), hue(row))
            sheet.code(110, y, lines, pitch)
        else:  # the bar runs on
            sheet.bar(98, y - 8, 3, pitch + 8, hue(row))
            sheet.write(110, y + pitch / 2, "the same line", color=GREY, style="italic")
        y += pitch * max(1, len(lines)) + 8


@styled(WIDTH / 100, DEPTH / 100, left=0)
def depth(figure, comparison, level):
    """One level of a compare.Comparison: its code, its times among those of all, and its losses."""
    sheet, rows = Sheet(figure, DEPTH), comparison.rows
    own = [row for row in rows if row.level == level]
    row = [row for row in own if row.losses.dtype == np.float64][-1]
    sheet.bar(0, 0, 8, DEPTH, hue(row))
    title = f"{level}  {LEVELS[level - 1]}: {launches_per_step(row)}, {micro(row.measured)} per step"
    sheet.write(22, 22, title, size=12, weight="bold")
    write_code(sheet, row, [row for row in rows if row.level], room=272)

    times(sheet.axes(128, 420, 332, 472), rows, [level])
    for k, each in enumerate(rows):
        look = dict(weight="bold") if each in own else dict(color=GREY)
        sheet.write(118, 332 + 140 / len(rows) * (k + 0.5), each.name, size=8.5, ha="right", **look)
    axes = sheet.axes(520, 868, 350, 472)
    steps, least, means, largest = stretches(row.losses)
    axes.fill_between(steps, least, largest, color="#D9E6F0", lw=0)
    axes.semilogy(steps, means, color=DATA)
    size = len(row.losses) // len(steps)
    axes.set(xlabel=f"step (line: mean of {size}, band: all of them)", ylabel="loss", xlim=(0, len(row.losses)))
    plain(axes.yaxis)
    everywhere = ", the same on every level" if next(iter(differences(rows))) == 0 else ""
    sheet.write(462, 334, f"last loss {decimal_of(row)}{everywhere}", size=9.5, weight="bold")
    told = "; ".join(
        f"{each.name}: {launches_per_step(each)}, predicted {micro(each.predicted)} and measured {micro(each.measured)}"
        for each in own
    )
    head = f"Level {level}, {LEVELS[level - 1]}, {row.lines} lines"
    return f"{head}. {told}. Last loss {decimal_of(row)}{everywhere}; {row.score}."
