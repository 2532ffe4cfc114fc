"""The levels beside each other: what is counted, what is drawn of it, and that both tell the truth of any five levels."""

import functools
import importlib
import itertools
import re

import numpy as np
import pytest
from code_edges import cut_names, drawn, uneven_edges
from matplotlib.backends.backend_agg import FigureCanvasAgg

from course import programs, reference, tasks
from course.reader.figures import LEVELS, accuracy, r_squared
from course.reader.inspection import code_lines, compare, marks, side_by_side, tour
from course.reader.notebooks.cells import code_of
from levels.support.measure import lane_peak
from levels_more.hardware import exp, log, pool
from levels_more.kernels import counted

pytestmark = pytest.mark.versions

NAMES = ["0 plain Python", "1 float64", "1 float32", "2", "3 eager", "3 compiled", "4", "5"]


def on_all_levels(name):
    built = [importlib.import_module(f"levels.{level}.tasks") for level in LEVELS]
    return [getattr(module, name) for module in (reference, *built)]


def shortened(task, steps):
    return task._replace(batches=task.batches[:steps])


LINE, NET = shortened(tasks.linear(), 300), shortened(tasks.rings(), 40)


@pytest.fixture(scope="module")
def line():
    return compare.measure(LINE, *on_all_levels("linear_regression"), repeats=1)


@pytest.fixture(scope="module")
def net():
    return compare.measure(NET, *on_all_levels("dnn_classifier"), last=4, repeats=1)


def by_name(comparison):
    return {row.name: row for row in comparison.rows}


def trained(train, task, steps=None):
    return train(task.x, task.y, task.weights, task.batches[:steps], task.learning_rate)


# What is counted.


def test_all_rows_of_the_line_have_the_losses_of_record_and_one_score(line):
    losses, _ = trained(reference.linear_regression, LINE)
    fit = trained(on_all_levels("linear_regression")[1], LINE)
    score = f"R² {r_squared(LINE.y_test, fit.predict(LINE.x_test)):.3f}"
    rows = by_name(line)
    assert [*rows] == NAMES and [row.level for row in line.rows] == [0, 1, 1, 2, 3, 3, 4, 5]
    for row in line.rows:
        assert row.own == 300 and row.measured > 0 and row.predicted > 0 and row.score == score
        if row.name == "1 float32":
            assert row.losses.dtype == np.float32 and np.allclose(row.losses, losses, rtol=1e-4)
        else:
            assert row.losses.dtype == np.float64 and row.losses.tolist() == losses


def test_rows_of_the_net_that_go_op_by_op_take_over_from_level_1(net):
    losses, weights = trained(functools.partial(reference.dnn_classifier, exp=exp, log=log), NET)
    fit = trained(on_all_levels("dnn_classifier")[1], NET)
    score = f"{accuracy(NET.y_test, fit.predict(NET.x_test)):.1%} right"
    for row in net.rows:
        assert row.own == (4 if row.name in ("0 plain Python", "2", "3 eager") else 40)
        if row.name != "1 float32":
            assert row.losses.tolist() == losses and row.score == score
    plain = compare.in_plain_python(reference.dnn_classifier)
    assert trained(plain, NET).predict(NET.x_test).tolist() == fit.predict(NET.x_test).tolist()


@pytest.mark.parametrize("name, task", [("linear_regression", LINE), ("dnn_classifier", NET)])
def test_launches_and_bytes_are_those_that_level_2_counts(name, task, line, net):
    rows, (_, _, kernels, tensors, *_) = by_name(line if task is LINE else net), on_all_levels(name)
    for train, row in ((kernels, rows["2"]), (compare.op_by_op(tensors), rows["3 eager"])):
        launches, nbytes = counted(lambda: trained(train, task))  # noqa: B023
        once, numbers = (1, 3) if train is kernels else (0, 0)  # before its steps, level 2 launches one division, for g
        assert row.launches * len(task.batches) == launches - once
        assert row.nbytes * len(task.batches) == nbytes - numbers * 8
    assert counted(lambda: trained(tensors, task)) == (0, 0)
    for program in ("1 float64", "3 compiled", "4", "5"):
        batch = task.batches.shape[1]
        assert rows[program].launches == 1 / len(task.batches) and rows[program].nbytes == batch * (2 + 1 + 1) * 8
    assert rows["1 float32"].nbytes == batch * ((2 + 1) * 4 + 8)


def test_the_prediction_is_the_formula_of_level_1():
    cpu, double = pool()["cpu:0"], compare.Version("", 1, reference.linear_regression, None, LINE)
    single = double._replace(task=compare.in_float32(LINE))
    assert compare.predicted(double, 3, 0, 2.0) == pytest.approx(6 + 160 / lane_peak())
    assert compare.predicted(single, 0, 0, 2.0) == pytest.approx(160 / lane_peak())
    assert compare.predicted(single, 0, 1e12, 2.0) == pytest.approx(1e12 / cpu.bandwidth)


def test_the_cost_of_a_task_on_level_1_is_printed(capsys):
    own = importlib.import_module("levels.hardware.tasks")
    for one_row, train, task in ((own.line_row, own.linear_regression, LINE), (own.net_row, own.dnn_classifier, NET)):
        program = compare.program_of(one_row, task)
        fit = train(*task[:2], *task[4:7])
        compare.program_cost(train, program, task, fit, 2e-6)
        first, heads, row = capsys.readouterr().out.splitlines()
        steps, batch = task.batches.shape
        operations = batch * compare.operations(program)
        lines = marks.line_counts(marks.read(train))[0]
        assert first == f"{task.title}: {lines} lines, last loss {fit.losses[-1]:.4g}" and len(heads) == len(row)
        assert row.split()[:-1] == ["1", "in", f"{steps:,}", f"{operations:,}", f"{batch * 32:,}", "2"]


def counted_by_hand(x):
    x = list(x)
    w = len(x)  # model

    for a in x:
        y = a * w  # forward
        e = sum(  # loss
            pairs(y),
        )
    return pairs(e)


def test_lines_are_those_under_the_marks(line, net):
    """Not those that copy, loop and return around them, and those that they call are counted apart."""
    assert marks.line_counts(marks.read(counted_by_hand)) == (1 + 1 + 3, 2)
    assert marks.line_counts(marks.read(doubled)) == (1, 2)
    for comparison in (line, net):
        for row in comparison.rows:
            assert (row.lines, row.called) == marks.line_counts(row.code)
        counts = [by_name(comparison)[name].lines for name in ("2", "3 eager", "4", "5")]
        assert counts == sorted(counts, reverse=True), "no level needs more lines than the one below"


def doubled(x):
    y = twofold(x)  # forward
    return y


def twofold(x):
    """Twice this number."""
    # a comment
    return 2 * x


# Marks.


def lines_of(steps):
    return [line for step in steps for _, line in step.lines()]


def pairs(x):
    return [(number, number) for number in x]


def loop(x):
    for a, b in pairs(x):  # called above a block that has marks
        y = a * b  # forward
    return y


TASKS = [loop, *on_all_levels("linear_regression"), *on_all_levels("dnn_classifier")]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.__module__}.{task.__name__}")
def test_every_line_stands_once(task):
    """All lines of code of the task and of what it calls, but for the checks, and no other: none is lost or shown twice."""
    sources = [text for called, text in marks.functions_of(task).items() if not called.startswith("check_")]
    written = [line for text in sources for line in code_of(text).values()]
    found = [line for steps in marks.read(task).values() for line in lines_of(steps)]
    bare = [marks.MARK.sub("", line).strip() for line in written]
    assert sorted(line.strip() for line in found if line.strip()[0] != "#") == sorted(bare)


def twice(x):
    y = x + 1  # forward
    y = y * 2  # forward
    return y


def test_a_mark_stands_once():
    with pytest.raises(ValueError, match="test_compare: the mark # forward stands twice"):
        marks.read(twice)


# As text.


def test_levels_stand_beneath_each_other_led_by_their_numbers(line, net):
    for comparison in (line, net):
        _, *parts = repr(comparison).split("\n\n")
        text = {part.split("\n")[0]: part.split("\n")[1:] for part in parts}
        assert [*text] == [mark.upper() for mark in (*marks.MARKS, marks.AROUND)]
        for mark, lines in text.items():
            numbers = [line[0] for line in lines]
            assert numbers == sorted(numbers) and {*numbers} == {*"012345"}, mark
        assert max(map(len, repr(comparison).splitlines())) <= 120
        assert all(row.name in repr(comparison).splitlines()[1] for row in comparison.rows)


# Where a line of code breaks.


def lines_in(columns):
    """The lines that are shown in a table with that many columns."""
    codes = [marks.read(task) for task in TASKS[1:] if columns == 2 or task.__module__.endswith("level.tasks")]
    for framework, api, task in itertools.product(("tf", "torch"), ("low", "mid", "high"), ("linear", "rings")):
        program = programs.program(framework, api, task)
        codes.append(marks.read_program(program.name, program.text))
    return [line for code in codes for mark in marks.MARKS for line in lines_of(code.get(mark, ()))]


@pytest.mark.parametrize("columns", [2, 3])
def test_a_line_breaks_after_a_comma_or_at_a_bracket_and_never_in_a_name(columns):
    breaks = []
    most = code_lines.width(columns)
    for line in lines_in(columns):
        pieces = code_lines.broken(line, most)
        assert words(line) == [word for text, _ in pieces for word in words(text)], "each name and number is whole"
        assert "".join("".join(text.split()) for text, _ in pieces) == "".join(line.split())
        first, *others = (indent for _, indent in pieces)
        assert first == len(line) - len(line.lstrip()) and all(indent > first for indent in others)
        assert max(indent + len(text) for text, indent in pieces) <= most + 2
        breaks += [text[-1] in ",([{)]}" for text, _ in pieces[:-1]]
    assert len(breaks) > 60 and sum(breaks) > 0.8 * len(breaks), "few lines have neither where one is needed"


def words(text):
    return re.findall(r"\w+(?:\.\d+)?", text)


def test_the_loss_is_printed_once_and_decimal_first(net):
    loss, page = float(net.rows[0].losses[-1]), net._repr_html_()
    assert repr(net).count(f"{loss:#.4g} ({loss.hex()})") == 1 and repr(net).count("(float32)") == 1
    assert f"<b>{loss:#.4g}</b> <code>{loss.hex()}</code>, the same 64 bits on every level" in page
    assert page.count(loss.hex()) == 1
    names = [names for head, answer, names in net.answers() if head == "last loss"]
    assert names == [", ".join(name for name in NAMES if name != "1 float32"), "1 float32"]


def test_a_level_with_another_answer_is_named(line):
    other = line.rows[-1]._replace(losses=line.rows[-1].losses * (1 + 2**-52))
    page = line._replace(rows=[*line.rows[:-1], other])._repr_html_()
    assert page.count("last loss <b>") == 2 and "(5)" in page and "the same 64 bits" not in page


# As a page: in a browser, without any style, and on paper.

LAB = 828  # px: what JupyterLab gives an output in a window of 1280, its list of files open
NAME = {1: "hardware", 2: "kernels", 3: "low-level API", 4: "mid-level API", 5: "high-level API"}

# The columns that are to be seen, from left to right and from above: [level, left, top] of each head.
HEADS = """[...document.querySelectorAll(".task[open] tr:first-child > th[class]")].filter(
    head => head.clientWidth
).map(head => {
    const {left, top} = head.getBoundingClientRect();
    return [Number(head.className.slice(-1)), Math.round(left), Math.round(top)];
})"""
# Where the cells of a row begin, for each mark of each table.
TOPS = """[...document.querySelectorAll(".task[open] tr")].map(row => [...row.querySelectorAll("td")].filter(
    cell => cell.clientWidth
).map(cell => [cell.dataset.level, cell.getBoundingClientRect().top]))"""
# What is wider than the place it has.
WIDE = """[...document.querySelectorAll(".side-by-side, .side-by-side *")].filter(
    part => getComputedStyle(part).display != "inline" && part.clientWidth && part.scrollWidth > part.clientWidth + 1
).map(part => part.outerHTML.slice(0, 200))"""
SIZES = """[...document.querySelectorAll(".side-by-side pre > span")].map(line => parseFloat(getComputedStyle(line).fontSize))"""
OPEN = "document.querySelectorAll('td details').forEach(part => part.open = true)"


@pytest.fixture(scope="module")
def house(line, net):
    return side_by_side.SideBySide(line, net)


def choose(tab, title):
    """Let one task be shown, as with a click on its name; on the name of the one that is shown a click does nothing."""
    name = tab.locator(".task > summary", has_text=title)
    if not name.evaluate("name => name.parentNode.open"):
        name.click()


@pytest.mark.parametrize("width", [360, 760, LAB, 1280])
def test_no_name_is_cut_at_any_width_and_columns_stay_down_to_760_px(tab, show, house, width):
    """Two above three, from 1 to 5, in letters of 12 px or more."""
    show(house, width)
    for title in ("The line", "Two rings"):
        choose(tab, title)
        levels, lefts, tops = zip(*tab.evaluate(HEADS), strict=True)
        if width >= 760:
            assert min(tab.evaluate(SIZES)) >= 12 and levels == (1, 2, 3, 4, 5)
            assert tops[0] == tops[1] < tops[2] == tops[3] == tops[4]
            assert lefts[0] < lefts[1] and lefts[2] < lefts[3] < lefts[4]
        assert tab.evaluate(WIDE) == []
        tab.evaluate(OPEN)
        blocks = drawn(tab, ".task[open] pre")
        assert sum(map(len, blocks)) > 50 and cut_names(blocks) == []
        assert tab.evaluate(WIDE) == [] and tab.evaluate("document.documentElement.scrollWidth") == width


def test_beneath_that_there_is_a_band_for_each_mark(tab, show, house):
    show(house, 390)
    marked = tab.evaluate(
        """[...document.querySelectorAll(".task[open] tr > th:first-child, .task[open] td")].filter(
            part => part.clientWidth && part.textContent
        ).map(part => [part.getBoundingClientRect().top, part.dataset.level || part.textContent])"""
    )
    assert [name for _, name in sorted(marked)] == [part for mark in marks.MARKS for part in (mark, *"12345")]


@pytest.mark.parametrize("pair", [(1, 2), (5, 2)])
def test_any_two_are_laid_side_by_side(tab, show, house, pair):
    show(house)
    heads = [tab.locator(f".task[open] th.level-{level} summary") for level in pair]
    for head in heads:
        head.click()
    seen = tab.evaluate(HEADS)
    assert [level for level, *_ in sorted(seen, key=lambda each: each[1])] == sorted(pair)
    assert seen[0][2] == seen[1][2]
    rows = {}
    for number, row in enumerate(tab.evaluate(TOPS)):
        for _level, top in row:
            rows.setdefault(number % 6, set()).add(top)
    assert len(rows) == 5 and all(len(tops) == 1 for tops in rows.values())  # a mark's code begins at one height
    for head in heads:
        head.click()
    assert len(tab.evaluate(HEADS)) == 5


# The rules of pages that show notebooks: cells to the right.
HOSTILE = "body { margin: 0; } td, th { text-align: right; padding: 6px 13px; } pre { padding: 16px; font-size: 12px; }"


def test_without_any_style_two_tables_stand_under_the_name_of_each_task(tab, house):
    page = re.sub(r"<style>.*?</style>", "", house._repr_html_(), flags=re.DOTALL)
    page = re.sub(r' (?:style|class|name|valign|data-\w+)="[^"]*"', "", page)
    assert not re.search(r"<(style|script|input|select|button|label)|style=|class=| id=", page)
    page = f"<style>{HOSTILE}</style>{page}"
    tab.set_content(f"<!doctype html>{page}")
    tab.set_viewport_size({"width": 900, "height": 1000})
    assert tab.evaluate("document.documentElement.scrollWidth") == 900
    tasks = tab.locator("body > div > details")
    assert [task.locator("> summary").inner_text() for task in tasks.all()] == ["The line", "Two rings"]
    for summary in tab.locator("summary").all():  # whatever can be clicked shows something, or hides it
        before = tab.evaluate("document.documentElement.innerText")
        if summary.is_visible():
            summary.click()
            assert tab.evaluate("document.documentElement.innerText") != before
            summary.click()
    tab.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    for task, comparison in zip(tasks.all(), house.comparisons, strict=True):
        upper, lower = task.locator("table").all()
        for table, levels in ((upper, (1, 2)), (lower, (3, 4, 5))):
            heads = [head for head in table.locator("tr:first-child th").all_inner_texts() if head]
            assert all(f"{level}" in head and NAME[level] in head for level, head in zip(levels, heads, strict=True))
            for mark, row in zip(marks.MARKS, table.locator("tr").all()[1:], strict=True):
                assert row.locator("th").inner_text() == mark
                for level, cell in zip(levels, row.locator("td").all(), strict=True):
                    code = next(row.code for row in comparison.rows if row.level == level)[mark]
                    shown = [line for line in cell.inner_text().split("\n") if line and "more line" not in line]
                    most = code_lines.width(len(levels))
                    pieces = [piece for line in lines_of(code) for piece in code_lines.broken(line, most)]
                    whole = [" " * indent + text for text, indent in pieces] or ["the same line"]
                    assert sorted(shown) == sorted(whole)  # each on a line of its own
    blocks = drawn(tab, "pre")
    assert uneven_edges(blocks) == [] and cut_names(blocks) == []


def test_two_levels_stand_in_columns(tab, show):
    two = compare.measure(NET, *on_all_levels("dnn_classifier")[2:4], last=4, repeats=1)
    show(two, LAB)
    lefts = {level: left for level, left, _ in tab.evaluate(HEADS)}
    assert lefts[2] < lefts[3] and "Click on" not in tab.evaluate(
        "getComputedStyle(document.querySelector('.levels'), '::before').content"
    )
    tab.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert tab.evaluate(WIDE) == []


def test_two_tasks_take_two_sides_of_paper(tab, line, net, tmp_path):
    path = side_by_side.on_paper(tmp_path / "side_by_side.html", line, net)
    tab.goto(path.as_uri())
    printed = tab.pdf(prefer_css_page_size=True)
    sheets = re.findall(rb"/MediaBox \[([^\]]*)\]", printed)
    assert [[round(float(size)) for size in sheet.split()] for sheet in sheets] == [[0, 0, 595, 842]] * 2
    tab.set_viewport_size({"width": 718, "height": 1046})  # 190 by 277 mm
    tab.emulate_media(media="print")
    assert tab.evaluate(WIDE) == []
    read = "".join(tab.inner_text("body").split())
    for comparison in (line, net):
        for row in comparison.rows:
            for mark in marks.MARKS:
                assert not row.level or all("".join(text.split()) in read for text in lines_of(row.code[mark]))


# Any levels, from any notebook.


@pytest.mark.parametrize("picked", [(2, 1), (0, 3), (4,)])
def test_any_levels_are_compared(picked, line):
    """They stand from the ground up, and level 1 goes ahead of those that go op by op, whether it is shown or not."""
    trainers = on_all_levels("linear_regression")
    some = compare.measure(LINE, *(trainers[level] for level in picked), last=20, repeats=1)
    whole = [row for row in line.rows if row.level in picked]
    assert [row.name for row in some.rows] == [row.name for row in whole]
    for row, same in zip(some.rows, whole, strict=True):
        assert row.own == (20 if row.name in ("0 plain Python", "2", "3 eager") else 300)
        assert row.losses.tolist() == same.losses.tolist()
        equal = ("code", "lines", "launches", "nbytes", "score")
        assert all(getattr(row, name) == getattr(same, name) for name in equal)


def test_a_level_stands_once_and_is_known():
    plain, one, *_ = on_all_levels("linear_regression")
    with pytest.raises(ValueError, match="two functions are on level 1, hardware; pass one per level"):
        compare.measure(LINE, one, plain, one)
    told = "test_compare.linear_regression is on no level; the levels are reference, hardware"
    with pytest.raises(ValueError, match=told):
        compare.measure(LINE, one, linear_regression)


# The pictures.


def test_the_great_figure_tells_the_finding(line):
    rows, picture = by_name(line), tour.five_levels(line)
    slowest = max((row for row in line.rows if row.name != "1 float32"), key=lambda row: row.measured)
    times = f"{tour.micro(slowest.measured)} per step ({slowest.name}) or {tour.micro(rows['5'].measured)} (5)"
    assert picture.text.startswith(f"{LINE.title}: the same last loss for {times}.")
    assert f"; 2 {tour.micro(rows['2'].predicted)} and {tour.micro(rows['2'].measured)};" in picture.text
    found = "7 of 8 rows draw one curve: float64 losses differ by 0, float32 (dotted) by at most 0.0"
    assert found in picture.text


def linear_regression(x, y, weights, batches, learning_rate):
    """Another level 5: it steps twice as far."""
    return on_all_levels("linear_regression")[5](x, y, weights, batches, 2 * learning_rate)


def test_another_answer_is_not_called_the_same(monkeypatch):
    monkeypatch.setattr("course.reader.inspection.compare.WATCHED", ["05_high_level"])
    levels = on_all_levels("linear_regression")[:5]
    comparison = compare.measure(shortened(LINE, 20), *levels, linear_regression, repeats=1)
    difference = np.abs(comparison.rows[-1].losses - comparison.rows[1].losses).max()
    assert f"losses that differ by {tour.short(difference)} for" in tour.five_levels(comparison).text
    assert "same" not in tour.five_levels(comparison).text


def test_words_keep_apart(line, net, monkeypatch):
    monkeypatch.setattr("course.reader.figures.picture.Picture", lambda figure, text: figure)
    for comparison in (line, net):
        figure = tour.five_levels(comparison)
        FigureCanvasAgg(figure).draw()
        page, words = figure.bbox, [text.get_window_extent() for text in figure.texts]
        assert all(0 <= box.x0 < box.x1 <= page.x1 and 0 <= box.y0 < box.y1 <= page.y1 for box in words)
        assert all(box.count_overlaps(words) == 1 for box in words)
