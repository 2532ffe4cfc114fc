"""A small graph as SVG, without a layout program. Its nodes are in layers, so that every arrow points down."""

import math
from collections import Counter
from html import escape

from course.reader.figures.layout import DROP, GAP, across, layers

# fills: tints of the course's blue, orange and grey
CONSTANT = "#D3E6F4"
VARIABLE = "#FBE0AC"
OP = "#F4F4F4"
PHASES = {"forward": OP, "backward": "#CBE9DD", "update": "#F3D9E8"}  # tints of its green and purple too
PARTS = {"before": OP, "row": CONSTANT, "sum": PHASES["backward"], "after": PHASES["update"]}
# px: font size, upper bound of a letter's width, line height, padding
FONT = 12
CHARACTER = 7.4
LINE = 16
PAD = 6
LETTER = 5.6  # px: the width of a letter of a label
WIDTH = 900  # px: what is wider is drawn smaller


class Drawing:
    """Boxes {key: (lines of text, fill)} and arrows [(key, key, label)] as SVG. `text` describes it in words.

    Keys may be any hashable values. They do not occur in the SVG, so equal graphs give equal SVGs. A label is written
    at the start of its arrow, once for all arrows of a box with that label. Raises graphlib.CycleError for a cycle,
    and ValueError if there are no boxes."""

    def __init__(self, boxes, arrows, text):
        if not boxes:
            raise ValueError("Drawing: there is nothing to draw")
        self.text = text
        number = {key: k for k, key in enumerate(boxes)}
        links = [(number[a], number[b]) for a, b, _ in arrows]
        labels = dict.fromkeys((number[a], label) for a, _, label in arrows if label)
        self.svg = "\n".join(svg([*boxes.values()], links, labels, text))

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/svg+xml": self.svg, "text/plain": self.text}


def tape_drawing(records):
    """A tape as a graph: a box for each tensor, with the op that made it and its value (up to 4 numbers).

    records: [(op, inputs, attrs, y)]. What no op of the tape made is blue; a single number among it is drawn once for
    each op that uses it. A tensor without `numpy`, as in a trace, shows only its shape."""
    made = {id(y): op for op, _, _, y in records}
    used = {id(x) for _, inputs, _, _ in records for x in inputs}
    boxes = {}
    arrows = []

    def add(key, tensor):
        op = made.get(id(tensor))
        value = numbers(tensor) or ("" if op and id(tensor) in used else shape(tensor))  # "": its arrows show the shape
        boxes[key] = [line for line in (op, value) if line], OP if op else CONSTANT

    for k, (_, inputs, _, y) in enumerate(records):
        for x in inputs:
            single = math.prod(x.shape) == 1
            key = (id(x), k) if single and id(x) not in made else id(x)
            add(key, x)
            arrows.append((key, id(y), shape(x) if id(x) in made and not single else ""))
        add(id(y), y)
    leaves = [lines[0] for lines, fill in boxes.values() if fill != OP]
    ends = [op for key, op in made.items() if key not in used]
    return Drawing(boxes, arrows, f"A tape of {len(records)} ops, from {', '.join(leaves)} to {', '.join(ends)}.")


def graph_drawing(graph, names, parts=None):
    """A traced step as a graph: a box for each node. Forward ops are grey, backward ops green, update ops purple.

    With `parts` {node: a key of PARTS}, ops on rows are blue, sums over rows green, ops after them purple, and numbers,
    which have no rows, grey. `names` are those of the inputs, in order. A constant is drawn for each op that uses it.
    """
    ways = {id(node): parts[node] for node in graph.ops} if parts else phases(graph)
    fills = PARTS if parts else PHASES
    new = {id(node): getattr(v, "name", None) or "a variable" for v, node in graph.updates.items()}
    boxes = {}
    arrows = []

    def add(key, node):
        lines = [node.op]
        fill = fills.get(ways.get(id(node)))
        if node.op == "input":
            lines = [names[node.source]]
            fill = CONSTANT
        elif node.op == "variable":
            lines = [node.source.name or "a variable"]
            fill = VARIABLE
        elif node.op == "constant":
            lines = [numbers(node.source) or shape(node.source)]
            fill = OP if parts else CONSTANT
        elif id(node) in new:
            lines.append(f"new {new[id(node)]}")
        if not node.inputs and node.op != "constant" or any(node is out for out in graph.outputs):
            lines.append(shape(node.spec))
        boxes[key] = lines, fill

    for k, node in enumerate(graph.ops):
        for x in node.inputs:
            key = (id(x), k) if x.op == "constant" else id(x)
            add(key, x)
            arrows.append((key, id(node), shape(x.spec) if x.inputs and x.spec.shape else ""))
        add(id(node), node)
    counts = Counter(ways.values())
    text = ", ".join(f"{counts[way]} {'in the ' * (way == 'update')}{way}" for way in fills if counts[way])
    return Drawing(boxes, arrows, f"A graph of {len(graph.ops)} ops: {text}.")


def phases(graph):
    """{id of an op: "forward", "backward" or "update"}. The results need the forward ops. The update is the elementwise
    ops, in a variable's shape, that lead to its new value without another kind of op after them."""
    ways = {}
    waiting = list(graph.outputs)
    while waiting:
        node = waiting.pop()
        if node.inputs and id(node) not in ways:
            ways[id(node)] = "forward"
            waiting += node.inputs
    for variable, last in graph.updates.items():
        waiting = [last]
        while waiting:
            node = waiting.pop()
            alike = all(x.spec.shape in (variable.shape, ()) for x in node.inputs)
            if node.inputs and id(node) not in ways and node.spec.shape == variable.shape and alike:
                ways[id(node)] = "update"
                waiting += node.inputs
    return {id(node): ways.get(id(node), "backward") for node in graph.ops}


def shape(tensor):
    return "(" + ", ".join(map(str, tensor.shape)) + ("," if len(tensor.shape) == 1 else "") + ")"


def numbers(tensor):
    """The numbers of a tensor with 1 to 4 elements, to 4 digits. None for other sizes and for one without `numpy`."""
    size = math.prod(tensor.shape)
    if not hasattr(tensor, "numpy") or not 1 <= size <= 4:
        return None
    text = ", ".join(f"{number:.4g}" for number in tensor.numpy().ravel())
    return text if size == 1 else f"[{text}]"


def svg(boxes, links, labels, text):
    """Yield the lines of the SVG: first the arrows, then labels and boxes on top of them."""
    widths = [max(44, CHARACTER * max(map(len, lines)) + 2 * PAD) for lines, _ in boxes]
    layer = layers(len(boxes), links)
    x, ways = across(widths, links, layer)
    sides = {k: freer_side(k, label, x, layer, links, ways) for k, label in labels}
    reach = [at + side * width / 2 for at, width in zip(x, widths, strict=True) for side in (-1, 1)]
    reach += [at for way in ways for at in way]
    reach += [x[k] + sides[k] * (5 + CHARACTER * len(label)) for k, label in labels]
    left = min(reach) - GAP
    right = max(reach) + GAP
    x = [at - left for at in x]
    ways = [[at - left for at in way] for way in ways]
    lines = [max(len(boxes[k][0]) for k, at in enumerate(layer) if at == row) for row in range(max(layer) + 1)]
    heights = [LINE * count + 2 * PAD for count in lines]
    tops = [GAP + sum(heights[:row]) + row * DROP for row in range(len(heights))]
    bottoms = [top + height for top, height in zip(tops, heights, strict=True)]

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {px(right - left)} {bottoms[-1] + GAP}" '
        f'width="{px(min(right - left, WIDTH))}" role="img" font-family="sans-serif" font-size="{FONT}" '
        f'text-anchor="middle"><title>{escape(text)}</title>'
    )
    yield f'<rect width="{px(right - left)}" height="{bottoms[-1] + GAP}" fill="white"/>'
    for (a, b), way in zip(links, spread(links, ways, widths), strict=True):
        yield from arrow(way, tops[layer[a] : layer[b] + 1], bottoms[layer[a] : layer[b] + 1])
    for k, label in labels:
        anchor = "start" if sides[k] > 0 else "end"
        place = (x[k] + 5 * sides[k], bottoms[layer[k]] + 15)
        width = LETTER * len(label)
        left = place[0] - (width if anchor == "end" else 0)  # white behind the label, over the arrows
        yield f'<rect x="{px(left)}" y="{px(place[1] - 9)}" width="{px(width)}" height="12" fill="white"/>'
        yield words(*place, label, f'font-size="{FONT - 1}" text-anchor="{anchor}" fill="#555"')
    for (texts, fill), at, width, row in zip(boxes, x, widths, layer, strict=True):
        place = f'x="{px(at - width / 2)}" y="{tops[row]}" width="{px(width)}" height="{heights[row]}"'
        yield f'<rect class="box" {place} rx="6" fill="{fill}" stroke="#777"/>'
        y = (tops[row] + bottoms[row] - LINE * len(texts)) / 2 + 0.75 * LINE
        for k, line in enumerate(texts):
            yield words(at, y + k * LINE, line, f'font-weight="{"normal" if k else "bold"}"')
    yield "</svg>"


def words(x, y, text, look):
    return f'<text x="{px(x)}" y="{px(y)}" {look}>{escape(text)}</text>'


def freer_side(box, label, x, layer, links, ways):
    """The side of a box's label: 1 for the right, -1 for the left. It is the side that fewer arrows cross; for equal
    counts, the side opposite to the mean direction of the box's own arrows."""
    row = layer[box]
    stops = [way[1] for (a, _), way in zip(links, ways, strict=True) if a == box]
    passing = [way[row - layer[a] :][:2] for (a, b), way in zip(links, ways, strict=True) if layer[a] <= row < layer[b]]

    def crowd(side):
        places = [[side * (a + (b - a) * down - x[box]) for down in (0.1, 0.35, 0.55)] for a, b in passing]
        return sum(any(5 < place < 5 + LETTER * len(label) for place in each) for each in places)

    return min((-1, 1), key=lambda side: (crowd(side), side * (sum(stops) / len(stops) - x[box])))


def px(number):
    return f"{number:.1f}".removesuffix(".0")


def spread(links, ways, widths):
    """The ways, with arrows that end in the same box spread side by side, in order; also the starts of equal links."""
    ways = [[*way] for way in ways]
    arriving = {}
    for k, (_, b) in enumerate(links):
        arriving.setdefault(b, []).append(k)
    for b, ends in arriving.items():
        ends.sort(key=lambda k: ways[k][-2])
        step = min(14, (widths[b] - 2 * PAD) / len(ends))
        for rank, k in enumerate(ends):
            ways[k][-1] += step * (rank - (len(ends) - 1) / 2)
            equal = [rank for rank, other in enumerate(ends) if links[other] == links[k]]
            ways[k][0] += step * (rank - sum(equal) / len(equal))
    return ways


def arrow(way, tops, bottoms):
    """Yield an arrow: a curve from the bottom of the first layer through those between to the top of the last."""
    end = tops[-1] - 6
    path = f"M{px(way[0])} {bottoms[0]}"
    for k, (a, b) in enumerate(zip(way, way[1:], strict=False), 1):
        y = bottoms[k - 1]
        goal = tops[k] if k + 1 < len(way) else end
        path += f"C{px(a)} {px((y + goal) / 2)} {px(b)} {px((y + goal) / 2)} {px(b)} {goal}"
        path += f"V{bottoms[k]}" if k + 1 < len(way) else ""
    x = way[-1]
    yield f'<path class="arrow" d="{path}" fill="none" stroke="#777"/>'
    yield f'<path d="M{px(x - 4)} {end - 2}L{px(x)} {tops[-1]}L{px(x + 4)} {end - 2}z" fill="#777"/>'
