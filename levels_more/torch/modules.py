"""Modules of recorded tensors, with named parameters, state dicts and modes; and a chain of them, `Sequential`."""

import collections

from levels.low_level import DTYPES
from levels_more.checks import expect
from levels_more.missing import refusing
from levels_more.torch.optimizers import clear_gradients
from levels_more.torch.tensors import Tensor


class Parameter(Tensor):
    """A recorded tensor that a module trains."""

    def __init__(self, data, requires_grad=True):
        super().__init__(getattr(data, "held", data), requires_grad=requires_grad)

    def __repr__(self):
        return f"Parameter containing:\n{super().__repr__()}"


class Keys(collections.namedtuple("Keys", "missing_keys unexpected_keys")):
    """The names that a state lacks, and those in it that the module does not know."""

    def __repr__(self):
        return super().__repr__() if any(self) else "<All keys matched successfully>"


ITS_CURES = {  # names that tensors have, too -> what to use instead
    "cpu": "the module itself: the CPU is the only device",
    "float": "to(torch.float32)",
    "requires_grad_": "parameter.requires_grad_(False), for each of parameters()",
}


class Module:
    """The base class of modules. Define `forward`, and keep parameters and modules in attributes, not in lists."""

    __getattr__ = refusing("a module", "torch", **ITS_CURES)

    def __init__(self):
        self.training = True

    def __call__(self, *args, **options):
        return self.forward(*args, **options)

    def forward(self, *_, **__):
        """Compute the result of a call. Raises NotImplementedError unless a subclass defines it."""
        cure = "rename its `call`, which is Keras' name" if hasattr(type(self), "call") else "write one"
        raise NotImplementedError(f"{type(self).__name__} has no forward; {cure}: `def forward(self, x):`")

    def _check_begun(self, what):
        """Raise AttributeError, with PyTorch's words, before `__init__` of this class has run."""
        if "training" not in vars(self):
            cure = f"write super().__init__() first in {type(self).__name__}.__init__"
            raise AttributeError(f"cannot assign {what} before Module.__init__() call; {cure}")

    def __setattr__(self, name, value):
        if isinstance(value, Parameter | Module):
            self._check_begun("parameters" if isinstance(value, Parameter) else "module")
        before = vars(self).get(name)
        if isinstance(before, Parameter) and not (value is None or isinstance(value, Parameter)):
            raise TypeError(f"{type(self).__name__}.{name} is a Parameter; change its numbers, or assign a Parameter")
        super().__setattr__(name, value)

    def named_children(self):
        """Pairs (name, module) of the modules in its attributes."""
        return ((name, part) for name, part in dict(vars(self)).items() if isinstance(part, Module))

    def children(self):
        """The modules in its attributes."""
        return (part for _, part in self.named_children())

    def _paths(self, path=""):
        """Yield pairs (name, module) of itself and all modules inside, a shared module more than once."""
        yield path, self
        for name, part in self.named_children():
            yield from part._paths(f"{path}.{name}" if path else name)

    def modules(self):
        """Itself and all modules inside, each once."""
        return {id(module): module for _, module in self._paths()}.values()

    def _state(self):
        """{name: parameter} of this and all modules inside: {"0.weight": …}, a shared one under each of its names."""
        found = {}
        for path, module in self._paths():
            for name, x in vars(module).items():
                if isinstance(x, Parameter):
                    found[f"{path}.{name}" if path else name] = x
        return found

    def named_parameters(self):
        """Pairs (name, parameter), each parameter once: ("0.weight", …), …"""
        found = {}
        for name, x in self._state().items():
            found.setdefault(id(x), (name, x))
        return iter(found.values())

    def parameters(self):
        """The parameters, each once, in order."""
        return (parameter for _, parameter in self.named_parameters())

    def state_dict(self):
        """{name: tensor} of all parameters. The tensors share the memory of the module's."""
        return collections.OrderedDict((name, x.detach()) for name, x in self._state().items())

    def load_state_dict(self, state, strict=True):
        """Copy the numbers of a state dict into this module. Return (missing_keys, unexpected_keys).

        Raises RuntimeError, or TypeError for values that are no tensors, and changes nothing, unless shapes and, if
        `strict`, names match.
        """
        own = self._state()
        missing = [n for n in own if n not in state]
        unknown = [n for n in state if n not in own]
        for name in own.keys() & state.keys():
            expect(isinstance(state[name], Tensor), f"load_state_dict: {name}", state[name], "a tensor")
        other = [n for n in own if n in state and tuple(own[n].shape) != tuple(state[n].shape)]
        wrong = {"Missing key(s)": missing, "Unexpected key(s)": unknown} if strict else {}
        wrong["size mismatch"] = [f"{n}: {tuple(state[n].shape)} for {tuple(own[n].shape)}" for n in other]
        if told := "; ".join(f"{what}: {', '.join(names)}" for what, names in wrong.items() if names):
            raise RuntimeError(f"load_state_dict: {told}")
        for name in own.keys() & state.keys():
            own[name].write(state[name].to(own[name].dtype).held)
        return Keys(missing, unknown)

    def train(self, mode=True):
        """Set training mode, or eval mode if `mode` is False, in this and all modules inside. Return self."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Set eval mode, in which `Dropout` changes nothing. Return self."""
        return self.train(False)

    def zero_grad(self, set_to_none=True):
        """Set the gradients of all parameters to None, or to 0."""
        clear_gradients(self.parameters(), set_to_none)

    def to(self, *how, **options):
        """Cast the floats of this module, if a dtype is given. Return self. (The CPU is the only device.)"""
        for tensor in self._state().values():
            if tensor.dtype.kind == "f":
                tensor.data = tensor.detach().to(*how, **options)
        return self

    def double(self):
        """Cast its floats to float64. Return self."""
        return self.to(DTYPES[1])

    def extra_repr(self):
        """Return the text in brackets in the repr."""
        return ""

    def __repr__(self):
        parts = [f"  ({name}): {part!r}".replace("\n", "\n  ") for name, part in self.named_children()]
        return (
            f"{type(self).__name__}({self.extra_repr()}" + "".join(f"\n{p}" for p in parts) + "\n" * bool(parts) + ")"
        )


WHOLE = "nn.Sequential(*modules), with all its modules"  # what to use instead of a method that adds one


def check_module(owner, name, module):
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
        named = len(modules) == 1 and isinstance(modules[0], collections.OrderedDict)
        for name, module in modules[0].items() if named else enumerate(modules):
            self.put(name if named else str(name), module)

    def put(self, name, module):
        """Add a module under a name. Raises TypeError for anything else, KeyError for a name that cannot be used."""
        if not isinstance(name, str) or not name or "." in name or hasattr(self, name):
            why = "it is no text, empty, has a dot, or is an attribute"
            raise KeyError(f"Sequential: {name!r} cannot be a name: {why}")
        setattr(self, name, check_module("Sequential", name, module))

    def __getitem__(self, index):
        named = [*self.named_children()][index]
        return Sequential(collections.OrderedDict(named)) if isinstance(index, slice) else named[1]

    def __len__(self):
        return len([*self.children()])

    def __iter__(self):
        return self.children()

    def forward(self, x):
        """Return the output of the last module for x[…]."""
        for module in self:
            x = module(x)
        return x
