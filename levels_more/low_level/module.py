"""A variable's steps and a module's variables, in the words of TensorFlow and PyTorch."""

import math

from levels.low_level import METHODS, Variable, as_tensor
from levels_more.checks import expect


def assign_add(variable, value):
    """Name the sum of the variable and a value. Raises what `assign` raises."""
    variable.assign(variable + value)


def assign_sub(variable, value):
    """Name the difference of the variable and a value. Raises what `assign` raises."""
    variable.assign(variable - value)


def parameters(module):
    """The trainable variables of a module, one after the other."""
    return iter(module.trainable_variables)


def named_parameters(module):
    """The pairs (name, variable) of the trainable variables of a module: ("layers.0.kernel", …), …"""
    return ((name, v) for name, v in module.named(Variable).items() if v.trainable)


def state_dict(module):
    """{"layers.0.kernel": tensor, …}: what all variables of a module hold now. It stays when they are assigned."""
    return {name: as_tensor(variable) for name, variable in module.named(Variable).items()}


def load_state_dict(module, state):
    """Give all variables what a `state_dict` holds, tensors or arrays, by name.

    Raises ValueError, and changes none, where a name is missing or unknown, or a shape or dtype differs.
    """
    names = module.named(Variable)
    expect(isinstance(state, dict), "load_state_dict: the state", state, "a dict: {name: tensor}")
    missing, unknown = [name for name in names if name not in state], [name for name in state if name not in names]
    if missing or unknown:
        raise ValueError(f"load_state_dict: missing are {missing!r:.90}, unknown {unknown!r:.90}; are all parts built?")
    module.set_weights([state[name] for name in names])


METHODS.update(
    {
        "Module.count": lambda module: sum(math.prod(variable.shape) for variable in module.variables),
        "Variable.assign_add": assign_add,
        "Variable.assign_sub": assign_sub,
        "Module.parameters": parameters,
        "Module.named_parameters": named_parameters,
        "Module.state_dict": state_dict,
        "Module.load_state_dict": load_state_dict,
    }
)
