"""The questions that a check asks of a reader's function or class. They run beside that code, and give plain data.

A check (`exercises`) draws inputs, asks a question, and compares the answer with the right one. In a notebook one
process does all of it. In grading, a student's code answers in a separate process (`sandbox.worker`), which has this
package but neither checks nor solutions. So this package must not contain right answers.
"""

import contextlib
import ctypes
import dis
import importlib
import itertools
import math
import sys
import threading
import time
import types

import numpy as np

from course.reader import tasks
from course.reader.cases.output import CapturedOutput
from course.reader.cases.plain_data import describe, flatten, held
from course.reader.words import brief, in_one_line

TIME_LIMIT = 10  # seconds that one call may take
QUESTIONS = {}  # name -> a function of a `Solution` and of plain data
KEPT = "kept"  # the name of a row that says why a right function is not used from here on, or ""
CASES = {}  # "03-unbroadcast" -> a function of a `Solution` and a random generator, which yields cases


class Blank(Exception):
    """Nothing is filled in yet."""


class Wrong(Exception):
    """A mistake; its text is for the reader."""


class Timeout(SystemExit):
    """Raised inside a call that takes too long. `except Exception` does not catch it, and threads do not print it."""


def question(function):
    """Decorate a question(mine, *inputs): register it under its name."""
    QUESTIONS[function.__name__] = function
    return function


def answer(function, name, inputs):
    """The answer of a reader's function or class to the question of that name. Raises Blank or Wrong."""
    mine = Solution(function)
    return with_time_limit(mine, lambda: QUESTIONS[name](mine, *inputs))


@question
def name(mine):
    return mine.name


@question
def called(mine, said, arguments):
    """The function's result, and its arguments after the call."""
    return mine.call(said, mine.function, *arguments), arguments


def cases(key):
    """Decorate cases(mine, draw), which yields what a reader's function does, as (the case in words, the result).

    The result is a number, an array, a tensor, a buffer, several of these in a list or in a dict by their names, or any
    other plain data. A reader sees the first case first, so it should be small enough to compute in one's head.
    """

    def enter(function):
        CASES[key] = function
        return function

    return enter


@question
def filled(mine, key, seed, most):
    """[(a case in words, the name of a part or "", its class if it is no plain data, the part)], an error or None.

    most: the number of results after which it stops, 0 for all of them.
    """
    rows = []
    draw = np.random.default_rng(seed)
    try:
        with np.errstate(all="ignore"):
            for said, value in itertools.islice(CASES[key](mine, draw), most or None):
                rows += [(said, *part) for part in flatten(value)]
                if isinstance(sys.stdout, CapturedOutput):
                    sys.stdout.listens = False
    except Wrong as wrong:
        return rows, str(wrong)
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # a case used what the function gave
        if "NoneType" in str(error):
            return rows, f"{mine.said} gives None: is there a `return` in every case?"
        return rows, f"what {mine.name} gives cannot be used ({type(error).__name__}: {error})"[:400]
    return rows, None


class Solution:
    """A reader's function or class. Any error in a call becomes a `Wrong` that names the call."""

    def __init__(self, function):
        self.function = getattr(function, "py_func", function)  # of a function compiled by numba, the Python function
        parts = functions_in(self.function)
        if not parts:
            raise Wrong(
                f"expected a function, written with `def`, or a class with such methods, got {describe(function)}"
            )
        if all(map(is_blank, parts)):
            raise Blank
        self.name = self.function.__name__
        self.first = parts[0]  # it has the solution's file and globals
        # of the current call
        self.said = ""
        self.deadline = math.inf
        self.patience = 1  # a call may take this many times TIME_LIMIT: more if it compiles on a busy machine

    def __getitem__(self, name):
        """The value of a name in the function's notebook: its own Assembler, for example, not that of a built level."""
        if name not in self.first.__globals__:
            raise Wrong(f"the check of {self.name} needs the notebook's own `{name}`: run the cell that defines it")
        return self.first.__globals__[name]

    def on(self, said="", /, *arguments, **named):
        """(the case in words, the function's result) for these arguments. Named arguments need no `said`.

        Raises Wrong if the call has changed one of the arguments.
        """
        said = said or ", ".join(f"{name} = {short(value)}" for name, value in named.items())
        given = dict(zip(self.function.__code__.co_varnames, arguments, strict=False)) | named
        before = {name: held(value) for name, value in given.items()}
        result = self.call(said, self.function, *arguments, **named)
        for name, value in given.items():
            if held(value) != before[name]:
                raise Wrong(f"{said}: the call changes its argument `{name}`: work on a copy")
        return said, result

    def among(self, **names):
        """A copy of the function that uses these names in place of the notebook's."""
        function = self.function
        return types.FunctionType(function.__code__, function.__globals__ | names, self.name, function.__defaults__)

    def made(self, base, *arguments):
        """An object of the reader's class. Raises Wrong unless that derives from the notebook's class `base`."""
        said = f"{self.name}({', '.join(map(repr, arguments))})"
        part = self.call(said, self.function, *arguments)
        if not isinstance(part, self[base]):
            raise Wrong(f"{said} gives {describe(part)}, expected an object of a class {self.name}({base})")
        return part

    def inside(self, kind):
        """A subclass of the notebook's class of that name, with this function as its method."""
        base = self[kind]
        return type(base)(base.__name__, (base,), {self.name: self.function})

    @contextlib.contextmanager
    def placed(self, key, level):
        """Inside this context, the function replaces that of a built level with this key: NAME, or Class.method.

        It is replaced in each room of the level, and uses the names of the level. So it can be tested before the
        notebook has defined all that it needs.
        """
        top, _, method = key.partition(".")
        rooms = rooms_of(level)
        holders = [room for room in rooms if top in room]
        own = holders[0][top]
        function = self.at_home(own, rooms)
        before = vars(own)[method] if method else own

        def put(value):
            if method:
                setattr(own, method, value)
            else:
                for room in holders:
                    room[top] = value

        try:
            put(function)
            yield
        finally:
            put(before)

    def at_home(self, own, rooms):
        """A copy of the function that uses a built level's names, not the notebook's; the room of `own` comes first."""
        names = dict(self.first.__globals__)
        for room in [*rooms, vars(sys.modules[own.__module__])]:
            names |= {name: value for name, value in room.items() if not name.startswith("__")}
        code, defaults, closure = (getattr(self.function, f"__{part}__") for part in ("code", "defaults", "closure"))
        if closure:  # `super()` reads its class from the closure
            cells = zip(code.co_freevars, closure, strict=True)
            closure = tuple(types.CellType(own) if name == "__class__" else cell for name, cell in cells)
        function = types.FunctionType(code, names, self.name, defaults, closure)
        function.__kwdefaults__ = self.function.__kwdefaults__
        names[self.name] = function  # it may call itself
        return function

    def losses(self, key, level, steps=20):
        """{task: the losses of its first steps}, on the built level with this function in place of the level's own."""
        found = {}
        with self.placed(key, level):
            for name, task in tasks.FOR.items():
                given = task()
                train = getattr(sys.modules[f"levels.{level}"], name)
                inputs = given.x, given.y, given.weights, given.batches[:steps], given.learning_rate
                found[name] = self.call(f"{steps} steps of {name}", train, *inputs).losses
        return found

    def call(self, said, function, *arguments, **named):
        """The result of a call. Its errors become Wrong, and a result `...` raises Blank. said: this call in words."""
        self.said, self.deadline = said, time.monotonic() + self.patience * TIME_LIMIT
        try:
            with np.errstate(all="ignore"):
                result = function(*arguments, **named)
        except (Timeout, Wrong):
            raise
        except (Exception, SystemExit) as error:
            if "ellipsis" in str(error).lower():  # from 2 * ...
                raise Blank from None
            raise Wrong(f"{said} raises {in_one_line(error, self.first)[:400]}") from None
        finally:
            self.deadline = math.inf
        if result is ...:
            raise Blank
        return result

    def refused(self, said, errors, function, *arguments):
        """Whether a call raises one of these errors, in words: `raises ValueError`, or `is not refused`."""

        def tried():
            try:
                function(*arguments)
            except errors as error:
                return f"raises {type(error).__name__}"
            return "is not refused"

        return self.call(said, tried)


def rooms_of(level):
    """The namespaces of the rooms (modules) of a built level."""
    importlib.import_module(f"levels.{level}")
    return [vars(module) for name, module in list(sys.modules.items()) if name.startswith(f"levels.{level}.")]


def functions_in(solution):
    """The functions in a solution: the function itself, or the methods of a class."""
    found = vars(solution).values() if isinstance(solution, type) else [solution]
    return [each for each in found if isinstance(each, types.FunctionType)]


def is_blank(function):
    """Whether all that a function does is to return None or `...`, which is what a stub does."""
    code = list(dis.get_instructions(function))
    same = [each.opname for each in code] == [each.opname for each in dis.get_instructions(lambda: None)]
    return same and next(each.argval for each in code if "CONST" in each.opname) in (None, ...)


def with_time_limit(mine, run):
    """The result of run(). Raises Wrong if one of its calls takes more than `mine.patience` times TIME_LIMIT.

    run() has a separate thread. So the waiting thread can stop it even if signals are ignored, and the exception that
    stops it cannot arrive in other code.
    """
    outcome = []

    def outcome_of():
        try:
            outcome.append((run(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=outcome_of, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            left = mine.deadline - time.monotonic()
            if left <= 0:
                raise Wrong(f"{mine.said} takes more than {mine.patience * TIME_LIMIT} s: does its loop ever end?")
            thread.join(min(left, TIME_LIMIT))
    finally:
        stop_thread(thread)
    result, error = outcome[0]
    if error:
        raise error
    return result


def stop_thread(thread):
    """Raise Timeout in a thread until it ends, up to three times, because a loop may catch every exception.

    The pauses grow, because a Timeout that arrives while Python cleans up is only reported. That takes time, and a
    second Timeout must not interrupt it. What this cannot stop, such as a sleep or compiled code, is left alone after a
    second.
    """
    for pause in (0.1, 0.3, 0.6):
        if thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Timeout))
            thread.join(pause)


def short(value):
    """A value as text, for the words of a case."""
    return f"{value:g}" if isinstance(value, float) else brief(value)
