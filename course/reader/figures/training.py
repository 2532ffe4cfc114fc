"""Figures of data, of training, and of its results."""

import numpy as np

from course.reader.figures.picture import DATA, GREY, HUES, MODEL, ink, plain, styled
from course.reader.language import say

# the margins of a figure with a curve on the left and something else on the right
HALVES = dict(left=0.095, right=0.985, bottom=0.148, top=0.863, wspace=0.22)


def titled(task):
    """The title of a task in the reader's language."""
    return {"The line": say("The line"), "Two rings": say("Two rings")}.get(task.title, task.title)


@styled(left=0.09, right=0.985, bottom=0.148, top=0.91, wspace=0.05)
def scatter_inputs(figure, task):
    """Scatter plots of y over each of the inputs."""
    for axes, column, name in zip(figure.subplots(1, task.x.shape[1], sharey=True), task.x.T, task.names, strict=True):
        axes.plot(column, task.y[:, 0], ".", color=DATA, markersize=4)
        axes.set_xlabel(name)
    figure.axes[0].set_ylabel("y")
    given = {"title": titled(task), "first": task.names[0], "second": task.names[1]}
    figure.suptitle(say("{title}: y rises with {first} and falls with {second}", **given), weight="bold", size=11)
    return say("{title}: {count} points, y over {first} and y over {second}.", count=len(task.x), **given)


def r_squared(y, prediction):
    """The share of the variance of y that the prediction explains."""
    return 1.0 - float(((y - prediction) ** 2).sum() / ((y - y.mean()) ** 2).sum())


@styled(**HALVES)
def regression(figure, task, fit):
    """The losses, and beside them the predictions over the true y of the test rows."""
    left, right = figure.subplots(1, 2)
    loss_curve(left, fit.losses)
    predicted = fit.predict(task.x_test)
    low = min(task.y_test.min(), predicted.min())
    high = max(task.y_test.max(), predicted.max())
    right.plot([low, high], [low, high], color=GREY, linewidth=1)
    right.plot(task.y_test[:, 0], predicted[:, 0], ".", color=MODEL)
    score = r_squared(task.y_test, predicted)
    right.set(xlabel="true y, test rows", ylabel="predicted y", title=f"{task.title}\ntest R² {score:.3f}")
    return (
        f"{task.title}: last loss {fit.losses[-1]:.4g} after {len(fit.losses)} steps; R² {score:.3f} on the test rows."
    )


@styled(**HALVES | dict(top=0.92))
def before_and_after(figure, task, losses, w, b):
    """The losses, and beside them a linear model's predictions for its training rows, before and after training."""
    left, right = figure.subplots(1, 2)
    loss_curve(left, losses)
    low = task.y.min()
    high = task.y.max()
    right.plot([low, high], [low, high], color=GREY, linewidth=1)
    for name, (weights, bias), color, marker in (
        (say("before"), task.weights, GREY, "x"),
        (say("after"), (w, b), MODEL, "."),
    ):
        right.plot(task.y[:, 0], (task.x @ weights + bias)[:, 0], marker, color=color, markersize=4, label=name)
    right.legend(loc="upper left")
    right.set(xlabel=say("answer y"), ylabel=say("prediction"), title=say("now the predictions fit"))
    numbers = {"first": f"{losses[0]:.1f}", "last": f"{losses[-1]:.4g}", "steps": f"{len(losses):,}"}
    return say(
        "{title}: the loss falls from {first} to {last} in {steps} steps. ", title=titled(task), **numbers
    ) + say("Before training, the predictions have little to do with the answers; after it, they lie near them.")


def loss_curve(axes, losses, window=50):
    """Draw losses on a log axis: each step faintly, and on top a running mean of `window` steps."""
    losses = np.asarray(losses, float)
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    axes.semilogy(losses, color=GREY, linewidth=0.3, alpha=0.5)
    axes.semilogy(np.arange(len(smooth)) + window / 2, smooth, color=DATA)
    plain(axes.yaxis, (1, 3))
    title = say("the loss falls to {loss} (mean of {window})", loss=f"{smooth[-1]:.3g}", window=window)
    axes.set(xlabel=say("step"), ylabel=say("loss"), title=title)


BINARY = ("#0072B2", "#E69F00")  # y = 0, y = 1


def points(axes, x, y):
    """Draw the points of both classes, with different colors and markers."""
    for value, color, marker in zip((0, 1), BINARY, "o^", strict=True):
        chosen = x[y[:, 0] == value]
        axes.plot(*chosen.T, marker, color=color, markersize=2.5, alpha=0.6, markeredgewidth=0, label=f"y = {value}")


@styled(width=4.2, height=4, left=0.162, right=0.985, bottom=0.118, top=0.935)
def classes(figure, task):
    """The points of a two-dimensional classification."""
    axes = figure.subplots()
    points(axes, task.x, task.y)
    axes.set(xlabel=task.names[0], ylabel=task.names[1], title="no straight line parts the rings", aspect="equal")
    axes.legend(loc="upper right", markerscale=3)
    return f"{task.title}: {len(task.x)} points of two classes."


def accuracy(y, p):
    """The share of rows whose probability is on the correct side of one half."""
    return float(((p > 0.5) == (y > 0.5)).mean())


def best_radius(x, y):
    """The accuracy of the best rule "1 outside a circle around the origin" on these points."""
    outside = y[np.argsort(np.hypot(*x.T)), 0]
    right = np.cumsum(1 - outside) + outside.sum() - np.cumsum(outside)  # the first k points called 0, the others 1
    return max(float(right.max()), float(outside.sum())) / len(y)


@styled(**HALVES)
def classifier(figure, task, fit, scored=False):
    """The losses, and beside them the regions where a net predicts 0 and 1; with `scored`, its and the best accuracy.

    Earlier figures do not show the best possible accuracy, because notebook 05 asks the reader to predict it.
    """
    left, right = figure.subplots(1, 2)
    loss_curve(left, fit.losses, window=200)
    side = np.linspace(-11, 11, 60)
    grid = np.stack([v.ravel() for v in np.meshgrid(side, side)], axis=1).astype(task.x.dtype)
    p = fit.predict(grid).reshape(60, 60)
    right.contourf(side, side, p, levels=[0, 0.5, 1], colors=BINARY, alpha=0.25)
    points(right, task.x_test, task.y_test)
    right.set(xlabel=task.names[0], ylabel=task.names[1], aspect="equal")
    if not scored:
        right.set_title(say("the net's two regions,\nand the test points"))
        title = titled(task)
        return say(
            "{title}: the points that the training did not see, and the net's answer for each place.", title=title
        )
    score = accuracy(task.y_test, fit.predict(task.x_test))
    best = best_radius(task.x_test, task.y_test)
    right.set_title(f"{score:.1%} of test points right\n(the best circle: {best:.1%})")
    return f"{task.title}: {score:.1%} of the test points are right; the best circle gets {best:.1%}."


@styled(**HALVES)
def confusion(figure, task, fit):
    """The losses, and beside them the confusion matrix of the test rows."""
    left, right = figure.subplots(1, 2)
    loss_curve(left, fit.losses)
    said = fit.predict(task.x_test)[:, 0] > 0.5
    true = task.y_test[:, 0] > 0.5
    counts = np.array([[int(((true == t) & (said == s)).sum()) for s in (False, True)] for t in (False, True)])
    right.imshow(counts, cmap="Blues", vmin=0, vmax=counts.max() * 1.6)
    for (t, s), count in np.ndenumerate(counts):
        right.text(s, t, count, ha="center", va="center", size=14)
    right.set(xticks=(0, 1), xticklabels=("says female", "says male"), yticks=(0, 1))
    right.set_yticklabels(("is female", "is male"), rotation=90, va="center")
    right.spines[:].set_visible(False)
    score = accuracy(task.y_test, fit.predict(task.x_test))
    baseline = max(true.mean(), 1 - true.mean())
    right.set_title(f"{score:.1%} of test rows right\n(always one answer: {baseline:.1%})")
    return (
        f"{task.title}: {score:.1%} of the test rows are right; the commoner answer for every row gets {baseline:.1%}."
    )


@styled()
def parting(figure, gaps, kinks):
    """The largest gap between two runs' weights at each step (gaps), and the steps where a relu disagrees (kinks)."""
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


@styled(left=0.09, right=0.985, bottom=0.148, top=0.92)
def five_curves(figure, fits):
    """The loss curves of {level: Fit} over each other, the widest line lowest."""
    axes = figure.subplots()
    first, *rest = fits.values()
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
    """Training and held-out loss over the epochs, the best epoch (from 0), and that of the stop, `patience` later."""
    axes = figure.subplots()
    stop = best + patience
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
    ends = f"From epoch 1 to {len(losses)} the loss on the penguins it learns from goes down"
    return f"{ends}; {found}. Training stops at epoch {stop + 1}."
