"""The walk from `fit` to an instruction: its numbers are those of a run, at every stage, and all can walk it."""

import json
import re

import pytest
from code_edges import cut_names, drawn, uneven_edges

from course import build, tasks
from course.reader.inspection import walk
from course.reader.inspection.source_index import cell_of, places
from course.reader.inspection.walk import parts
from levels.hardware import exp, log
from levels.high_level import Sequential
from levels.high_level.tasks import dnn_classifier, linear_regression
from levels.mid_level import SGD, Dataset, Dense
from levels_more.hardware import disassembly

LINE, NET = tasks.linear(), tasks.rings()
NAMES = "fit|train_step|a layer|an op|plan and launch|the program|the loop|LLVM text|the instruction"
MARKS = ["5a", "5b", "4", "3a", "2", "3b", "1a", "1b", "1c"]
HEADS = [f"{mark} · {name}" for mark, name in zip(MARKS, NAMES.split("|"), strict=True)]


@pytest.fixture(scope="module")
def both():
    return walk.down((LINE, linear_regression), (NET, dnn_classifier))


# The same numbers, computed one by one with Python's floats.


def dot(p, q):
    total = 0.0
    for a, b in zip(p, q, strict=True):
        total += a * b
    return total


def line_by_hand():
    """{quantity: its number} for the first row of the first batch, and the weight of the first input."""
    w, b = (v.tolist() for v in LINE.weights)
    n = len(LINE.batches[0])

    def of_row(x, target):
        total = dot(x, [w[0][0], w[1][0]])
        error = total + b[0][0] - target
        slope = (1.0 / n) * error + (1.0 / n) * error
        return {"sum": total, "prediction": total + b[0][0], "error": error, "share": error * error, "slope": slope}

    found = step_by_hand(LINE, of_row, w[0][0], b[0][0])
    return found | {"output": found["prediction"]}


def step_by_hand(task, of_row, w, b):
    """What both have: `of_row` computes the rest for a row, w is the weight of the first input, b the bias beside it."""
    rows, loss, gradient = [], 0.0, 0.0
    for row in task.batches[0]:
        x, target = task.x[row].tolist(), float(task.y[row, 0])
        found = {"x": x[0], "target": target, "x·w": x[0] * w, **of_row(x, target)}
        found["x·slope"] = x[0] * found["slope"]
        loss, gradient = loss + found["share"], gradient + found["x·slope"]
        rows.append(found)
    whole = {"w": w, "b": b, "before": 0.0, "after": rows[0]["x·slope"], "loss": loss / len(rows), "gradient": gradient}
    change = task.learning_rate * gradient
    return rows[0] | whole | {"rate": task.learning_rate, "change": change, "new w": w - change}


def rings_by_hand(unit):
    w1, b1, w2, b2, w3, b3 = (v.tolist() for v in NET.weights)
    n = len(NET.batches[0])

    def through(inputs, w, b):
        return [dot(inputs, [line[j] for line in w]) + b[0][j] for j in range(len(b[0]))]

    def relu(values):
        return [0.0 if z <= 0.0 else z for z in values]

    def of_row(x, target):
        h1 = relu(through(x, w1, b1))
        h2 = relu(through(h1, w2, b2))
        (z,) = through(h2, w3, b3)
        p = 1.0 / (1.0 + exp(0.0 - z))
        c = min(max(p, 1e-7), 1.0 - 1e-7)
        inner = target * log(c) + (1.0 - target) * log(1.0 - c)
        g = -1.0 / n
        dc = g * target / c - g * (1.0 - target) / (1.0 - c)
        dz = (dc if 1e-7 < p < 1.0 - 1e-7 else 0.0) * p * (1.0 - p)
        dh2 = [0.0 if h2[j] <= 0.0 else dz * w3[j][0] for j in range(8)]
        slope = 0.0 if h1[unit] <= 0.0 else dot(dh2, w2[unit])
        total = dot(x, [w1[0][unit], w1[1][unit]])
        return {"sum": total, "output": h1[unit], "prediction": p, "share": 0.0 - inner, "slope": slope}

    return step_by_hand(NET, of_row, w1[0][unit], b1[0][unit])


def test_every_number_of_every_stage_is_that_of_the_run(both):
    line, rings = both.walks
    for each, by_hand in ((line, line_by_hand()), (rings, rings_by_hand(rings.weight[1]))):
        assert [stage.name for stage in each.stages] == NAMES.split("|")
        for stage in each.stages:
            for number in stage.numbers:
                assert number.value == by_hand[number.quantity], (stage.name, number)
        told = {number.quantity for stage in each.stages for number in stage.numbers}
        assert told == by_hand.keys(), "and none is left out"
        assert {"new w", "x", "w"} <= {number.quantity for number in each.stages[7].numbers}


def test_what_a_program_holds_is_told_by_that_program(both):
    """The one that is probed ends on the bits of the one that `fit` ran; its instructions are those of the other."""
    for each in both.walks:
        program = each.program
        launched = each.compiled.last("RowProgram.launch").known
        assert [x.tolist() for x in program.outs] == [x.numpy().tolist() for x in launched["outs"]]
        for variable, numbers in program.variables.items():
            assert numbers.tolist() == variable.numpy().tolist()
        shown = [text for text, _ in program.listing]
        real = disassembly.listing(program.program).splitlines()
        assert shown == [" ".join(text.split()) for text in real if text.startswith(" ")]
        assert len({came for _, came in program.listing}) > 20


def test_each_line_of_arithmetic_has_an_instruction_that_does_it(both):
    for each in both.walks:
        told = {number.quantity for number in each.stages[8].numbers}
        assert told >= {"x", "w", "x·w", "sum", "prediction", "loss", "x·slope", "change", "new w"}
        program = each.program
        for llvm, own in {"fmul": "mul", "fdiv": "div"}.items():
            lines = [register for register in program.at if f" {llvm} " in program.line(register)]
            found = [program.instruction(register) for register in lines if register in program.instructions]
            assert len(found) > 0.7 * len(lines) and all(own in text for text in found), llvm


def test_the_new_weight_is_stored_where_the_walk_says(both):
    """The marked lines of the update, as text and as instructions: the new weight, and its store."""
    for each in both.walks:
        new = each.registers["new w"]
        marked = [each.stages[7].codes[1].lines[k] for k in sorted(each.stages[7].codes[1].marked)]
        assert [text.split(" ")[0 if text.startswith("store") else 2] for text in marked] == ["fmul", "fsub", "store"]
        assert marked[1].startswith(f"{new} = ") and f" {new}, ptr " in marked[2]
        shown = each.stages[8].codes[1]
        marked = [shown.lines[k] for k in sorted(shown.marked)]
        assert ["mul" in marked[0], "sub" in marked[1]] == [True, True]
        assert len(marked) == 2 or re.match("v?mov|st", marked[2])


def test_the_program_does_every_op_of_the_step(both):
    for each in both.walks:
        listed = [name for text in each.stages[5].codes[0].lines for name in text.split(": ")[1].split(", ")]
        assert listed[:2] == ["divide", "add (it counts the steps)"]  # the gradient of the sum, and the counter
        listed[1] = "add"
        assert sorted(listed) == sorted(op.op for op in each.ops)


def test_what_levels_more_adds_stays_and_is_not_walked(both):
    """Its quicker plans, passes and back ends hide the core's; afterwards they are all there again."""
    import levels_more.high_level  # noqa: F401
    from levels.kernels import PLANS, registry
    from levels.low_level import BACK_ENDS, PASSES

    tables = registry.PLAN_FINISHERS, PASSES, BACK_ENDS
    before, plans = [[*table] for table in tables], {**PLANS}
    again = walk.Walk(LINE, linear_regression)
    assert [stage.numbers for stage in again.stages] == [stage.numbers for stage in both.walks[0].stages]
    assert [[*table] for table in tables] == before and plans == {**PLANS} and len(BACK_ENDS) > 1


def test_a_step_that_is_replayed_is_refused():
    def wide(x, y, weights, batches, learning_rate):
        model = Sequential([Dense(600, "relu"), Dense(1)])
        model.compile(SGD(learning_rate), "mse")
        model.fit(Dataset.from_batches(x, y, batches), verbose=0)

    with pytest.raises(ValueError, match="not become a row program"):
        walk.Walk(LINE, wide)


# Where its links lead.


def cells():
    found = {}
    for name in build.names_in(build.ROOT):
        notebook = json.loads((build.ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
        found |= {(name, cell["id"]): "".join(cell["source"]) for cell in notebook["cells"]}
    return found


def test_each_link_leads_to_the_cell_that_wrote_the_code(both):
    page, sources = both._repr_html_(), cells()
    links = re.findall(r'<a href="(\w+)\.ipynb#cell-id=(\w+)">([\w.]+), written in (\w+)</a>', page)
    assert len(links) == page.count("<a ") > 25
    for notebook, cell, name, said in links:
        source = sources[notebook, cell]
        assert notebook == said and source.startswith("#| export ")
        assert re.search(rf"(def|class|scalar\(\") ?{name.split('.')[-1]}\b", source), name
    assert {notebook for notebook, *_ in links} == {*build.names_in(build.ROOT)}


def test_every_exported_name_has_a_cell():
    known = cells()
    index = [place for place in places() if place.level != "levels_more" and not place.library]
    lost = [place.name for place in index if (place.notebook, cell_of(place)) not in known]
    assert len(index) > 300 and lost == []


# As a page: by mouse, by keyboard, for all, and without any style.


def seen(tab):
    return tab.locator(".head b:visible").all_inner_texts()


def test_down_and_up_by_mouse(tab, show, both):
    show(both)
    assert seen(tab) == HEADS[:1]
    way = tab.locator("label.down:visible").bounding_box()
    for name in HEADS[1:4] + HEADS[5:]:  # `fit` has a program instead of plans
        assert tab.locator("label.down:visible").bounding_box() == way, "a second click needs no other place"
        tab.locator("label.down:visible").click()
        assert seen(tab) == [name]
    assert tab.locator("label.down:visible").count() == 0
    for name in HEADS[7:4:-1] + HEADS[3::-1]:
        tab.locator("label.up:visible").click()
        assert seen(tab) == [name]
    assert tab.locator("label.up:visible").count() == 0
    tab.get_by_text("Two rings").click()
    assert seen(tab) == HEADS[:1], "each task has its own stages"
    assert f"{both.walks[1].loss:.6g}" in tab.locator(".loss:visible").inner_text()


def test_where_the_road_forks(tab, show, both):
    """Op by op from the op to its plan, and from there back, or over to what `fit` does instead."""
    show(both)
    tab.locator("#walk-3a").check()
    tab.locator("label.side:visible").click()
    assert seen(tab) == ["2 · plan and launch"] and tab.locator("label.side:visible").count() == 0
    tab.locator("label.up:visible").click()
    assert seen(tab) == ["3a · an op"]
    tab.locator("label.side:visible").click()
    tab.locator("label.down:visible").click()
    assert seen(tab) == ["3b · the program"]
    ways = [""] * 4 + ["op by op", "in fit, launched once a pass"] + ["in fit, written once"] * 3
    for each in both.walks:
        assert [stage.way for stage in each.stages] == ways


def test_jupyterlab_leaves_it_its_keys(both):
    """What has this attribute itself, says Lumino, is asked for no shortcut: else the arrow keys would leave the cell."""
    for tag in re.findall(r"<(?:input|summary)[^>]*>", both._repr_html_()):
        assert 'data-lm-suppress-shortcuts="true"' in tag


@pytest.mark.parametrize("width, scheme", [(360, "dark"), (1280, "light")])
def test_all_can_read_it(tab, show, serious, both, width, scheme):
    tab.emulate_media(color_scheme=scheme)
    show(both, width)
    for key, title in (("walk", "The line"), ("walk-1", "Two rings")):
        if key == "walk-1":
            tab.get_by_text(title).click()
        for mark in MARKS:
            tab.locator(f"#{key}-{mark}").check()
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), (key, mark)
            assert serious(tab) == [], (key, mark)
            assert cut_names(drawn(tab, ".walk pre, .walk table code")) == [], (key, mark)


def test_without_styles_it_is_plain_tables(tab, both):
    """As GitHub shows it: no style, no controls. What is chosen elsewhere stands there in order, and nothing is dead."""
    styles = r"<style>.*?</style>|<input[^>]*>| (class|style|id|for|role|data-\w+)=\"[^\"]*\""
    page = re.sub(styles, "", both._repr_html_(), flags=re.S)
    tab.set_content(page)
    shown = tab.locator("details[open]").inner_text()
    at = [shown.index(head) for head in HEADS]
    assert at == sorted(at) and [shown.count(head) for head in HEADS] == [1] * 9
    assert not re.search(r"^(up|down|over|or) ", shown, re.MULTILINE)
    told = "All stages stand below each other here. In JupyterLab (run this cell) and on the site, a click"
    assert tab.locator("body").inner_text().startswith(told)
    assert tab.locator("details[open] table:visible").count() == 18
    line = both.walks[0]
    for stage in line.stages:
        for number in stage.numbers:
            assert number.here.replace("`", "") in shown and parts.short(number.value) in shown
    blocks = drawn(tab, "details[open] pre")
    assert uneven_edges(blocks) == [] and cut_names(blocks) == []
