"""One set of numbers: what is shown of the stored run is what the levels, the record and the pictures say."""

import importlib
import re

import pytest
from PIL import Image

from course import reference, tasks
from course.author.build import ROOT
from course.author.site import stored_run, trains
from course.reader.figures import LEVELS
from course.reader.inspection import marks, side_by_side
from levels.hardware.tasks import dnn_classifier, linear_regression

TRAIN = {"linear_regression": linear_regression, "dnn_classifier": dnn_classifier}
NAMES = ["0 plain Python", "1 float64", "1 float32", "2", "3 eager", "3 compiled", "4", "5"]


@pytest.mark.parametrize("task", TRAIN)
def test_lines_and_losses_are_those_of_the_levels_of_today(task):
    rooms = [reference, *(importlib.import_module(f"levels.{level}.tasks") for level in LEVELS)]
    lines = [marks.line_counts(marks.read(getattr(room, task)))[0] for room in rooms]
    given = tasks.FOR[task]()
    fit = TRAIN[task](given.x, given.y, given.weights, given.batches, given.learning_rate)
    found = stored_run.versions(ROOT, task)
    assert [version.name for version in found] == NAMES
    assert [version.lines for version in found] == [lines[int(name[0])] for name in NAMES]
    losses = {version.loss for version in found if version.name != "1 float32"}
    assert losses == {f"{fit.losses[-1]:#.4g} ({float(fit.losses[-1]).hex()})"}


def test_every_time_is_that_of_the_figure_and_of_the_page_side_by_side():
    page, _ = stored_run.side_by_side(ROOT)
    tables = page.split("</summary><p>last loss")[1:]
    for task, shown in zip(TRAIN, tables, strict=True):
        versions = stored_run.versions(ROOT, task)
        _, told = stored_run.figure(ROOT, task)
        for version in versions:
            assert f" {version.name} {version.predicted} and {version.measured}" in told
        assert [version.measured for version in versions if f">{version.measured}" not in shown] == [
            versions[0].measured
        ], "plain Python is in no column"


def test_the_button_shows_the_times_of_the_run():
    for task in TRAIN:
        versions = {version.name: version.measured for version in stored_run.versions(ROOT, task)}
        shown = {level: versions[NAMES[k]] for level, k in ((0, 0), (1, 1), (2, 3), (3, 5), (4, 6), (5, 7))}
        assert stored_run.times(ROOT, task) == shown
    assert all(f'"{level}": "{time}"'.replace("µ", "\\u00b5") in trains.told() for level, time in shown.items())


def test_the_cost_table_has_a_row_for_each_version():
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', stored_run.table(ROOT, "linear_regression"))
    versions = stored_run.versions(ROOT, "linear_regression")
    cells = [re.findall("<td>(.*?)</td>", row) for _, row in rows]
    assert [name for name, _ in rows] == NAMES
    shown = [[str(each.lines), each.launches, each.nbytes, each.predicted, each.measured] for each in versions]
    assert [row[:3] for row in cells] == [row[:3] for row in shown]
    assert [row[3:5] for row in cells] == [[time.replace(" ", "&nbsp;") for time in row[3:]] for row in shown]


def test_the_pictures_are_of_the_stored_run():
    """A picture of another run, or of other code, is named here: `python -m course.teacher.timetable pictures`."""
    png, _ = stored_run.figure(ROOT, "linear_regression")
    assert (ROOT / "pictures" / "five_levels.png").read_bytes() == png
    page, _ = stored_run.side_by_side(ROOT)
    for name, scheme in (("side_by_side", "light"), ("side_by_side_dark", "dark")):
        with Image.open(ROOT / "pictures" / f"{name}.png") as image:
            assert image.text["made-of"] == side_by_side.digest(page, scheme), name
