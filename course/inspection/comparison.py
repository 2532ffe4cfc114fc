"""What stands side by side: a row for each version of a task, and how its counts are told."""

from typing import Any, NamedTuple

import numpy as np

from course.figures import short
from course.inspection import side_by_side as page


class Row(NamedTuple):
    """One version of a task: what it takes to write, what a step of it costs, and what it learned."""

    name: str  # "3 eager"
    level: int  # 0 is plain Python
    code: dict  # {mark: its steps}, as `marks.read` finds them
    lines: int
    launches: float  # a step
    nbytes: float  # a step
    predicted: float  # seconds a step
    measured: float  # seconds a step
    losses: Any  # [steps]
    own: int  # so many of the steps, the last ones, it took itself; level 1 took the ones before
    score: str  # on the test rows


class Comparison(NamedTuple):
    """All versions of one task. A notebook shows it as columns (`side_by_side.py`); its text has no time in it."""

    title: str
    rows: list

    def counts(self):
        """{what is counted: a text for each row}: the same on every machine."""
        return {
            "numbers": [str(row.losses.dtype) for row in self.rows],
            "lines": [str(row.lines) for row in self.rows],
            "launches per step": [launches_of(row) for row in self.rows],
            "bytes per step": [f"{row.nbytes:,.0f}" for row in self.rows],
        }

    def versions(self, level):
        """(a row, which of the level's versions it is: "SIMD", or nothing where there is one) of a level's rows."""
        return [(row, row.name.partition(" ")[2] if row.level else "") for row in self.rows if row.level == level]

    def facts(self, level):
        """Its lines of code, and the time of a step in each version."""
        rows = self.versions(level)
        return [f"{rows[0][0].lines} lines", *(f"{micro(row.measured)} {kind}".strip() for row, kind in rows)]

    def more(self, level):
        """What a step is made of, in each version of a level, and at the end how good its answers are."""
        told = []
        for row, kind in self.versions(level):
            parts = [launches_per_step(row), f"{row.nbytes:,.0f} bytes per step", f"predicted {micro(row.predicted)}"]
            if row.losses.dtype != np.float64:
                parts.append(f"last loss {loss_of(row)}")
            told.append(f"{kind} {'; '.join([*parts, *[row.score] * self.scored()])}".strip())
        return told

    def scored(self):
        """Whether it says how good the answers are: only with level 5, whose notebook asks for that beforehand."""
        return any(row.level == 5 for row in self.rows)

    def shown_answers(self):
        """Those of `answers` that stand above the columns: the last losses in float64."""
        return [answer for answer in self.answers() if "0x" in answer[1]]

    def answers(self):
        """(what is asked, an answer, the names of the rows that give it), for each answer that differs."""
        asked = [("last loss", loss_of)] + [("test rows", lambda row: row.score)] * self.scored()
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


def micro(seconds):
    """Microseconds, without a comma: tests/nbval_sanitize.cfg knows a time when it sees one."""
    return f"{short(1e6 * seconds)} µs".replace(",", "")


def launches_of(row):
    """14, or, of a program that takes all steps in one launch, 1 in 8,000."""
    if row.launches >= 1:
        return f"{row.launches:,.0f}"
    return "few" if row.level == 5 else f"1 in {1 / row.launches:,.0f}"  # `fit` cuts the run into pieces, by the clock


def launches_per_step(row):
    """The launches of a step, in words."""
    if row.launches >= 1:
        return f"{row.launches:,.0f} launches per step"
    return "a few launches in all" if row.level == 5 else f"one launch in {1 / row.launches:,.0f} steps"


def loss_of(row):
    """The last loss in decimal, and of float64 every bit."""
    bits = f" ({bits_of(row)})" if row.losses.dtype == np.float64 else " (float32)"
    return decimal_of(row) + bits


def decimal_of(row):
    """The last loss to so many digits as all programs agree on, whatever their lanes."""
    last = row.losses[-1]
    return f"{last:#.4g}" if last.dtype == np.float64 else f"{last:.3g}"


def bits_of(row):
    """The last loss in hexadecimal, which hides no bit; of float32, whose last bits depend on the lanes, in decimal."""
    last = row.losses[-1]
    return float(last).hex() if last.dtype == np.float64 else loss_of(row)


def side_by_side(*comparisons):
    """Comparisons of the same levels, one for each task, on one page."""
    return page.SideBySide(*comparisons)
