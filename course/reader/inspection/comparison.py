"""The data of a side-by-side page: a row for each version of a task, and its counts and answers as text."""

import os
import platform
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from course.reader.figures import accuracy, r_squared, short
from course.reader.inspection import side_by_side as page
from course.reader.language import later, say


class Row(NamedTuple):
    """One version of a task: its code, the cost of one of its steps, and its losses."""

    name: str  # "3 eager"
    level: int  # 0 is plain Python
    code: dict  # {mark: its steps}, as `marks.read` finds them
    lines: int  # under the five marks
    called: int  # lines of the functions that those lines call
    launches: float  # per step
    nbytes: float  # per step
    predicted: float  # seconds per step
    measured: float  # seconds per step
    losses: Any  # [steps]
    own: int  # the number of steps, the last ones, that it took itself; level 1 took those before
    score: str  # on the test rows


class Comparison(NamedTuple):
    """All versions of one task. A notebook shows them as columns (`side_by_side.py`). Its text contains no times."""

    title: str
    rows: list
    where: str  # the computer and the day on which it was measured

    def counts(self):
        """{what is counted: [its text for each row]}. The counts are the same on every machine."""
        return {
            "numbers": [str(row.losses.dtype) for row in self.rows],
            "lines": [str(row.lines) for row in self.rows],
            "lines they call": [str(row.called) for row in self.rows],
            "launches per step": [launches_of(row) for row in self.rows],
            "bytes per step": [f"{row.nbytes:,.0f}" for row in self.rows],
        }

    def versions(self, level):
        """[(row, the version's name in its level: "SIMD", or "" if it has only one)] of a level's rows."""
        return [(row, row.name.partition(" ")[2] if row.level else "") for row in self.rows if row.level == level]

    def facts(self, level):
        """A level's lines under the five marks, and the time of a step in each of its versions."""
        rows = self.versions(level)
        return [
            say("{count} lines", count=rows[0][0].lines),
            *(f"{micro(row.measured)} {kind}".strip() for row, kind in rows),
        ]

    def more(self, level):
        """A level's lines that the marked ones call, and for each version a step's launches, bytes and predicted time.

        And its score, if `scored`.
        """
        rows = self.versions(level)
        told = page.lines_called(rows[0][0].called)
        for row, kind in rows:
            parts = [launches_per_step(row), say("{count} bytes per step", count=f"{row.nbytes:,.0f}")]
            parts.append(say("predicted {time}", time=micro(row.predicted)))
            if row.losses.dtype != np.float64:
                parts.append(say("last loss {loss}", loss=loss_of(row)))
            told.append(f"{kind} {'; '.join([*parts, *[row.score] * self.scored()])}".strip())
        return told

    def why(self):
        """Why level 2 takes longer than those above it, in words; "" unless all of these levels are there."""
        rows = {row.name: row for row in self.rows}
        if not rows.keys() >= {"2", "3 compiled", "4", "5"}:
            return ""
        two = rows["2"]
        return say(
            "Why does a step take so much longer on level 2 than on 3 compiled, 4 and 5? On level 2 it consists of "
            "{launches} launches, about {time} each: a launch costs a microsecond or more, however little it computes. "
            "The other three run all {steps} steps in one launch, or in a few.",
            launches=launches_of(two),
            time=micro(two.measured / two.launches),
            steps=f"{len(two.losses):,}",
        )

    def scored(self):
        """Whether scores are shown: only with level 5, whose notebook lets the reader predict them first."""
        return any(row.level == 5 for row in self.rows)

    def shown_answers(self):
        """The `answers` that are shown above the columns: the last losses in float64."""
        return [answer for answer in self.answers() if "0x" in answer[1]]

    def answers(self):
        """Yield (heading, answer, the names of the rows that give it) for each distinct answer."""
        asked = [(later("last loss"), loss_of)] + [(later("test rows"), lambda row: row.score)] * self.scored()
        for head, answer_of in asked:
            names = {}
            for row in self.rows:
                names.setdefault(answer_of(row), []).append(row.name)
            for answer, those in names.items():
                yield head, answer, ", ".join(those)

    def __repr__(self):
        return page.as_text(self)

    def _repr_html_(self):
        return page.as_html(self)


def here():
    """This computer and this day, in words."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(": ")[1] for line in lines if line.startswith("model name")), name)
    count = os.cpu_count() or 1
    return f"{name}, {count} processor{'s' * (count > 1)}, {date.today():%d %B %Y}".replace(", 0", ", ")


def micro(seconds):
    """Microseconds as text, without a comma, so that the patterns in tests/nbval_sanitize.cfg match it."""
    return f"{short(1e6 * seconds)} µs".replace(",", "")


def launches_of(row):
    """The launches per step as text: "14", or "1 in 8,000" for a program that runs all steps in one launch."""
    if row.launches >= 1:
        return f"{row.launches:,.0f}"
    return "few" if row.level == 5 else f"1 in {1 / row.launches:,.0f}"  # `fit` splits the run into pieces by time


def launches_per_step(row):
    """The launches of a step, in words."""
    if row.launches >= 1:
        return say("{count} launches per step", count=f"{row.launches:,.0f}")
    if row.level == 5:
        return say("a few launches in all")
    return say("one launch in {steps} steps", steps=f"{1 / row.launches:,.0f}")


def loss_of(row):
    """The last loss in decimal and, if it is float64, exactly in hexadecimal."""
    bits = f" ({bits_of(row)})" if row.losses.dtype == np.float64 else " (float32)"
    return decimal_of(row) + bits


def decimal_of(row):
    """The last loss, rounded to the digits in which all programs agree, for any number of lanes."""
    last = row.losses[-1]
    return f"{last:#.4g}" if last.dtype == np.float64 else f"{last:.3g}"


def bits_of(row):
    """The last loss in hexadecimal, which is exact; for float32, whose last bits depend on the lanes, in decimal."""
    last = row.losses[-1]
    return float(last).hex() if last.dtype == np.float64 else loss_of(row)


def score_of(version, fit):
    """The score on the test rows, as text: R² of a regression, the accuracy of a classifier."""
    x = version.task.x_test
    y = version.task.y_test
    if version.written.__name__ == "linear_regression":
        return f"R² {r_squared(y, fit.predict(x)):.3f}"
    return f"{accuracy(y, fit.predict(x)):.1%} right"


def costs(*comparisons):
    """Print what a step costs in each version: lines, launches, bytes, time predicted and measured, last loss."""
    for found in comparisons:
        print(f"{found.title:12}  lines    launches    bytes   µs predicted   measured   last loss")
        for row in found.rows:
            counts = f"{row.lines:5}  {launches_of(row):>10}  {row.nbytes:7,.0f}"
            times = f"{row.predicted * 1e6:12.3g}   {row.measured * 1e6:8.3g}"
            print(f"{row.name:12}  {counts}   {times}   {decimal_of(row):>9}")
