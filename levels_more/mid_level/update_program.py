"""An optimizer's step outside a trace: one program updates all variables, in place of many launches.

Row "rings, batch 10, Adam: eager" of the bench takes 4.7 times as long without it, and falls behind PyTorch.
"""

from operator import is_

from levels.low_level import Replay, Tensor
from levels.support.parts import Reconstructible
from levels_more.compiler.eager.backward import at_once
from levels_more.compiler.functions import Function
from levels_more.compiler.reads import of_levels

_OFTEN = 3  # after more renewals than this, the next one is likely to come soon: then op by op is quicker


def _read(optimizer):
    """All that a step reads from an optimizer of ours: its `update`, its attributes, and those of its schedule."""
    rate = vars(optimizer)["rate"]  # a schedule, or a number
    return [
        type(optimizer).update,
        *vars(optimizer).values(),
        *(vars(rate).values() if isinstance(rate, Reconstructible) else ()),
    ]


class EagerStep(Function):
    """An optimizer's step as a program, made anew when an attribute has changed. A copied optimizer starts without one.

    An optimizer or schedule of the reader gets no program: its Python, which may print, has to run in each step.
    """

    quiet = True  # it was not written by a reader, so nobody is told that its ops are replayed

    def __init__(self, optimizer, step):
        super().__init__(lambda *gradients: step(gradients, self.variables))
        self.optimizer = optimizer
        self.read = []
        self.renewed = 0
        self.ours = False
        self.variables = [*optimizer.trained_variables]
        self.specs = [w.spec for w in optimizer.trained_variables]

    def done(self, gradients, variables):
        """Do a step by gradients shaped like the variables. If no program can, do nothing and return False."""
        optimizer = self.optimizer
        read = _read(self.optimizer)
        if len(read) != len(self.read) or not all(map(is_, read, self.read)):
            self.renew()
            self.read = read
            self.renewed = self.renewed + 1
            self.ours = all(map(of_levels, (type(optimizer), optimizer.update, type(vars(optimizer)["rate"]))))
        quick = self.ours and self.renewed <= _OFTEN and at_once()
        if not quick or len(variables) != len(self.variables):
            return False
        specs = [dw.spec if type(dw) is Tensor else None for dw in gradients]
        if specs != self.specs or not all(map(is_, variables, self.variables)):
            return False
        program, _ = self.program(gradients, None, False)
        if isinstance(program, Replay):  # it runs op by op
            return False
        program.run(gradients)
        return True

    def __reduce__(self):
        return type(None), ()
