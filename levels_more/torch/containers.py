"""A module that holds modules by number or by name: `Sequential`, a chain."""

from collections import OrderedDict

from levels_more.checks import expect
from levels_more.missing import refusing
from levels_more.torch.modules import ITS_CURES, Module

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


class Sequential(Module):
    """A chain of modules: each is called on the output of the one before. An OrderedDict gives them names.

    Raises TypeError for what is no module, KeyError for a name that is empty, has a dot, or is an attribute already.
    """

    __getattr__ = refusing("a module", "torch", **ITS_CURES, **dict.fromkeys(("append", "extend", "insert"), WHOLE))

    def __init__(self, *modules):
        super().__init__()
        named = len(modules) == 1 and isinstance(modules[0], OrderedDict)
        for name, module in modules[0].items() if named else enumerate(modules):
            self.put(name if named else str(name), module)

    def put(self, name, module):
        """Add a module under a name. Raises TypeError for anything else, KeyError for a name that cannot be used."""
        if not isinstance(name, str) or not name or "." in name or hasattr(self, name):
            why = "it is no text, empty, has a dot, or is an attribute"
            raise KeyError(f"Sequential: {name!r} cannot be a name: {why}")
        setattr(self, name, checked("Sequential", name, module))

    def __getitem__(self, index):
        named = [*self.named_children()][index]
        return Sequential(OrderedDict(named)) if isinstance(index, slice) else named[1]

    def __len__(self):
        return len([*self.children()])

    def __iter__(self):
        return self.children()

    def forward(self, x):
        """Return the output of the last module for x[…]."""
        for module in self:
            x = module(x)
        return x
