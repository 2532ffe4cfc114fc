"""The GPU's own pictures: the memory that a warp meets, and a block of threads that adds up its numbers."""

from matplotlib.patches import Rectangle

from course.figures import DATA, GREY, MODEL, styled

THREADS = 16  # of the block that is drawn


@styled(height=2.3, left=0.16, right=0.82, bottom=0.2, top=0.84)
def segments(figure, transactions, warp=32):
    """Which 128-byte pieces of an array one warp meets that reads every n-th float32; {n: counted transactions}."""
    axes = figure.subplots()
    for row, (step, count) in enumerate(transactions.items()):
        met = {4 * step * lane // 128 for lane in range(warp)}
        for piece in range(warp):
            hue = DATA if piece in met else "#EEEEEE"
            axes.add_patch(Rectangle((piece + 0.06, row + 0.12), 0.88, 0.76, color=hue, lw=0))
        axes.text(warp + 0.6, row + 0.5, f"{count} transaction{'s' * (count > 1)}", va="center", size=9)
    steps = list(transactions)
    axes.set(xlim=(0, warp), ylim=(len(steps), 0), xlabel="pieces of 128 bytes")
    axes.set_yticks(
        [row + 0.5 for row in range(len(steps))],
        [f"every {step}th" if step > 3 else {1: "each", 2: "every 2nd"}[step] for step in steps],
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    worst = max(transactions.values()) // min(transactions.values())
    figure.suptitle(f"the same 32 numbers, up to {worst} times the traffic", x=0.012, ha="left", weight="bold", size=11)
    told = ", ".join(f"every {step}: {count}" for step, count in transactions.items())
    return f"128-byte transactions of a warp that reads float32 at a step: {told}."


def reduction(numbers):
    """What the shared cells hold after each barrier of the block's sum, and the stride that led there: [(stride, cells)]."""
    cells, stride = list(numbers), len(numbers) // 2
    moments = [(None, list(cells))]
    while stride > 0:
        for t in range(stride):
            cells[t] += cells[t + stride]
        moments.append((stride, list(cells)))
        stride //= 2
    return moments


@styled(height=2.9, left=0.02, right=0.98, bottom=0.04, top=0.86)
def block_sum(figure, barrier, numbers=tuple(range(1, THREADS + 1))):
    """The shared cells before and after one barrier of a block that adds up `numbers`, and who read and wrote which."""
    moments = reduction(numbers)
    (stride, after), (_, before) = moments[barrier], moments[max(barrier - 1, 0)]
    axes = figure.subplots()
    axes.set(xlim=(-0.6, len(numbers)), ylim=(3.0, -0.15))
    axes.axis("off")
    active = len(numbers) if stride is None else stride
    for cell in range(len(numbers)):
        works = cell < active
        axes.text(cell + 0.45, 1.5, cell, ha="center", va="center", color="white" if works else GREY, size=8, zorder=3)
        axes.plot(cell + 0.45, 1.5, "o", markersize=14, color=MODEL if works else "#EEEEEE", zorder=2)
        for top, held in ((0.3, before if stride else [""] * len(numbers)), (2.2, after)):
            wrote = top > 1 and works
            box = dict(facecolor="#FBE3D6" if wrote else "#F4F4F4", edgecolor=GREY, linewidth=0.6)
            axes.add_patch(Rectangle((cell + 0.02, top), 0.86, 0.5, **box))
            axes.text(cell + 0.45, top + 0.26, held[cell], ha="center", va="center", size=8)
        if works:
            for source in () if stride is None else (cell, cell + stride):
                axes.plot([source + 0.45, cell + 0.45], [0.82, 1.36], color=MODEL, linewidth=1)
            axes.plot([cell + 0.45] * 2, [1.64, 2.18], color=MODEL, linewidth=1)
    for y, name in (
        (0.17, "shared cells before" if stride else "shared cells: not written yet"),
        (1.2, "threads"),
        (2.93, "after"),
    ):
        axes.text(-0.55 if name == "threads" else 0.02, y, name if name != "threads" else "", color=GREY, size=8)
    finding = (
        f"each of {len(numbers)} threads writes the cell of its number"
        if stride is None
        else f"stride {stride}: {stride} thread{'s' * (stride > 1)} add{'s' * (stride == 1)} what {'lies' if stride > 1 else 'lies'} {stride} further"
    )
    figure.suptitle(f"barrier {barrier + 1}: {finding}", x=0.012, ha="left", weight="bold", size=11)
    return f"Barrier {barrier + 1} of a block's sum: {finding}. The first cell now holds {after[0]}."
