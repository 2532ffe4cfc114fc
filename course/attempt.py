"""One student's notebook, in a process of its own: its exercises are run and tried, and each verdict is written down.

`course.grading` starts it, in a copy of the project, as `python -m course.attempt NOTEBOOK SEED RESULTS [CELL ...]`. It
runs the cells of the section Exercises (but not those whose numbers are given), with the names of the built level and
the notebook's imports at hand, so that a mistake elsewhere in the notebook costs no exercise. Each line of RESULTS is a
JSON object: all is ready, a cell begins, a verdict, or the end. Whatever the student's code does, what is written stays.
"""

import ast
import json
import re
import sys
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from course import exercises
from course.build import level_of
from course.exercises import verdict  # held here, whatever a student's code does to the module

SECTION = re.compile(r"^(## Exercises|from course import exercises|exercises\.check\()", re.MULTILINE)
CHECK = re.compile(r"""^exercises\.check\(\s*["'](\d\d-\d+)["']""", re.MULTILINE)


def main(notebook: str, seed: str, results: str, *skipped: str) -> None:
    with open(results, "w", encoding="utf-8") as file:

        def say(**what) -> None:
            file.write(json.dumps(what) + "\n")
            file.flush()

        try:
            cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]  # nbformat takes 2 s to load
            cells = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
        except Exception as error:  # whatever a damaged file does to its reader
            say(unreadable=f"the notebook cannot be read ({type(error).__name__}: {error})")
            return
        begin = next((n for n, (_, source) in enumerate(cells) if SECTION.search(source)), len(cells))
        code = [(n, source) for n, (kind, source) in enumerate(cells) if kind == "code"]
        shell = prepared([source for n, source in code if n < begin], level_of(Path(notebook).stem))
        say(ready=True)
        for n, source in code:
            if n >= begin and str(n) not in skipped and "build.level(" not in source:
                run(shell, n, source, int(seed), say)
        say(end=True)


class Shell(InteractiveShell):
    """A notebook's Python, without a notebook around it."""

    def enable_gui(self, gui=None):
        """What `%matplotlib inline` asks for: nobody is looking."""

    def ask_exit(self):
        """What `exit()` calls."""
        raise SystemExit


def prepared(sources: list[str], level: str) -> Shell:
    """A notebook's Python with the names of a built level, and with what these cells import."""
    shell = Shell.instance()
    shell.run_cell(f"from levels.{level} import *\nfrom course import exercises")
    for source in sources:
        try:
            statements = ast.parse(shell.transform_cell(source)).body
        except SyntaxError:
            continue
        for statement in statements:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                shell.run_cell(ast.unparse(statement))
    return shell


def run(shell: Shell, number: int, source: str, seed: int, say) -> None:
    """Run one cell, and try each function that it hands to a check."""
    named = CHECK.findall(source)
    say(cell=number, keys=named)
    handed = {}
    exercises.begin = lambda key: None  # the level's names are at hand
    exercises.check = lambda key, function: handed.update({key: function})
    done = shell.run_cell(source)
    failed = done.error_before_exec or done.error_in_exec
    for key in dict.fromkeys([*named, *handed]):
        if key in handed:
            try:
                state, text = verdict(key, handed[key], seed)
            except BaseException as error:
                state, text = "error", f"{type(error).__name__}: {error}"
        elif failed:
            state, text = "error", f"the cell raises {type(failed).__name__}: {failed}"
        else:
            state, text = "error", "the check is not run"
        say(key=key, state=state, text=text)


if __name__ == "__main__":
    main(*sys.argv[1:])
