"""A function of tensors that is traced once for each signature, and then runs as a program."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools
import threading

import numpy as np

from levels.hardware import Spec
from levels.kernels import KERNELS
from levels.support.checks import cache_key
from levels.support.inputs import batches_of_rows
from levels.support.said import say_once
from levels.support.storage import CREATED, makes_variables

from .graph import _results_of, dce, trace
from .lowering import NoProgram
from .ops import gather
from .replay import Replay, _check_single, _stacked
from .row_program import RowProgram
from .tensors import DOOR, Tensor, Variable, Watcher, _as_tensors, as_tensor, constant


def eager():
    """Return a `with` block in which a `function` runs undecorated, op by op."""
    return Watcher()


PASSES = [dce]  # functions that make a graph smaller, in this order
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


def _traced(python, signature):
    """Trace a function. Trace it again if it made variables, as a layer does at first."""
    for again in (False, True):
        newest = next(CREATED)
        graph, result = trace(python, signature)
        if not makes_variables(graph, newest, again):
            return graph, result


def _packed(outs, result):
    """Return these tensors in the form of the traced result: None, one, or several."""
    if result is None:
        return None
    return type(result)(outs) if type(result) in (list, tuple) else outs[0]


class _Programs:
    """A function and its programs. Raises TypeError unless it is callable."""

    tell = staticmethod(say_once)

    def __init__(self, python):
        if not callable(python):
            raise TypeError(f"function: {python!r:.60} is no function")
        functools.update_wrapper(self, python)
        self.python = python
        self.lock = threading.RLock()
        self.version = KERNELS.version
        self.renew()

    def renew(self):
        """Discard the programs: the next call traces again, with Python's new values."""
        self.programs = {}  # key -> (program, what the traced function returned)
        self.traces = 0

    def program(self, args, key, over):
        """Return the program for arguments like these, and the traced result."""
        if self.version != KERNELS.version:  # a kernel was replaced
            self.programs = {}
            self.version = KERNELS.version
        found = self.programs.get((key, over))
        if found is None:
            with self.lock:  # one thread makes it, and the others wait
                found = self.programs.get((key, over)) or self.compile(args, over)
                self.programs[key, over] = found
        return found

    def compile(self, args, over):
        """Trace the function, run the passes, and choose a back end."""
        self.traces += 1
        signature = [x.spec if isinstance(x, Tensor) else x for x in args]
        graph, result = self.traced(signature, over)
        for one_pass in PASSES:
            graph = one_pass(graph)
        batch = next((x.shape[0] for x in signature if type(x) is Spec and x.shape), None)
        program = _program_of(graph, batch, over)
        if type(program) is Replay and batch and any(x.spec.device.kind == "cpu" for x in graph.ops):
            why = f"its ops are replayed one by one, which is slower. {program.why}"
            self.tell(f"function {self.__name__}: {why}")
        return program, result

    def traced(self, signature, over):
        """Return the graph, and what the function returned."""
        graph, result = _traced(self.python, signature)
        if over:
            _check_single(graph.outputs)
        return graph, result

    def __reduce__(self):
        raise TypeError("a function cannot be copied: it holds programs and variables")


class Function(_Programs):
    """A function of tensors, traced once for each signature, then run as a program.

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
        """over(x, y, …, batches): run a step on the rows x[i], y[i], … for each array i
        of row numbers. Return a step's results, each with one number per step.
        """
        *args, batches = args or [None]
        args = _as_tensors(args)
        parts = batches_of_rows(args, batches)  # two, if the last batch is shorter
        if DOOR.top is not DOOR.bottom:
            steps = [self.python(*(gather(x, i) for x in args)) for part in parts for i in part]
            return _packed(_stacked([*map(_results_of, steps)]), steps[-1])
        outs = []
        for part in parts:
            specs = [x.spec.device.spec((part.shape[1], *x.spec.shape[1:]), x.spec.dtype) for x in args]
            program, result = self.program(specs, tuple(specs), True)
            outs.append(program.over(args, part))
        if len(outs) > 1:
            outs = [[constant(np.concatenate([x.numpy() for x in both])) for both in zip(*outs)]]
        return _packed(outs[0], result)


function = Function
