"""Compute the places of boxes and arrows, in layers, so that every arrow points down."""

from graphlib import TopologicalSorter

# px: between neighbours, and between layers
GAP = 18
DROP = 44


def layers(count, links):
    """The layer of each of `count` boxes: directly above the highest box that it leads to.

    If it leads to none, it is below its lowest input."""
    above, below = neighbours(count, links)
    layer = {}
    for box in TopologicalSorter(dict(enumerate(below))).static_order():
        if below[box]:
            layer[box] = min(layer.get(other, 0) for other in below[box]) - 1
    for box in range(count):
        if not below[box]:
            layer[box] = max((layer[other] for other in above[box]), default=-1) + 1
    top = min(layer.values())
    return [layer[box] - top for box in range(count)]


def neighbours(count, links):
    """(above, below): for each of `count` boxes, the boxes that lead to it, and the boxes that it leads to."""
    above = [[] for _ in range(count)]
    below = [[] for _ in range(count)]
    for a, b in links:
        above[b].append(a)
        below[a].append(b)
    return above, below


def across(widths, links, layer, gap=GAP):
    """The middle x of each box, and for each link its x in every layer from its first box to its last.

    A link that passes a layer occupies a place in it like a narrow box. Each sweep orders every layer by the mean x of
    its neighbours above (then below), and moves its boxes as near to these as the order and `gap` allow (Sugiyama,
    Tagawa and Toda, 1981). Boxes without input have little weight: a chain stays straight where weights join it."""
    widths, rows, steps, ways = [*widths], [[] for _ in range(max(layer) + 1)], [], []
    for box, row in enumerate(layer):
        rows[row].append(box)
    for a, b in links:
        passed = range(len(widths), len(widths) + layer[b] - layer[a] - 1)
        for box, row in zip(passed, range(layer[a] + 1, layer[b]), strict=True):
            rows[row].append(box)
            widths.append(2)
        ways.append([a, *passed, b])
        steps += zip(ways[-1], ways[-1][1:], strict=False)
    above, below = neighbours(len(widths), steps)
    both = [a + b for a, b in zip(above, below, strict=True)]
    x = [0.0] * len(widths)
    weight = [1.0 if others else 0.01 for others in above]

    def move(row, near):
        wish = {}
        for box in row:
            total = sum(weight[other] for other in near[box])
            wish[box] = sum(weight[other] * x[other] for other in near[box]) / total if total else x[box]
        if near is not both:
            row.sort(key=lambda box: (wish[box], box))  # for ties, the order of the boxes: that of an op's inputs
        for box, place in zip(row, apart(row, wish, weight, widths, gap), strict=True):
            x[box] = place

    for _ in range(6):
        for row in rows:
            move(row, above)
        for row in reversed(rows):
            move(row, below)
    for _ in range(8):  # the order is final now
        for row in rows + rows[::-1]:
            move(row, both)
    return x[: len(layer)], [[x[stop] for stop in way] for way in ways]


def apart(row, wish, weight, widths, gap):
    """Places in this order, at least `gap` apart, with the least weighted squared distances from the wished places.

    Boxes that would overlap form a block, side by side, at the weighted mean of the places its members wish for it."""
    blocks = []
    start = 0.0
    for box in row:
        block = weight[box], wish[box] - start - widths[box] / 2, [start + widths[box] / 2]
        start += widths[box] + gap
        while blocks and blocks[-1][1] > block[1]:
            w, left, before = blocks.pop()
            v, right, after = block
            block = w + v, (w * left + v * right) / (w + v), before + after
        blocks.append(block)
    return [left + offset for _, left, offsets in blocks for offset in offsets]
