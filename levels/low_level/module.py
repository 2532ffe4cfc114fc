"""A module finds its variables."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import copy

from .tensors import Variable, as_tensor


def _inside(x):
    """List (name, part) for a module, a dict, a list or a tuple, else []. (A copy: other threads may add parts.)"""
    x = vars(x) if isinstance(x, Module) else x
    if isinstance(x, dict):
        return [*x.items()]
    return [*enumerate(x)] if isinstance(x, (list, tuple)) else []


class Module:
    """A holder of variables, in attributes and in lists, tuples, dicts and modules there.

    A part whose class has an attribute `excluded`, such as a metric, is left out.
    """

    def named(self, kind):
        """Return {"layers.0.w": part, …}: parts of that class, once, in order. Raises ValueError for equal names."""
        found, seen, waiting = {}, set(), [("", self)]
        while waiting:
            name, value = waiting.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, kind) and found.setdefault(name, value) is not value:
                raise ValueError(f"two parts have the name {name[:50]!r}")
            for k, part in reversed(_inside(value)):
                if isinstance(part, (kind, Module, list, tuple, dict)) and not hasattr(type(part), "excluded"):
                    waiting.append((f"{name}.{k}" if name else str(k), part))
        return found

    __copy__ = copy.deepcopy  # a copy owns variables of its own

    variables = property(lambda self: list(self.named(Variable).values()))
    trainable_variables = property(lambda self: [v for v in self.variables if v.trainable])

    def get_weights(self):
        """Return the values of all variables, as NumPy arrays."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights):
        """Assign these arrays to all variables, in order. Raises ValueError, and changes none, if one does not fit."""
        named, weights = self.named(Variable), list(weights) if isinstance(weights, (list, tuple)) else [weights]
        if len(weights) != len(named):
            raise ValueError(f"{len(weights)} weights for {len(named)} variables; are all parts built?")
        values = [as_tensor(w, variable) for variable, w in zip(named.values(), weights)]
        for (name, v), value in zip(named.items(), values):
            if value.spec is not v.spec:
                cure = "; reshape it" if value.spec.nbytes == v.spec.nbytes else ""
                raise ValueError(f"{name} is {v.spec}, the weight {value.spec}{cure}")
        for variable, value in zip(named.values(), values):
            variable.assign(value)
