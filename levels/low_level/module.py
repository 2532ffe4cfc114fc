"""A module finds its variables."""

# Built from notebooks/03_low_level.ipynb: edit there, then run its last cell.

import math
import reprlib

from .tensors import Variable


def parts(value):
    """[(name, part), …] of a module, a dict, a list or a tuple; of anything else none."""
    if isinstance(value, (Module, dict)):
        return [*(vars(value) if isinstance(value, Module) else value).items()]
    return [*enumerate(value)] if isinstance(value, (list, tuple)) else []


class Module:
    """Owns the variables in its attributes, and in the lists, tuples, dicts and modules among them."""

    def named_variables(self):
        """{"layers.0.w": variable, …}, each variable once, in the order in which they were set."""
        found, seen, waiting = {}, set(), [("", self)]
        while waiting:
            path, value = waiting.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, Variable) and path in found:
                raise ValueError(f"two variables have the name {reprlib.repr(path)}")
            if isinstance(value, Variable):
                found[path] = value
            waiting += [(f"{path}.{name}" if path else str(name), part) for name, part in reversed(parts(value))]
        return found

    variables = property(lambda self: list(self.named_variables().values()))

    def count(self):
        """How many numbers the variables hold."""
        return sum(math.prod(variable.shape) for variable in self.variables)
