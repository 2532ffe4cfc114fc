"""Pictures of the systolic array: the numbers that flow through it, its utilisation, and the units around it."""

import numpy as np
from matplotlib.patches import Polygon, Rectangle

from course.reader.figures import DATA, GREY, MODEL, ink, plain, styled

ROWS = ("#F0C566", "#9AD2F2", "#66C5AB", "#E0AFCA")  # one per row of x: hues of Okabe and Ito (2008), for black text


def box(axes, x, y, color, text=""):
    """Draw a square with text in it."""
    axes.add_patch(Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, facecolor=color, linewidth=0))
    axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", size=9)


@styled(height=4.4, left=0.01, right=0.99, bottom=0.01, top=0.92)
def flow(figure, x, tiles, cycle):
    """A systolic array in one cycle (from 0). The rows of x[m, k] pass it once for each w[k, n] in `tiles`; m >= k.

    On the left are the waiting numbers of x, skewed. The cells have the weights and the sums so far. Below are the
    finished sums.
    """
    m, k = x.shape
    n = tiles[0].shape[1]
    axes = figure.subplots()
    right = n + (n + 0.6) * (len(tiles) - 1)
    axes.set(xlim=(-6.4, max(right, n + 3.4) + 0.2), ylim=(k + m + 1.9, -0.7), aspect="equal", anchor="W")
    axes.axis("off")
    busy = done = 0
    for i, j in np.ndindex(k, n):
        late = cycle - i - j  # the row number in the stream at this cell; out of range: none
        tile = min(max(late // m, 0), len(tiles) - 1)
        on = 0 <= late < m * len(tiles)
        busy += on
        box(axes, j, i, ROWS[late % m % 4] if on else "#EBEBEB")
        look = dict(color="black", weight="bold") if tile else dict(color="black")
        axes.text(j + 0.5, i + 0.29, f"× {tiles[tile][i, j]:g}", ha="center", va="center", size=8, **look)
        if on:
            partial = x[late % m, : i + 1] @ tiles[tile][: i + 1, j]
            axes.text(j + 0.5, i + 0.69, f"{partial:g}", ha="center", va="center", size=10, weight="bold")
    for i, late in np.ndindex(k, m * len(tiles)):
        if -6 <= (place := cycle - i - late) < 0:
            box(axes, place - 0.3, i, ROWS[late % m % 4], f"{x[late % m, i]:g}")
    for tile, r, j in np.ndindex(len(tiles), m, n):
        out = tile * m + r + k - 1 + j <= cycle
        done += out
        color, text = (ROWS[r % 4], f"{x[r] @ tiles[tile][:, j]:g}") if out else ("#F6F6F6", "")
        box(axes, j + tile * (n + 0.6), k + 1.2 + r, color, text)
    axes.text(-0.4, k + 1.2 + m / 2, "finished sums", ha="right", va="center", color="#444444")
    axes.text(-0.4, k + 0.35, "x, one colour per row", ha="right", va="center", color="#444444")
    axes.text(n + 0.3, k / 2, "× weight\nsum so far", va="center", color="#444444")
    finding = f"cycle {cycle}: {busy} of {k * n} cells busy, {done} of {m * n * len(tiles)} sums finished"
    axes.set_title(finding)
    weights = f"{len(tiles)} tile{'s' * (len(tiles) > 1)} of weights"
    return f"A systolic array of {k} x {n} cells, {m} rows of x, {weights}. In {finding}."


def useful(m, tiles, side):
    """The useful share of the cells' work: `tiles` tiles of side x side weights in a row, with m rows for each."""
    return tiles * m / ((tiles - 1) * np.maximum(m, side) + m + 2 * side - 2)


@styled(height=3.4)
def utilisation(figure, side, counted):
    """The useful share of the array's work over the batch size: by formula, and as counted {(batch, tiles): share}."""
    axes = figure.subplots()
    m = np.geomspace(1, 10_000, 200)
    for tiles, color, marker in zip(sorted({t for _, t in counted}), (DATA, MODEL), "o^", strict=True):
        axes.semilogx(m, 100 * useful(m, tiles, side), color=color, zorder=1)
        axes.plot(
            *zip(*((b, 100 * u) for (b, t), u in counted.items() if t == tiles), strict=True), marker, color=color
        )
        place, words = (330, "one tile of weights") if tiles == 1 else (75, f"{tiles} tiles in a row")
        at = 100 * useful(place, tiles, side)
        far = dict(xytext=(9, -9)) if tiles == 1 else dict(xytext=(-9, 5), ha="right")
        axes.annotate(words, (place, at), textcoords="offset points", color=ink(color), weight="bold", **far)
    share = 100 * counted[10, 1]
    axes.annotate(f"batch 10: {share:.1f} %", (10, share), (-4, 9), textcoords="offset points", ha="right", color=DATA)
    axes.axvline(side, color=GREY, linewidth=0.8, zorder=0)
    axes.text(side * 1.06, 1, f"{side} rows", color="#666666")
    plain(axes.xaxis)
    axes.set(xlabel="rows in the batch", ylabel="% of the cells' work useful", ylim=(0, 100), xlim=(1, 10_000))
    axes.set_title(f"a batch of 10 uses {share:.1f} % of a {side} x {side} array")
    finding = f"with one tile of weights {share:.1f} % at batch 10"
    return f"Utilisation over the batch size, {finding}; it comes near 100 % with some thousand rows."


@styled(height=2.9)
def timeline(figure, instructions, rows):
    """Instructions [(unit, start, end, instruction)] of products of `rows` rows over the cycles, a lane per unit."""
    axes = figure.subplots()
    units = ("weights", "array", "activation", "host")
    shades = ("#56B4E9", "#9AD2F2")
    counts = dict.fromkeys(units, 0)
    for unit, start, end, _ in instructions:
        y = units.index(unit)
        color = shades[counts[unit] % 2]
        counts[unit] += 1
        corners = [(start, y), (end, y), (end, y + 0.8), (start, y + 0.8)]
        if unit == "array":
            corners = [(start, y), (start + rows, y), (end, y + 0.8), (end - rows, y + 0.8)]
        axes.add_patch(Polygon(corners, facecolor=color, linewidth=0))
        x = (start + end) / 2
        axes.text(x, y + 0.4, counts[unit], ha="center", va="center", weight="bold")
    last = max(end for _, _, end, _ in instructions)
    names = ["weights slide in", "rows enter,\nsums leave", "activation", "write"]
    axes.set(ylim=(4, -0.2), xlim=(0, last * 1.01), xlabel="cycles", yticks=np.arange(4) + 0.4, yticklabels=names)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    starts = [start for unit, start, _, _ in instructions if unit == "array"]
    how = "without a gap" if max(np.diff(starts), default=0) <= rows else "with gaps"
    finding = f"{len(starts)} tiles follow each other {how}: {last:,} cycles in all"
    axes.set_title(finding)
    return f"The units of the TPU over time: {finding}."
