"""How a solution is tried: called with care, compared with what is right, and told what its mistake looks like."""

import contextlib
import copy
import dis
import threading
import time
import types
from _thread import interrupt_main
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from course.checks import brief, in_one_line, plain

SECONDS = 10  # that one call may take
EXERCISES = {}  # "01-3" -> Exercise


class Exercise(NamedTuple):
    """check(mine, draw) calls the candidate `mine` on inputs from the generator `draw`, and raises at a mistake."""

    lines: int  # of a good solution, about
    check: Callable


class Verdict(NamedTuple):
    """What a check found."""

    state: str  # "right", "not yet" or "still blank"
    text: str


class Blank(Exception):
    """Nothing is filled in yet."""


class Wrong(Exception):
    """A mistake; its text is for the reader."""


def exercise(key, lines):
    """Decorate a check: it becomes that of the exercise `key`."""

    def enter(check):
        EXERCISES[key] = Exercise(lines, check)
        return check

    return enter


def verdict(key, function, seed=0) -> Verdict:
    """Try a solution on inputs drawn from a seed. Always returns. Raises LookupError for an unknown key."""
    if key not in EXERCISES:
        raise LookupError(f"no exercise is called {key!r}: there are {', '.join(EXERCISES)}")
    lines, check = EXERCISES[key]
    function = getattr(function, "py_func", function)  # of one that numba compiled: what was written
    try:
        if not written(function):
            raise Wrong(f"expected a function, written with `def`, or a class with such methods, got {brief(function)}")
        if all(map(is_blank, written(function))):
            raise Blank
        mine = Candidate(function)
        check(mine, np.random.default_rng(seed))
    except Blank:
        return Verdict("still blank", f"about {lines} lines")
    except Wrong as wrong:
        return Verdict("not yet", str(wrong))
    except Exception as error:  # of a result that cannot even be compared
        return Verdict("not yet", f"what {mine.name} gives cannot be compared ({type(error).__name__}: {error})"[:400])
    return Verdict("right", f"{mine.cases} cases")


def written(solution):
    """The functions in a solution: itself, or the methods of a class."""
    found = vars(solution).values() if isinstance(solution, type) else [solution]
    return [each for each in found if isinstance(each, types.FunctionType)]


def is_blank(function):
    """Whether all that a function does is to return None or `...`, which is what a stub does."""
    code = list(dis.get_instructions(function))
    same = [each.opname for each in code] == [each.opname for each in dis.get_instructions(lambda: None)]
    return same and next(each.argval for each in code if "CONST" in each.opname) in (None, ...)


class Candidate:
    """A reader's function or class. Whatever goes wrong in it becomes a `Wrong` that says on which arguments."""

    def __init__(self, function):
        self.function, self.name, self.cases = function, function.__name__, 0
        self.first = written(function)[0]  # of a class the first method: where it was written, with which names

    def __getitem__(self, name):
        """A name of the notebook in which the function was written: its own Assembler, not that of a built level."""
        if name not in self.first.__globals__:
            raise Wrong(f"{self.name} is tried with the notebook's own `{name}`: run the cell that defines it")
        return self.first.__globals__[name]

    def made(self, base, *arguments):
        """An object of the reader's class, which is a notebook's `base`."""
        said = f"{self.name}({', '.join(map(in_words, arguments))})"
        part = self.call(said, self.function, *arguments)
        if not isinstance(part, self[base]):
            raise Wrong(f"{said} gives {form(part)}, expected an object of a class {self.name}({base})")
        return part

    def spelled(self, arguments):
        """A call in words. An array of more than a dozen numbers is told by its dtype and shape."""
        told = [form(x) if isinstance(x, np.ndarray) and x.size > 12 else in_words(x) for x in arguments]
        return f"{self.name}({', '.join(told)})"

    def call(self, said, function, *arguments, **named):
        """What the function gives; `said` is this call, in words."""
        try:
            python = isinstance(
                function, types.FunctionType | types.MethodType | type
            )  # what is compiled cannot be interrupted
            with limited(said) if python else contextlib.nullcontext(), np.errstate(all="ignore"):
                result = function(*arguments, **named)
        except Wrong:
            raise
        except (Exception, SystemExit) as error:
            if "ellipsis" in str(error).lower():  # of 2 * ...
                raise Blank from None
            raise Wrong(f"{said} raises {in_one_line(error, self.first)[:400]}") from None
        if result is ...:
            raise Blank
        return result

    def gives(self, arguments, expected, mistakes=(), near=0.0):
        """Raise Wrong unless the function gives what is expected, and leaves its arguments alone."""
        said, given = self.spelled(arguments), copy.deepcopy(arguments)
        result = self.call(said, self.function, *given)
        for number, (before, after) in enumerate(zip(arguments, given, strict=True), 1):
            if not callable(before) and not equal(before, after):
                raise Wrong(f"{said} changes its argument {number}: work on a copy")
        self.compare(said, result, expected, mistakes, near)

    def compare(self, said, result, expected, mistakes=(), near=0.0):
        """Raise Wrong unless this result is the expected one, `near` being a share of the largest number in it.

        `mistakes` are {what comes of which mistake: the wrong result}, for the message.
        """
        self.cases += 1
        if form(result) != form(expected):
            hint = ": is there a `return` in every case?" if result is None else ""
            raise Wrong(f"{said} gives {form(result)}, expected {form(expected)}{hint}")
        if not equal(result, expected, near):
            looks = [mistake for mistake, wrong in dict(mistakes).items() if equal(result, wrong, near)]
            because = f". It looks as if {looks[0]}" if looks else ""
            raise Wrong(f"{said} gives {difference(result, expected, near)}{because}")


def in_words(value):
    return value.__name__ if callable(value) else repr(value) if isinstance(value, tuple) else brief(value)


def form(value):
    """What a value is, apart from its numbers: `float32[3, 4]`, `a list of 3`, `an int`."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    names = {"float64": "a float", "float": "a float", "int64": "an int", "int": "an int", "NoneType": "None"}
    name = str(value.dtype) if isinstance(value, np.ndarray | np.generic) else type(value).__name__
    return names.get(name, name)


def equal(p, q, near=0.0):
    """Whether two values are the same: NaN is NaN, and numbers may be apart by a share of the largest in q."""
    try:
        p, q = np.asarray(p), np.asarray(q)
        if p.shape != q.shape:
            return False
        same = (p == q) | ((p != p) & (q != q))
        if near and np.isfinite(p).all() and np.isfinite(q).all():
            same |= abs(p - q) <= near * np.max(abs(q), initial=0.0)
        return bool(np.all(same))
    except (TypeError, ValueError):  # lists of unequal length, objects
        return p is q or plain(p) == plain(q)


def difference(result, expected, near):
    """Where two arrays differ first, or two short values as they are."""
    if not isinstance(expected, np.ndarray) or expected.size < 5:
        return f"{brief(result)}, expected {brief(expected)}"
    at = next(at for at in np.ndindex(expected.shape) if not equal(result[at], expected[at], near))
    return f"{brief(result[at])} at {brief(at)}, expected {brief(expected[at])}"


@contextlib.contextmanager
def limited(said):
    """Raise Wrong when the Python that runs inside takes too long."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    late, lock, over = False, threading.Lock(), False

    def stop():
        nonlocal late
        with lock:
            if not over:
                late = True
                interrupt_main()

    timer = threading.Timer(SECONDS, stop)
    timer.start()
    try:
        yield
        with lock:
            over = True
        while late:  # it is on its way
            time.sleep(0.01)
    except KeyboardInterrupt:
        if not late:  # the reader's own
            raise
        raise Wrong(f"{said} takes more than {SECONDS} s: does its loop come to an end?") from None
    finally:
        over = True
        timer.cancel()
