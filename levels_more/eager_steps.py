"""A step of an optimizer where nothing is traced: one program changes all variables, in place of many launches.

Measured, the update alone of the net 2-4-8-1, in µs, with the copies of weights that the next step reads:

    optimizer   op by op   so
    SGD               37   24
    Adam             235   28
"""

from operator import is_

from levels.low_level import Function, Replay, Tensor
from levels.mid_level import Made
from levels_more.reading import of_levels
from levels_more.walks import at_once

_OFTEN = 3  # what was traced anew so often would be again: then op by op is quicker


def _read(optimizer):
    """All that a step reads of an optimizer of ours: its rule, its attributes, and those of a rate that depends on the step."""
    rate = optimizer.rate
    return [type(optimizer).update, *vars(optimizer).values(), *(vars(rate).values() if isinstance(rate, Made) else ())]


class EagerStep(Function):
    """A step of an optimizer as a program, which is made anew where an attribute has changed. Of a copy there is none yet.

    Python of the reader's, which may print, has none: it runs in each step.
    """

    def __init__(self, optimizer, step):
        super().__init__(lambda *gradients: step(gradients, self.variables))
        self.optimizer, self.read, self.renewed, self.ours = optimizer, [], 0, False
        self.variables, self.specs = [*optimizer.owners], [w.spec for w in optimizer.owners]

    def done(self, gradients, variables):
        """Do a step by tensors shaped like these variables, and say so. False where that is no program: nothing was done."""
        optimizer, read = self.optimizer, _read(self.optimizer)
        if len(read) != len(self.read) or not all(map(is_, read, self.read)):
            self.renew()
            self.read, self.renewed = read, self.renewed + 1
            self.ours = all(map(of_levels, (type(optimizer), optimizer.update, type(optimizer.rate))))
        if not (self.ours and self.renewed <= _OFTEN and at_once() and len(variables) == len(self.variables)):
            return False
        tensors = {*map(type, gradients)} == {Tensor} and [dw.spec for dw in gradients] == self.specs
        if not (tensors and all(map(is_, variables, self.variables))):
            return False
        program, _ = self.program(gradients, None, False)
        if isinstance(program, Replay):  # that is op by op
            return False
        program.run(gradients)
        return True

    def __reduce__(self):
        return type(None), ()
