"""Modules of recorded tensors: their parameters and buffers have names, states and modes; and modules in a row."""

import collections

from levels.low_level import DTYPES
from levels_more.checks import expect
from levels_more.low_level.module import Module as LevelModule
from levels_more.missing import refusing
from levels_more.torch.optimizers import forget
from levels_more.torch.recorded import Tensor


class Parameter(Tensor):
    """A recorded tensor that a module trains."""

    def __init__(self, data, requires_grad=True):
        super().__init__(getattr(data, "held", data), requires_grad=requires_grad)

    def __repr__(self):
        return f"Parameter containing:\n{super().__repr__()}"


Keys = collections.namedtuple("Keys", "missing_keys unexpected_keys")  # names lacking in a state, and unknown ones


class Module(LevelModule):
    """Write `forward`, and put parameters and other modules into attributes, not into lists."""

    __getattr__ = refusing("a module", "torch")
    training = True
    buffers_of = ()  # the names of tensors that are kept, and not trained

    def __call__(self, *args, **options):
        return self.forward(*args, **options)

    def forward(self, *_, **__):
        """What a call gives: for you to write. Raises NotImplementedError."""
        raise NotImplementedError(f"{type(self).__name__} has no forward; write `def forward(self, x):`")

    def __setattr__(self, name, value):
        before = vars(self).get(name)
        if isinstance(before, Parameter) and not (value is None or isinstance(value, Parameter)):
            raise TypeError(f"{type(self).__name__}.{name} is a Parameter; change its numbers, or assign a Parameter")
        super().__setattr__(name, value)

    def register_buffer(self, name, tensor, persistent=True):
        """Keep a tensor under this name; it is saved, and not trained."""
        self.buffers_of = (*self.buffers_of, name)
        setattr(self, name, tensor)

    def named_children(self):
        """Pairs (name, module) of the modules in its attributes."""
        return ((name, part) for name, part in dict(vars(self)).items() if isinstance(part, Module))

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

    def _tensors(self, wanted, recurse=True):
        """{name: tensor} of this and, if `recurse`, all modules inside, for which wanted(module, name, tensor)."""
        found = {}
        for path, module in self._paths() if recurse else [("", self)]:
            for name, x in sorted(vars(module).items(), key=lambda pair: pair[0] in module.buffers_of):
                if isinstance(x, Tensor) and wanted(module, name, x):
                    found[f"{path}.{name}" if path else name] = x
        return found

    def named_parameters(self, recurse=True):
        """Pairs (name, parameter), each parameter once: ("0.weight", …), …; its own alone unless `recurse`."""
        found = {}
        for name, x in self._tensors(lambda module, name, x: isinstance(x, Parameter), recurse).items():
            found.setdefault(id(x), (name, x))
        return iter(found.values())

    def parameters(self, recurse=True):
        """The parameters, each once, in order."""
        return (parameter for _, parameter in self.named_parameters(recurse))

    def _state(self):
        return self._tensors(lambda module, name, x: isinstance(x, Parameter) or name in module.buffers_of)

    def state_dict(self):
        """{name: tensor} of all parameters and buffers; they share their memory."""
        return collections.OrderedDict((name, x.detach()) for name, x in self._state().items())

    def load_state_dict(self, state, strict=True):
        """Take these numbers over; returns (missing_keys, unexpected_keys).

        Raises RuntimeError, or TypeError for no tensors, changing nothing, unless names (if `strict`) and shapes fit.
        """
        own = self._state()
        missing, unknown = [n for n in own if n not in state], [n for n in state if n not in own]
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

    def extra_repr(self):
        """What is told of it in brackets."""
        return ""

    def __repr__(self):
        parts = [f"  ({name}): {part!r}".replace("\n", "\n  ") for name, part in self.named_children()]
        return (
            f"{type(self).__name__}({self.extra_repr()}" + "".join(f"\n{p}" for p in parts) + "\n" * bool(parts) + ")"
        )


class Sequential(Module):
    """Modules in a row, each called on what the one before gave."""

    def __init__(self, *modules):
        super().__init__()
        for k, module in enumerate(modules):
            setattr(self, str(k), module)

    def __getitem__(self, index):
        found = [*self.children()][index]
        return Sequential(*found) if isinstance(index, slice) else found

    def __len__(self):
        return len([*self.children()])

    def __iter__(self):
        return self.children()

    def forward(self, x):
        """What the last module gives."""
        for module in self:
            x = module(x)
        return x
