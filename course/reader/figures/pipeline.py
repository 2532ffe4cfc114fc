"""Pictures of a data pipeline: its stages, and the times of reading and training."""

import textwrap

from matplotlib.patches import FancyBboxPatch

from course.reader.figures.picture import DATA, GREY, MODEL, short, styled, tint
from course.reader.figures.tape import COOL, ELEMENTS, ROW_NUMBERS

HOLDS = {  # {name of a stage: what it holds}; {n} is its argument, {units} its input
    "from_tensor_slices": "{count:,} rows of\n{rows}",
    "from_batches": "rows of {rows},\n{count:,} batches of\nrow numbers",
    "from_generator": "one at a time",
    "zip": "one element of each",
    "shuffle": "up to {n:,}\n{units}",
    "batch": "{n:,} {units}\nto a batch",
    "cache": "all {units}\nof a pass",
    "prefetch": "up to {n} {units},\nready",
}


def held(stages):
    """Yield, for each stage of a dataset, what it holds while the dataset runs, in words."""
    for before, data in zip([stages[0], *stages], stages, strict=False):
        name, argument = data.stage.removesuffix(")").partition("(")[::2]
        units = "batches" if before.batches else "elements" if data.arrays is None else "row numbers"
        words = HOLDS.get(name, "{units},\none at a time")
        known = data is stages[0] and data.arrays is not None
        yield words.format(
            n=int(argument) if argument.isdigit() else 0,
            units=units,
            count=data.length if known else 0,
            rows=numbers_of(data.arrays) if known else "",
        )


def numbers_of(arrays):
    """The count of numbers in a row of each array, in words: "2 + 1 numbers"."""
    if isinstance(arrays, dict):
        return f"{len(arrays)} columns"
    if isinstance(arrays, tuple):
        return " + ".join(numbers_of(x).removesuffix(" numbers").removesuffix(" number") for x in arrays) + " numbers"
    size = " × ".join(map(str, arrays.shape[1:])) or "1"
    return f"{size} {'number' if size == '1' else 'numbers'}"


@styled()
def pipeline(figure, dataset, element):
    """The stages of a dataset from left to right, each with what it holds, and the shapes in an output element.

    Blue: the rows themselves. Grey: only row numbers. Yellow: new arrays."""
    stages = dataset.stages
    numbers = [data.stage for data in stages if data.arrays is not None]
    hues = [ROW_NUMBERS if data.arrays is not None else ELEMENTS for data in stages[1:]]
    hues = [COOL if numbers else ELEMENTS, *hues, ELEMENTS]
    out = f"one {'batch' if dataset.batches else 'element'}:\n{shapes_of(element)}"
    boxes = [*zip((data.stage for data in stages), held(stages), strict=True), ("your loop", out)]
    across = min(len(boxes), 4 if len(boxes) != 5 else 5)
    lines = -(-len(boxes) // across)
    figure.set_size_inches(7.0, 0.35 + 1.0 * lines)
    axes = figure.subplots()
    axes.set(xlim=(0, across), ylim=(lines, 0))
    axes.axis("off")
    for k, (texts, hue) in enumerate(zip(boxes, hues, strict=True)):
        x = k % across
        y = k // across
        stage_box(axes, x, y, *texts, hue, across)
        if k + 1 < len(boxes) and x + 1 < across:
            axes.annotate("", (x + 1.03, y + 0.49), (x + 0.87, y + 0.49), arrowprops=dict(arrowstyle="->", color=GREY))
    finding = "each stage makes an element when the next one asks for it"
    if numbers:
        finding = f"row numbers up to {numbers[-1]}, then new arrays, made on demand"
    if dataset.arrays is not None:
        finding = "row numbers pass through the stages, the rows stay where they are"
    figure.suptitle(finding, x=0.012, ha="left", weight="bold", size=11)
    told = ". ".join(f"{name}: {' '.join(holds.split())}" for name, holds in boxes)
    return f"The pipeline: {finding}. {told}."


def stage_box(axes, x, y, name, holds, hue, across):
    """Draw a stage as a box with its name and what it holds. across: the number of boxes in a line."""
    shape = FancyBboxPatch((x + 0.01, y + 0.06), 0.88, 0.86, boxstyle="round,pad=0,rounding_size=0.05")
    shape.set(facecolor=hue, edgecolor=GREY, linewidth=1)
    axes.add_patch(shape)
    # width in characters of the smaller size
    look = dict(ha="center", va="center")
    width = 104 // across
    filled = "\n".join(textwrap.fill(line, width) for line in holds.split("\n"))
    axes.text(x + 0.45, y + 0.24, name, weight="bold", size=8 if len(name) < 0.7 * width else 7, **look)
    size = 7.5 if across > 4 or filled.count("\n") > 1 else 8
    axes.text(x + 0.45, y + 0.62, filled, size=size, linespacing=1.05, **look)


def shapes_of(element):
    """The shapes of the arrays in an element, as text."""
    if isinstance(element, dict):
        return ", ".join(f"{name} {shapes_of(value)}" for name, value in element.items())
    return " and ".join(map(shapes_of, element)) if isinstance(element, tuple) else str(element.shape)


@styled(height=2.6, left=0.21, right=0.97, bottom=0.18, top=0.89)
def timeline(figure, runs):
    """The times of reading and training in two runs, {name: [("read" or "train", start, end)]}, in seconds."""
    axes = figure.subplots()
    times = []
    lanes = []
    for run, (name, spans) in enumerate(runs.items()):
        first = min(start for _, start, _ in spans)
        for lane, (who, hue) in enumerate(dict(read=DATA, train=MODEL).items()):
            y = 2.5 * run + lane
            bars = [(1e3 * (start - first), 1e3 * (end - start)) for by, start, end in spans if by == who]
            axes.broken_barh(bars, (y + 0.06, 0.88), facecolor=tint(hue), edgecolor="white", linewidth=0.8)
            for number, (start, width) in enumerate(bars, 1):
                axes.text(start + width / 2, y + 0.5, number, size=8, ha="center", va="center", clip_on=True)
            lanes.append((y + 0.5, who))
        times.append(1e3 * (max(end for _, _, end in spans) - first))
        axes.text(-0.26, 2.5 * run + 1, name.replace(" ", "\n"), va="center", transform=axes.get_yaxis_transform())
        axes.plot([times[-1]] * 2, [2.5 * run, 2.5 * run + 2], color=GREY, linewidth=1)
    axes.set_yticks(*zip(*lanes, strict=True))
    axes.set(xlim=(0, max(times) * 1.02), ylim=(4.6, -0.1), xlabel="milliseconds")
    axes.tick_params(axis="y", length=0)
    axes.spines.left.set_visible(False)
    count = sum(who == "train" for who, _, _ in spans)
    before, after = map(short, times)
    finding = f"{count} batches in {after} ms instead of {before} ms: reading hides behind training"
    if times[1] > 0.95 * times[0]:
        finding = f"nothing is hidden: {count} batches in {after} ms, and in {before} ms without prefetch"
    figure.suptitle(finding, x=0.012, ha="left", weight="bold", size=11)
    return f"Time line: {finding}."
