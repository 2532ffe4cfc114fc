"""What a spelling has of a name, and what is said of one that it lacks, also where a `from … import …` asks for it."""

import difflib
import dis
import sys
from types import ModuleType

_USE = {  # names of PyTorch -> what to use instead
    "float16 half bfloat16": "float32",
    "int8 int16 uint8 short byte": "int64",
    "cuda mps": "to(device), where the device is the CPU",
    "compile jit vmap func fx": "the function as it is: nothing here compiles it",
    "baddbmm tensordot": "einsum",
    "vjp jvp": "torch.autograd.grad",
    "register_full_backward_hook": "register_hook of a tensor",
    "scatter_add_ scatter_add index_add_": "nn.functional.one_hot, and a matrix product",
    "eig eigvals": "eigh, where the matrix is symmetric, or NumPy's of that name, in numpy.linalg, on x.detach().numpy()",
    "Conv1d Conv2d conv2d MaxPool2d max_pool2d LSTM GRU RNN Transformer MultiheadAttention": (
        "Linear layers: there are only dense nets here"
    ),
    "LBFGS Rprop ASGD": "Adam, or SGD",
    "OneCycleLR CyclicLR SequentialLR ChainedScheduler": "LambdaLR",
    "sparse_ dirac_": "xavier_uniform_, or copy_ inside torch.no_grad()",
    "set_num_threads get_num_threads": "numba's of that name",
    "get_rng_state set_rng_state use_deterministic_algorithms": "manual_seed: with it all numbers come again",
    "Unflatten unflatten": "reshape",
    "GroupNorm InstanceNorm1d": "LayerNorm",
    "histc": "numpy.histogram",
    "detach_": "detach()",
    "detect_anomaly set_detect_anomaly": "gradcheck",
    "MultiLabelSoftMarginLoss": "BCEWithLogitsLoss",
    "MultiMarginLoss": "CrossEntropyLoss",
    "tensorboard SummaryWriter": "a list of losses, and matplotlib",
    "distributed DataParallel": "levels.high_level.DistributedDataParallel",
}
TORCH = {name: cure for names, cure in _USE.items() for name in names.split()}
EMPTY_ROOMS = (
    "torch.accelerator",
    "torch.linalg",
    "torch.backends",
)  # modules that have nothing, and say so of each name
TENSORFLOW = {}
TENSORFLOW_EMPTY = ["linalg", "train", "summary", "config", "debugging", "dtypes", "errors", "feature_column"]
KERAS_EMPTY = ["activations", "constraints", "initializers", "regularizers", "ops", "utils"]


def missing(told, name):
    """The error for a module's `__getattr__`, which calls this, to raise: it says `told`.

    An AttributeError, so that `hasattr` is false; but in a `from … import …`, where Python drops its text, an ImportError.
    """
    asking = sys._getframe(2)
    importing = dis.opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM"
    return ImportError(told, name=name) if importing else AttributeError(told, name=name)


def room(place, own, *tables, cures=TORCH):
    """`__getattr__` and `__dir__` of a module whose names are its `own`, from globals(), and the rows of these tables.

    What is in neither is `missing`: it is said what to use, from `cures`, which name is the nearest, or how all are listed.
    """

    def names():
        found = {name for table in tables for name in table if not name.endswith("_")}
        found |= {name for name, value in own.items() if not isinstance(value, ModuleType) or place in value.__name__}
        return sorted(name for name in found if not name.startswith("_"))

    def find(name):
        for table in tables:
            if name in table and not name.endswith("_"):
                return table[name]
        near = difflib.get_close_matches(name, names(), 1) if name not in cures else []
        cure = f"use {cures.get(name)}" if name in cures else f"dir({place}) lists what it has"
        cure = f"the nearest is {near[0]!r}" if near else cure
        raise missing(f"{place} has no {name!r} here; {cure}", name)

    return find, names


def small_room(place, *tables, cures=TORCH, **names):
    """A module such as "torch.cuda", that has these names, and rows, alone; `import` finds it below `levels_more`."""
    module = sys.modules[f"levels_more.{place}"] = ModuleType(f"levels_more.{place}", f"`{place}`.")
    for table in (*tables, names):
        vars(module).update(table)
    module.__getattr__, _ = room(place, vars(module), cures=cures)
    return module
