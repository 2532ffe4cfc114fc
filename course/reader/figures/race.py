"""The optimizer race: up to three optimizers on the loss of one weight and one bias, on a map and over the updates."""

from typing import NamedTuple

import numpy as np
from matplotlib.collections import LineCollection

from course.reader.figures import BLANK, ink, short, styled

RACERS = (  # color, marker, width: the widths differ, so that all are visible when they overlap
    ("#0072B2", "o", 3.4),
    ("#D55E00", "s", 2.0),
    ("#009E73", "^", 1.2),
)
MAPS = {  # {inputs: (label of w, its range, its ticks)}
    "raw": ("w in kg per mm", (-0.35, 0.65), (-0.2, 0, 0.2, 0.4, 0.6)),
    "standardised": ("w in kg per standard deviation", (-6.5, 6.5), (-6, -3, 0, 3, 6)),
}
HEIGHTS = -2.5, 10.0  # the range of b on the maps, in kg
NEAR = 0.01  # a racer has arrived when its loss stays within this share of the best loss
FAR = 1e3  # a racer has diverged if its last loss is so many times above the best loss
CLIMBS = 0.1, 0.5, 2, 5, 10, 20, 35, 60, 100, 200, 400  # contours: losses above the best, as multiples of it
FINISH = "#F0E442"
PALE = "#C8C8C8"


class Valley(NamedTuple):
    """The mean squared error of w·x + b: loss + (p - best)ᵀ curvature (p - best) / 2 for p = (w, b)."""

    best: np.ndarray  # [2]: (w, b) at the minimum
    loss: float  # at the minimum
    curvature: np.ndarray  # [2, 2]: the second derivatives

    def contour(self, climb):
        """[n, 2]: the ellipse on which the loss is (1 + climb) times the best."""
        angle = np.linspace(0, 2 * np.pi, 181)
        circle = np.sqrt(2 * climb * self.loss) * np.stack([np.cos(angle), np.sin(angle)])
        return self.best + np.linalg.solve(np.linalg.cholesky(self.curvature).T, circle).T


def valley(x, y):
    """The Valley for inputs x[n, 1] and answers y[n, 1]."""
    columns = np.column_stack([x, np.ones(len(x))])
    best = np.linalg.lstsq(columns, y, rcond=None)[0]
    return Valley(best[:, 0], float(np.mean((columns @ best - y) ** 2)), 2 * columns.T @ columns / len(x))


def arrival(losses, best):
    """The number of updates after which losses stay within 1 % of the best, or None. losses[k]: after k updates."""
    away = np.flatnonzero(~(np.asarray(losses) <= best * (1 + NEAR)))  # not `>`, so that a NaN counts as away
    updates = int(away[-1]) + 1 if len(away) else 0
    return updates if updates < len(losses) else None


def fewest(run, racers, inputs, y, rates):
    """Print the fewest updates in which each racer arrives, at the best of these rates, for each x[rows, 1] in inputs.

    run(optimizer, x, y) returns losses and a path. racers: {name: function(rate) -> optimizer}. inputs: {name: x}.
    """
    width = max(map(len, racers))
    print(f"inputs        {'racer':{width}}  updates  at rate")
    for table, x in inputs.items():
        best = valley(x, y).loss
        for name, racer in racers.items():
            times = [(arrival(run(racer(rate), x, y)[0], best), rate) for rate in rates]
            updates, rate = min((time for time in times if time[0] is not None), default=("> 1,000", "none"))
            print(f"{table:12}  {name:{width}} {updates:>8} {rate:>8}")


def result(losses, best):
    """The result of one racer, in words."""
    updates = arrival(losses, best)
    climb = losses[-1] / best - 1
    if updates is not None:
        return f"arrives after {updates:,}"
    return f"is {short(100 * climb)} % above" if climb < FAR else "diverges"


def finding(losses, best):
    """The winner or winners, in words, from {name: losses}."""
    times = {name: arrival(loss, best) for name, loss in losses.items()}
    times = {name: updates for name, updates in times.items() if updates is not None}
    ends = {name: loss[-1] for name, loss in losses.items() if loss[-1] < best * FAR}
    scores = times or ends
    told = scores if times else {name: result(losses[name], best) for name in ends}  # racers with equal texts tie
    leaders = [name for name in scores if told[name] == told[min(scores, key=scores.get)]]
    who = " and ".join(leaders)
    one = len(leaders) == 1
    if times:
        updates = min(times.values())
        return f"{who} {'arrives' if one else 'arrive'} first, after {updates:,} update{'s' * (updates != 1)}"
    if len(leaders) == len(losses) > 1 and ends:
        return f"none of them arrives; {'both' if len(losses) == 2 else 'all'} end equally near"
    if ends:
        return f"none of them arrives; {who} {'comes' if one else 'come'} nearest"
    return "all of them diverge"


@styled(width=7.4, height=3.5, left=0.075, right=0.808, bottom=0.137, top=0.8, wspace=0.42)
def drawn(figure, inputs, rate, x, y, runs):
    """A race: the paths on a map of the loss, and how far above the best loss each racer is.

    inputs: a key of MAPS. x, y: [n, 1], the data to which w·x + b is fitted. runs: {name: (losses[steps + 1],
    path[steps + 1, 2])}, with the loss and (w, b) at the start and after each update. Values that are not finite are
    not drawn. Raises ValueError for more than three runs."""
    if len(runs) > len(RACERS):
        raise ValueError(f"race: {len(runs)} runs ({', '.join(runs)}); a picture has room for {len(RACERS)}")
    place, losses = valley(x, y), {name: np.asarray(loss) for name, (loss, _) in runs.items()}
    chart, clock = figure.subplots(1, 2)
    draw_map(chart, place, inputs, [path for _, path in runs.values()])
    draw_clock(clock, place.loss, losses)
    flat, steep = np.linalg.eigvalsh(place.curvature)
    found = f"{inputs}, rate {rate:g}: {finding(losses, place.loss)}"
    shape = "a round bowl"
    if steep > 1.001 * flat:
        shape = f"a valley {short(np.sqrt(steep / flat))} times as long as wide"
    figure.text(0.008, 0.937, found, size=11, weight="bold")
    chart.set_title(f"the loss: {shape}", weight="normal", size=10)
    results = "; ".join(f"{name} {result(loss, place.loss)}" for name, loss in losses.items())
    return (
        f"{found}. In {max(map(len, losses.values())) - 1:,} updates: {results}. "
        "To arrive is to stay within 1 % of the best loss. "
        f"The loss is {shape}; plain SGD is stable up to a rate of {2 / steep:.3g}."
    )


def draw_map(axes, place, inputs, paths):
    """Draw contours of the loss, the start, the best point, and each path with marks after 1, 10, 100, … updates."""
    label, widths, ticks = MAPS[inputs]
    axes.add_collection(LineCollection([*map(place.contour, CLIMBS)], colors=PALE, linewidths=0.8))
    axes.fill(*place.contour(NEAR).T, color=FINISH)
    for (color, marker, width), path in zip(RACERS, paths, strict=False):
        path = inside(path, np.transpose([widths, HEIGHTS]))
        marks = [10**k for k in range(9) if 10**k < len(path)]
        axes.plot(*path.T, color=color, linewidth=0.5 * width, alpha=0.7, zorder=3)
        axes.plot(*path[marks].T, marker, color=color, markersize=4 + width, markeredgecolor="white", zorder=4)
    for point, name in ((paths[0][0], "start"), (place.best, "best")):
        axes.plot(*point, "k+", markersize=9, zorder=5)
        axes.annotate(name, point, (7, -12), textcoords="offset points", size=9, zorder=5, bbox=BLANK)
    axes.set(xlim=widths, ylim=HEIGHTS, xticks=ticks, yticks=(0, 5, 10), xlabel=label, ylabel="b in kg")


def inside(path, corners):
    """The path [n, 2], NaN from its first point a thousand maps away: lines to such points would only cross the map."""
    low, high = corners
    far = ~(np.abs(path - low) < 1e3 * (high - low)).all(axis=1)
    return np.where(np.logical_or.accumulate(far)[:, None], np.nan, path)


def draw_clock(axes, best, losses):
    """Draw how far above the best loss each racer is, in percent, over the updates, with its result."""
    # The values are exponents of ten, because a linear axis is drawn faster than a log axis.
    low = -2
    high = 5
    steps = max(map(len, losses.values()))
    ticks = [0, *(10**k for k in range(9) if 10**k < steps)]
    axes.set_xticks(np.log10(np.add(ticks, 1)), [f"{tick:,}" for tick in ticks])
    axes.set_yticks([-2, 0, 2, 4], ["0.01", "1", "100", "10,000"])
    axes.set(xlim=(0, np.log10(steps)), ylim=(low, high), xlabel="updates", ylabel="% above the best loss")
    axes.set_title("yellow: within 1 % of the best", weight="normal", size=10)
    axes.axhspan(low, 2 + np.log10(NEAR), color=FINISH, alpha=0.35, linewidth=0)
    ends = []
    for (color, marker, width), loss in zip(RACERS, losses.values(), strict=False):
        climb = np.log10(np.clip(np.nan_to_num(100 * (loss / best - 1), nan=np.inf), 1e-9, 1e9))
        axes.plot(np.log10(np.arange(len(loss)) + 1), climb, color=color, linewidth=width)
        updates = arrival(loss, best)
        end = (len(loss), climb[-1]) if updates is None else (updates + 1, 2 + np.log10(NEAR))
        ends.append(min(max(climb[-1], low), high))
        look = dict(color=color, markersize=6 + width, markeredgecolor="white", clip_on=False, zorder=5)
        axes.plot(np.log10(end[0]), min(end[1], high), marker, **look)
    heights = apart((np.array(ends) - low) / (high - low), 0.16, 0.09, 0.93)
    for (color, *_), height, (name, loss) in zip(RACERS, heights, losses.items(), strict=False):
        text = f"{name}\n{result(loss, best)}"
        axes.text(1.05, height, text, color=ink(color), size=9, va="center", transform=axes.transAxes)


def apart(heights, gap, low=0.0, high=1.0):
    """The heights, moved so that neighbours are at least `gap` apart, in the same order, between low and high."""
    order = np.argsort(heights, kind="stable")
    placed = np.array(heights, float)
    for k, floor in zip(order, low + gap * np.arange(len(order)), strict=True):
        placed[k] = max(placed[k], floor)
    for below, above in zip(order, order[1:], strict=False):
        placed[above] = max(placed[above], placed[below] + gap)
    for k, ceiling in zip(order[::-1], high - gap * np.arange(len(order)), strict=True):
        placed[k] = min(placed[k], ceiling)
    return placed
