"""Modules of recorded tensors: their parameters and buffers have names, states, modes; and containers of modules."""

import collections

from levels.low_level import DTYPES
from levels.low_level import Module as LevelModule
from levels_more.recorded import Recorded
from levels_more.recording import Hook
from levels_more.stepping import forget


class Parameter(Recorded):
    """A recorded tensor that a module trains."""

    def __init__(self, data, requires_grad=True):
        super().__init__(getattr(data, "held", data), requires_grad=requires_grad)

    def __repr__(self):
        return f"Parameter containing:\n{super().__repr__()}"


class Matched(collections.namedtuple("Matched", "missing_keys unexpected_keys")):
    """What `load_state_dict` did not find, and what it did not know."""

    def __repr__(self):
        return super().__repr__() if any(self) else "<All keys matched successfully>"


class Module(LevelModule):
    """Write `forward`, and put parameters and other modules into attributes. (Those in lists are found in a ModuleList.)"""

    training = True
    buffers_of = ()  # the names of tensors that are kept, and not trained

    hooks = ()  # functions that hear of each call

    def __call__(self, *args, **options):
        y = self.forward(*args, **options)
        for hook in self.hooks:
            changed = hook(self, args, y)
            y = y if changed is None else changed
        return y

    def register_forward_hook(self, hook):
        """Call hook(module, its arguments, what it gave) at each call; what that gives, if anything, is passed on instead."""
        return Hook(self, hook)

    def __setattr__(self, name, value):
        before = vars(self).get(name)
        if isinstance(before, Parameter) and not (value is None or isinstance(value, Parameter)):
            raise TypeError(f"{type(self).__name__}.{name} is a Parameter; change its numbers, or assign a Parameter")
        super().__setattr__(name, value)

    def register_buffer(self, name, tensor, persistent=True):
        """Keep a tensor under this name; it is saved, and not trained."""
        self.buffers_of = (*self.buffers_of, name)
        setattr(self, name, tensor)

    def register_parameter(self, name, parameter):
        """Train a parameter under this name."""
        setattr(self, name, parameter)

    def add_module(self, name, module):
        """Keep a module under this name."""
        setattr(self, name, module)

    def named_children(self):
        """Pairs (name, module) of the modules in its attributes."""
        return ((name, part) for name, part in vars(self).items() if isinstance(part, Module))

    def children(self):
        """The modules in its attributes."""
        return (part for _, part in self.named_children())

    def _paths(self, path=""):
        """Pairs (name, module) of itself and all modules inside, as often as each is met."""
        yield path, self
        for name, part in self.named_children():
            yield from part._paths(f"{path}.{name}" if path else name)

    def named_modules(self):
        """Pairs (name, module) of itself and all modules inside, each once."""
        found = {}
        for path, module in self._paths():
            found.setdefault(id(module), (path, module))
        return found.values()

    def modules(self):
        """Itself and all modules inside, each once."""
        return (module for _, module in self.named_modules())

    def _tensors(self, wanted):
        """{name: tensor} of this and all modules inside, for which wanted(module, name, tensor) is true."""
        found = {}
        for path, module in self._paths():
            for name, x in vars(module).items():
                if isinstance(x, Recorded) and wanted(module, name, x):
                    found[f"{path}.{name}" if path else name] = x
        return found

    def named_parameters(self):
        """Pairs (name, parameter), each parameter once: ("0.weight", …), …"""
        found = {
            id(x): (name, x) for name, x in reversed(self._tensors(lambda m, n, x: isinstance(x, Parameter)).items())
        }
        return reversed(found.values())

    def parameters(self):
        """The parameters, each once, in order."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self):
        """Pairs (name, tensor) of what is kept and not trained."""
        return self._tensors(lambda module, name, x: name in module.buffers_of).items()

    def buffers(self):
        """What is kept and not trained."""
        return (tensor for _, tensor in self.named_buffers())

    def _state(self):
        return self._tensors(lambda module, name, x: isinstance(x, Parameter) or name in module.buffers_of)

    def state_dict(self):
        """{name: tensor} of all parameters and buffers; they share their memory."""
        return {name: x.detach() for name, x in self._state().items()}

    def load_state_dict(self, state, strict=True):
        """Take these numbers over. Raises RuntimeError, and changes nothing, unless names (if `strict`) and shapes fit."""
        own = self._state()
        wrong = sorted(own.keys() ^ state.keys()) if strict else []
        wrong += [n for n in own.keys() & state.keys() if tuple(own[n].shape) != tuple(state[n].shape)]
        if wrong:
            raise RuntimeError(f"load_state_dict: missing, unknown or of another shape: {', '.join(wrong)}")
        for name in own.keys() & state.keys():
            own[name].write(state[name].to(own[name].dtype).held)
        return Matched([n for n in own if n not in state], [n for n in state if n not in own])

    def train(self, mode=True):
        """Set the mode of this and of all modules inside: training, or not."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Set the mode of use: no dropout, and what batches were seen before."""
        return self.train(False)

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters, or make them 0."""
        forget(self.parameters(), set_to_none)

    def requires_grad_(self, requires_grad=True):
        """Train the parameters, or freeze them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def to(self, *how, **options):
        """The same module, its floats cast where a dtype is named. (It stays on this computer's CPU.)"""
        for tensor in self._state().values():
            if tensor.dtype.kind == "f":
                tensor.data = tensor.detach().to(*how, **options)
        return self

    def float(self):
        """Its floats as float32."""
        return self.to(DTYPES[0])

    def double(self):
        """Its floats as float64."""
        return self.to(DTYPES[1])

    def cpu(self):
        """The same module: here is no other device."""
        return self

    def apply(self, function):
        """Call the function on every module inside, and on this one last."""
        for part in self.children():
            part.apply(function)
        function(self)
        return self

    def extra_repr(self):
        """What is told of it in brackets."""
        return ""

    def __repr__(self):
        parts = [f"  ({name}): {part!r}".replace("\n", "\n  ") for name, part in self.named_children()]
        return (
            f"{type(self).__name__}({self.extra_repr()}" + "".join(f"\n{p}" for p in parts) + "\n" * bool(parts) + ")"
        )


class ModuleDict(Module):
    """Modules, or parameters, by name."""

    def __init__(self, modules=()):
        super().__init__()
        for name, module in dict(modules).items():
            setattr(self, str(name), module)

    def __getitem__(self, name):
        return vars(self)[name]

    def __setitem__(self, name, module):
        setattr(self, str(name), module)

    def keys(self):
        """The names."""
        return [name for name, part in vars(self).items() if isinstance(part, Module | Parameter)]

    def items(self):
        """Pairs (name, module)."""
        return [(name, vars(self)[name]) for name in self.keys()]

    def values(self):
        """The modules."""
        return [vars(self)[name] for name in self.keys()]

    def __len__(self):
        return len(self.keys())

    def __iter__(self):
        return iter(self.keys())

    def __contains__(self, name):
        return name in self.keys()


class ModuleList(ModuleDict):
    """Modules, or parameters, in order."""

    def __init__(self, modules=()):
        super().__init__(enumerate(modules))

    def __getitem__(self, index):
        return type(self)(self.values()[index]) if isinstance(index, slice) else self.values()[index]

    def __setitem__(self, index, module):
        setattr(self, self.keys()[index], module)

    def __iter__(self):
        return iter(self.values())

    def append(self, module):
        """One more behind the last."""
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules):
        """Several more behind the last."""
        for module in modules:
            self.append(module)
        return self


class Sequential(ModuleList):
    """Modules in a row, each called on what the one before gave; or one dict of them, by name."""

    def __init__(self, *modules):
        super().__init__()
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, module in named:
            setattr(self, str(name), module)

    def __getitem__(self, index):
        return Sequential(*self.values()[index]) if isinstance(index, slice) else super().__getitem__(index)

    def forward(self, x):
        """What the last module gives."""
        for module in self:
            x = module(x)
        return x
