"""A module finds its variables."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import copy

from levels.support.checks import check_weights
from levels.support.parts import find_parts

from .tensors import Variable, as_tensor


class Module:
    """A holder of variables: in attributes, and in lists, dicts and modules there.

    A part whose class has an attribute `excluded`, such as a metric, is left out.
    """

    def named(self, kind):
        """Return {"layers.0.w": part of a class}. Raises ValueError for equal names."""
        return find_parts(self, Module, kind)

    __copy__ = copy.deepcopy  # a copy owns variables of its own

    variables = property(lambda self: list(self.named(Variable).values()))
    trainable_variables = property(lambda m: [v for v in m.variables if v.trainable])

    def get_weights(self):
        """Return the values of all variables, as NumPy arrays."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights):
        """Assign these arrays to all variables, in order. Raises ValueError."""
        named = self.named(Variable)
        values = check_weights(weights, named, as_tensor)
        for variable, value in zip(named.values(), values):
            variable.assign(value)
