"""An optimizer's step outside a trace: one program updates all variables, in place of many launches.

Measured for the net 2-4-8-1, in µs: the update alone, and the next step's reading of the weights.

    optimizer   op by op   one program
    SGD               37             9
    Adam             224            14
"""

from operator import is_

from levels.low_level import Graph, Node, Replay, Tensor
from levels.support.parts import Reconstructible
from levels.support.storage import LockAll
from levels_more.compiler.eager import ACCELERATION
from levels_more.compiler.eager.backward import at_once
from levels_more.compiler.fused.backend import ShortFunction
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


class EagerStep(ShortFunction):
    """An optimizer's step as a program, made anew when an attribute has changed. A copied optimizer starts without one.

    An optimizer or schedule of the reader gets no program: its Python, which may print, has to run in each step.
    """

    def __init__(self, optimizer, step):
        super().__init__(lambda *gradients: step(gradients, self.variables))
        self.optimizer = optimizer
        self.read = []
        self.renewed = 0
        self.ours = False
        self.variables = [*optimizer.trained_variables]
        self.specs = [w.spec for w in optimizer.trained_variables]

    def prepared(self, graph):
        """The graph of the new values, given the gradients and then the old values.

        (A program that overwrites the old values would have to copy them first, since tensors share their memory.)
        """
        old = [node for node in graph.nodes if node.op == "variable"]
        self.old = [node.source for node in old]
        self.changed = [*graph.updates]
        self.locks = LockAll({*self.old, *self.changed})
        new = {x: Node("input", (), {}, x.spec, k) for k, x in enumerate(old, len(self.variables))}
        for x in graph.nodes:
            if x.inputs:
                new[x] = Node(x.op, tuple(map(new.get, x.inputs)), x.attrs, x.spec)
            new.setdefault(x, x)
        return Graph([*new.values()], [*map(new.get, graph.updates.values())], {})

    def done(self, gradients, variables):
        """Do a step by gradients shaped like the variables. If no program can, do nothing and return False."""
        optimizer = self.optimizer
        read = _read(self.optimizer)
        if len(read) != len(self.read) or not all(map(is_, read, self.read)):
            self.renew()
            self.read = read
            self.renewed = self.renewed + 1
            self.ours = all(map(of_levels, (type(optimizer), optimizer.update, type(vars(optimizer)["rate"]))))
        quick = ACCELERATION.on and self.ours and self.renewed <= _OFTEN and at_once()
        if not quick or len(variables) != len(self.variables):
            return False
        specs = [dw.spec if type(dw) is Tensor else None for dw in gradients]
        if specs != self.specs or not all(map(is_, variables, self.variables)):
            return False
        program, _ = self.program(gradients, None, False)
        if isinstance(program, Replay):  # it runs op by op
            return False
        if program.variables:
            program.run(gradients)
            return True
        with self.locks:
            new = program.run([*gradients, *[v.current for v in self.old]])
            for variable, value in zip(self.changed, new, strict=True):
                variable.current = value
                variable.pinned = None
        return True

    def __reduce__(self):
        return type(None), ()
