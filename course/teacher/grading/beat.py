"""`python3 -m course beat KEY FILE`: does a wrong answer pass a check? Then the check lacks a case, and is beaten.

FILE is Python. It holds an answer to the blank or exercise KEY. Beside an answer to a blank it may hold a function
`case()` without arguments, which returns the arguments of one call, in a list: a call for which the answer is wrong.
The answer first goes through the check as a notebook runs it, and as `grade` runs it, with other random numbers. If it
passes, the numbers are drawn many times more, and then it gets the arguments of `case()`. The file's code runs where
`grade` runs a student's code, and this process compares.
"""

import ast
import difflib
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from course.reader import cases
from course.reader.cases import Blank, CapturedOutput, Wrong
from course.reader.cases.plain_data import describe, pack, unpack
from course.reader.exercises import EXERCISES
from course.reader.exercises.blanks import answers_of, difference
from course.reader.exercises.judge import equal
from course.reader.notebooks import blanks
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.names import ROOT, level_of, names_in
from course.teacher.grading.grade import plain, state_of
from course.teacher.grading.own_notebooks import blanks_in, copy_without_solutions, reference_solution
from course.teacher.sandbox.process import START_TIMEOUT, Process, ProcessEnded
from course.terminal.arguments import parser

FIRST = 3  # so many draws must pass: an answer that knows the notebook's own numbers by heart beats nothing
SEEDS = 100  # how many times the numbers are drawn in all


class Answer(NamedTuple):
    """What stands in a file."""

    source: str  # the answer alone
    case: str  # the function `case`, or ""


class Found(NamedTuple):
    """Whether the check is beaten, and the reason in words."""

    beaten: bool
    why: str


def beat(key: str, text: str, seconds: float = 60, seeds: int = SEEDS, root: Path = ROOT, hidden: Path = ROOT) -> Found:
    """Try to beat the check of this key with the answer in this text.

    seconds: the time limit of one question. Raises BuildError for an unknown key or a text that cannot be tried.
    """
    name = notebook_of(key)
    answer = read(text)
    cell = cell_of(key, name, answer)
    with tempfile.TemporaryDirectory(prefix="course-beat-", ignore_cleanup_errors=True) as folder:
        process = Process(level_of(name), copy_without_solutions(root, Path(folder).resolve()), hidden)
        try:
            handed, failed = process.ask(START_TIMEOUT, "cell", cell)
            if key not in handed:
                raise BuildError(f"the answer cannot be tried: {failed or f'it has no check of {key}'}")
            return judged(process, key, answer, seconds, seeds)
        except ProcessEnded as why:
            return Found(False, f"the check notices it: {why}")
        finally:
            process.end()


def notebook_of(key: str) -> str:
    """The notebook with the level of this key. Raises BuildError for an unknown key."""
    known = [*cases.CASES, *EXERCISES]
    if key not in known:
        near = difflib.get_close_matches(key, known, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
        raise BuildError(f"there is no blank or exercise {key}: {hint}")
    return next(name for name in names_in(ROOT) if name.startswith(key[:2]))


def read(text: str) -> Answer:
    """Divide a file into the answer and the function `case`. Raises BuildError if it is no Python."""
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise BuildError(f"line {error.lineno} is no Python ({error.msg})") from None
    lines = text.split("\n")
    case = ""
    for statement in body:
        if getattr(statement, "name", "") == "case":
            place = slice(statement.lineno - 1, statement.end_lineno)
            case = "\n".join(lines[place])
            lines[place] = [""] * (statement.end_lineno - statement.lineno + 1)
    return Answer("\n".join(lines).strip("\n"), case)


def cell_of(key: str, name: str, answer: Answer) -> str:
    """The cell that is run: the answer, its check and, under the key "case", the function `case`."""
    if key in EXERCISES:
        defined = re.findall(r"^(?:def|class) (\w+)", answer.source, re.MULTILINE)
        if not defined:
            raise BuildError("the file defines no function or class")
        return f'{answer.source}\n\nexercises.check("{key}", {defined[-1]})'
    source = f"#| blank {key[3:]}\n{in_its_cell(key[3:], name, answer.source)}"
    found, filled = blanks_in(name, {0: source}, [key])
    if key in found:
        raise BuildError(f"the answer cannot be tried: {found[key][1]}")
    return f'{filled[0]}\n\n{answer.case}\n\nexercises.check("case", case)' if answer.case else filled[0]


def in_its_cell(key: str, name: str, source: str) -> str:
    """A function alone, in the place of the course's own in its cell, if the cell holds more than the function."""
    cell = blanks.course_cell(name, key)
    body = ast.parse(source).body
    if not cell or len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or body[0].name != key:
        return source
    own = blanks.written(cell, name, key)
    lines = cell.split("\n")
    return "\n".join([*lines[1 : own.lineno - 1], source, *lines[own.end_lineno :]])


def judged(process: Process, key: str, answer: Answer, seconds: float, seeds: int) -> Found:
    """Whether an answer that has been run beats the check of this key."""
    for seed in range(seeds):
        state, text = state_of(process, seconds, key, True, None, seed)
        if state != "right" and seed < FIRST:
            return Found(False, f"the check notices it: {text}")
        if state != "right":
            return Found(True, f"of {seed + 1} draws of random numbers it passes {seed}. The last: {text}")
    if not answer.case:
        return Found(False, f"it passes, and {seeds} draws of random numbers find no difference. Add a `case()`.")
    return own_case(process, key, seconds)


def own_case(process: Process, key: str, seconds: float) -> Found:
    """Whether the answer and the course's function differ in the file's own case."""
    arguments = asked(process, seconds, "case", [])[0]
    if not isinstance(arguments, list | tuple):
        raise BuildError("case() must return the arguments of one call, in a list")
    said = ", ".join(map(spelled, arguments))
    try:
        own = answers_of(reference_solution(key), CapturedOutput())
        expected = unpack(own("called", pack([said, list(arguments)])))
    except Wrong as wrong:
        return Found(False, f"the course's own function refuses this case: {wrong}")
    try:
        given = asked(process, seconds, key, list(arguments), said)
    except Wrong as wrong:
        return Found(True, f"the check lacks this case. {wrong}")
    for part, (mine, right) in enumerate(zip(flat(given), flat(expected), strict=False)):
        if differs := difference(("", mine), ("", right), lambda p, q: equal(p, q, 1e-9)):
            where = "the result" if not part else f"argument {part} after the call"
            return Found(True, f"the check lacks this case. {said}: {where}: {differs}.")
    return Found(False, f"it passes, and is right in its own case, {said}")


def spelled(argument) -> str:
    """An argument in a message: its numbers if they are few, otherwise its kind."""
    many = getattr(argument, "size", 0) > 8 or isinstance(argument, list | tuple) and len(argument) > 8
    return describe(argument) if many else cases.short(argument)


def flat(answer: list) -> list:
    """[the result, the arguments after the call, one by one] of an answer to the question `called`."""
    result, arguments = answer
    return [result, *arguments]


def asked(process: Process, seconds: float, key: str, arguments: list, said: str = "case()"):
    """(the result, the arguments after the call) of a function in the process. Raises Wrong if it fails."""
    match process.ask(seconds, "ask", key, "called", pack([said, arguments])):
        case ["answer", packed]:
            return unpack(packed)
        case ["wrong", str() as text]:
            raise Wrong(text)
    raise Blank


def main(argv: list[str]) -> int:
    """`python3 -m course beat`. The exit status is 0 if the check is beaten."""
    options = parser("beat").parse_args(argv)
    path = Path(options.file)
    try:
        found = beat(options.key, path.read_text(encoding="utf-8"), options.seconds, hidden=path.parent.resolve())
    except (BuildError, OSError, Blank, Wrong) as error:
        print(str(error) or "nothing is filled in yet", file=sys.stderr)
        return 1
    print(plain(f"{options.key} {'is beaten' if found.beaten else 'is not beaten'}: {found.why}"))
    return 0 if found.beaten else 1
