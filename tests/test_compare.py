"""The levels beside each other: what is counted, what is drawn of it, and that both tell the truth of any five levels."""

import base64
import functools
import importlib
import io
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

from course import build, compare, great, reference, tasks, widgets
from course.figures import HUES, LEVELS, accuracy, r_squared
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
    assert set(compare.functions_of(kernels)) == {"linear_regression", "linear_forward"}
    assert by_name(line)["2"].lines == compare.lines(
        kernels, importlib.import_module(kernels.__module__).linear_forward
    )
    named = compare.functions_of(on_all_levels("linear_regression")[1])
    assert "dot" in named and "check_task" in named
    assert "forward" not in named  # a parameter of run_programs is called so, and a function of the net
    for row in line.rows:
        assert 0 < row.lines < 100


def test_a_name_that_is_bound_is_not_read():
    assert compare.names_read("def f(a):\n    b = g(a)\n    return [c for c in h(b)]") == {"g", "h"}


@pytest.mark.parametrize("name", ["linear_regression", "dnn_classifier"])
def test_each_mark_stands_once_in_the_record(name):
    assert set(compare.parts(getattr(reference, name))) == set(compare.MARKS)
    columns = compare.side_by_side(*on_all_levels(name))
    assert [*columns.columns] == ["plain Python", *LEVELS]
    assert "<th" in columns._repr_html_() and "layer(row, w" in repr(columns)


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


def test_numbers_stand_beneath_the_code(line):
    table = line.columns()
    assert [*table.columns] == ["plain Python", *LEVELS] and table.rows[:4] == [*compare.MARKS]
    one, three = table.columns["hardware"], table.columns["low_level"]
    assert one["version"] == "1 scalar\n1 SIMD" and three["version"] == "3 eager\n3 compiled"
    rows = by_name(line)
    assert three["launches a step"] == f"{rows['3 eager'].launches:.0f}\n1 in 300"
    assert three["µs measured"] == "\n".join(
        great.short(1e6 * rows[name].measured) for name in ("3 eager", "3 compiled")
    )
    for level, column in table.columns.items():
        code = {mark: column[mark] for mark in compare.MARKS if mark in column}
        assert code == next(row.code for row in line.rows if compare.COLUMNS[row.level] == level)
    shown = table._repr_html_()
    assert shown.count("<tr>") == 1 + 4 + 8 and [shown.count(f"solid {hue}") for hue in HUES] == [1] * 5
    assert "µs measured · low_level\n" in repr(table)


def test_a_level_stands_once_and_is_known():
    plain, one, *_ = on_all_levels("linear_regression")
    with pytest.raises(ValueError, match="two functions stand on level 1, hardware; pass one of each level"):
        compare.side_by_side(one, plain, one)
    with pytest.raises(
        ValueError, match="test_compare.linear_regression stands on no level; they are reference, hardware"
    ):
        compare.side_by_side(one, linear_regression)


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
run("""from course import build, compare
build.watch("03_low_level")
print(sorted(compare.functions_of(linear_regression)), [*compare.by_level([linear_regression])])
print(compare.side_by_side(linear_regression))
print(compare.near(linear_regression, "launch") is launch)""")
'''


def test_in_a_notebook_a_task_is_its_room():
    """There all functions have one module: what the cells of another room define is not counted as the task's."""
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, cwd=build.ROOT)
    wanted = "['dense', 'linear_regression'] [3]\nforward · low_level\n    y = dense(x)\n    return y\nTrue\n"
    assert done.stdout == wanted, done.stdout + done.stderr


# The table.


def test_the_table_holds_no_time(line):
    slower = line._replace(rows=[row._replace(measured=2 * row.measured, predicted=1.0) for row in line.rows])
    assert (repr(slower), slower._repr_html_()) == (repr(line), line._repr_html_())


def test_the_table_is_read_without_html(net):
    head, rule, *rows = repr(net).splitlines()
    assert len({len(line) for line in (head, rule, *rows)}) == 1 and set(rule) == set("|- ")
    assert [cell.strip() for cell in head.split("|")[1:-1]] == [*next(net.cells())]
    loss = float(net.rows[0].losses[-1]).hex()
    assert [loss in row for row in rows] == [name != "1 SIMD" for name in NAMES] and "(float32)" in rows[2]
    assert "| 1 in 40 " in rows[1] and net._repr_html_().count("<tr>") == 9 and loss in net._repr_html_()


# The pictures.


def test_the_great_figure_tells_the_finding(line):
    rows, picture = by_name(line), great.five_levels(line)
    slowest = max((row for row in line.rows if row.name != "1 SIMD"), key=lambda row: row.measured)
    times = f"{great.micro(slowest.measured)} a step ({slowest.name}) or {great.micro(rows['5'].measured)} (5)"
    assert picture.text.startswith(f"{LINE.title}: the same last loss for {times}.")
    assert f"; 2 {great.micro(rows['2'].predicted)} and {great.micro(rows['2'].measured)};" in picture.text
    assert "7 rows, one curve: losses in float64 differ by 0, in float32 by at most 0.0" in picture.text


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
            assert len(figure.images) == sum(bool(code) for code in row.code.values()) > 0
            FigureCanvasAgg(figure).draw()
            marks = [text for text in figure.texts if row.code.get(text.get_text())]
            for image, mark in zip(figure.images, marks, strict=True):
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
