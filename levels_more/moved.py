"""The names that fronts hand on; those that files and names of version 1 have now, or what to use in their place."""

import importlib
from types import ModuleType

from levels_more.missing import missing

MOVED = {
    "callbacks": "high_level.callbacks",
    "estimators": "high_level.sklearn",
    "exporting": "saving.onnx",
    "feature_columns": "mid_level.feature_columns",
    "functional": "high_level.functional",
    "fused": "compiler.fused.backend",
    "fused_loops": "compiler.fused.loops",
    "fused_parts": "compiler.fused.programs",
    "fused_threads": "compiler.fused.threads",
    "gpu": "hardware.gpu.device",
    "gpu_kernels": "kernels.gpu",
    "gpu_memory": "hardware.gpu.memory",
    "gpu_threads": "hardware.gpu.scheduler",
    "gradients": "low_level.autodiff",
    "guards": "compiler.guards",
    "keras_optimizers": "tensorflow.keras_optimizers",
    "launch": "distributed.launch",
    "layers": "mid_level.layers",
    "listing": "hardware.disassembly",
    "losses": "mid_level.losses",
    "machines": "distributed.collectives",
    "machines_spread": "distributed.partition",
    "measuring": "hardware.benchmark",
    "metrics": "mid_level.metrics",
    "moves": "kernels.layout",
    "ops": "kernels.elementwise",
    "optimizers": "mid_level.optimizers",
    "pages": "saving.webpage",
    "passes": "compiler.passes",
    "pipeline": "mid_level.dataset",
    "products": "kernels.matmul",
    "random_numbers": "kernels.random",
    "reading": "compiler.dependencies",
    "recording": "torch.recording",
    "reductions": "kernels.reductions",
    "small_kernels": "compiler.eager.small_ops",
    "tensor_ops": "low_level.ops",
    "tpu": "hardware.tpu",
    "tpu_kernels": "kernels.tpu",
    "trials": "kernels.verify",
}


def told(name):
    """What to write instead of an import of this old name; nothing where it is none."""
    if name not in MOVED:
        return ""
    room, _, file = MOVED[name].rpartition(".")
    return f"levels_more.{name} is levels_more.{MOVED[name]} now: write `from levels_more.{room} import {file}`"


# Names that a front of version 1 handed on -> what to use instead
GONE = {
    "argsort, sort, top_k, ranked": "NumPy's argsort, and gather",
    "Accuracy": "a function of yours as the metric",
    "Adagrad": "Adam or RMSprop",
    "Add, Multiply, Subtract": "x + y, x * y and x - y of what stands for the numbers to come",
    "Average, Maximum, Minimum, Lambda, LeakyReLU, Rescaling, Reshape": "a layer of your own, with a call",
    "CosineDecay, InverseTimeDecay, PolynomialDecay": "a function of the step as the rate, or ExponentialDecay",
    "Huber": "that of exercise 04-2, which you write, or MeanAbsoluteError",
    "L1L2": "a function of yours as the kernel_regularizer",
    "LayerNormalization, Normalization": "BatchNormalization, or NumPy before",
    "RootMeanSquaredError": "the root of the metric 'mse'",
    "beside, packed, taken": "a function of yours",
    "clip_by_norm, clip_by_global_norm, global_norm": "clipnorm or global_clipnorm of an optimizer",
    "clone_model": "copy.deepcopy(model)",
    "confusion_matrix": "that of scikit-learn",
    "gather_nd, repeat, tile, flip, linspace, is_nan, ceil": "NumPy's, on x.numpy()",
    "get_layer, layers_of": "model.layers",
    "model_from_json": "model.save(path) and levels_more.saving.load_model(path)",
    "norm, l2_normalize, cosine_similarity, reduce_logsumexp": "reduce_sum, sqrt, exp and log",
    "pick": "fancy_index",
    "reduce_prod, cumsum, diag": "NumPy's, on x.numpy(); no gradient passes through it",
    "gelu, swish, silu, softplus, leaky_relu, hard_sigmoid": "a function of yours, made of exp, log, erf and where",
    "log1p": "log(1.0 + x)",
    "selu, mish, relu6, softsign, log_sigmoid": "a function of yours, made of exp, log and clip",
    "split, pieces, unstack": "slices, as in x[:, 2:4]",
    "to_categorical": "numpy.eye(classes)[y]",
}


def handed_on(front, *modules):
    """`__all__` of the front of a level: all names in its globals(), without modules, unless they are among these."""
    names = {name for name, value in front.items() if name[0] != "_" and not isinstance(value, ModuleType)}
    return sorted(names | {*modules})


ELSEWHERE = "saving", "distributed"  # rooms whose names were those of a level in version 1


def elsewhere(front, name):
    """The error for the `__getattr__` of a level's front: it says what to write, where another room has this name.

    Raises nothing itself; the name may be one that nobody has.
    """
    told = f"module {front!r} has no attribute {name!r}"
    for names, cure in GONE.items():
        if name in names.split(", "):
            told = f"{name} is no name of {front} any more: use {cure}"
    for room in ELSEWHERE:
        if name in importlib.import_module(f"levels_more.{room}").__all__:
            told = f"{name} is no name of {front} now: write `from levels_more.{room} import {name}`"
    return missing(told, name, 3)


RENAMED = {  # a room -> {a name that its front had: the name of that now}
    "distributed": {
        "Alone": "SingleMessage",
        "Cut": "Partitioner",
        "Staged": "StagedProgram",
        "meet": "synchronised",
    },
    "kernels": {
        "by_views": "copy_views",
        "enter_move": "layout_op",
        "fill_columns": "macro_kernel",
        "trials_of": "cases_of",
        "try_on_all": "verify_kernel",
    },
}


def renamed(front, name):
    """The error for the `__getattr__` of a room's front: it says what a name is called now, if it was renamed."""
    told, room = f"module {front!r} has no attribute {name!r}", front.rpartition(".")[2]
    if name in RENAMED[room]:
        told = f"{name} is called {RENAMED[room][name]} now: write `from {front} import {RENAMED[room][name]}`"
    return missing(told, name, 3)
