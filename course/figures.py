"""Every picture of the course. A picture settles a claim: its title says what it shows, its text says it again in words."""

import base64
import functools
import inspect
import io
from pathlib import Path

import matplotlib.style
import numpy as np
from IPython.display import Markdown
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from PIL import Image

STYLE = Path(__file__).with_name("course.mplstyle")
LEVELS = ("hardware", "kernels", "low_level", "mid_level", "high_level")
HOUSE = ("ground", "clay", "bricks", "walls", "house")
HUES = ("#D55E00", "#E69F00", "#CC79A7", "#56B4E9", "#009E73")  # one a level, the same everywhere (Okabe and Ito, 2008)
DATA, MODEL, GREY = "#0072B2", "#D55E00", "#8A8A8A"


class Picture:
    """A figure as a PNG of at most 256 colours, with a sentence for readers who cannot see it."""

    def __init__(self, figure, text):
        raw, small = io.BytesIO(), io.BytesIO()
        figure.savefig(raw, dpi=100)
        Image.open(raw).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(small, "png", optimize=True)
        self.png, self.text = small.getvalue(), text

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.text}


def styled(width=7.0, height=3.2):
    """Decorate a function that fills a new figure and returns its sentence: it gives back a Picture in the course's style."""

    def decorate(draw):
        @functools.wraps(draw)
        def picture(*args, **kwargs):
            with matplotlib.style.context(STYLE):
                figure = Figure((width, height))
                return Picture(figure, draw(figure, *args, **kwargs))

        return picture

    return decorate


def source(*functions):
    """The source of functions, as highlighted code."""
    return Markdown("```python\n" + "\n\n".join(map(inspect.getsource, functions)) + "```")


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
        alpha = 1.0 if i + 1 <= level else 0.25
        left, right = (-0.1, 2.5) if i == 0 else (0.2, 2.2)
        if i == 4:
            axes.add_patch(Polygon([(0.0, i), (1.2, i + 1.5), (2.4, i)], color=hue, alpha=alpha, lw=0))
        else:
            axes.add_patch(Rectangle((left, i), right - left, 0.94, color=hue, alpha=alpha, lw=0))
        axes.text(1.2, i + 0.42, stuff, ha="center", va="center", color="white" if alpha == 1 else "#555555")
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
    right.set(xlabel="true y, rows never trained on", ylabel="predicted y", title=f"test R² {score:.3f}")
    return (
        f"{task.title}: last loss {fit.losses[-1]:.4g} after {len(fit.losses)} steps; R² {score:.3f} on the test rows."
    )


def loss_curve(axes, losses, window=50, **style):
    """Losses on a log axis: each step faint, a running mean over it."""
    losses = np.asarray(losses, float)
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    axes.semilogy(losses, color=GREY, linewidth=0.3, alpha=0.5)
    axes.semilogy(np.arange(len(smooth)) + window / 2, smooth, **(dict(color=DATA) | style))
    axes.set(xlabel="step", ylabel="loss", title=f"the loss falls to {smooth[-1]:.3g}")


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
    right.set(xticks=(0, 1), xticklabels=("says 0", "says 1"), yticks=(0, 1), yticklabels=("is 0", "is 1"))
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
    axes.legend(loc="upper right")
    axes.set(xlabel="step", ylabel="loss", title=f"{len(fits)} levels, one curve: maximum difference {difference:g}")
    return f"The loss curves of {', '.join(fits)} lie on each other: maximum difference {difference:g}."
