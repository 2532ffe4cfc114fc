"""A card of one machine as SVG: its measured speeds, the time of every level, and a hash that all machines share."""

import hashlib
import math
import platform
from html import escape
from typing import NamedTuple

import numpy as np

from course.author.builder import session
from course.reader import files
from course.reader.figures import DATA, HUES, binary, farthest, host_caches, short
from course.reader.inspection.tour import hue, micro

# px: size of the card, distance from row to row
WIDTH = 900
HEIGHT = 640
PITCH = 25
SHOWN = 840  # px: width in a notebook; a JupyterLab window of 1280 px has no room for more
GREY = "#666666"  # dark enough to be read when small


class Card(NamedTuple):
    """A card as SVG, and its content as text."""

    svg: str
    text: str

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/svg+xml": self.svg, "text/plain": self.text}

    def save(self, path):
        """Write the picture, an SVG file."""
        files.write(path, self.svg)


def fingerprint(*comparisons):
    """The first 16 hexadecimal digits of the sha256 of the losses of these compare.Comparison (see `answer`).

    The losses are hashed as little-endian float64 on every machine.
    """
    return hashlib.sha256(answer(comparisons).astype("<f8").tobytes()).hexdigest()[:16]


def answer(comparisons):
    """The losses of these comparisons, concatenated: of each, those of its last row in float64."""
    return np.concatenate([[r for r in c.rows if r.losses.dtype == np.float64][-1].losses for c in comparisons])


def machine_card(device, stairs, *comparisons):
    """The card of the machine that this Python runs on.

    device: the CPU of level 1's pool (peak, bandwidth, launch_time). stairs: {bytes of data: seconds of a load}.
    comparisons: up to two compare.Comparison, of all levels; their rows have the same names.
    """
    numbers = four_numbers(device, stairs)
    digits = fingerprint(*comparisons)
    host = f"{platform.system()} on {platform.machine()}, one core"
    losses = f"{len(answer(comparisons)):,} losses in float64, sha256"
    written = session.yours()  # on the reader's desk: how many functions the reader wrote
    if written:
        host = f"{host}; functions: {written}"
    told = [f"{number} {unit} ({what})" for number, unit, what in numbers]
    for comparison in comparisons:
        steps = (f"{row.name} {micro(row.measured)}" for row in comparison.rows)
        told.append(f"{comparison.title}, per step: {', '.join(steps)}")
    text = f"My machine ({host}): {'; '.join(told)}. {losses} {digits}: other machine, other times, same digits."
    parts = [words(32, 54, "My machine", 28, weight="bold"), words(32, 78, host, 14, GREY)]
    parts += [box(180 * k, 0, 180, 8, color) for k, color in enumerate(HUES)]
    for k, (number, unit, what) in enumerate(numbers):
        x = 32 + 190 * (k % 2)
        y = 142 + 88 * (k // 2)
        parts += [words(x, y, number, 32, weight="bold"), words(x, y + 20, unit, 13), words(x, y + 37, what, 13, GREY)]
    parts += staircase(list(stairs), [1e9 * seconds for seconds in stairs.values()], 424, 868, 78, 248)
    parts += names(comparisons[0].rows, 344)
    for k, comparison in enumerate(comparisons):
        parts += times(comparison, 180 + 356 * k, 466 + 356 * k, 344)
    parts += [box(0, HEIGHT - 66, WIDTH, 66, "#F4F4F4"), words(32, HEIGHT - 38, losses, 13)]
    parts += [words(32, HEIGHT - 17, "other machine, other times, same digits", 13, GREY)]
    parts += [words(WIDTH - 32, HEIGHT - 23, digits, 30, anchor="end", weight="bold", family="monospace")]
    return Card(svg(parts, text), text)


def four_numbers(device, stairs):
    """[(number, unit, description)] of a machine's four measured numbers."""
    seconds = list(stairs.values())
    far = farthest(list(stairs), host_caches())
    return [
        (short(device.peak / 1e9), "billion operations/s", "peak in float32"),
        (short(device.bandwidth / 1e9), "GB/s", "read from memory"),
        (short(1e6 * device.launch_time), "µs", "to launch a program"),
        (short(1e9 * seconds[-1]), "ns", f"a load from {far}"),
    ]


def svg(parts, text):
    """Wrap the parts in an SVG element with a title and a description for screen readers."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
    head += f' width="{SHOWN}" style="max-width: 100%; height: auto"'
    look = 'role="img" aria-labelledby="card-title card-text" font-family="system-ui, sans-serif"'
    told = f'<title id="card-title">My machine</title><desc id="card-text">{escape(text)}</desc>'
    return "\n".join([f"{head} {look}>", told, box(0, 0, WIDTH, HEIGHT, "white"), *parts, "</svg>"])


def words(x, y, text, size=12, fill="#222222", anchor="start", weight="normal", family="inherit"):
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
    return f'<text {place} font-weight="{weight}" font-family="{family}">{escape(text)}</text>'


def box(x, y, width, height, fill):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"/>'


def line(points, color=GREY, width=1.0):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"/>'


def dot(x, y, color, fill):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" stroke="{color}" stroke-width="2" fill="{fill}"/>'


def log_scale(low, high, start, end):
    """A logarithmic scale: the function that maps `low` to px `start` and `high` to px `end`."""
    return lambda value: start + (end - start) * math.log(value / low) / math.log(high / low)


def staircase(sizes, nanoseconds, left, right, top, bottom):
    """A plot of the nanoseconds of a load over the bytes of the data, with a line at the size of each cache."""
    x = log_scale(sizes[0], sizes[-1], left, right)
    y = log_scale(min(nanoseconds), max(nanoseconds), bottom - 10, top + 10)
    parts = [words(left, top - 28, "How far away is memory? ns per load, over the size of the data", 13, weight="bold")]
    parts += [line([(left, bottom), (right, bottom)])]
    for name, size in host_caches().items():
        if sizes[0] < size < sizes[-1]:
            parts += [line([(x(size), top), (x(size), bottom + 20)], "#DDDDDD")]
            parts += [words(x(size), bottom + 34, name, 12, GREY, "middle")]
    parts += [line([(x(size), y(ns)) for size, ns in zip(sizes, nanoseconds, strict=True)], DATA, 2.5)]
    for k, anchor in ((0, "start"), (-1, "end")):
        parts += [words(x(sizes[k]), y(nanoseconds[k]) - 10, f"{short(nanoseconds[k])} ns", 13, DATA, anchor, "bold")]
        parts += [words(x(sizes[k]), bottom + 18, binary(sizes[k]), 12, GREY, anchor)]
    return parts


def names(rows, top):
    """The names of the rows, each with the color of its level, and the legend of the dots."""
    parts = [words(180, top + PITCH * len(rows) + 4, "○ predicted   ● measured: the number", 12, GREY)]
    for k, row in enumerate(rows):
        y = top + PITCH * k
        parts += [box(32, y - 9, 6, 19, hue(row)), words(46, y + 5, row.name, 13, weight="bold")]
    return parts


def times(comparison, left, right, top):
    """The predicted (hollow) and the measured time (filled) of a step in each row of a compare.Comparison."""
    rows = comparison.rows
    title = f"{comparison.title}, µs per step"
    all_times = [time for row in rows for time in (row.predicted, row.measured)]
    x = log_scale(min(all_times), max(all_times), left + 6, right - 6)
    parts = [words(left, top - 28, title, 13, weight="bold")]
    for k, row in enumerate(rows):
        y = top + PITCH * k
        color = hue(row)
        ends = sorted((x(row.predicted), x(row.measured)))
        parts += [line([(left, y), (right, y)], "#EEEEEE"), line([(end, y) for end in ends], color, 2)]
        parts += [dot(x(row.predicted), y, color, "white"), dot(x(row.measured), y, color, color)]
        parts += [words(ends[1] + 11, y + 4, micro(row.measured).removesuffix(" µs"), 12, weight="bold")]
    return parts
