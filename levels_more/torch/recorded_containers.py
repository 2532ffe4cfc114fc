"""Modules that hold modules, or parameters: by name, in order, and in a row, each called on what the one before gave."""

from levels_more.torch.recorded import Recorded
from levels_more.torch.recorded_modules import Module, Parameter


class ModuleDict(Module):
    """Modules, or parameters, by name."""

    def __init__(self, modules=()):
        super().__init__()
        self.update(modules)

    def __getitem__(self, name):
        return vars(self)[name]

    def __setitem__(self, name, module):
        setattr(self, str(name), module)

    def keys(self):
        """The names."""
        return [name for name, part in dict(vars(self)).items() if isinstance(part, Module | Parameter)]

    def items(self):
        """Pairs (name, module)."""
        return [(name, vars(self)[name]) for name in self.keys()]

    def values(self):
        """The modules."""
        return [vars(self)[name] for name in self.keys()]

    def update(self, modules):
        """Keep these as well, by name."""
        for name, module in dict(modules).items():
            setattr(self, str(name), module)

    def pop(self, name):
        """Take one away, and give it."""
        return vars(self).pop(name)

    def __len__(self):
        return len(self.keys())

    def __iter__(self):
        return iter(self.keys())

    def __contains__(self, name):
        return name in self.keys()


class ModuleList(ModuleDict):
    """Modules, or parameters, in order."""

    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules)

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

    def insert(self, index, module):
        """One more in front of that one."""
        modules = self.values()
        modules.insert(index, module)
        self._begin_anew(modules)

    def __delitem__(self, index):
        modules = self.values()
        del modules[index]
        self._begin_anew(modules)

    def _begin_anew(self, modules):
        for name in self.keys():
            self.pop(name)
        self.extend(modules)


class Sequential(ModuleList):
    """Modules in a row, each called on what the one before gave; or one dict of them, by name."""

    def __init__(self, *modules):
        super().__init__()
        self.update(modules[0] if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules))

    def __getitem__(self, index):
        return Sequential(dict(self.items()[index])) if isinstance(index, slice) else super().__getitem__(index)

    def forward(self, x):
        """What the last module gives."""
        for module in self:
            x = module(x)
        return x


class _Listed:
    """What holds parameters: of a tensor it makes one, and it tells their shapes."""

    def __setattr__(self, name, value):
        held = isinstance(value, Recorded) and not isinstance(value, Parameter)
        super().__setattr__(name, Parameter(value) if held else value)

    def __repr__(self):
        sizes = {name: "x".join(map(str, x.shape)) for name, x in self.items()}
        lines = [f"\n    ({name}): Parameter containing: [{self[name].dtype} of size {n}]" for name, n in sizes.items()]
        return f"{type(self).__name__}({''.join(lines)}" + "\n" * bool(lines) + ")"


class ParameterDict(_Listed, ModuleDict):
    """Parameters by name."""


class ParameterList(_Listed, ModuleList):
    """Parameters in order."""

    def items(self):
        """Pairs (place, parameter)."""
        return enumerate(self.values())
