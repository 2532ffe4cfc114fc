"""Switches for recording, as `with` blocks and decorators: no_grad, enable_grad, inference_mode, set_grad_enabled."""

import functools
import inspect
import threading
import warnings

from levels.support.checks import check_bool
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
        """Return a version of the function that runs in this mode. Raises TypeError for an async function."""
        what = type(self).__name__
        expect(callable(function), what, function, "nothing, as in `with torch.no_grad():`, or a function")
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            cure = f"write `with torch.{what}():` inside it, around parts without `await`"
            raise TypeError(f"{what}: {function.__name__} is an async function, whose parts run later; {cure}")
        if inspect.isclass(function):
            warnings.warn(f"{what}: {function.__name__} is a class; decorate its methods", FutureWarning, stacklevel=2)
        if inspect.isgeneratorfunction(function):
            return functools.wraps(function)(lambda *args, **options: self._resumed(function(*args, **options)))

        @functools.wraps(function, updated=())
        def run(*args, **options):
            with self:
                return function(*args, **options)

        return run

    def _resumed(self, generator):
        """Run a generator in this mode. While it waits at a `yield`, the caller's mode is on. Return what it gives."""
        resume = functools.partial(generator.send, None)
        while True:
            try:
                with self:
                    value = resume()
            except StopIteration as end:
                return end.value
            try:
                resume = functools.partial(generator.send, (yield value))
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume = functools.partial(generator.throw, error)


class no_grad(_GradMode):
    """Switches recording off, in a `with` block or, as a decorator, in each call of a function."""


class enable_grad(_GradMode):
    """Switches recording on, in a `with` block or, as a decorator, in each call of a function."""

    on = True


class inference_mode(_GradMode):
    """Switches recording off or, with mode=False, on: in a `with` block, or as a decorator."""

    def __new__(cls, mode=True):
        return super().__new__(cls, None if isinstance(mode, bool) else mode)

    def __init__(self, mode=True):
        self.on = not mode


class set_grad_enabled(_GradMode):
    """Switches recording on or off in this thread: from now on, in a `with` block or, as a decorator, in each call."""

    def __new__(cls, mode):
        return super().__new__(cls)

    def __init__(self, mode):
        self.on = check_bool("set_grad_enabled", mode)
        self.prev = _RECORDING.on
        _RECORDING.on = self.on

    def __enter__(self):
        super().__enter__()
        _RECORDING.before[-1] = self.prev

    def __call__(self, function):
        """Return a version of the function that runs in this mode. Outside of it the mode is as before."""
        _RECORDING.on = self.prev
        return (enable_grad if self.on else no_grad)(function)
