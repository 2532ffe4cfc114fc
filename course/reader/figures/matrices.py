"""The cache lines that a matrix product loads, step by step."""

import functools
import itertools

import numpy as np
from matplotlib.collections import PolyCollection

from course.reader.figures.picture import DATA, styled

MATRICES = dict(x="ik", w="kj", out="ij")  # accessed by out[i, j] += x[i, k] * w[k, j]
ORDERS = ("ikj", "kij", "ijk", "jik", "kji", "jki")  # of its three loops, outermost first; from few loads to many
# numbers in a row of each matrix, numbers in a cache line, lines in the cache
SIDE = 8
LINE = 4
LINES = 6


@functools.cache
def cache_loads(order, n=SIDE, line=LINE, lines=LINES):
    """Count the cache lines that a matrix product has loaded after each step, and list those in the cache.

    Rows of n numbers are stored in lines of `line`. The cache is fully associative, has room for `lines` lines and
    evicts the least recently used. Return loads[n³ + 1, 3], the counts so far for x, w and out, and n³ + 1 lists of
    lines (matrix, row, column // line), the most recently used last."""
    missed = np.zeros((n**3 + 1, 3), int)
    held = [[]]
    for step, at in enumerate(itertools.product(range(n), repeat=3), 1):
        at = dict(zip(order, at, strict=True))
        cache = held[-1]
        for m, (row, column) in enumerate(MATRICES.values()):
            touched = m, at[row], at[column] // line
            missed[step, m] = touched not in cache
            cache = [*(other for other in cache if other != touched), touched][-lines:]
        held.append(cache)
    return missed.cumsum(axis=0), held


# a cache line: only in memory, also in the cache, just loaded
COLD = "#EBEBEB"
HELD = "#9CCBE8"
LOADED = "#E69F00"
CORNERS = dict(x=(0, 10.0), w=(10.4, 0), out=(10.4, 10.0))  # in numbers: a row of x is beside its row of out, w above


def tile(x, y, width=LINE):
    """The corners of a rectangle of height 1, reduced by a small margin."""
    return [(x + 0.07, y + 0.07), (x + width - 0.07, y + 0.07), (x + width - 0.07, y + 0.93), (x + 0.07, y + 0.93)]


def three_matrices(axes, at, held, new):
    """Draw each cache line of x, w and out as a tile with a dot per number, and mark the numbers at these indices."""
    # the first two are the legend
    tiles = [tile(-1.5, 3.95, 1.3), tile(-1.5, 5.15, 1.3)]
    states = [1, 2]
    dots = []
    reads = [(-1.15, 6.85)]
    writes = [(-0.55, 6.85)]
    for m, (name, (row, column)) in enumerate(MATRICES.items()):
        left, top = CORNERS[name]
        for y, place in np.ndindex(SIDE, SIDE // LINE):
            tiles.append(tile(left + LINE * place, top + y))
            states.append(((m, y, place) in held) + ((m, y, place) in new))
            dots += [(left + LINE * place + k + 0.5, top + y + 0.5) for k in range(LINE)]
        x = left + at.get(column, 3.5) + 0.5
        y = top + at.get(row, 3.5) + 0.5
        axes.text(left - 0.2, y, f"{row} = {at[row]}" if at else row, size=9, ha="right", va="center")
        axes.text(x, top - 0.2, f"{column} = {at[column]}" if at else column, size=9, ha="center")
        (writes if name == "out" else reads).extend([(x, y)] * bool(at))
    colors = np.array([COLD, HELD, LOADED])[states]
    edges = np.array(["none", "none", "black"])[states]
    axes.add_collection(PolyCollection(tiles, facecolors=colors, edgecolors=edges, linewidths=1.4, clip_on=False))
    axes.plot(*np.transpose(dots), "o", color="#777777", markersize=1.6, markeredgewidth=0)
    for places, shape in ((reads, "o"), (writes, "D")):
        axes.plot(*np.transpose(places), shape, color="black", markersize=5, clip_on=False)
    legend = f"in the cache: {LINES} lines\nloaded now\nread, written now"
    axes.text(0.1, 3.85, legend, size=9, va="top", linespacing=1.66)


def loads_so_far(axes, order, step):
    """Draw the loads of this order, bold up to this step, and those of the other orders in grey."""
    for rank, other in enumerate(ORDERS):
        total = cache_loads(other)[0].sum(axis=1)
        mine = other == order
        axes.plot(total, color=DATA if mine else "#BBBBBB", linewidth=0.9, zorder=3 if mine else 2)
        look = dict(color=DATA, weight="bold") if mine else dict(color="#666666")
        y = total[-1] + (10 if rank % 2 else -10)  # labels alternate up and down, so that neighbours do not overlap
        axes.text(SIDE**3 + 32, y, f"{other} {total[-1]:,}", size=9, va="center", **look)
        if mine:
            axes.plot(total[: step + 1], color=DATA, linewidth=2.6, zorder=4, solid_capstyle="round")
            axes.plot(step, total[step], "o", color=DATA, markersize=7, zorder=5, clip_on=False)
    axes.set(xlim=(0, SIDE**3), ylim=(0, 1120), xticks=(0, 256, 512), yticks=(0, 500, 1000), xlabel="steps")
    axes.set_title("lines loaded", weight="normal", size=10)


@styled(height=4.5, left=0.068, right=0.885, bottom=0.12, top=0.84, wspace=0.22)
def loop_order(figure, order, step):
    """A matrix product after `step` steps: the numbers it accessed, the lines in the cache, and the loads so far."""
    loads, held = cache_loads(order)
    inner = order[-1]
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
        f"By step {SIDE**3}, {loads[-1].sum():,} lines are loaded."
    )
