"""Pictures of several machines: the cost of a message, and the speedup of many machines."""

import numpy as np

from course.reader.figures import DATA, GREY, HUES, binary, ink, plain, styled


@styled(height=3.0, left=0.11, right=0.97, bottom=0.18, top=0.86)
def messages(figure, nbytes, seconds, latency, bandwidth):
    """The measured seconds of an all-reduce over its bytes, and the model latency + bytes / bandwidth (s, bytes/s)."""
    axes = figure.subplots()
    sizes = np.array(nbytes, float)
    micro = 1e6 * np.array(seconds)
    told = 1e6 * (latency + sizes / bandwidth)
    axes.loglog(sizes, told, "-", color=GREY, linewidth=1.5)
    axes.loglog(sizes, micro, "o", color=DATA, markersize=5)
    axes.annotate(
        "latency + bytes / bandwidth",
        (sizes[-3], told[-3]),
        xytext=(-8, 6),
        textcoords="offset points",
        ha="right",
        color=GREY,
    )
    axes.set(
        xlabel="bytes of a message",
        ylabel="µs",
        ylim=(min(micro.min(), told.min()) / 3, max(micro.max(), told.max()) * 3),
    )
    ticks = [size for size in nbytes[::2]]
    axes.set_xticks(ticks, [binary(size) if size >= 1024 else f"{size} B" for size in ticks])
    axes.set_xticks([], minor=True)
    plain(axes.yaxis)
    even = binary(2 ** round(np.log2(latency * bandwidth)))
    axes.set_title(f"up to about {even}, the latency is most of the time")
    told = f"A sum over all ranks takes {1e6 * latency:.0f} µs or more."
    return f"{told} From about {even} on, its bytes take most of the time."


@styled(height=3.0, left=0.11, right=0.8, bottom=0.18, top=0.86)
def many(figure, machines, fixed, grown):
    """Rows per second relative to one machine. fixed, grown: function(n machines) -> seconds for one machine's batch.

    With `fixed` the total batch stays the same; with `grown` it is n times as large."""
    axes = figure.subplots()
    one = fixed(1)
    lines = {
        "ideal": (GREY, "-", [float(n) for n in machines]),
        "a larger batch": (HUES[4], "s-", [one / grown(n) for n in machines]),
        "the same batch": (HUES[0], "o-", [one / fixed(n) for n in machines]),
    }
    for name, (hue, look, speeds) in lines.items():
        up = 6 * (name == "ideal")  # moved up, because its line ends near the next one
        axes.loglog(machines, speeds, look, color=hue, linewidth=1.5, markersize=5)
        axes.annotate(
            name, (machines[-1], speeds[-1]), xytext=(8, up), textcoords="offset points", va="center", color=ink(hue)
        )
    best = max(range(len(machines)), key=lambda k: lines["the same batch"][2][k])
    axes.set_xticks(machines, [f"{n:,}" for n in machines])
    axes.set_xticks([], minor=True)
    plain(axes.yaxis)
    axes.set(xlabel="machines", ylabel="rows per second (one machine: 1)")
    axes.set_ylim(top=3 * max(map(max, (speeds for *_, speeds in lines.values()))))  # room for "ideal" under the title
    axes.set_title(f"with the same batch, more than {machines[best]} machines are slower again")
    finding = f"{machines[best]} machines are the quickest of the numbers drawn"
    return f"With the same batch, {finding}. With a larger batch, more machines still help."
