"""A module finds its variables."""

# Built from notebooks/03_low_level.ipynb: edit there, then run its last cell.

import math

from .tensors import Variable


class Module:
    """Owns the variables in its attributes, and in the lists, tuples, dicts and modules among them."""

    def named_variables(self):
        """{"layers.0.w": variable, …}, each variable once, in the order in which they were set."""
        found = {}
        collect(vars(self), "", found, set())
        return found

    variables = property(lambda self: list(self.named_variables().values()))

    def count(self):
        """How many numbers the variables hold."""
        return sum(math.prod(variable.shape) for variable in self.variables)


def collect(value, path, found, seen):
    """Add the variables in this value to `found`; what was `seen` is not entered again."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Variable):
        found[path] = value
        return
    value = vars(value) if isinstance(value, Module) else value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for name, part in items:
        collect(part, f"{path}.{name}" if path else str(name), found, seen)
