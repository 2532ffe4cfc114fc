"""A function of tensors that is traced once for each signature, and then runs as a program."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools
import operator
import threading

import numpy as np

from levels.hardware import Spec
from levels.kernels import KERNELS
from levels.support.checks import cache_key
from levels.support.inputs import even, row_numbers
from levels.support.said import say_once
from levels.support.storage import CREATED, makes_variables

from .graph import _results_of, dce, trace
from .lowering import NoProgram
from .ops import gather
from .replay import Replay, _check_single, _stacked
from .row_program import RowProgram
from .tensors import DOOR, Tensor, Variable, Watcher, as_tensor, constant


def eager():
    """Return a `with` block in which a `function` runs undecorated, op by op."""
    return Watcher()


PASSES = [dce]  # functions that make a graph smaller, in this order
GUARDS = []  # guard(function, graph) -> a function without arguments: is the program out of date?
BACK_ENDS = [RowProgram]  # they make a program of a graph; the first that fits does it


def _program_of(graph, batch, over):
    """Return the program of the first back end that fits, else a Replay."""
    reasons = {}
    for back_end in BACK_ENDS:
        try:
            return back_end(graph, batch, over)
        except NoProgram as why:  # then the next one is tried
            reasons.setdefault(str(why), f"{back_end.__name__}: {why}")
    reasons.pop("", None)  # of a back end whose turn comes later
    return Replay(graph, "; ".join(reasons.values()))


class _Programs:
    """The programs of a function, one for each cache key. The first thread that needs one makes it; others wait."""

    def __init__(self, python):
        if not callable(python):
            raise TypeError(f"function: {python!r:.60} is no function")
        functools.update_wrapper(self, python)
        self.python = python
        self.programs, self.lock = {}, threading.RLock()
        self.traces, self.version, self.stale = 0, KERNELS.version, []

    def program(self, args, key, over):
        """Return the program for arguments like these, and the traced result."""
        if self.version != KERNELS.version or any(map(operator.call, self.stale)):
            self.programs, self.version, self.stale = {}, KERNELS.version, []
        found = self.programs.get((key, over))
        if found is None:
            with self.lock:
                found = self.programs[key, over] = self.programs.get((key, over)) or self.compile(args, over)
        return found

    def compile(self, args, over):
        """Trace the function, run the passes, and choose a back end. Return the program and the traced result."""
        self.traces += 1
        signature = [x.spec if isinstance(x, Tensor) else x for x in args]
        graph, result = self.traced(signature, over)
        for one_pass in PASSES:
            graph = one_pass(graph)
        self.stale += [guard(self, graph) for guard in GUARDS]
        batch = next((x.shape[0] for x in signature if type(x) is Spec and x.shape), None)
        program = _program_of(graph, batch, over)
        if type(program) is Replay and batch and any(node.spec.device.kind == "cpu" for node in graph.ops):
            self.replays(program)
        return program, result

    def replays(self, program):
        """Say once that the ops will run one by one, and why."""
        say_once(f"function {self.__name__}: its ops are replayed one by one, which is slower. {program.why}")

    def traced(self, signature, over):
        """Trace the function, and return the graph and what the function returned.

        Raises ValueError if each call makes new variables. With `over`, also if a result is not a single number.
        """
        newest = next(CREATED)
        graph, result = trace(self.python, signature)
        if makes_variables(graph, newest):  # as a layer does on its first call; the second trace finds them
            newest = next(CREATED)
            graph, result = trace(self.python, signature)
            if makes_variables(graph, newest):
                raise ValueError("a variable is made in every call of this function; make it once, outside")
        if over:
            _check_single(graph.outputs)
        return graph, result

    def renew(self):
        """Discard the programs: the next call traces again, with Python's new values."""
        self.programs, self.traces = {}, 0

    def __reduce__(self):
        raise TypeError("a function cannot be copied: it holds programs and the variables of what it was traced with")


def _packed(outs, result):
    """Return these tensors in the form of the traced result: None, one, a list or a tuple."""
    if result is None:
        return None
    return type(result)(outs) if type(result) in (list, tuple) else outs[0]


class Function(_Programs):
    """A function of tensors that is traced once for each signature and then runs as a program, from any thread.

    Raises TypeError unless `python` is callable, and for arguments that cannot be a key.
    """

    def __call__(self, *args):
        if DOOR.top is not DOOR.bottom:  # a tape or a trace needs to see every op
            return self.python(*args)
        args = [as_tensor(x) if isinstance(x, (np.ndarray, Variable)) else x for x in args]
        key = tuple([x.spec if type(x) is Tensor else cache_key(x) for x in args])
        program, result = self.program(args, key, False)
        return _packed(program.run(args), result)

    def over(self, *args):
        """Run a step on the rows x[i], y[i], … for each array i of row numbers in `batches`: over(x, y, …, batches).

        The last batch may be shorter. Return what the function returns, but each number becomes a tensor of the numbers
        of all steps. Raises ValueError if the arrays differ in their number of rows.
        """
        *args, batches = args or [None]
        args = [as_tensor(x) for x in args]
        rows = {x.spec.shape[:1] for x in args}
        if len(rows) != 1 or () in rows:
            raise ValueError(
                f"over: {', '.join(str(x.spec) for x in args)}; expected arrays with the same number of rows"
            )
        (count,), outs = rows.pop(), []
        parts = [row_numbers("over: batches", part, count) for part in even(batches)]
        if DOOR.top is not DOOR.bottom:
            results = [self.python(*(gather(x, i) for x in args)) for part in parts for i in part]
            return _packed(_stacked([*map(_results_of, results)]), results[-1])
        for part in parts:
            signature = tuple([x.device.spec((part.shape[1], *x.spec.shape[1:]), x.spec.dtype) for x in args])
            program, result = self.program(signature, signature, True)
            outs.append(program.over(args, part))
        if len(outs) > 1:  # the last batch is shorter
            outs = [[constant(np.concatenate([x.numpy() for x in both])) for both in zip(*outs)]]
        return _packed(outs[0], result)


function = Function
