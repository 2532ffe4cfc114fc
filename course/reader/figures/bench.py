"""The picture of `python3 -m course bench`."""

from course.reader.figures import GREY, HUES, short, styled

LOOKS = {  # the color and the mark of each library; the levels have their own colors (HUES)
    "NumPy": ("#555555", "o"),
    "PyTorch": ("#0072B2", "s"),
    "TensorFlow": ("#8C6D1F", "^"),
    "JAX": ("#7B3FA0", "v"),
    "scikit-learn": ("#A65628", "P"),
    "tinygrad": ("#999999", "X"),
    "micrograd": ("#C0A0A0", "*"),
}
WAYS = {
    "by hand": "gradients by hand",
    "eager": "eager",
    "step": "a compiled step",
    "epoch": "a compiled epoch",
    "fit": "fit",
    "again": "a second fit",
}


def best(results):
    """{library: its result with the least median}"""
    found = {}
    for result in sorted(results, key=lambda result: result.median, reverse=True):
        found[result.library] = result
    return found


@styled(width=8.0, height=7.6)
def raced(figure, results):
    """Each training task in each way to write it, over µs per step: a mark for each library's quickest mode."""
    timed = [result for result in results if result.case.section == "training" and result.seconds]
    lines, ahead, compared = [], 0, 0
    for family in dict.fromkeys(result.case.family for result in timed):
        lines.append((family, None))
        same = [result for result in timed if result.case.family == family]
        lines += [(family, api) for api in WAYS if any(result.api == api for result in same)]
    axes, seen = figure.subplots(), set()
    for height, (family, api) in enumerate(reversed(lines)):
        if api is None:
            axes.text(
                0.0, height, family, transform=axes.get_yaxis_transform(), ha="left", va="center", weight="bold", size=9
            )
            continue
        found = best(result for result in timed if (result.case.family, result.api) == (family, api))
        own, others = found.pop("levels", None), found.values()
        axes.axhline(height, color="#DDDDDD", linewidth=0.6, zorder=0)
        for name, result in found.items():
            color, mark = LOOKS[name]
            label = None if name in seen else name
            axes.plot(1e6 * result.median, height, mark, color=color, markersize=5.5, label=label)
            seen.add(name)
        if own:
            hue = HUES[int(own.mode[0]) - 1]
            axes.plot(1e6 * own.median, height, marker="D", color=hue, markersize=8, markeredgecolor="black", zorder=5)
            axes.plot(1e6 * own.limit, height, marker="|", color=GREY, markersize=9)
        if own and others:
            compared, ahead = compared + 1, ahead + (own.median <= min(other.median for other in others))
    axes.plot([], [], "D", color="white", markeredgecolor="black", markersize=8, label="levels, in its level's hue")
    axes.plot([], [], "|", color=GREY, markersize=9, label="the limit (level 1)")
    axes.set_yticks(range(len(lines)), ["" if api is None else WAYS[api] for _, api in reversed(lines)], size=8.5)
    axes.set(xscale="log", xlabel="µs per step, shuffle and gather included", ylim=(-0.7, len(lines) - 0.3))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8.5)
    claim = f"levels is the quickest in {ahead} of {compared} comparisons"
    axes.set_title(claim)
    fastest = min(timed, key=lambda result: result.median)
    return f"{claim}; the quickest step of all takes {short(1e6 * fastest.median)} µs ({fastest.case.family})."
