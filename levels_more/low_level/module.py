"""A variable's steps and a module's variables, in the words of TensorFlow and PyTorch."""

import math

from levels import low_level
from levels.low_level import OPERATORS, Variable, as_tensor
from levels_more.checks import expect


def assign_add(variable, value):
    """Name the sum of the variable and a value. Raises what `assign` raises."""
    variable.assign(variable + value)


def assign_sub(variable, value):
    """Name the difference of the variable and a value. Raises what `assign` raises."""
    variable.assign(variable - value)


OPERATORS["assign_add"] = assign_add
OPERATORS["assign_sub"] = assign_sub


class Module(low_level.Module):
    """That of the core, with the methods of PyTorch's modules."""

    def count(self):
        """How many numbers its variables hold."""
        return sum(math.prod(variable.shape) for variable in self.variables)

    def parameters(self):
        """Its trainable variables, one after the other."""
        return iter(self.trainable_variables)

    def named_parameters(self):
        """The pairs (name, variable) of its trainable variables: ("layers.0.kernel", …), …"""
        return ((name, v) for name, v in self.named(Variable).items() if v.trainable)

    def state_dict(self):
        """{"layers.0.kernel": tensor, …}: what all its variables hold now. It stays when they are assigned."""
        return {name: as_tensor(variable) for name, variable in self.named(Variable).items()}

    def load_state_dict(self, state):
        """Give all variables what a `state_dict` holds, tensors or arrays, by name.

        Raises ValueError, and changes none, where a name is missing or unknown, or a shape or dtype differs.
        """
        names = self.named(Variable)
        expect(isinstance(state, dict), "load_state_dict: the state", state, "a dict: {name: tensor}")
        missing, unknown = [name for name in names if name not in state], [name for name in state if name not in names]
        if missing or unknown:
            raise ValueError(
                f"load_state_dict: missing are {missing!r:.90}, unknown {unknown!r:.90}; are all parts built?"
            )
        self.set_weights([state[name] for name in names])
