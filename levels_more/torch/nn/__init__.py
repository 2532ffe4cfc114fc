"""`torch.nn`: modules whose `forward` is written, parameters, layers and losses."""

from levels_more.missing import room
from levels_more.recorded_layers import BatchNorm1d, Dropout, Embedding, LayerNorm, Linear, PReLU, calling  # noqa: F401
from levels_more.recorded_modules import Module, ModuleDict, ModuleList, Parameter, Sequential  # noqa: F401

from . import functional, init, parameter, utils  # noqa: F401

ParameterList, ParameterDict = ModuleList, ModuleDict


_ONE, _MEAN = {"inplace": False}, {"weight": None, "reduction": "mean"}
CALLS = {  # class -> the function of `functional` that it calls, and its options, in PyTorch's order
    "ReLU": ("relu", _ONE), "ReLU6": ("relu6", _ONE), "SELU": ("selu", _ONE), "SiLU": ("silu", _ONE),
    "Mish": ("mish", _ONE), "Sigmoid": ("sigmoid", {}), "Tanh": ("tanh", {}), "Hardtanh": ("hardtanh", {}),
    "LogSigmoid": ("logsigmoid", {}), "Softplus": ("softplus", {}), "Softsign": ("softsign", {}),
    "GELU": ("gelu", {"approximate": "none"}), "ELU": ("elu", {"alpha": 1.0, **_ONE}),
    "LeakyReLU": ("leaky_relu", {"negative_slope": 0.01, **_ONE}), "Identity": ("cpu", {}),
    "CosineSimilarity": ("cosine_similarity", {"dim": 1}), "Softmax": ("softmax", {"dim": -1}), "LogSoftmax": ("log_softmax", {"dim": -1}),
    "Flatten": ("flatten", {"start_dim": 1, "end_dim": -1}), "L1Loss": ("l1_loss", _MEAN),
    "HuberLoss": ("huber_loss", {**_MEAN, "delta": 1.0}), "SmoothL1Loss": ("smooth_l1_loss", {**_MEAN, "beta": 1.0}),
    "MSELoss": ("mse_loss", _MEAN), "BCELoss": ("binary_cross_entropy", _MEAN), "NLLLoss": ("nll_loss", {**_MEAN, "ignore_index": -100}),
    "KLDivLoss": ("kl_div", _MEAN),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", {**_MEAN, "pos_weight": None}),
    "CrossEntropyLoss": ("cross_entropy", {**_MEAN, "label_smoothing": 0.0, "ignore_index": -100}),
}  # fmt: skip
globals().update({kind: calling(kind, getattr(functional, name), options) for kind, (name, options) in CALLS.items()})
__getattr__ = room("torch.nn")
