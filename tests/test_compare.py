"""The levels beside each other: what is counted, what is drawn of it, and that both tell the truth of any five levels."""

import base64
import configparser
import functools
import importlib
import io
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from ipywidgets import HTML, SelectionSlider
from ipywidgets import Image as Picture
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox
from PIL import Image

from course import build, reference, tasks
from course.build.rooms import code_of
from course.figures import HUES, LEVELS, accuracy, great, r_squared, widgets
from course.inspection import bands, compare, marks
from levels.hardware import exp, host_lanes, log, pool
from levels.kernels import counted

pytestmark = pytest.mark.versions

NAMES = ["0 plain Python", "1 scalar", "1 SIMD", "2", "3 eager", "3 compiled", "4", "5"]


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


def test_all_rows_of_the_line_have_the_losses_of_record(line):
    losses, _ = trained(reference.linear_regression, LINE)
    rows = by_name(line)
    assert [*rows] == NAMES and [row.level for row in line.rows] == [0, 1, 1, 2, 3, 3, 4, 5]
    for row in line.rows:
        assert row.own == 300 and row.measured > 0 and row.predicted > 0
        if row.name == "1 SIMD":
            assert row.losses.dtype == np.float32 and np.allclose(row.losses, losses, rtol=1e-4)
        else:
            assert row.losses.dtype == np.float64 and row.losses.tolist() == losses


def test_rows_of_the_net_that_go_op_by_op_take_over_from_level_1(net):
    losses, weights = trained(functools.partial(reference.dnn_classifier, exp=exp, log=log), NET)
    fit = trained(on_all_levels("dnn_classifier")[1], NET)
    score = f"{accuracy(NET.y_test, fit.predict(NET.x_test)):.1%} right"
    for row in net.rows:
        assert row.own == (4 if row.name in ("0 plain Python", "2", "3 eager") else 40)
        if row.name != "1 SIMD":
            assert row.losses.tolist() == losses and row.score == score
    plain = compare.in_plain_python(reference.dnn_classifier)
    assert trained(plain, NET).predict(NET.x_test).tolist() == fit.predict(NET.x_test).tolist()


def test_the_score_of_the_line_is_that_of_its_test_rows(line):
    fit = trained(on_all_levels("linear_regression")[1], LINE)
    assert {row.score for row in line.rows} == {f"R² {r_squared(LINE.y_test, fit.predict(LINE.x_test)):.3f}"}


@pytest.mark.parametrize("name, task", [("linear_regression", LINE), ("dnn_classifier", NET)])
def test_launches_and_bytes_are_those_that_level_2_counts(name, task, line, net):
    rows, (_, _, kernels, tensors, *_) = by_name(line if task is LINE else net), on_all_levels(name)
    for train, row in ((kernels, rows["2"]), (compare.op_by_op(tensors), rows["3 eager"])):
        launches, nbytes = counted(lambda: trained(train, task))  # noqa: B023
        assert (row.launches * len(task.batches), row.nbytes * len(task.batches)) == (launches, nbytes)
    assert counted(lambda: trained(tensors, task)) == (0, 0)
    for program in ("1 scalar", "3 compiled", "4", "5"):
        batch = task.batches.shape[1]
        assert rows[program].launches == 1 / len(task.batches) and rows[program].nbytes == batch * (2 + 1 + 1) * 8
    assert rows["1 SIMD"].nbytes == batch * ((2 + 1) * 4 + 8)


def test_plain_python_launches_every_operation(line):
    """The forward pass takes 5 operations, the loss 3, the gradients 8: three for de, one for db, four for dw."""
    assert (by_name(line)["0 plain Python"].launches, by_name(line)["0 plain Python"].nbytes) == (160, 3840)


def test_the_prediction_is_the_formula_of_level_1():
    cpu, double = pool()["cpu:0"], compare.Version("", 1, reference.linear_regression, None, LINE)
    single = double._replace(task=compare.in_float32(LINE))
    assert compare.predicted(double, 3, 0, 2.0) == pytest.approx(6 + 160 * host_lanes() / cpu.peak)
    assert compare.predicted(single, 0, 0, 2.0) == pytest.approx(160 / cpu.peak)
    assert compare.predicted(single, 0, 1e12, 2.0) == pytest.approx(1e12 / cpu.bandwidth)


def test_lines_are_those_of_the_task_without_its_checks(line):
    kernels = on_all_levels("linear_regression")[2]
    assert set(marks.functions_of(kernels)) == {"linear_regression", "linear_forward"}
    assert by_name(line)["2"].lines == compare.lines(
        kernels, importlib.import_module(kernels.__module__).linear_forward
    )
    named = marks.functions_of(on_all_levels("linear_regression")[1])
    assert "dot" in named and "line_row" in named
    assert "forward" not in named  # a parameter of run_programs is called so, and a function of the net
    for row in line.rows:
        assert 0 < row.lines < 100


def test_a_name_that_is_bound_is_not_read():
    assert marks.names_read("def f(a):\n    b = g(a)\n    return [c for c in h(b)]") == {"g", "h"}


# Marks.


BOTH = pytest.mark.parametrize("name", ["linear_regression", "dnn_classifier"])


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


@BOTH
def test_a_band_is_what_its_mark_says(name):
    codes = [marks.read(task) for task in on_all_levels(name)]
    assert [[*code] for code in codes] == [[*marks.MARKS, marks.AROUND]] * 6
    firsts = [[code[mark][0].text.splitlines()[0] for code in codes[:5]] for mark in marks.MARKS]
    told = dict(zip(marks.MARKS, firsts, strict=True))
    assert all("weights" in line or "a.load(w_" in line for line in told["model"][:4]) and "Dense(1" in told["model"][4]
    assert told["backward"][3].endswith(
        "tape.gradient(loss, [w, b])" if name[0] == "l" else "tape.gradient(loss, weights)"
    )
    assert told["update"][4] == "sgd.apply_gradients(zip(gradients, variables))"
    high = codes[5]
    assert [mark for mark in marks.MARKS if high[mark]] == ["model", "forward"] and "model.fit" in high["forward"][
        0
    ].text
    assert lines_of(high["model"])[-1] == "model.compile(SGD(learning_rate), loss)"  # `train` goes on with the model


def test_helpers_open_where_they_are_first_called():
    net = [marks.read(task) for task in on_all_levels("dnn_classifier")]
    backward, _ = net[1]["backward"]
    assert backward.text.startswith("_backward(sums, ") and len(backward.opens) == 1
    assert backward.opens[0][0].text.startswith("def _backward(sums, ")
    assert [(deep, line) for deep, line in backward.lines() if line.startswith("def ")] == [
        (1, "def _backward(sums, row, target, h1, h2, p, c, weights, g):"),
        (2, "def _slope_at_z(target, p, c, g):"),
        (2, "def through_relu(d, h, w):"),
    ]
    assert any(line == "def dnn_backward(dz, inputs, weights):" for line in lines_of(net[2]["backward"]))
    assert lines_of(net[4]["forward"])[1:] == [
        "def model(rows):",
        "    for layer in layers:",
        "        rows = layer(rows)",
        "    return rows",
    ]
    forward = on_all_levels("linear_regression")[2]
    assert "def linear_forward(x, w, b):" in lines_of(marks.read(forward)["forward"])
    assert "    # forward" in [line[-13:] for line in lines_of(marks.read(forward)[marks.AROUND])]


def twice(x):
    y = x + 1  # forward
    y = y * 2  # forward
    return y


def test_a_mark_stands_once():
    with pytest.raises(ValueError, match="test_compare: the mark # forward stands twice"):
        marks.read(twice)


# Bands.


def bands_of(text):
    """{mark: its lines} of the text of bands."""
    _, *parts = text.split("\n\n")
    return {part.split("\n")[0]: part.split("\n")[1:] for part in parts}


def test_levels_stand_beneath_each_other_led_by_their_numbers(line, net):
    for comparison in (line, net):
        text = bands_of(repr(comparison))
        assert [*text] == [bands.HEADS[mark] for mark in (*marks.MARKS, marks.AROUND)]
        for mark, lines in text.items():
            numbers = [line[0] for line in lines]
            assert numbers == sorted(numbers) and {*numbers} == {*"012345"}, mark
        assert max(map(len, repr(comparison).splitlines())) <= 120
        assert all(row.name in repr(comparison).splitlines()[1] for row in comparison.rows)


def test_a_bracket_runs_down_from_fit(line):
    ends = {mark: [line for line in lines if line[0] == "5"] for mark, lines in bands_of(repr(line)).items()}
    assert ends["FORWARD"] == ["5 ┐ losses = model.fit(Dataset.from_batches(x, y, batches), verbose=0).losses"]
    same = "(the same line, under FORWARD)"
    assert [ends[mark] for mark in ("LOSS", "BACKWARD", "UPDATE")] == [[f"5 {edge} {same}"] for edge in "┤┤┘"]
    assert all(line[2] == "│" for line in ends["MODEL"])
    shown = repr(line)
    assert not any(line[2:3] in "┐┤┘" for line in shown.splitlines() if line[:1] in "01234" and line[1:2] == " ")
    page = line._repr_html_()
    assert [page.count(f'"level-5{place}"') for place in (" begins", " goes-on", " ends")] == [1, 2, 1]


def test_what_is_folded_at_a_terminal_is_whole():
    long = "    return [" + ", ".join(["a.load(array, k, j)"] * 9) + "]"
    pieces = bands.folded(long, "1 │ ")
    assert len(pieces) > 1 and all(len(piece) <= 120 and piece.startswith("1 │     ") for piece in pieces)
    assert "".join("".join(piece[4:].split()) for piece in pieces) == "".join(long.split())


def test_the_loss_is_printed_once(net):
    loss = float(net.rows[0].losses[-1]).hex()
    for shown in (repr(net), net._repr_html_()):
        assert shown.count(loss) == 1 and shown.count("(float32)") == 1
    names = [names for head, answer, names in net.answers() if head == "last loss"]
    assert names == [", ".join(name for name in NAMES if name != "1 SIMD"), "1 SIMD"]


def test_only_the_page_tells_times(line):
    """Text is the same from run to run; in the page each time has a unit, by which nbval knows it."""
    slower = line._replace(rows=[row._replace(measured=2000 * row.measured, predicted=1.0) for row in line.rows])
    page, other = line._repr_html_(), slower._repr_html_()
    assert repr(slower) == repr(line) and page != other
    config = configparser.RawConfigParser()
    config.read(build.ROOT / "tests" / "nbval_sanitize.cfg", encoding="utf-8")
    for rule in config.sections():
        page, other = (re.sub(config[rule]["regex"], config[rule]["replace"], text) for text in (page, other))
    assert page == other


# In a browser, and on paper.

LAB = 828  # px: what JupyterLab gives an output in a window of 1280, its list of files open

# What is wider than the place it has, and how many letters fit into each place for code.
WIDE = """[...document.querySelectorAll(".levels-bands, .levels-bands *")].filter(
    part => getComputedStyle(part).display != "inline" && part.scrollWidth > part.clientWidth + 1
).map(part => part.outerHTML.slice(0, 200))"""
LETTERS = """[...document.querySelectorAll(".band > div > div")].filter(part => part.clientWidth).map(part => {
    const letters = part.appendChild(document.createElement("pre")).appendChild(document.createElement("u"));
    letters.textContent = "m".repeat(100);
    letters.style = "position: absolute; white-space: pre";
    const width = letters.getBoundingClientRect().width / 100;
    letters.parentNode.remove();
    return (part.clientWidth - parseFloat(getComputedStyle(part).paddingLeft)) / width;
})"""

# For each band, the number of each level that is to be seen, and where it stands.
SHOWN = """[...document.querySelectorAll(".band")].map(band => [...band.children].filter(
    part => part.clientWidth
).map(part => {
    const {left, top} = part.getBoundingClientRect();
    return [part.querySelector("b").innerText.trim(), Math.round(left), Math.round(top)];
}))"""


@pytest.fixture
def tab(chromium):
    tab = chromium.new_page(viewport={"width": LAB, "height": 1000})
    yield tab
    tab.close()


def show(tab, comparison):
    tab.set_content(f'<!doctype html><body style="margin: 0">{comparison._repr_html_()}')


def test_it_fits_beside_the_list_of_files(tab, net):
    show(tab, net)
    assert min(tab.evaluate(LETTERS)) >= 119
    tab.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert tab.evaluate(WIDE) == [] and tab.evaluate("document.documentElement.scrollWidth") == LAB


def test_any_two_stand_beside_each_other(tab, net):
    show(tab, net)
    assert [[number for number, *_ in band] for band in tab.evaluate(SHOWN)[:5]] == [[*"012345"]] * 5
    one, other = tab.locator("select").all()
    one.select_option("4")
    other.select_option("1")
    for (left, x, y), (right, x_right, y_right) in tab.evaluate(SHOWN)[:5]:
        assert (left, right) == ("1", "4") and x < x_right and y == y_right
    assert min(tab.evaluate(LETTERS)) >= 66
    for menu in (one, other):
        menu.select_option("–")
    assert [len(band) for band in tab.evaluate(SHOWN)[:5]] == [6] * 5


def test_two_levels_stand_in_columns(tab):
    two = compare.measure(NET, *on_all_levels("dnn_classifier")[2:4], last=4, repeats=1)
    show(tab, two)
    assert tab.locator("select").count() == 0
    for (left, x, y), (right, x_right, y_right) in tab.evaluate(SHOWN)[:5]:
        assert (left, right) == ("2", "3") and x < x_right and y == y_right
    tab.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert min(tab.evaluate(LETTERS)) >= 66
    assert tab.evaluate(WIDE) == []


def test_two_tasks_take_two_sides_of_paper(tab, line, net, tmp_path):
    path = bands.on_paper(tmp_path / "side_by_side.html", line, net)
    tab.goto(path.as_uri())
    printed = tab.pdf(prefer_css_page_size=True)
    sheets = re.findall(rb"/MediaBox \[([^\]]*)\]", printed)
    assert [[round(float(size)) for size in sheet.split()] for sheet in sheets] == [[0, 0, 595, 842]] * 2
    tab.set_viewport_size({"width": 718, "height": 1046})  # 190 by 277 mm
    tab.emulate_media(media="print")
    assert tab.evaluate(WIDE) == []
    assert all(box["height"] < 1046 for box in (part.bounding_box() for part in tab.locator("section").all()))
    read = "".join(tab.inner_text("body").split())
    for comparison in (line, net):
        for row in comparison.rows:
            for mark in marks.MARKS:
                assert all("".join(text.split()) in read for text in lines_of(row.code[mark]))


# Any levels, from any notebook.


@pytest.mark.parametrize("picked", [(2, 1), (5, 2), (0, 3), (4,)])
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
        if row.level:
            assert f"{row.name}: " in great.depth(some, row.level).text


def test_numbers_stand_above_the_bands(line):
    rows = by_name(line)
    title, names, *numbers = [text.split("  ") for text in repr(line).split("\n\n")[0].splitlines()]
    assert title == [LINE.title] and [name.strip() for name in names if name.strip()] == NAMES
    told = {head: [text.strip() for text in texts if text.strip()] for head, *texts in numbers}
    assert told["lines"] == [str(row.lines) for row in line.rows]
    assert told["launches a step"][3:6] == ["14", "17", "1 in 300"]
    assert told["numbers"] == ["float32" if name == "1 SIMD" else "float64" for name in NAMES]
    page = line._repr_html_()
    for name in NAMES:
        assert (
            f">{compare.micro(rows[name].measured)}</td>" in page
            and f">{compare.micro(rows[name].predicted)}</td>" in page
        )
    assert page.count('class="float32"') == page.count("<td class=") / len(NAMES) == 7
    assert all(f"background:{hue}" in page for hue in HUES)


def test_a_level_stands_once_and_is_known():
    plain, one, *_ = on_all_levels("linear_regression")
    with pytest.raises(ValueError, match="two functions stand on level 1, hardware; pass one of each level"):
        compare.measure(LINE, one, plain, one)
    with pytest.raises(
        ValueError, match="test_compare.linear_regression stands on no level; they are reference, hardware"
    ):
        compare.measure(LINE, one, linear_regression)


NOTEBOOK = '''
from IPython.core.interactiveshell import InteractiveShell
run = InteractiveShell.instance().run_cell
run("""#| export door
def launch(x):
    return x
""")
run("""#| export tasks
def dense(x):
    return launch(x)
""")
run("""#| export tasks
def linear_regression(x):
    y = dense(x)  # forward
    return y
""")
run("""from course import build
from course.inspection import compare, marks
build.watch("03_low_level")
print(sorted(marks.functions_of(linear_regression)), [*compare.by_level([linear_regression])])
print(*(line for step in marks.read(linear_regression)["forward"] for line in step.lines()))
print(compare.near(linear_regression, "launch") is launch)""")
'''


def test_in_a_notebook_a_task_is_its_room():
    """There all functions have one module: what the cells of another room define is not counted as the task's."""
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, cwd=build.ROOT)
    opened = "(0, 'y = dense(x)') (1, 'def dense(x):') (1, '    return launch(x)') (0, 'return y')"
    wanted = f"['dense', 'linear_regression'] [3]\n{opened}\nTrue\n"
    assert done.stdout == wanted, done.stdout + done.stderr


# The pictures.


def test_the_great_figure_tells_the_finding(line):
    rows, picture = by_name(line), great.five_levels(line)
    slowest = max((row for row in line.rows if row.name != "1 SIMD"), key=lambda row: row.measured)
    times = f"{great.micro(slowest.measured)} a step ({slowest.name}) or {great.micro(rows['5'].measured)} (5)"
    assert picture.text.startswith(f"{LINE.title}: the same last loss for {times}.")
    assert f"; 2 {great.micro(rows['2'].predicted)} and {great.micro(rows['2'].measured)};" in picture.text
    found = "7 of 8 rows draw one curve: float64 losses differ by 0, float32 (dotted) by at most 0.0"
    assert found in picture.text


def linear_regression(x, y, weights, batches, learning_rate):
    """Another level 5: it steps twice as far."""
    return on_all_levels("linear_regression")[5](x, y, weights, batches, 2 * learning_rate)


def test_another_answer_is_not_called_the_same(monkeypatch):
    monkeypatch.setattr(build, "WATCHED", ["05_high_level"])
    levels = on_all_levels("linear_regression")[:5]
    comparison = compare.measure(shortened(LINE, 20), *levels, linear_regression, repeats=1)
    difference = np.abs(comparison.rows[-1].losses - comparison.rows[1].losses).max()
    assert f"losses that differ by {great.short(difference)} for" in great.five_levels(comparison).text
    assert "same" not in great.five_levels(comparison).text + great.depth(comparison, 5).text


@pytest.mark.parametrize("level", range(1, 6))
def test_one_level_tells_its_rows(level, line, net):
    for comparison in (line, net):
        text, own = great.depth(comparison, level).text, [row for row in comparison.rows if row.level == level]
        assert text.startswith(f"Level {level}, {LEVELS[level - 1]}, {own[-1].lines} lines. {own[0].name}: ")
        for row in own:
            assert f"{great.micro(row.predicted)} and measured {great.micro(row.measured)}" in text
        assert f"Last loss {float(comparison.rows[0].losses[-1]).hex()}, the same on every level; " in text


def extent(image):
    x0, x1, y0, y1 = image.get_extent()
    return Bbox.from_extents(x0, y0, x1, y1)


def words_and_code(draw, monkeypatch):
    """The boxes of all words outside axes, and those of the code."""
    with monkeypatch.context() as patched:
        patched.setattr("course.figures.Picture", lambda figure, text: figure)
        figure = draw()
    FigureCanvasAgg(figure).draw()
    code = list(map(extent, figure.images))
    return figure.bbox, [text.get_window_extent() for text in figure.texts], code


def test_words_keep_apart(line, net, monkeypatch):
    for comparison in (line, net):
        draws = [lambda: great.five_levels(comparison)]  # noqa: B023
        draws += [functools.partial(great.depth, comparison, level) for level in range(1, 6)]
        for draw in draws:
            page, words, code = words_and_code(draw, monkeypatch)
            assert all(0 <= box.x0 < box.x1 <= page.x1 and 0 <= box.y0 < box.y1 <= page.y1 for box in words)
            assert all(box.count_overlaps(words) == 1 for box in words)
            assert all(box.count_overlaps(code) == 0 for box in words)


def test_code_is_cut_nowhere(line, net, monkeypatch):
    """The letters of the longest line end before the picture does: its last columns are white. Marks stand beside it."""
    for comparison in (line, net):
        for level in range(1, 6):
            with monkeypatch.context() as patched:
                patched.setattr("course.figures.Picture", lambda figure, text: figure)
                figure = great.depth(comparison, level)
            row = next(row for row in comparison.rows if row.level == level)
            assert len(figure.images) == sum(bool(row.code[mark]) for mark in marks.MARKS[1:]) > 0
            FigureCanvasAgg(figure).draw()
            heads = [text for text in figure.texts if row.code.get(text.get_text())]
            for image, mark in zip(figure.images, heads, strict=True):
                pixels, label = image.get_array(), mark.get_window_extent()
                assert (pixels < 128).any() and (pixels[:, -8:] == 255).all() and (pixels[0] > 128).all()
                assert 3 < extent(image).y1 - (label.y0 + label.y1) / 2 < 13  # beside its first line


def test_the_slider_changes_all_but_the_losses(line, net):
    both = {"line": line, "net": net}
    explorer = widgets.explore(
        lambda level, task: great.depth(both[task], level), "One level.", level=range(1, 6), task=["line", "net"]
    )
    box = explorer.box()
    level, task = (widget for widget in box.children if isinstance(widget, SelectionSlider))
    image = next(widget for widget in box.children if isinstance(widget, Picture))
    told = next(widget for widget in box.children if isinstance(widget, HTML))
    seen = []
    for chosen in range(1, 6):
        level.value = chosen
        assert image.tooltip.startswith(f"Level {chosen}, ") and told.value == widgets.spoken(image.tooltip)
        pixels = np.asarray(Image.open(io.BytesIO(image.value)).convert("RGB")).astype(int)
        seen.append((pixels[:, :450], pixels[324:, 450:]))
    for (left, losses), (other, same) in zip(seen, seen[1:], strict=False):
        assert (left != other).any() and np.abs(losses - same).max() < 64  # of 256 colours
    task.value = "net"
    assert ", the same on every level; " in image.tooltip and net.rows[-1].score in image.tooltip


def test_without_widgets_the_slider_is_a_picture_and_a_constant_text(line):
    explorer = widgets.explore(functools.partial(great.depth, line), "One level.", level=range(1, 6))
    bundle = explorer._repr_mimebundle_()
    assert bundle["text/plain"] == "One level."
    assert base64.b64decode(bundle["image/png"]) == great.depth(line, 1).png


def test_a_level_is_drawn_within_a_key_press(net):
    """150 ms; four times that on a machine that many share."""
    seconds = []
    for level in (1, 2, 3, 2, 5):
        start = time.thread_time()
        great.depth(net, level)
        seconds.append(time.thread_time() - start)
    assert sorted(seconds)[2] < 0.6
