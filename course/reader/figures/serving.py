"""The picture of a served model's latencies."""

import numpy as np

from course.reader.figures import BLANK, ink, plain, styled


@styled(height=3.2)
def latencies(figure, seconds, alone):
    """A histogram of the seconds of each request, array [n], with the seconds of one run without a server (alone)."""
    axes = figure.subplots()
    times = 1e3 * np.asarray(seconds)
    half, most = np.quantile(times, (0.5, 0.99))
    edges = np.geomspace(min(times.min(), 0.2), times.max(), 60)
    axes.hist(times, edges, color="#0072B2")
    axes.axvline(1e3 * alone, color="#D55E00", linewidth=2.5)
    axes.set_xscale("log")
    axes.set_xlim(0.5e3 * alone, 1.5 * times.max())
    plain(axes.xaxis)
    top = axes.get_ylim()[1]
    words = {
        "the model alone:": (1e3 * alone, "#D55E00", 0.9),
        "half within": (half, "black", 0.9),
        "99 of 100 within": (most, "black", 0.55),
    }
    for name, (at, color, up) in words.items():
        axes.axvline(at, color=color, linestyle="-" if at < half else "--", linewidth=1.5)
        told = f"{name} {number(at)}"
        axes.annotate(told, (at, up * top), xytext=(6, 0), textcoords="offset points", color=ink(color), bbox=BLANK)
    axes.set(xlabel="from question to answer (ms)", ylabel="requests")
    axes.set_title(f"an answer takes {half / (1e3 * alone):,.0f} times as long as the model alone")
    return (
        f"A histogram of {len(times):,} requests. "
        f"Half are answered within {number(half)}, 99 of 100 within {number(most)}. "
        f"The model alone needs {number(1e3 * alone)}."
    )


def number(milliseconds):
    return f"{milliseconds:.1f} ms" if milliseconds >= 1 else f"{1e3 * milliseconds:.0f} µs"
