"""TensorFlow's `assign_add` and `assign_sub` of a variable, and a module that counts its parameters."""

import math
from inspect import getattr_static

from levels import low_level
from levels.low_level import OPERATORS, Variable
from levels.support.operators import Elsewhere
from levels_more.low_level.signatures import Arguments
from levels_more.missing import lacking


def assign_add(variable, value):
    """Assign the variable plus a value to the variable. Raises what `assign` raises."""
    variable.assign(variable + value)


def assign_sub(variable, value):
    """Assign the variable minus a value to the variable. Raises what `assign` raises."""
    variable.assign(variable - value)


OPERATORS["assign_add"] = assign_add
OPERATORS["assign_sub"] = assign_sub


@lacking("parameters", "named_parameters", "state_dict", "load_state_dict")
class Module(low_level.Module):
    """The core's Module, extended by `count`."""

    __signature__ = Arguments()
    variables: list[Variable]  # properties of the core
    trainable_variables: list[Variable]

    def __dir__(self):
        """Return the names of attributes, without those that are told to be elsewhere."""
        return [name for name in super().__dir__() if not isinstance(getattr_static(self, name, None), Elsewhere)]

    def count(self) -> int:
        """Return how many numbers the variables hold in total."""
        return sum(math.prod(variable.shape) for variable in self.variables)
