"""Run one student's notebook in a separate process, which runs cells and answers questions, but has no right answers.

`grading` starts it through `isolation`, in a copy of the project without checks and solutions. Each line of input is a
request in JSON, [number, what, ...], and is answered by one line, [the same number, ...]:

    cell SOURCE              -> the keys that the cell hands to `exercises.check`, and its error, or null
    imports SOURCES          -> null; only the imports of these cells are run
    ask KEY QUESTION INPUTS  -> how a question of `cases` was answered, and the answer

A student's code can write the same lines as this module. So the other process trusts nothing in them, and only compares
the data of an answer.
"""

import ast
import contextlib
import importlib
import json
import os
import sys
import types

from IPython.core.interactiveshell import InteractiveShell

from course.reader import cases
from course.reader.cases import plain_data


class Shell(InteractiveShell):
    """A notebook's Python, without a notebook around it."""

    def enable_gui(self, gui=None):
        """Do nothing: `%matplotlib inline` calls this, but there is no display."""

    def ask_exit(self):
        """Called by `exit()`."""
        raise SystemExit


def main(level: str) -> None:
    requests, answers = pipes()
    handed = {}
    sys.modules["course.reader.exercises"] = types.ModuleType(
        "course.reader.exercises", "All that is left of them here: `begin` and `check`."
    )
    importlib.import_module(f"course.reader.cases.{level}")  # which registers its questions
    importlib.import_module("course.reader.cases.at_most")
    shell = Shell.instance()
    shell.run_cell(f"from levels.{level} import *\nfrom course.reader import exercises")
    for line in requests:
        number, what, *rest = json.loads(line)
        answer = {"cell": cell, "imports": imports, "ask": ask}[what](shell, handed, *rest)
        print(json.dumps([number, answer]), file=answers, flush=True)


def pipes():
    """The files of requests and answers. Cells that print or read get the null device as standard input and output."""
    requests, answers = (os.fdopen(os.dup(number), how, encoding="utf-8") for number, how in ((0, "r"), (1, "w")))
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    return requests, answers


def cell(shell: Shell, handed: dict, source: str) -> tuple:
    handed.clear()
    exercises = sys.modules["course.reader.exercises"]
    exercises.begin = lambda key: None  # the level's names are imported already
    exercises.check = lambda key, function: handed.update({key: function})
    done = shell.run_cell(source)
    failed = done.error_before_exec or done.error_in_exec
    kind = next(kind.__name__ for kind in type(failed).mro() if kind.__name__[0] != "_")  # 3.13 has private classes
    return [*map(str, handed)], failed and f"{kind}: {failed}"[:1000]


def imports(shell: Shell, handed: dict, sources: list[str]) -> None:
    """Run the import statements of these cells one by one, so that a mistake elsewhere in them fails no exercise."""
    for source in sources:
        with contextlib.suppress(SyntaxError):
            for statement in ast.parse(shell.transform_cell(source)).body:
                if isinstance(statement, ast.Import | ast.ImportFrom):
                    shell.run_cell(ast.unparse(statement))


def ask(shell: Shell, handed: dict, key: str, question: str, inputs) -> tuple:
    """("answer", packed data), ("wrong", what is wrong) or ("blank", None)."""
    try:
        return "answer", plain_data.pack(cases.answer(handed[key], question, plain_data.unpack(inputs)))
    except cases.Blank:
        return "blank", None
    except cases.Wrong as wrong:
        return "wrong", str(wrong)[:1000]
    except BaseException as error:
        return "wrong", f"what it gives cannot be told ({type(error).__name__}: {error})"[:1000]
