"""Switches for recording, as `with` blocks and decorators: no_grad and enable_grad."""

import functools
import inspect
import threading

from levels_more.checks import expect


class _Recording(threading.local):
    on = True  # whether recording is on in this thread

    def __init__(self):
        self.before = []  # what was on before each open `with` block of this thread


_RECORDING = _Recording()


def recording():
    """Return whether recording is on in this thread."""
    return _RECORDING.on


class _GradMode:
    """Switches recording to `on`, in a `with` block or, as a decorator, in each call of a function."""

    on = False

    def __new__(cls, function=None):
        return super().__new__(cls) if function is None else cls()(function)

    def __enter__(self):
        _RECORDING.before.append(_RECORDING.on)
        _RECORDING.on = self.on

    def __exit__(self, *_):
        _RECORDING.on = _RECORDING.before.pop()

    def __call__(self, function):
        """Return a version of the function that runs in this mode.

        Raises TypeError for a class, a generator and an async function, whose parts run later.
        """
        what = type(self).__name__
        expect(callable(function), what, function, "nothing, as in `with torch.no_grad():`, or a function")
        later = (inspect.isclass, inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        if any(of_kind(function) for of_kind in later):
            told = f"{what}: the parts of {function.__name__} run later"
            raise TypeError(f"{told}; write `with torch.{what}():` inside, around parts without `await` or `yield`")

        @functools.wraps(function)
        def run(*args, **options):
            with self:
                return function(*args, **options)

        return run


class no_grad(_GradMode):
    """Switches recording off, in a `with` block or, as a decorator, in each call of a function."""


class enable_grad(_GradMode):
    """Switches recording on, in a `with` block or, as a decorator, in each call of a function."""

    on = True
