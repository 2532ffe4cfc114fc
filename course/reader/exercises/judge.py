"""Test a solution: ask it on random inputs, compare its answers with the right ones, and name the likely mistake."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from course.reader import cases
from course.reader.cases import Blank, Wrong
from course.reader.cases.plain_data import describe, pack, unpack
from course.reader.words import brief, plain

EXERCISES = {}  # "01-3" -> Exercise


class Exercise(NamedTuple):
    """check(mine, draw) asks the candidate `mine` on inputs from the generator `draw`. A mistake raises Wrong."""

    lines: int  # about as many as a good solution has
    check: Callable


class Verdict(NamedTuple):
    """The result of a check of an exercise or a blank."""

    state: str  # "right", "not yet" or "still blank"; of a blank also "other bits"
    text: str


def exercise(key, lines):
    """Decorate a check: register it for the exercise `key`."""

    def enter(check):
        EXERCISES[key] = Exercise(lines, check)
        return check

    return enter


def verdict(key, function, seed=0) -> Verdict:
    """Test a solution on inputs drawn from a seed. Raises LookupError for an unknown key, no error of the solution."""
    return judge_answers(key, lambda name, inputs: pack(cases.answer(function, name, unpack(inputs))), seed)


def judge_answers(key, answer, seed) -> Verdict:
    """Test a solution through answer(name of a question, packed inputs) -> packed data, which may raise Blank or Wrong.

    Returns a verdict whatever the answers are. Raises LookupError for an unknown key.
    """
    if key not in EXERCISES:
        raise LookupError(f"there is no exercise {key!r}. The exercises are {', '.join(EXERCISES)}")
    lines, check = EXERCISES[key]
    mine = Candidate(answer)
    try:
        with np.errstate(all="ignore"):
            mine.name = str(mine.ask(cases.name))[:80]
            check(mine, np.random.default_rng(seed))
    except Blank:
        return Verdict("still blank", f"a solution takes about {lines} lines")
    except Wrong as wrong:
        return Verdict("not yet", str(wrong))
    except Exception as error:  # from a result that cannot be compared
        return Verdict("not yet", f"what {mine.name} gives cannot be compared ({type(error).__name__}: {error})"[:400])
    return Verdict("right", f"{mine.cases} cases")


class Candidate:
    """A reader's function or class as a check sees it: only its answers, which are plain data."""

    def __init__(self, answer):
        self.answer = answer
        self.name = "it"
        self.cases = 0

    def ask(self, question, *inputs):
        """The answer to a question of `cases`. It may come from another process, so it is treated as data only."""
        return unpack(self.answer(question.__name__, pack(inputs)))

    def spelled(self, arguments):
        """A call as text. An array of more than 12 numbers is shown by its dtype and shape."""
        told = [describe(x) if isinstance(x, np.ndarray) and x.size > 12 else in_words(x) for x in arguments]
        return f"{self.name}({', '.join(told)})"

    def gives(self, arguments, expected, mistakes):
        """Raise Wrong unless the function gives what is expected and leaves its arguments unchanged."""
        said = self.spelled(arguments)
        result, after = self.ask(cases.called, said, list(arguments))
        self.kept(said, arguments, after)
        self.compare(said, result, expected, mistakes)

    def kept(self, said, arguments, after):
        """Raise Wrong if the call has changed one of these arguments."""
        for number, (x, y) in enumerate(zip(arguments, after, strict=True), 1):
            if not equal(x, y):
                raise Wrong(f"{said} changes its argument {number}: work on a copy")

    def compare(self, said, result, expected, mistakes=(), near=0.0):
        """Raise Wrong unless this result is as expected. near: a tolerance, relative to the largest expected number.

        mistakes: {a mistake in words: the wrong result that it gives}, for the message.
        """
        self.cases += 1
        if describe(result) != describe(expected):
            hint = ": is there a `return` in every case?" if result is None else ""
            raise Wrong(f"{said} gives {describe(result)}, expected {describe(expected)}{hint}")
        if not equal(result, expected, near):
            looks = [mistake for mistake, wrong in dict(mistakes).items() if equal(result, wrong, near)]
            because = f". It looks as if {looks[0]}" if looks else ""
            raise Wrong(f"{said} gives {difference(result, expected, near)}{because}")


def in_words(value):
    return value.__name__ if callable(value) else repr(value) if isinstance(value, tuple) else brief(value)


def equal(p, q, near=0.0):
    """Whether two values are equal. NaN equals NaN, and finite numbers may differ by `near` times the largest."""
    try:
        p = np.asarray(p)
        q = np.asarray(q)
        if p.shape != q.shape:
            return False
        same = (p == q) | ((p != p) & (q != q))
        if near:
            finite = np.isfinite(p) & np.isfinite(q)
            p, q = (np.where(finite, each, 0.0) for each in (p, q))
            same |= finite & (abs(p - q) <= near * np.max(abs(q), initial=0.0))
        return bool(np.all(same))
    except (TypeError, ValueError):  # lists of unequal length, objects
        return p is q or plain(p) == plain(q)


def difference(result, expected, near):
    """The first place where two arrays differ, in words; values of fewer than five numbers are shown whole."""
    if not isinstance(expected, np.ndarray) or expected.size < 5:
        return f"{brief(result)}, expected {brief(expected)}"
    at = next(at for at in np.ndindex(expected.shape) if not equal(result[at], expected[at], near))
    return f"{brief(result[at])} at {brief(at)}, expected {brief(expected[at])}"
