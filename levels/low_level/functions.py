"""A function that is traced once for each signature, and then runs as a program."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools
import threading

import numpy as np

from levels.hardware import Spec
from levels.kernels import KERNELS
from levels.support.checks import cache_key, not_copied
from levels.support.inputs import batches_of_rows, specs_of_batch
from levels.support.programs import check_function, check_single, made_once, packed, results_of, say_replayed
from levels.support.storage import settled

from .graph import dce, trace
from .ops import gather
from .replay import Replay, _stacked
from .row_program import NoProgram, RowProgram
from .tensors import DOOR, Tensor, Variable, Watcher, _as_tensors, as_tensor, constant

PASSES = [dce]  # functions that make a graph smaller, in this order
BACK_ENDS = [RowProgram]  # they make a program of a graph; the first that fits does it


def _program_of(function, graph, batch, over):
    """Return the program of the first back end that fits, else a Replay."""
    reasons = {}
    for back_end in BACK_ENDS:
        try:
            return back_end(graph, batch, over)
        except NoProgram as why:  # then the next one is tried
            reasons.setdefault(str(why), back_end.__name__)
    return Replay(graph, say_replayed(function, graph, batch, reasons))


class _Programs:
    """A function and its programs, one for each signature."""

    __reduce__ = not_copied("a function", "it holds programs and variables")

    def __init__(self, python):
        check_function(python)
        functools.update_wrapper(self, python)
        self.python = python
        self.lock = threading.RLock()
        self.renew()

    def renew(self):
        """Discard the programs, so that the next call traces again."""
        self.programs = {}  # key -> (program, what the traced function returned)
        self.traces = 0

    def program(self, args, key, over):
        """Return the program for arguments like these, and the traced result."""
        key = key, over, KERNELS.version
        return self.programs.get(key) or made_once(self, key, args, over)

    def compile(self, args, over):
        """Trace the function, run the passes, and choose a back end."""
        self.traces += 1
        signature = [x.spec if isinstance(x, Tensor) else x for x in args]
        graph, result = self.traced(signature, over)
        for one_pass in PASSES:
            graph = one_pass(graph)
        sizes = [x.shape[0] for x in signature if type(x) is Spec and x.shape]
        return _program_of(self, graph, sizes[0] if sizes else None, over), result

    def traced(self, signature, over):
        """Return the graph, and what the function returned."""
        graph, result = settled(lambda: trace(self.python, signature))
        check_single(graph.outputs if over else [])
        return graph, result


class Function(_Programs):
    """A function of tensors, traced once for each signature, then run as a program.

    Raises TypeError for what cannot be called, and for arguments that cannot be keys.
    """

    def __call__(self, *args):
        if DOOR.top is not DOOR.bottom:  # a tape or a trace needs to see every op
            return self.python(*args)
        arrays = np.ndarray, Variable
        args = [as_tensor(x) if isinstance(x, arrays) else x for x in args]
        key = tuple([x.spec if type(x) is Tensor else cache_key(x) for x in args])
        program, result = self.program(args, key, False)
        return packed(program.run(args), result)

    def over(self, *args):
        """over(x, y, …, batches): run a step on the rows x[i], y[i], … for each array i
        of row numbers. Return a step's results, each with one number per step.
        """
        *args, batches = args or [None]  # no arguments: `batches_of_rows` refuses
        args = _as_tensors(args)
        parts = batches_of_rows(args, batches)  # two, if the last batch is shorter
        if DOOR.top is not DOOR.bottom:
            batches = [rows for part in parts for rows in part]
            steps = [self.python(*[gather(x, i) for x in args]) for i in batches]
            return packed(_stacked([results_of(step) for step in steps]), steps[-1])
        outs = []
        for part in parts:
            specs = specs_of_batch(args, part)
            program, result = self.program(specs, specs, over=True)
            outs.append(program.over(args, part))
        if len(outs) > 1:
            outs = [[constant(np.concatenate(both)) for both in zip(*outs)]]
        return packed(outs[0], result)


function = Function


def eager():
    """Return a `with` block in which a `function` runs undecorated, op by op."""
    return Watcher()
