"""Pictures of the GPU: the memory that a warp accesses, and a block of threads that sums its numbers."""

from matplotlib.patches import Rectangle

from course.reader.figures import DATA, GREY, MODEL, styled, tint

THREADS = 16  # in the block that is drawn
WARP = 32
WROTE = ("#F4F4F4", "#FBE3D6")  # colors of a cell that was not written, and of one that was


@styled(height=2.3, left=0.16, right=0.82, bottom=0.2, top=0.84)
def segments(figure, transactions):
    """The 128-byte pieces of an array that a warp accesses to read every n-th float32. transactions: {n: count}."""
    axes = figure.subplots()
    for row, (step, count) in enumerate(transactions.items()):
        met = {4 * step * lane // 128 for lane in range(WARP)}
        for piece in range(WARP):
            hue = DATA if piece in met else "#EEEEEE"
            axes.add_patch(Rectangle((piece + 0.06, row + 0.12), 0.88, 0.76, color=hue, lw=0))
        axes.text(WARP + 0.6, row + 0.5, f"{count} transaction{'s' * (count > 1)}", va="center", size=9)
    steps = list(transactions)
    axes.set(xlim=(0, WARP), ylim=(len(steps), 0), xlabel="pieces of 128 bytes")
    names = {1: "each", 2: "every 2nd", 3: "every 3rd", 32: "every 32nd"}
    axes.set_yticks([row + 0.5 for row in range(len(steps))], [names.get(step, f"every {step}th") for step in steps])
    axes.set_xticks(range(0, WARP + 1, 8))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    worst = max(transactions.values()) // min(transactions.values())
    figure.suptitle(
        f"always 32 numbers, but up to {worst} times the traffic", x=0.012, ha="left", weight="bold", size=11
    )
    told = ", ".join(f"{count} for {names.get(step, f'every {step}th')}" for step, count in transactions.items())
    return f"Transactions of 128 bytes with which a warp reads 32 numbers of a float32 array: {told}."


def reduction():
    """[(stride, cells)] of a sum of 1, 2, …: the shared cells at each barrier, and the stride of the turn before it."""
    cells = list(range(1, THREADS + 1))
    stride = THREADS // 2
    moments = [(None, list(cells))]
    while stride > 0:
        for t in range(stride):
            cells[t] += cells[t + stride]
        moments.append((stride, list(cells)))
        stride //= 2
    return moments


@styled(height=2.9, left=0.02, right=0.98, bottom=0.04, top=0.86)
def block_sum(figure, barrier):
    """The shared cells before and after the turn that ends at this barrier (from 1), with the threads' accesses."""
    moments = reduction()
    stride, after = moments[barrier - 1]
    _, before = moments[max(barrier - 2, 0)]
    active = stride or THREADS
    axes = figure.subplots()
    axes.set(xlim=(-0.6, THREADS), ylim=(3.0, -0.15))
    axes.axis("off")
    for cell in range(THREADS):
        middle = cell + 0.45
        works = cell < active
        axes.plot(middle, 1.5, "o", markersize=14, color=tint(MODEL) if works else "#EEEEEE", zorder=2)
        axes.text(middle, 1.5, cell, ha="center", va="center", color="black" if works else GREY, size=8, zorder=3)
        for top, held, hue in ((0.3, before[cell] if stride else "", "#F4F4F4"), (2.2, after[cell], WROTE[works])):
            axes.add_patch(Rectangle((cell + 0.02, top), 0.86, 0.5, facecolor=hue, edgecolor=GREY, linewidth=0.6))
            axes.text(middle, top + 0.26, held, ha="center", va="center", size=8)
        if works:
            for source in (cell, cell + stride) if stride else ():
                axes.plot([source + 0.45, middle], [0.82, 1.36], color=MODEL, linewidth=1)
            axes.plot([middle, middle], [1.64, 2.18], color=MODEL, linewidth=1)
    axes.text(0.02, 0.17, "shared cells before" if stride else "shared cells: not written yet", color=GREY, size=8)
    axes.text(0.02, 2.93, "after", color=GREY, size=8)
    finding = f"each of the {THREADS} threads writes its own cell"
    if stride:
        finding = "1 thread adds the next cell to its own"
        if stride > 1:
            finding = f"{stride} threads add the cell {stride} further on to their own"
    figure.suptitle(f"before barrier {barrier}: {finding}", x=0.012, ha="left", weight="bold", size=11)
    return f"Before barrier {barrier} of a block's sum: {finding}. The first cell now holds {after[0]}."
