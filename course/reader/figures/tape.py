"""A tape, walked backwards, and beside it the finite differences that a nudge of one leaf measures."""

from typing import NamedTuple

from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path as Curve
from matplotlib.transforms import Affine2D

from course.reader.figures import drawing
from course.reader.figures.matrices import LOADED
from course.reader.figures.picture import BLANK, DATA, GREY, styled

NUDGE = 1e-6  # the amount by which a leaf is raised and lowered


class Walk(NamedTuple):
    """A program of single numbers: its tape, the gradients after each backward step, and the effects of nudges."""

    records: list  # [(op, names of its inputs, name of its output, slope of the output over each input)]
    values: dict  # {name: number}
    shares: list  # [{name: [share]}]: shares received by the end of each step; first {target: [1.0]}
    moves: dict  # {leaf: {name: (move, move)}}: change of each value in units of NUDGE, leaf raised, lowered


def tape_of_numbers(records, names, rules):
    """Return (records, values) of a Walk, with names and numbers in place of a tape's tensors.

    records: [(op, inputs, attrs, y)] of single numbers. names: {name: tensor}, with a name for every tensor in the
    records. rules: {op: (vjp of each input)}."""
    name = {id(tensor): name for name, tensor in names.items()}
    steps = []
    values = {}
    for op, inputs, attrs, y in records:
        slopes = [float(vjp(1.0, y, *inputs, **attrs)) for vjp in rules[op]]
        steps.append((op, [name[id(x)] for x in inputs], name[id(y)], slopes))
        values |= {name[id(x)]: float(x) for x in (*inputs, y)}
    return steps, values


def walk_of_squared_error(make_tape, constant, rules, **leaves):
    """The Walk of l = (x·w + b - y)², with `make_tape()`, `constant` and `rules`. leaves: the numbers x, w, b and y.

    The slope over an input is the result of the op's gradient rule for dy = 1. A record gives each input a share: the
    gradient of its output times the slope. The gradient of a name is the sum of its shares; that of l is 1. Raises
    ValueError if a nudge is lost in rounding."""

    def program(**leaves):
        x, w, b, y = (constant(leaves[name], "f8") for name in "xwby")
        with make_tape() as tape:
            p = x * w
            z = p + b
            e = z - y
            l = e * e
        return tape_of_numbers(tape.records, dict(x=x, w=w, b=b, y=y, p=p, z=z, e=e, l=l), rules)

    records, values = program(**leaves)
    shares = [{"l": [1.0]}]
    for _, inputs, output, slopes in reversed(records):
        known = dict(shares[-1])
        for name, slope in zip(inputs, slopes, strict=True):
            known[name] = [*known.get(name, ()), sum(known[output]) * slope + 0.0]  # -0.0 + 0.0 is 0.0
        shares.append(known)
    moves = {}
    for leaf, number in leaves.items():
        up, down = (program(**leaves | {leaf: number + nudge})[1] for nudge in (NUDGE, -NUDGE))
        if abs((up[leaf] - down[leaf]) / NUDGE - 2) > 1e-3:
            raise ValueError(f"walk_of_squared_error: {leaf} = {number} is too large to be nudged by {NUDGE}")
        moves[leaf] = {name: ((up[name] - at) / NUDGE, (down[name] - at) / NUDGE) for name, at in values.items()}
    return Walk(records, values, shares, moves)


def handed_on(walk, record):
    """The shares that a record hands on: [(input, gradient of its output, slope)]."""
    _, inputs, output, slopes = walk.records[record]
    gradient = sum(walk.shares[-1][output])
    return [(name, gradient, slope) for name, slope in zip(inputs, slopes, strict=True)]


def summed(shares):
    """A gradient as the text of a sum of its shares: 2 + 2 = 4."""
    total = f"{sum(shares):.4g}"
    return total if len(shares) == 1 else " + ".join(f"{share:.4g}" for share in shares) + f" = {total}"


def measured(move, sign=""):
    """A move as text with 4 digits, trailing zeros included; "0" if it is 1e-6 or less."""
    return f"{move:{sign}#.4g}" if abs(move) > 1e-6 else "0"


# px; GRAPH is the middle of the graph
TAPE_BOX = (126, 38)
TAPE_LINE = 262
GRAPH = 488
TAPE_HEIGHT = 520
COOL = "#DCEBF6"
WARM = "#FCE9C4"
INK = "#00507D"
WARM_INK = "#8A5A00"
BUMP = "#007355"


class TapePage:
    """The page of tape_backwards: coordinates are pixels from the upper left corner, and y has a center per row."""

    def __init__(self, figure, records):
        self.figure, height = figure, 392 / (len(records) + 1)
        self.y = [58 + (row + 0.5) * height for row in range(len(records) + 1)]
        self.pixels = Affine2D().scale(1 / 700, -1 / TAPE_HEIGHT).translate(0, 1) + figure.transFigure

    def write(self, x, y, text, size=8.5, **look):
        self.figure.text(x, y, text, size=size, va="center_baseline", transform=self.pixels, **look)

    def add(self, patch, **look):
        patch.set(transform=self.pixels, **look)
        self.figure.add_artist(patch)

    def box(self, x, row, width, **look):
        shape = dict(boxstyle="round,pad=0,rounding_size=5")
        self.add(FancyBboxPatch((x, self.y[row] - TAPE_BOX[1] / 2), width, TAPE_BOX[1], **shape), **look)

    def arrow(self, way, row, back, color):
        """Draw a curve from the box in a row down to a box in a later row. Its point is there, or here if `back`."""
        half = TAPE_BOX[1] / 2
        thick = 2.4 if back else 1
        corners = [(way[0], self.y[row] + half + 9 * back)]
        codes = [Curve.MOVETO]
        for k, (a, b) in enumerate(zip(way, way[1:], strict=False), row + 1):
            last = k == row + len(way) - 1
            start = corners[-1][1]
            goal = self.y[k] - half - 9 * (last and not back)
            between = (start + goal) / 2
            corners += [(a, between), (b, between), (b, goal), (b, goal if last else goal + 2 * half)]
            codes += [Curve.CURVE4] * 3 + [Curve.LINETO]
        self.add(PathPatch(Curve(corners, codes), fill=False), edgecolor=color, linewidth=thick)
        x, y = corners[0 if back else -1]
        high = -8 if back else 8
        self.add(Polygon([(x - 5, y), (x + 5, y), (x, y + high)]), facecolor=color, linewidth=0)


def tape_lines(page, walk, first):
    """Draw the tape, one line per record, with the shares that records from the end to `first` gave their inputs."""
    page.write(14, page.y[0] - 9, "the tape: the walk goes upwards", size=9, weight="bold")
    page.write(14, page.y[0] + 9, "a share: gradient of the output × slope", color=INK)
    for record, (op, inputs, output, _) in enumerate(walk.records):
        edge, fill = (GREY, "white") if record < first else (LOADED, WARM) if record == first else (DATA, COOL)
        page.box(14, record + 1, TAPE_LINE, edgecolor=edge, facecolor=fill, linewidth=2 if record == first else 1)
        line = f"{record + 1}  {op} {', '.join(inputs)} → {output}"
        y = page.y[record + 1]
        page.write(22, y - 9 * (record >= first), line, family="monospace")
        if record >= first:
            shares = [f"{name} += {gradient:.4g} × {slope:.4g}" for name, gradient, slope in handed_on(walk, record)]
            page.write(43, y + 9, ",   ".join(shares), color=INK)


def tape_places(records):
    """({name: (x, row)} of the boxes, [x in every row that it passes] for the arrow of each input of each record).

    The output of a record is in the record's row, a leaf in the row above the first record that uses it."""
    rows = {}
    for record, (_, inputs, output, _) in enumerate(records):
        rows |= {name: record for name in inputs if name not in rows} | {output: record + 1}
    names = [*rows]
    widths = [TAPE_BOX[0]] * len(rows)
    links = [(names.index(name), names.index(output)) for _, inputs, output, _ in records for name in inputs]
    x, ways = drawing.across(widths, links, [*rows.values()], gap=12)
    shift = GRAPH - (min(x) + max(x)) / 2
    ways = [[at + shift for at in way] for way in drawing.spread(links, ways, widths)]
    return {name: (at + shift, row) for at, (name, row) in zip(x, rows.items(), strict=True)}, ways


def tape_graph(page, walk, step, moves, meeting):
    """Draw the values as boxes, with their current gradients and their moves by the bump; the last shares on arrows."""
    first = len(walk.records) - step
    places, ways = tape_places(walk.records)
    gaining = set()
    ways = iter(ways)
    for record, (_, inputs, output, _) in enumerate(walk.records):
        shares = handed_on(walk, record)
        for k, name in enumerate(inputs):
            way = next(ways)
            back = record == first
            row = places[output][1]
            page.arrow(way, places[name][1], back, LOADED if back else DATA if record > first else GREY)
            if back:
                gaining.add(name)
                _, gradient, slope = shares[k]
                beside = abs(way[-1] - way[-2]) < 20 or inputs.count(name) > 1  # if the arrow is vertical or one of two
                side = beside and (1 if k else -1)
                look = dict(ha={-1: "right", 0: "center", 1: "left"}[side], color=WARM_INK, weight="bold")
                place = (way[-2] + way[-1]) / 2 + 9 * side, (page.y[row - 1] + page.y[row]) / 2
                page.write(
                    *place, f"{gradient * slope + 0.0:+.4g}", size=9, bbox=None if side else BLANK | dict(pad=0), **look
                )
    for name, (x, row) in places.items():
        shares = walk.shares[step].get(name)
        left = x - TAPE_BOX[0] / 2
        right = x + TAPE_BOX[0] / 2
        edge = dict(edgecolor=BUMP, linewidth=2.4) if name in meeting else dict(edgecolor=GREY, linewidth=1)
        page.box(left, row, TAPE_BOX[0], facecolor=WARM if name in gaining else COOL if shares else "white", **edge)
        page.write(left + 7, page.y[row] - 9, f"{name} = {walk.values[name]:.3g}", weight="bold")
        if measured(moves[name][0]) != "0":
            page.write(right - 7, page.y[row] - 9, measured(moves[name][0], "+"), ha="right", color=BUMP)
        if shares:
            gradient = summed(shares)
            gradient = gradient if len(gradient) < 14 else f"Σ {sum(shares):.4g}"
            page.write(left + 7, page.y[row] + 9, f"grad {gradient}", color=INK)


def turn(walk, step):
    """(what the record of this step does, why its turn has come), in words."""
    target = walk.records[-1][2]
    first = len(walk.records) - step
    if not step:
        finding = f"before the walk, one gradient is known: {target} has 1"
        return finding, f"When {target} moves by one, {target} moves by one."
    output = walk.records[first][2]
    shares = handed_on(walk, first)
    finding = " and ".join(f"{gradient * slope + 0.0:+.4g} to {name}" for name, gradient, slope in shares)
    sums = [name for name in dict.fromkeys(walk.records[first][1]) if len(walk.shares[step][name]) > 1]
    finding = "; ".join([finding, *(f"{name} has {summed(walk.shares[step][name])}" for name in sums)])
    users = [str(record + 1) for record, (_, inputs, _, _) in enumerate(walk.records) if output in inputs]
    where = f"No record uses {output}"
    if users:
        where = f"Every record that uses {output} has been walked ({' and '.join(users)})"
    complete = f"so the gradient of {output}, {shares[0][1]:.4g}, is complete"
    return f"record {first + 1} hands {finding}", f"{where}, {complete}."


@styled(height=TAPE_HEIGHT / 100, left=0)
def tape_backwards(figure, walk, step, bump):
    """A tape of single numbers, walked back by `step` of its records, and the nudged leaf `bump`.

    The bump goes down from the leaf, the gradients come up from the target. They meet at boxes
    that have a gradient and whose record is not walked yet: there, the sum of gradient · move equals the move of the
    target. This holds at every step. After the last step, the leaf is the only such box."""
    target, moves, page = walk.records[-1][2], walk.moves[bump], TapePage(figure, walk.records)
    waiting = {*walk.values} - {output for _, _, output, _ in walk.records[len(walk.records) - step :]}
    meeting = {name: sum(shares) for name, shares in walk.shares[step].items() if name in waiting}
    meeting = {name: gradient for name, gradient in meeting.items() if measured(moves[name][0]) != "0"}
    tape_lines(page, walk, len(walk.records) - step)
    tape_graph(page, walk, step, moves, meeting)

    finding, reason = turn(walk, step)
    page.write(14, 20, finding, size=11, weight="bold")
    page.write(14, 42, reason, size=9, color="#555555")
    up, down = map(measured, moves[target])
    total = measured(sum(gradient * moves[name][0] for name, gradient in meeting.items()))
    products = [f"{gradient:.4g} × {measured(moves[name][0])} ({name})" for name, gradient in meeting.items()]
    products = " + ".join(products) or "nowhere"
    nudged = f"raise {bump} by a millionth, and {target} moves by this many millionths (lowered: {down})"
    for y, number, text, color in (
        (474, up, f"the bump (green): {nudged}", BUMP),
        (498, total, f"the walk (blue): gradient × move where the two meet: {products}", INK),
    ):
        page.write(62, y, number, size=10, weight="bold", ha="right", color=color)
        page.write(76, y, text, size=9, color=color)
    gradients = ", ".join(f"{name} {summed(shares)}" for name, shares in walk.shares[step].items())
    return (
        f"Step {step} of {len(walk.records)}: {finding}. {reason} Gradients so far: {gradients}. "
        f"The bump: raised by a millionth, {bump} moves {target} by {up} millionths; lowered, by {down}. "
        f"The walk: gradient × move where the two meet is {products} = {total}."
    )


# colors of what a stage holds
ROW_NUMBERS = "#F2F2F2"
ELEMENTS = "#FCE9C4"
