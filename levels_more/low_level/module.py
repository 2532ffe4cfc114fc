"""A variable's steps, in the words of TensorFlow, and how many numbers a module holds."""

import math

from levels import low_level
from levels.low_level import OPERATORS
from levels_more.low_level.signatures import Arguments


def assign_add(variable, value):
    """Name the sum of the variable and a value. Raises what `assign` raises."""
    variable.assign(variable + value)


def assign_sub(variable, value):
    """Name the difference of the variable and a value. Raises what `assign` raises."""
    variable.assign(variable - value)


OPERATORS["assign_add"] = assign_add
OPERATORS["assign_sub"] = assign_sub


class Module(low_level.Module):
    """That of the core, which counts the numbers of its variables."""

    __signature__ = Arguments()

    def count(self):
        """How many numbers its variables hold."""
        return sum(math.prod(variable.shape) for variable in self.variables)
