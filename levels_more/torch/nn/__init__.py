"""`torch.nn`: modules whose `forward` is written, parameters, layers and losses."""

from levels_more.missing import room
from levels_more.torch import recorded_layers
from levels_more.torch.recorded_containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential  # noqa: F401
from levels_more.torch.recorded_layers import (  # noqa: F401
    BatchNorm1d,
    Bilinear,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    PReLU,
    RMSNorm,
)
from levels_more.torch.recorded_modules import Module, Parameter  # noqa: F401

from . import functional, init, parameter, utils  # noqa: F401

_ONE = {"inplace": False}
_REDUCED, _MEAN = {"reduction": "mean"}, {"weight": None, "reduction": "mean"}
CALLS = {  # class -> the function of `functional` that it calls, and its options, in PyTorch's order
    "ReLU": ("relu", _ONE), "ReLU6": ("relu6", _ONE), "SELU": ("selu", _ONE), "SiLU": ("silu", _ONE),
    "Hardsigmoid": ("hardsigmoid", _ONE), "Hardswish": ("hardswish", _ONE), "Hardshrink": ("hardshrink", {"lambd": 0.5}),
    "Softshrink": ("softshrink", {"lambd": 0.5}), "Tanhshrink": ("tanhshrink", {}), "CELU": ("celu", {"alpha": 1.0, **_ONE}),
    "Threshold": ("threshold", {"threshold": 0.0, "value": 0.0, **_ONE}), "Softmin": ("softmin", {"dim": -1}), "GLU": ("glu", {"dim": -1}),
    "Mish": ("mish", _ONE), "Sigmoid": ("sigmoid", {}), "Tanh": ("tanh", {}), "Hardtanh": ("hardtanh", {"min_val": -1.0, "max_val": 1.0, **_ONE}),
    "LogSigmoid": ("logsigmoid", {}), "Softplus": ("softplus", {"beta": 1.0, "threshold": 20.0}), "Softsign": ("softsign", {}),
    "GELU": ("gelu", {"approximate": "none"}), "ELU": ("elu", {"alpha": 1.0, **_ONE}),
    "LeakyReLU": ("leaky_relu", {"negative_slope": 0.01, **_ONE}), "Identity": ("cpu", {}),
    "CosineSimilarity": ("cosine_similarity", {"dim": 1}), "Softmax": ("softmax", {"dim": -1}), "LogSoftmax": ("log_softmax", {"dim": -1}),
    "Flatten": ("flatten", {"start_dim": 1, "end_dim": -1}), "L1Loss": ("l1_loss", _MEAN),
    "HuberLoss": ("huber_loss", {**_MEAN, "delta": 1.0}), "SmoothL1Loss": ("smooth_l1_loss", {**_MEAN, "beta": 1.0}),
    "MSELoss": ("mse_loss", _MEAN), "BCELoss": ("binary_cross_entropy", _MEAN), "NLLLoss": ("nll_loss", {**_MEAN, "ignore_index": -100}),
    "KLDivLoss": ("kl_div", _MEAN), "SoftMarginLoss": ("soft_margin_loss", _REDUCED), "HingeEmbeddingLoss": ("hinge_embedding_loss", {"margin": 1.0, **_REDUCED}),
    "MarginRankingLoss": ("margin_ranking_loss", {"margin": 0.0, **_REDUCED}), "CosineEmbeddingLoss": ("cosine_embedding_loss", {"margin": 0.0, **_REDUCED}),
    "PoissonNLLLoss": ("poisson_nll_loss", {"log_input": True, **_REDUCED}), "GaussianNLLLoss": ("gaussian_nll_loss", _REDUCED), "TripletMarginLoss": ("triplet_margin_loss", {"margin": 1.0, "p": 2.0, **_REDUCED}),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", {**_MEAN, "pos_weight": None}),
    "CrossEntropyLoss": ("cross_entropy", {**_MEAN, "label_smoothing": 0.0, "ignore_index": -100}),
}  # fmt: skip
globals().update(
    {kind: recorded_layers.calling(kind, getattr(functional, name), options) for kind, (name, options) in CALLS.items()}
)
__getattr__, __dir__ = room("torch.nn", globals())
