"""PyTorch's functions: those of level 3 and of NumPy, by its names and with its arguments, on tensors that remember."""

import functools
import math
import operator

import numpy as np

from levels import low_level as low
from levels.low_level import nn
from levels_more.low_level import activations, linalg, special, statistics
from levels_more.low_level import einsum as letters
from levels_more.low_level.custom_rules import without_gradient
from levels_more.low_level.generator import drawn, shuffled
from levels_more.low_level.promotion import beside, both, floats, of_kinds
from levels_more.torch import op_arguments, recorded_making
from levels_more.torch.op_arguments import sizes_of, spelled
from levels_more.torch.recorded import FUNCTIONS, Recorded, cut_out, only_view, recorded
from levels_more.torch.recorded_making import BOOL, DOUBLE, FLOAT, KINDS, LONG, like, maker, shaped, to, whole


def _rows(names, row):
    """{name: row(name)} of each name of a text."""
    return {name: row(name) for name in names.split()}


_divide = without_gradient(np.floor_divide)
PLAIN = {  # functions of `levels` and of NumPy, before they remember
    **_rows("exp log log1p sqrt sin cos tanh erf sigmoid", lambda name: lambda x: getattr(low, name)(floats(x))),
    **_rows("relu selu silu softsign relu6 mish elu softmax log_softmax", functools.partial(getattr, nn)),
    **_rows("eq ne lt le gt ge", lambda name: both(getattr(operator, name))), **_rows("add sub", op_arguments.scaled),
    "mul": of_kinds(operator.mul, low.logical_and),
    **_rows("mean prod logsumexp", lambda name: op_arguments.over(getattr(low, f"reduce_{name}"))),
    **_rows("sinh cosh asin acos atan asinh acosh atanh expm1 frac hypot fmod atan2", functools.partial(getattr, special)),
    **_rows("celu hardswish hardshrink softshrink tanhshrink threshold softmin glu logit", functools.partial(getattr, activations)),
    **_rows("cumprod cummax cummin cov corrcoef mode", functools.partial(getattr, statistics)),
    **_rows("index_fill broadcast_tensors median div nan_to_num addcmul addcdiv pad hardtanh", functools.partial(getattr, op_arguments)),
    **_rows("stack cumsum argmax argmin argsort abs square cosine_similarity", functools.partial(getattr, low)),
    **_rows("sign floor ceil trunc round isnan isinf isfinite unique bincount count_nonzero logical_and logical_or "
            "logical_not logical_xor isclose isin searchsorted quantile argwhere bitwise_and bitwise_or bitwise_xor bitwise_not", lambda name: without_gradient(getattr(np, name))),
    **_rows("float double long int bool", lambda name: lambda x: to(x, KINDS[name])),
    **_rows("any all", lambda name: op_arguments.of_truths(getattr(low, f"reduce_{name}"))),
    "cat": low.concat, "topk": low.top_k, "amax": op_arguments.over(low.reduce_max), "amin": op_arguments.over(low.reduce_min),
    **_rows("solve inverse det trace", functools.partial(getattr, linalg)),
    **_rows("scatter diff lerp roll cdist addmm prelu", functools.partial(getattr, op_arguments)),
    "matmul": letters.matmul, "einsum": letters.einsum, "bmm": letters.products, "repeat_interleave": low.repeat, "diag": low.diag, "masked_select": low.boolean_mask, "neg": operator.neg,
    "where": lambda m, *xy: low.where(m, *beside(*xy)) if xy else without_gradient(np.nonzero)(m),
    "clamp": op_arguments.clamp, "to": to, "type": recorded_making.kind_of,
    "cpu": lambda x: x, "clone": lambda x: low.reshape(x, x.shape), "logsigmoid": nn.log_sigmoid,
    "softplus": lambda x, beta=1.0, threshold=20.0: nn.softplus(beta * x) / beta,
    "floor_divide": both(_divide), "hardsigmoid": nn.hard_sigmoid,
    "remainder": both(lambda x, y: x - y * _divide(x, y)), "reciprocal": lambda x: 1.0 / floats(x),
    "nonzero": lambda x, as_tuple=False: without_gradient(np.nonzero if as_tuple else np.argwhere)(x), "embedding": lambda x, weight: low.gather(weight, x),
    "rsqrt": lambda x: 1.0 / low.sqrt(floats(x)), "tan": lambda x: low.sin(x) / low.cos(x),
    "log2": lambda x: low.log(floats(x)) / math.log(2), "log10": lambda x: low.log(floats(x)) / math.log(10),
    "leaky_relu": lambda x, negative_slope=0.01: nn.leaky_relu(x, negative_slope),
    "gelu": lambda x, approximate="none": nn.gelu(x, approximate == "tanh"),
    "norm": lambda x, p=2, *a, **k: low.norm(x, p, *a, **k),
    "maximum": both(op_arguments.shared_at_ties(low.maximum)), "minimum": both(op_arguments.shared_at_ties(low.minimum)),
    "max": op_arguments.extreme(low.reduce_max, low.largest, both(op_arguments.shared_at_ties(low.maximum))),
    "min": op_arguments.extreme(low.reduce_min, low.smallest, both(op_arguments.shared_at_ties(low.minimum))),
    "var": op_arguments.spread(low.reduce_variance), "std": op_arguments.spread(low.reduce_std),
    "sort": lambda x, axis=-1, descending=False, stable=True: low.ranked(x, axis, descending), "pow": op_arguments.power,
    "sum": op_arguments.over(lambda x, *how: low.reduce_sum(low.cast(x, LONG) if x.dtype == BOOL else x, *how)),
    "outer": lambda x, y: low.expand_dims(x, 1) * low.expand_dims(y, 0),
    "flip": lambda x, *dims: low.flip(x, sizes_of(dims)), "repeat": op_arguments.repeat,
    "tile": lambda x, *sizes: low.tile(x, (1,) * (len(x.shape) - len(sizes_of(sizes))) + sizes_of(sizes)),
    "gather": lambda x, axis, index: low.take_along(x, index, axis),
    "index_select": lambda x, axis, index: low.take(x, index, axis), "type_as": lambda x, y: to(x, y.dtype),
    "masked_fill": lambda x, mask, value: low.where(mask, *beside(value, x)),
    "normalize": lambda x, p=2.0, axis=1, eps=1e-12: x / low.maximum(low.norm(x, p, axis, True), eps),
    "hstack": lambda tensors: low.concat(tensors, min(1, len(tensors[0].shape) - 1)),
    "vstack": lambda tensors: low.concat([low.reshape(x, (-1, x.shape[-1])) for x in tensors], 0),
    "meshgrid": lambda *rows, indexing="ij": without_gradient(np.meshgrid)(*rows, indexing=indexing),
    **_rows("tril triu", lambda name: lambda x, k=0: x * low.constant(getattr(np, name)(np.ones(x.shape, x.dtype), k))),
    "take": lambda x, index: low.gather(low.reshape(x, (-1,)), index),
    "one_hot": lambda x, n=-1: low.one_hot(x, int(low.reduce_max(x).numpy()) + 1 if n < 0 else n, LONG),
}  # fmt: skip
VIEWS = {  # functions whose results look at the memory of their argument
    "reshape": lambda x, *sizes: low.reshape(x, sizes_of(sizes)),
    "transpose": low.swapaxes, "t": lambda x: low.transpose(x) if len(x.shape) > 1 else x,
    "permute": lambda x, *axes: low.transpose(x, sizes_of(axes)), "unsqueeze": low.expand_dims, "expand": op_arguments.expand,
    "squeeze": lambda x, axis=None: x if axis is not None and x.shape[axis] != 1 else low.squeeze(x, axis),
    "split": lambda x, size, axis=0: tuple((low.pieces if isinstance(size, int) else low.split)(x, size, axis)),
    "chunk": lambda x, chunks, axis=0: low.pieces(x, -(-x.shape[axis] // chunks), axis),
    "unbind": lambda x, axis=0: tuple(low.squeeze(each, axis) for each in low.pieces(x, 1, axis)),
    "flatten": lambda x, start_dim=0, end_dim=-1: low.reshape(x, (*x.shape[:start_dim], -1, *x.shape[end_dim:][1:])),
    "select": lambda x, axis, k: low.pick(x, (slice(None),) * (axis % len(x.shape)) + (k,)),
    "narrow": lambda x, axis, k, n: low.pick(x, (slice(None),) * (axis % len(x.shape)) + (slice(k, k + n),)),
}  # fmt: skip
MAKERS = {
    "zeros": shaped(lambda shape, dtype, g: np.zeros(shape, dtype)),
    "arange": maker(lambda dtype, g, *bounds, **how: np.arange(*bounds, **how)),
    "ones": shaped(lambda shape, dtype, g: np.ones(shape, dtype)), "randint": maker(whole, LONG),
    "rand": shaped(lambda shape, dtype, g: drawn("uniform", shape, g, dtype)),
    "randn": shaped(lambda shape, dtype, g: drawn("normal", shape, g, dtype)),
    "full": maker(lambda dtype, g, size, fill_value: np.full(sizes_of((size,)), fill_value)),
    "eye": maker(lambda dtype, g, n, m=None: np.eye(n, m)), "randperm": maker(lambda dtype, g, n: shuffled(n, g)),
    "logspace": maker(lambda dtype, g, start, end, steps, base=10.0: np.logspace(start, end, steps, base=base)),
    "linspace": maker(lambda dtype, g, start, end, steps: np.linspace(start, end, steps)),
}  # fmt: skip
MAKERS |= _rows("zeros_like ones_like rand_like randn_like full_like", lambda name: like(MAKERS[name[:-5]]))
MAKERS |= _rows("new_zeros new_ones new_full", lambda name: lambda x, *how: MAKERS[name[4:]](*how, dtype=x.dtype))
ASKED = {  # methods that are no functions of `levels`
    "zero_": MAKERS["zeros_like"], "fill_": MAKERS["full_like"], "copy_": lambda x, y: y,
    "numel": lambda x: x.shape.numel(), "dim": lambda x: x.ndim, "multinomial": recorded_making.drawn_by,
    "element_size": lambda x: x.dtype.itemsize, "is_floating_point": lambda x: x.dtype.is_floating_point,
    "uniform_": lambda x, a=0.0, b=1.0: a + (b - a) * MAKERS["rand_like"](x),
    "normal_": lambda x, mean=0.0, std=1.0: mean + std * MAKERS["randn_like"](x),
    "size": lambda x, dim=None: x.shape if dim is None else x.shape[dim], "equal": lambda x, y: bool((x == y).all()),
    "svd": recorded_making.without_memory("svd", linalg.turned),
    "qr": recorded_making.without_memory("qr", linalg.PLAIN["qr"]),
    "new_tensor": lambda x, data: recorded_making.tensor(data, x.dtype),
    "is_tensor": lambda x: isinstance(x, Recorded),
    "contiguous": lambda x: x if x.is_contiguous() else x.clone(),
    "bernoulli": lambda p: (MAKERS["rand_like"](p) < p).to(p.dtype),
    "allclose": lambda x, y, rtol=1e-5, atol=1e-8: np.allclose(x.detach(), y.detach(), rtol, atol),
}  # fmt: skip
ALSO = {"mm": "matmul", "mv": "matmul", "dot": "matmul", "absolute": "abs", "multiply": "mul", "subtract": "sub",
        "divide": "div", "true_divide": "div", "negative": "neg", "greater": "gt", "less": "lt", "ravel": "flatten", "broadcast_to": "expand", "concat": "cat", "clip": "clamp", "swapaxes": "transpose", "nelement": "numel", "ndimension": "dim",
        "empty": "zeros", "empty_like": "zeros_like"}  # fmt: skip


FUNCTIONS.update({name: recorded(name, spelled(f)) for name, f in PLAIN.items()}, **MAKERS, **ASKED)
FUNCTIONS.update({name: recorded(name, spelled(f), lambda *_, **__: True) for name, f in VIEWS.items()})
FUNCTIONS["view"] = only_view(FUNCTIONS["reshape"])
FUNCTIONS |= _rows("view_as reshape_as expand_as", lambda name: lambda x, y: FUNCTIONS[name[:-3]](x, *y.shape))
FUNCTIONS["at"] = recorded("at", low.pick, cut_out)
FUNCTIONS.update({name: FUNCTIONS[same] for name, same in ALSO.items()})
for _name, _kind in {"Bool": BOOL, "Int": LONG, "Long": LONG, "Float": FLOAT, "Double": DOUBLE}.items():
    FUNCTIONS[_name + "Tensor"] = recorded_making.of_kind(_kind)
