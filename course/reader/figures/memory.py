"""Figures of memory speeds, of peaks, and of the cost of a step."""

import ctypes
import sys
from pathlib import Path

import numpy as np
from matplotlib.transforms import Bbox

from course.reader.figures.picture import BLANK, DATA, GREY, MODEL, binary, plain, short, styled


def host_caches():
    """The sizes in bytes of the data caches of a core, {"L1": …, "L2": …}, as far as the system reports them."""
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
            for where in (b"hw.", b"hw.perflevel0."):  # the second, for the fast cores, overrides the first
                size = ctypes.c_int64(0)
                length = ctypes.c_size_t(8)
                ask = where + name, ctypes.byref(size), ctypes.byref(length), None, ctypes.c_size_t(0)
                if ctypes.CDLL(None).sysctlbyname(*ask) == 0 and size.value:
                    found[level] = size.value
    return found


def over_sizes(axes, sizes, values, caches, marked, unit, title):
    """Plot values over the size of the data in bytes, with two labelled values and a thin line at each cache's size."""
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
    last = 0
    row = 1
    for size, name in sorted((size, name) for name, size in caches.items() if sizes[0] <= size <= sizes[-1]):
        axes.axvline(size, color=GREY, linewidth=0.8, zorder=0)
        row = 3 - row if size < 4 * last else 1  # labels of close sizes go in two rows: an empty line below raises one
        text = f"{name} {binary(size)}" + "\n" * (row - 1)
        axes.text(size, 1.02, text, ha="center", size=9, color=GREY, transform=axes.get_xaxis_transform())
        last = size


def farthest(sizes, caches):
    """Where the largest data was, as text: "memory" if it is at least twice the largest known cache; else its size."""
    return "memory" if caches and sizes[-1] >= 2 * max(caches.values()) else f"{binary(sizes[-1])} of data"


@styled()
def staircase(figure, sizes, nanoseconds, caches):
    """The latency of dependent loads in ns, over the bytes of the data. caches: {name: bytes}."""
    axes = figure.subplots()
    near = short(nanoseconds[0])
    far = short(nanoseconds[-1])
    finding = f"a load takes {near} ns from the nearest cache and {far} ns from {farthest(sizes, caches)}"
    over_sizes(axes, sizes, nanoseconds, caches, (0, -1), "ns", finding)
    axes.set_ylabel("ns per load")
    return f"Latency: {finding}."


@styled()
def bandwidths(figure, sizes, bytes_per_second, caches):
    """The bytes per second of a program that reads its data in order, over their size. caches: {name: bytes}."""
    axes = figure.subplots()
    speeds = np.asarray(bytes_per_second) / 1e9
    best = int(speeds.argmax())
    near = short(speeds[best])
    far = short(speeds[-1])
    finding = f"{near} GB/s from {binary(sizes[best])} of data, {far} GB/s from {farthest(sizes, caches)}"
    over_sizes(axes, sizes, speeds, caches, (best, -1), "GB/s", finding)
    axes.set_ylabel("GB/s")
    return f"Bandwidth: {finding}."


@styled(height=3.0)
def accumulators(figure, counts, flops_per_second):
    """float32 operations per second over the number of independent accumulators. The first count is 1."""
    axes = figure.subplots()
    speeds = np.asarray(flops_per_second) / 1e9
    plateau = speeds.max()
    k = int((speeds >= 0.95 * plateau).argmax())
    axes.plot(counts, speeds, "o-", color=DATA, markersize=4)
    axes.axhline(plateau, color=GREY, linewidth=0.8, zorder=0)
    axes.text(counts[0], plateau * 1.02, f"plateau: {short(plateau)} billion operations/s", va="bottom")
    axes.plot(counts[k], speeds[k], "D", color=MODEL, markersize=8)
    share = f"{short(100 * speeds[k] / plateau)} % of it with {counts[k]}"
    axes.vlines(counts[k], 0, speeds[k], MODEL, linewidth=0.8, zorder=0)
    axes.annotate(share, (counts[k], 0), (6, 6), textcoords="offset points")
    axes.set(xlabel="independent sums", ylabel="billions of operations/s", ylim=(0, 1.2 * plateau), xticks=counts)
    finding = f"one sum keeps the core waiting: {counts[k]} sums are {short(speeds[k] / speeds[0])} times as fast"
    if k == 0:
        finding = "one sum keeps the core busy: more of them gain less than 6 %"
    axes.set_title(finding)
    best = f"the plateau is {short(plateau)} billion operations/s, 95 % of it reached with {counts[k]}"
    return f"Arithmetic: {finding}; {best}."


def roofs(axes, peak, bandwidth, x, y):
    """Draw the roofs: billions of operations/s (range y) over operations per byte (range x). Return the peak's box."""
    # labels are a tenth above their roof
    ridge = peak / bandwidth
    slope = 1.1 * bandwidth / 1e9
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
    """A program's share of its roof, in words. Far above the memory roof, its data must come from a cache."""
    if in_memory and share > 1.5:
        return f"{short(share)} times the memory roof:\nits data is in a cache"
    return f"{short(100 * share)} % of its roof"


def drop(axes, x, y, roof):
    """Draw a program's point at y operations per second, with a thin line to its roof."""
    axes.plot([x, x], [y / 1e9, roof / 1e9], color=GREY, linewidth=0.8)
    axes.plot(x, y / 1e9, "o", color=DATA)


def label(axes, text, point, taken):
    """Write text beside a data point, where it overlaps the fewest of the boxes `taken`, and add its box to them."""
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
    """A roofline plot (Williams et al., 2009), with programs [(name, flops, bytes, seconds)] as points."""
    axes = figure.subplots()
    ridge = peak / bandwidth
    xs, ys = zip(*((flops / nbytes, flops / seconds) for _, flops, nbytes, seconds in points), strict=True)
    x_range = min(*xs, ridge) / 16, max(*xs, ridge) * 60
    y_range = min(*ys, bandwidth * x_range[0]) * 0.5e-9, max(*ys, peak) * 3e-9
    taken = [roofs(axes, peak, bandwidth, x_range, y_range)]
    words = []
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


# the ranges of the sliders of step_cost
BATCHES = (1, 100_000)
LAUNCHES = (0.001, 100)


@styled(height=3.0, left=0.13, right=0.965, bottom=0.23, top=0.9, wspace=0.38)
def step_cost(figure, peak, bandwidth, launch_time, flops, nbytes, batch, launches, name="DNN"):
    """The predicted seconds of a step: launches · launch_time + batch · max(flops / peak, nbytes / bandwidth)."""
    row = dict(arithmetic=flops / peak, memory=nbytes / bandwidth)
    parts = dict(launches=launches * launch_time) | {part: batch * seconds for part, seconds in row.items()}
    floor = batch * max(row.values())
    decides = max(parts, key=parts.get)
    total = parts["launches"] + floor
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))

    x = flops / nbytes
    ridge = peak / bandwidth
    slowest = flops / (LAUNCHES[1] * launch_time + max(row.values()))
    limits = (min(x, ridge) / 100, max(x, ridge) * 60), (min(slowest, peak / 30) / 3e9, peak * 5e-9)
    speed = batch * flops / total
    share = f"{short(100 * floor / total)} % of its roof"
    roofs(left, peak, bandwidth, *limits)
    drop(left, x, speed, batch * flops / floor)
    left.annotate(share, (x, speed / 1e9), (8, -3), textcoords="offset points", va="top", size=9)

    hidden = min(row, key=row.get)
    colors = [DATA if part == decides else "#DDDDDD" if part == hidden else GREY for part in parts]
    bars = right.barh(list(parts), [100 * v / total for v in parts.values()], color=colors)
    right.bar_label(bars, [f"{short(1e6 * v)} µs" for v in parts.values()], padding=3)
    right.set(xlim=(0, 150), xticks=(0, 50, 100), xlabel="% of the step; of the lower two,\nonly the longer one counts")
    right.invert_yaxis()
    finding = f"{short(1e6 * total)} µs per step, most of it {decides}"  # the larger of two parts is half of it or more
    left.set_title(f"{name}: {finding}")
    times = ", ".join(f"{part} {short(1e6 * seconds)} µs" for part, seconds in parts.items())
    return f"{name}, {batch:,} rows and {launches:g} launches per step: predicted {finding} ({times}); {share}."


@styled(height=2.6)
def ladder(figure, shares):
    """Speeds as shares of the peak. shares: {name: share}, the slowest first."""
    axes = figure.subplots()
    names = list(shares)
    values = [100 * share for share in shares.values()]
    axes.plot(values, names, "o", color=DATA)
    for name, value in zip(names, values, strict=True):
        axes.annotate(
            f"{short(value)} %", (value, name), xytext=(8, 0), textcoords="offset points", va="center", bbox=BLANK
        )
    axes.axvline(100, color=GREY, linewidth=1)
    axes.set(xscale="log", xlabel="% of one core's peak (the line)", xlim=(0.5 * min(values), 400))
    axes.invert_yaxis()
    plain(axes.xaxis)
    finding = f"512 x 512 in float32: from {short(values[0])} % of the peak to {short(values[-1])} %"
    axes.set_title(finding)
    return (
        f"The matrix product: {finding} ({', '.join(f'{name} {100 * share:.2g} %' for name, share in shares.items())})."
    )
