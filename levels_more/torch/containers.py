"""Modules that hold modules by number or by name: `Sequential`, a chain, and `ModuleList`, a list."""

import itertools
from collections import OrderedDict

from levels_more.checks import expect
from levels_more.missing import refusing
from levels_more.torch.modules import Module

WHOLE = "nn.Sequential(*modules), with all its modules"  # what to use instead of a method that adds one


def checked(owner, name, module):
    """Return the module if it is one. Raises TypeError, which says how to give it, for anything else."""
    cure = "a module, such as nn.ReLU()"
    if isinstance(module, type):
        cure = f"an object, {module.__name__}(…); this is a class"
    elif isinstance(module, dict):
        cure = "a module; modules with names are given alone, in an OrderedDict"
    elif hasattr(module, "__iter__") and not isinstance(module, str | Module):
        cure = "a module; several are given one by one, as in Sequential(*modules)"
    elif callable(module):
        cure = "a module, such as nn.ReLU() for relu; a Module of yours may call any function in its forward"
    return expect(isinstance(module, Module), f"{owner}: module {name}", module, cure)


class _Container(Module):
    """The base class: modules under names, in order. A subclass defines `some(named)`, a new one of these pairs."""

    def put(self, name, module):
        """Add a module under a name. Raises TypeError for anything else, KeyError for a name that cannot be used."""
        what = type(self).__name__
        if not isinstance(name, str) or not name or "." in name or hasattr(self, name):
            raise KeyError(f"{what}: {name!r} cannot be a name: it is no text, empty, has a dot, or is an attribute")
        setattr(self, name, checked(what, name, module))

    def __getitem__(self, index):
        named = [*self.named_children()][index]
        return self.some(named) if isinstance(index, slice) else named[1]

    def __len__(self):
        return len([*self.children()])

    def __iter__(self):
        return self.children()


class Sequential(_Container):
    """A chain of modules: each is called on the output of the one before. An OrderedDict gives them names.

    Raises TypeError for what is no module, KeyError for a name that is empty, has a dot, or is an attribute already.
    """

    __getattr__ = refusing("a module", "torch", **dict.fromkeys(("append", "extend", "insert"), WHOLE))

    def __init__(self, *modules):
        super().__init__()
        named = len(modules) == 1 and isinstance(modules[0], OrderedDict)
        for name, module in modules[0].items() if named else enumerate(modules):
            self.put(name if named else str(name), module)

    def some(self, named):
        """Return a new chain of these pairs (name, module)."""
        return Sequential(OrderedDict(named))

    def forward(self, x):
        """Return the output of the last module for x[…]."""
        for module in self:
            x = module(x)
        return x


class ModuleList(_Container):
    """A list of modules, whose parameters belong to the module that holds it. Raises TypeError for what is no module.

    A list is not called: a `forward` of yours goes through it.
    """

    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules or ())

    def some(self, named):
        """Return a new list of the modules of these pairs."""
        return ModuleList([module for _, module in named])

    def append(self, module):
        """Add a module at the end. Return self."""
        self.put(str(len(self)), module)
        return self

    def extend(self, modules):
        """Add modules at the end. Return self. Raises TypeError for a single module, which `append` adds."""
        expect(hasattr(modules, "__iter__"), "ModuleList: modules", modules, "a list of modules")
        for module in [*modules]:
            self.append(module)
        return self

    def forward(self, *_, **__):
        """Raise NotImplementedError: a list is not called."""
        raise NotImplementedError("a ModuleList is not called; in your forward write `for layer in self.layers: …`")

    def __repr__(self):
        lines, first = [], 0
        for text, equal in itertools.groupby(map(repr, self)):
            count = len([*equal])
            told = f"  ({first}-{first + count - 1}): {count} x {text}" if count > 1 else f"  ({first}): {text}"
            lines.append(told.replace("\n", "\n  "))
            first += count
        return "\n".join(["ModuleList(", *lines, ")"]) if lines else "ModuleList()"
