"""One task as a program in TensorFlow, in PyTorch and on a level, side by side; and programs changed to run here."""

import html
from typing import Any, NamedTuple

import numpy as np

from course.reader import programs
from course.reader.inspection import compare
from course.reader.inspection import side_by_side as page
from course.reader.inspection.marks import line_counts, read, read_program

APIS = {3: "low", 4: "mid", 5: "high"}  # {level of the course: the API that corresponds to it}
TASKS = {"linear_regression": "linear", "dnn_classifier": "rings"}
STEPS = (1, 100, 200)  # the steps whose losses are shown
DIGITS = 10


class Row(NamedTuple):
    """A program in one framework: its code sorted by marks, and its losses."""

    name: str  # "tf 2.21", or "3"
    level: Any  # "tf", "torch", or a level
    code: dict  # {mark: its steps}, as `marks.read` finds them
    lines: int  # under the five marks
    called: int  # lines of the functions that those lines call
    losses: Any  # [steps]


class Spellings(NamedTuple):
    """One task in several frameworks. A notebook shows it as columns, like a compare.Comparison."""

    title: str
    rows: list
    where: str = ""  # nothing is measured

    def counts(self):
        """{what is counted: [its text for each row]}"""
        return {
            "numbers": [str(row.losses.dtype) for row in self.rows],
            "lines": [str(row.lines) for row in self.rows],
            "lines they call": [str(row.called) for row in self.rows],
        }

    def facts(self, level):
        """The lines of a level's program under the five marks. There is no time: the frameworks do not run here."""
        return [f"{row.lines} lines" for row in self.rows if row.level == level]

    def more(self, level):
        """The lines that a level's marked lines call, and the dtype in which its program computes."""
        (row,) = (row for row in self.rows if row.level == level)
        return [*page.lines_called(row.called), f"{row.name}: {row.losses.dtype}"]

    def why(self):
        """Nothing: no times are shown that ask for a reason."""
        return ""

    def answers(self):
        """Yield (heading, losses, the frameworks that give them) for each distinct answer in the digits shown."""
        names = {}
        for row in self.rows:
            told = ", ".join(f"{row.losses[step - 1]:#.{DIGITS}g}" for step in STEPS)
            names.setdefault(told, []).append(page.COLUMNS[row.level])
        for losses, those in names.items():
            yield f"losses {STEPS[0]}, {STEPS[1]}, {STEPS[2]}", losses, ", ".join(those)

    def shown_answers(self):
        """The `answers` that are shown above the columns: all of them."""
        return self.answers()

    def __repr__(self):
        return page.as_text(self)

    def _repr_html_(self):
        return page.as_html(self)


class Program(NamedTuple):
    """A whole program, and a sentence about its losses."""

    text: str
    told: str

    def __repr__(self):
        return f"{self.text}\n\n{self.told}"

    def _repr_html_(self):
        look = "white-space:pre;overflow-x:auto"
        return f'<pre style="{look}">{html.escape(self.text)}</pre>\n<p>{html.escape(self.told)}</p>'


def row_of(program, name, level):
    code = read_program(program.name, program.text)
    return Row(name, level, code, *line_counts(code), np.array(program.losses))


def beside(task, train):
    """The Spellings of the programs in TensorFlow and PyTorch on this task function's API, and the function itself.

    The function runs here, for as many steps as the other programs have stored losses (they ran elsewhere). Raises
    ValueError for a function of a level below 3, because no framework has an API there.
    """
    (level,) = compare.by_level([train])
    if level not in APIS:
        raise ValueError(f"{train.__name__} is on level {level}; TensorFlow and PyTorch have an API from level 3 on")
    found = [programs.program(framework, APIS[level], TASKS[train.__name__]) for framework in ("tf", "torch")]
    fit = train(task.x, task.y, task.weights, task.batches[: len(found[0].losses)], task.learning_rate)
    rows = [row_of(each, f"{each.framework} {each.version}", each.framework) for each in found]
    code = read(train)
    return Spellings(task.title, [*rows, Row(str(level), level, code, *line_counts(code), fit.losses)])


def three(framework, title, task):
    """The Spellings of one task in a framework: a program for each of its three APIs, named by our level."""
    found = [(level, programs.program(framework, api, task)) for level, api in APIS.items()]
    return Spellings(title, [row_of(each, f"{level} {each.api}", level) for level, each in found])


def here(framework, api, task):
    """The program with its imports changed so that it runs on `levels_more`, and its stored losses."""
    program = programs.program(framework, api, task)
    lines = zip(program.text.splitlines(), programs.here(program.text).splitlines(), strict=True)
    text = "\n".join(new if new == old else f"{new}  # it was: {old}" for old, new in lines)
    losses = ", ".join(f"{program.losses[step - 1]:#.{DIGITS}g}" for step in STEPS)
    told = f"Its losses of steps {STEPS[0]}, {STEPS[1]} and {STEPS[2]}: {losses}"
    return Program(text, f"{told} ({page.COLUMNS[framework]} {program.version})")
