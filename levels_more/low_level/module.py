"""TensorFlow's `assign_add` and `assign_sub` of a variable, and a module that counts its parameters."""

import math

from levels import low_level
from levels.low_level import OPERATORS
from levels_more.low_level.signatures import Arguments
from levels_more.missing import former


def assign_add(variable, value):
    """Assign the variable plus a value to the variable. Raises what `assign` raises."""
    variable.assign(variable + value)


def assign_sub(variable, value):
    """Assign the variable minus a value to the variable. Raises what `assign` raises."""
    variable.assign(variable - value)


OPERATORS["assign_add"] = assign_add
OPERATORS["assign_sub"] = assign_sub


FORMER = "parameters", "named_parameters", "state_dict", "load_state_dict"


class Module(low_level.Module):
    """The core's Module, extended by `count`."""

    __signature__ = Arguments()
    __getattr__ = former("a module", *FORMER)

    def count(self):
        """Return how many numbers the variables hold in total."""
        return sum(math.prod(variable.shape) for variable in self.variables)
