"""Graphs as SVG: what the boxes and arrows hold, where they stand, and the tape that they show."""

import itertools
import random
import re
from collections import Counter
from graphlib import CycleError
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from course.reader.figures import drawing
from course.reader.figures.drawing import CONSTANT, OP, PHASES, VARIABLE, Drawing, graph_drawing, tape_drawing
from levels_more import low_level
from levels_more.hardware import pool

# What an SVG says, read back from it.


def boxes(svg) -> list:
    """Each box as its rectangle and its lines of text."""
    found = []
    for element in ElementTree.fromstring(svg):
        if element.get("class") == "box":
            x, y, width, height = (float(element.get(name)) for name in ("x", "y", "width", "height"))
            found.append(SimpleNamespace(left=x, top=y, right=x + width, bottom=y + height, fill=element.get("fill")))
            found[-1].lines = []
        elif found and element.tag.endswith("text"):
            found[-1].lines.append(element.text)
    return found


def arrows(svg) -> list:
    """Each arrow as its points in order, those that a curve is pulled to among them."""
    found = []
    for path in re.findall(r'<path class="arrow" d="(.*?)"', svg):
        points = []
        for command, numbers in re.findall(r"([MCV])([-\d. ]+)", path):
            numbers = [float(number) for number in numbers.split()]
            points += [(points[-1][0], *numbers)] if command == "V" else zip(numbers[::2], numbers[1::2], strict=True)
        found.append(points)
    return found


def at(svg, x, y) -> str:
    """The first line of the box at a point of its edge."""
    (box,) = [b for b in boxes(svg) if b.left <= x <= b.right and min(abs(b.top - y), abs(b.bottom - y)) < 0.1]
    return box.lines[0]


def graph(count, seed):
    """A random graph without cycles: boxes of many sizes, some of them alone, and arrows near and far, some doubled."""
    draw = random.Random(seed)
    lines = ["a value", "and another line", "x"]
    nodes = {k: ([f"node {k}", *lines[: draw.randrange(4)]], OP) for k in range(count)}
    edges = [(draw.randrange(max(0, k - 9), k), k, "") for k in range(5, count) for _ in range(draw.randrange(3))]
    return nodes, edges + edges[:3] + [(0, count - 1, "far")]


GRAPHS = [graph(count, seed) for count in (6, 20, 60) for seed in range(2)]


@pytest.mark.parametrize(("nodes", "edges"), GRAPHS)
def test_boxes_are_drawn_once_and_apart(nodes, edges):
    svg = Drawing(nodes, edges, "A graph.").svg
    found, (_, _, wide, high) = boxes(svg), map(float, re.search('viewBox="(.*?)"', svg)[1].split())
    assert [box.lines for box in found] == [lines for lines, _ in nodes.values()]
    for box in found:
        assert min(box.left, box.top) >= 0 and box.right <= wide and box.bottom <= high
        assert box.bottom - box.top >= drawing.LINE * len(box.lines)
    for a, b in itertools.combinations(found, 2):
        gap = drawing.GAP - 0.2 if a.top == b.top else 0
        assert a.right + gap <= b.left or b.right + gap <= a.left or a.bottom <= b.top or b.bottom <= a.top


@pytest.mark.parametrize(("nodes", "edges"), GRAPHS)
def test_arrows_join_their_boxes_go_down_and_cross_none(nodes, edges):
    svg = Drawing(nodes, edges, "A graph.").svg
    found, ends = arrows(svg), Counter()
    for points in found:
        (x, y), (goal_x, goal_y) = points[0], points[-1]
        ends[at(svg, x, y), at(svg, goal_x, goal_y + 6)] += 1  # the point of the arrow is 6 px long
        heights = [y for _, y in points]
        assert heights == sorted(heights) and heights[0] < heights[-1]
        for (x, top), (below, bottom) in zip(points, points[1:], strict=False):
            if x == below:  # straight, past a layer
                assert not any(b.left < x < b.right and b.top < bottom and top < b.bottom for b in boxes(svg))
    assert ends == Counter((nodes[a][0][0], nodes[b][0][0]) for a, b, _ in edges)
    tips = [points[-1] for points in found]
    assert len({*tips}) == len(tips)  # two arrows into one box are seen as two


def test_equal_graphs_are_equal_texts_whatever_the_keys():
    """The order of a set of keys, which is that of their hashes, plays no part."""
    nodes, edges = GRAPHS[-1]
    for seed in range(5):
        draw = random.Random(seed)
        keys = {key: draw.random() for key in nodes}
        other = {keys[k]: node for k, node in nodes.items()}, [(keys[a], keys[b], s) for a, b, s in edges]
        assert Drawing(*other, "A graph.").svg == Drawing(nodes, edges, "A graph.").svg


@pytest.mark.quick
def test_text_is_escaped():
    texts = ["<b> & \"c\" 'd'", "a < b"]
    drawn = Drawing({1: (texts, OP), 2: (["end"], OP)}, [(1, 2, "(2, 3) <&>")], "x < y & z")
    root = ElementTree.fromstring(drawn.svg)
    assert boxes(drawn.svg)[0].lines == texts and "(2, 3) <&>" in [element.text for element in root]
    assert root[0].text == "x < y & z" == repr(drawn)
    assert drawn._repr_mimebundle_() == {"image/svg+xml": drawn.svg, "text/plain": "x < y & z"}


def test_a_cycle_and_nothing_cannot_be_drawn():
    with pytest.raises(CycleError):
        Drawing({1: (["a"], OP), 2: (["b"], OP)}, [(1, 2, ""), (2, 1, "")], "A cycle.")
    with pytest.raises(ValueError, match="^Drawing: there is nothing to draw"):
        Drawing({}, [], "Nothing.")


# The tape.


def step():
    """The tape of sum((x @ w + b) * 2) / 2 with a 2 that is used twice."""
    x, w = low_level.constant(np.full((10, 3), 103.0)), low_level.Variable(np.ones((3, 2)))
    b, two = low_level.Variable(np.array([[0.25, -1 / 3]])), low_level.constant(np.float64(2.0))
    with low_level.GradientTape() as tape:
        low_level.reduce_sum((x @ w + b) * two) / two
    return tape.records


def test_a_tape_is_drawn():
    drawn = tape_drawing(step())
    assert [(box.lines, box.fill) for box in boxes(drawn.svg)] == [
        (["(10, 3)"], CONSTANT),
        (["(3, 2)"], CONSTANT),
        (["matmul"], OP),
        (["[0.25, -0.3333]"], CONSTANT),
        (["add"], OP),
        (["2"], CONSTANT),
        (["multiply"], OP),
        (["reduce_sum", "1.236e+04"], OP),
        (["2"], CONSTANT),
        (["divide", "6179"], OP),
    ]
    assert drawn.svg.count(">(10, 2)<") == 3 and len(arrows(drawn.svg)) == 9
    assert repr(drawn) == "A tape of 5 ops, from (10, 3), (3, 2), [0.25, -0.3333], 2, 2 to divide."
    assert drawn.svg == tape_drawing(step()).svg


def traced_step():
    """A step of a linear regression without a bias, traced and made smaller."""
    w = low_level.Variable(np.ones((2, 1)), "w")

    def step(rows, target):
        with low_level.GradientTape() as tape:
            error = rows @ w - target
            loss = low_level.reduce_mean(error * error)
        w.assign(w - 0.5 * tape.gradient(loss, w))
        return loss

    cpu = pool()["cpu:0"]
    graph = low_level.trace(step, (cpu.spec((4, 2), "f8"), cpu.spec((4, 1), "f8")))[0]
    return low_level.dce(graph)


def test_a_traced_step_is_drawn_with_its_phases():
    graph = traced_step()
    drawn = graph_drawing(graph, ["rows", "target"])
    found = {fill: [box.lines[0] for box in boxes(drawn.svg) if box.fill == fill] for fill in PHASES.values()}
    assert Counter(found[PHASES["forward"]]) == Counter(["matmul", "subtract", "multiply", "reduce_mean"])
    assert Counter(found[PHASES["backward"]]) == Counter(["broadcast_divide", "multiply", "multiply", "add", "matmul"])
    assert found[PHASES["update"]] == ["multiply", "subtract"]
    leaves = {box.lines[0]: box.fill for box in boxes(drawn.svg) if box.fill in (CONSTANT, VARIABLE)}
    assert leaves == {"rows": CONSTANT, "target": CONSTANT, "w": VARIABLE, "0.5": CONSTANT, "1": CONSTANT}
    assert [box.lines for box in boxes(drawn.svg) if "new w" in box.lines] == [["subtract", "new w"]]
    assert repr(drawn) == "A graph of 11 ops: 4 forward, 5 backward, 2 in the update."
    assert drawn.svg == graph_drawing(traced_step(), ["rows", "target"]).svg  # an equal graph is an equal text
