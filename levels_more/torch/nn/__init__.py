"""`torch.nn`: modules whose `forward` is written, parameters, layers and losses."""

import math

from levels import low_level as low

from levels_more.recording import Switched

from ..functions import Tensor
from . import functional, init

F = functional


class Parameter(Tensor):
    """A tensor that a module trains."""

    def __init__(self, data, requires_grad=True):
        super().__init__(data.held if isinstance(data, Tensor) else data, requires_grad)


class _Buffer(Tensor):
    """A tensor that a module keeps, and does not train."""


class Module(low.Module):
    """Write `__init__`, beginning with `super().__init__()`, and `forward`."""

    def __init__(self):
        self.training = True

    def __call__(self, *args, **options):
        return self.forward(*args, **options)

    def register_buffer(self, name, tensor):
        """Keep a tensor under this name; it is saved, and not trained."""
        setattr(self, name, _Buffer(tensor.held))

    def add_module(self, name, module):
        setattr(self, name, module)

    def named_parameters(self):
        return self.named(Parameter).items()

    def parameters(self):
        return iter(self.named(Parameter).values())

    def modules(self):
        return iter(self.named(Module).values())

    def named_children(self):
        return ((name, part) for name, part in vars(self).items() if isinstance(part, Module))

    def children(self):
        return (part for _, part in self.named_children())

    def state_dict(self):
        """{name: tensor} of all parameters and buffers."""
        return {name: x.detach() for name, x in self.named((Parameter, _Buffer)).items()}

    def load_state_dict(self, state):
        """Take these numbers over. Raises KeyError, and changes nothing, unless the names are the same."""
        own = self.named((Parameter, _Buffer))
        if own.keys() != state.keys():
            raise KeyError(f"load_state_dict: missing or unknown: {', '.join(sorted(own.keys() ^ state.keys()))}")
        for name, tensor in own.items():
            if tuple(tensor.shape) != tuple(state[name].shape):
                raise ValueError(f"load_state_dict: {name} is {tensor.shape}, given {state[name].shape}")
        for name, tensor in own.items():
            tensor.set(state[name])

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def to(self, *how, **options):
        """The same module, its floats cast where a dtype is named. (It stays on this computer's CPUs.)"""
        for tensor in self.named((Parameter, _Buffer)).values():
            tensor.data = tensor.detach().to(*how, **options)
        return self

    def float(self):
        return self.to(low.DTYPES[0])

    def double(self):
        return self.to(low.DTYPES[1])

    def apply(self, function):
        for module in self.modules():
            function(module)
        return self

    def extra_repr(self):
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
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, module in named:
            setattr(self, str(name), module)

    def forward(self, x):
        for module in self.children():
            x = module(x)
        return x

    def __getitem__(self, index):
        return [*self.children()][index]

    def __len__(self):
        return len([*self.children()])

    def __iter__(self):
        return self.children()


class ModuleList(Sequential):
    """A list of modules, whose parameters are found."""

    def __init__(self, modules=()):
        super().__init__(*modules)

    def append(self, module):
        setattr(self, str(len(self)), module)
        return self


class Linear(Module):
    """x @ weight[out, in].T + bias[out]. Both begin uniform in ±1/√in."""

    def __init__(self, in_features, out_features, bias=True, dtype=None, device=None):
        super().__init__()
        from .. import empty

        self.in_features, self.out_features = in_features, out_features
        limit = 1.0 / math.sqrt(in_features)
        self.weight = Parameter(init.uniform_(empty(out_features, in_features, dtype=dtype), -limit, limit))
        self.bias = Parameter(init.uniform_(empty(out_features, dtype=dtype), -limit, limit)) if bias else None

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class BatchNorm1d(Module):
    """(x - mean) / √(var + eps)·weight + bias, over the rows; in `eval` with the running mean and variance."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        from .. import ones, zeros

        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight, self.bias = Parameter(ones(num_features)), Parameter(zeros(num_features))
        self.register_buffer("running_mean", zeros(num_features))
        self.register_buffer("running_var", ones(num_features))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
            with Switched(False):
                self.running_mean += self.momentum * (mean.detach() - self.running_mean)
                self.running_var += self.momentum * (x.var(0).detach() - self.running_var)
        return (x - mean) / (var + self.eps).sqrt() * self.weight + self.bias

    def extra_repr(self):
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class Dropout(Module):
    """In training each number is 0 with probability p, and what is left is divided by 1 - p."""

    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        return F.dropout(x, self.p, self.training)

    def extra_repr(self):
        return f"p={self.p}"


def _module(name, function, *options):
    """A module that calls a function of `functional`: a layer without parameters, or a loss."""

    def __init__(self, *args, **given):
        Module.__init__(self)
        self.options = {**dict(zip(options, args, strict=False)), **given}

    def forward(self, *args):
        return function(*args, **self.options)

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "__doc__": function.__doc__})


ReLU, Sigmoid, Tanh = _module("ReLU", F.relu), _module("Sigmoid", F.sigmoid), _module("Tanh", F.tanh)
Softmax, LogSoftmax = _module("Softmax", F.softmax, "dim"), _module("LogSoftmax", F.log_softmax, "dim")
LeakyReLU, ELU = _module("LeakyReLU", F.leaky_relu, "negative_slope"), _module("ELU", F.elu, "alpha")
Softplus, SiLU, GELU = _module("Softplus", F.softplus), _module("SiLU", F.silu), _module("GELU", F.gelu)
Flatten = _module("Flatten", F.flatten, "start_dim", "end_dim")
Identity = _module("Identity", lambda x: x)
MSELoss, L1Loss = _module("MSELoss", F.mse_loss), _module("L1Loss", F.l1_loss)
BCELoss = _module("BCELoss", F.binary_cross_entropy, "weight")
BCEWithLogitsLoss = _module("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, "weight")
CrossEntropyLoss = _module("CrossEntropyLoss", F.cross_entropy, "weight")
NLLLoss = _module("NLLLoss", F.nll_loss, "weight")
SmoothL1Loss, HuberLoss = _module("SmoothL1Loss", F.smooth_l1_loss), _module("HuberLoss", F.huber_loss)
