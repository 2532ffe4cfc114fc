"""PyTorch's functions: those of level 3, by PyTorch's names and with its arguments, on tensors that remember."""

import functools
import math
import operator

import numpy as np

from levels import low_level as low
from levels.low_level import Operators
from levels_more.recording import FUNCTIONS, Recorded, recorded

BOOL, LONG, FLOAT, DOUBLE = map(np.dtype, ("?", "i8", "f4", "f8"))  # each fits into those after it
KINDS = {"bool": BOOL, "int": LONG, "int32": LONG, "int64": LONG, "long": LONG, "float": FLOAT, "float32": FLOAT,
         "double": DOUBLE, "float64": DOUBLE}  # fmt: skip
DEFAULT = [FLOAT]  # the dtype of Python's floats


class Size(tuple):
    """A shape."""

    def numel(self):
        """How many numbers it has."""
        return math.prod(self)

    def __repr__(self):
        return f"torch.Size({list(self)})"


class Tensor(Recorded):
    """Numbers of one dtype in a shape, on this computer's CPU."""

    shape = property(lambda self: Size(self.held.shape))
    device, is_cuda = "cpu", False
    T = property(lambda self: FUNCTIONS["t"](self))

    def __repr__(self):
        text = np.array2string(self.numpy(), precision=4, separator=", ", prefix="tensor(")
        return f"tensor({text}{', requires_grad=True' * self.requires_grad})"


def tensor(data, dtype=None, requires_grad=False, device=None):
    """Numbers as a tensor: floats of Python in the default dtype, whole numbers as int64, arrays as they are."""
    if isinstance(data, list | tuple) and any(isinstance(x, Recorded) for x in data):
        data = [x.numpy() for x in data]
    array = np.asarray(data.numpy() if isinstance(data, Recorded | Operators) else data)
    own = array.dtype if hasattr(data, "dtype") or array.dtype.kind != "f" else DEFAULT[0]
    own = LONG if own.kind in "iu" else own
    return Tensor(low.constant(array.astype(own if dtype is None else dtype)), requires_grad)


def _of_kind(dtype):
    """Makes tensors of that dtype, and stands for it in `x.type(…)`."""
    make = functools.partial(tensor, dtype=dtype)
    make.dtype = dtype
    return make


def _shape(sizes):
    """The shape in an argument list: (2, 3), or one tuple of them."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else tuple(map(int, sizes))


def _made(make):
    """A function of a shape, and the one that takes it from another tensor."""

    def of(*sizes, size=None, dtype=None, requires_grad=False, device=None, generator=None):
        made = make(_shape(sizes) if size is None else tuple(size), DEFAULT[0] if dtype is None else dtype)
        return Tensor(made, requires_grad)

    def like(x, dtype=None, requires_grad=False, device=None):
        return of(*x.shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)

    return of, like


def normal(mean=0.0, std=1.0, size=None, generator=None):
    """Normal numbers; the mean and the deviation are numbers, or tensors of one shape."""
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std)) if size is None else _shape(size if size else ((),))
    return Tensor(low.normal(tuple(size) if size else shape, dtype=DEFAULT[0])) * std + mean


def randint(low_, high=None, size=None, **how):
    """Whole numbers from `low_` on, below `high`; or, as randint(10, (3,)), from 0 on."""
    (start, end), size = ((0, low_), high) if isinstance(high, list | tuple) else ((low_, high), size)
    drawn = low.uniform(tuple(size), dtype="float64").numpy()
    return tensor(start + np.floor(drawn * (end - start)).astype(np.int64), **how)


def _beside(x, y):
    """Both in the wider of two dtypes; a Python number takes a tensor's, if it fits."""
    order = [BOOL, LONG, FLOAT, DOUBLE]
    x, y = (low.constant(z) if isinstance(z, np.ndarray | np.generic) else z for z in (x, y))
    least = {bool: BOOL, int: LONG, float: FLOAT}
    kinds = [z.dtype if isinstance(z, Operators) else least[type(z)] for z in (x, y)]
    wide = max(kinds, key=order.index)
    wide = (
        DEFAULT[0]
        if wide == FLOAT
        and not any(k == FLOAT and isinstance(z, Operators) for k, z in zip(kinds, (x, y), strict=True))
        else wide
    )
    return [low.cast(z, wide) if isinstance(z, Operators) and z.dtype != wide else z for z in (x, y)]


def _floats(x):
    return x if not isinstance(x, Operators) or x.dtype.kind == "f" else low.cast(x, DEFAULT[0])


def _matmul(x, w):
    """The matrix product. A vector is one row, or one column; of more axes the first ones are rows, too."""
    shape = (*x.shape[:-1], *w.shape[1:])
    y = low.reshape(x, (-1, x.shape[-1])) @ (w if len(w.shape) == 2 else low.reshape(w, (-1, 1)))
    return y if y.shape == shape else low.reshape(y, shape)


def _axes(x, dim):
    return dim if dim is None or isinstance(dim, int) else tuple(sorted(d % len(x.shape) for d in dim))


def _reduced(function):
    return lambda x, dim=None, keepdim=False, dtype=None: function(x, _axes(x, dim), keepdim)


def _var(x, dim=None, unbiased=True, keepdim=False):
    """The mean square around the mean; `unbiased` divides by one less than there are numbers."""
    apart = x - low.reduce_mean(x, _axes(x, dim), True)
    squares = low.reduce_sum(apart * apart, _axes(x, dim), keepdim)
    return squares / (math.prod(x.shape) / math.prod(squares.shape) - float(unbiased))


def _extreme(function, place, both):
    """max(x), max(x, y), and max(x, dim) -> (values, indices)."""

    def run(x, other=None, keepdim=False, dim=None):
        if isinstance(other, Operators):
            return both(*_beside(x, other))
        dim = other if dim is None else dim
        values = function(x, dim, keepdim)
        return values if dim is None else (values, _placed(place)(x, dim, keepdim))

    return run


def _placed(function):
    return lambda x, dim=None, keepdim=False: low.expand_dims(function(x, dim), dim) if keepdim else function(x, dim)


def _swapped(x, dim0=0, dim1=1):
    axes = list(range(len(x.shape)))
    if len(axes) > 1:
        axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    return low.transpose(x, axes) if axes != sorted(axes) else x


def _along(function):
    """A function along the last axis, for any axis."""
    return lambda x, dim=-1, dtype=None: _swapped(function(_swapped(x, dim, -1)), dim, -1)


def _flatten(x, start_dim=0, end_dim=-1):
    end = end_dim % len(x.shape)
    return low.reshape(x, (*x.shape[:start_dim], math.prod(x.shape[start_dim : end + 1]), *x.shape[end + 1 :]))


def _split(x, size, dim=0):
    n = x.shape[dim]
    return tuple(low.split(x, [min(size, n - k) for k in range(0, n, size)] if isinstance(size, int) else size, dim))


def _gather(x, dim, index):
    """The number at each place of `index`, along the last axis, such as that of each row's class."""
    if dim % len(x.shape) != len(x.shape) - 1:
        raise NotImplementedError(f"gather: along axis {dim} of {x.shape}; here it goes along the last one")
    starts = np.arange(math.prod(x.shape[:-1])).reshape(*x.shape[:-1], 1) * x.shape[-1]
    return low.gather(low.reshape(x, (-1,)), starts + index.numpy())


def _at(x, index):
    """x[index]: integers, slices, `...`, None, a mask, row numbers, or a number of each of the first two axes."""
    parts = [low.as_tensor(np.asarray(p)) if isinstance(p, list | np.ndarray) else p
             for p in (index if isinstance(index, tuple) else (index,))]  # fmt: skip
    rows, *rest = parts
    if not any(isinstance(p, Operators) for p in parts) or len(parts) == 1 and rows.dtype == BOOL:
        return x[tuple(parts)] if isinstance(index, tuple) else x[rows]
    if isinstance(rows, Operators) and len(rest) == 1 and isinstance(rest[0], Operators):
        places = rows.numpy() % x.shape[0] * x.shape[1] + rest[0].numpy() % x.shape[1]
        return low.gather(low.reshape(x, (-1, *x.shape[2:])), places)
    if isinstance(rows, Operators) and not any(isinstance(p, Operators) for p in rest):
        picked = low.boolean_mask(x, rows) if rows.dtype == BOOL else low.gather(x, rows.numpy() % x.shape[0])
        return picked[(slice(None), *rest)] if rest else picked
    if rows == slice(None) and len(rest) == 1:
        columns = np.flatnonzero(rest[0].numpy()) if rest[0].dtype == BOOL else rest[0].numpy() % x.shape[1]
        return low.take(x, columns, 1)
    raise IndexError(f"index {index!r:.60}: expected slices and whole numbers, a mask, or tensors of row numbers")


def _clamp(x, min=None, max=None):
    x = x if min is None else low.maximum(x, min)
    return x if max is None else low.minimum(x, max)


def _to(x, *how, **options):
    """x in the dtype that is named; a device changes nothing."""
    how = [
        KINDS.get(k, getattr(k, "dtype", k)) if not isinstance(k, np.dtype) else k for k in (*how, *options.values())
    ]
    kinds = [k for k in how if isinstance(k, np.dtype)]
    return low.cast(x, kinds[0]) if kinds and kinds[0] != x.dtype else x


def _plain(function):
    """A function of NumPy, through which no gradient passes."""
    return lambda *args, **how: low.constant(
        function(*(x.numpy() if isinstance(x, Operators) else x for x in args), **how)
    )


def _where(mask, x=None, y=None):
    return tuple(map(low.constant, np.nonzero(mask.numpy()))) if x is None else low.where(mask, *_beside(x, y))


def _both(function):
    return lambda x, other: function(*_beside(x, other))


def _divided(x, y):
    return _floats(x) / _floats(y)


PLAIN = {  # functions of `levels` and of NumPy, before they remember
    **{name: lambda x, f=getattr(low, name): f(_floats(x)) for name in ("exp", "log", "sqrt", "tanh", "sin", "cos", "erf")},
    "relu": low.nn.relu, "sigmoid": low.nn.sigmoid, "softmax": _along(low.nn.softmax), "square": low.square,
    "log_softmax": _along(low.nn.log_softmax), "abs": low.abs, "absolute": low.abs, "neg": operator.neg,
    "add": lambda x, other, alpha=1: operator.add(*_beside(x, other if alpha == 1 else alpha * other)),
    "sub": _both(operator.sub), "mul": _both(operator.mul), "multiply": _both(operator.mul), "div": _both(_divided),
    "pow": _both(operator.pow), "maximum": _both(low.maximum), "minimum": _both(low.minimum), "matmul": _matmul,
    "mm": _matmul, "mv": _matmul, "dot": _matmul, "where": _where,
    **{name: _both(getattr(operator, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "sum": _reduced(lambda x, a, k: low.reduce_sum(low.cast(x, LONG) if x.dtype == BOOL else x, a, k)),
    "mean": _reduced(lambda x, a, k: low.reduce_mean(_floats(x), a, k)), "var": _var,
    "std": lambda x, *a, **k: low.sqrt(_var(x, *a, **k)), "amax": _reduced(low.reduce_max), "amin": _reduced(low.reduce_min),
    "max": _extreme(low.reduce_max, low.argmax, low.maximum), "min": _extreme(low.reduce_min, low.argmin, low.minimum),
    "argmax": _placed(low.argmax), "argmin": _placed(low.argmin), "any": _reduced(low.reduce_any),
    "all": _reduced(low.reduce_all), "norm": lambda x, p=2, dim=None: low.sqrt(low.reduce_sum(x * x, _axes(x, dim))),
    "clamp": _clamp, "clip": _clamp, "reshape": lambda x, *sizes: low.reshape(x, _shape(sizes)),
    "view": lambda x, *sizes: low.reshape(x, _shape(sizes)), "flatten": _flatten, "transpose": _swapped, "t": _swapped,
    "squeeze": lambda x, dim=None: x if dim is not None and x.shape[dim] != 1 else low.squeeze(x, dim),
    "unsqueeze": low.expand_dims, "permute": lambda x, *axes: low.transpose(x, _shape(axes)),
    "cat": lambda tensors, dim=0: low.concat(tensors, dim), "concat": lambda tensors, dim=0: low.concat(tensors, dim),
    "stack": lambda tensors, dim=0: low.stack(tensors, dim), "split": _split,
    "chunk": lambda x, chunks, dim=0: _split(x, -(-x.shape[dim] // chunks), dim), "gather": _gather, "at": _at,
    "index_select": lambda x, dim, index: low.take(x, index, dim), "masked_select": low.boolean_mask,
    "clone": lambda x: low.apply("broadcast_to", x, shape=x.shape) if x.dtype != BOOL else x, "to": _to, "type": _to,
    **{name: lambda x, kind=KINDS[name]: _to(x, kind) for name in ("float", "double", "long", "int", "bool")},
    "type_as": lambda x, y: _to(x, y.dtype), "expand": lambda x, *s: low.apply("broadcast_to", x, shape=_shape(s)),
    "expand_as": lambda x, y: low.apply("broadcast_to", x, shape=y.shape), "cpu": lambda x: x, "contiguous": lambda x: x,
    **{name: _plain(getattr(np, name)) for name in ("sign", "round", "floor", "ceil", "argsort", "logical_not", "logical_and",
                                                    "logical_or", "isnan", "isfinite", "cumsum", "unique")},
    "linspace": _plain(lambda start, end, steps: np.linspace(start, end, steps).astype(DEFAULT[0])),
    "eye": _plain(lambda n, m=None: np.eye(n, m, dtype=DEFAULT[0])), "from_numpy": low.constant,
    "arange": lambda *bounds, dtype=None: low.range(*bounds, dtype=dtype), "randperm": lambda n: low.shuffle(np.arange(n)),
}  # fmt: skip
FUNCTIONS.update({name: recorded(function, Tensor) for name, function in PLAIN.items()})
zeros, zeros_like = _made(low.zeros)
ones, ones_like = _made(low.ones)
rand, rand_like = _made(lambda shape, dtype: low.uniform(shape, dtype=dtype))
randn, randn_like = _made(lambda shape, dtype: low.normal(shape, dtype=dtype))
FloatTensor, DoubleTensor, LongTensor, IntTensor, BoolTensor = map(_of_kind, (FLOAT, DOUBLE, LONG, LONG, BOOL))
full_like, empty, empty_like, manual_seed = lambda x, value: zeros_like(x) + value, zeros, zeros_like, low.set_seed


def full(size, fill_value, dtype=None, **how):
    """One number everywhere."""
    return tensor(np.full(_shape((size,)), fill_value), dtype=dtype, **how)


FUNCTIONS.update(
    {
        "zero_": zeros_like, "fill_": full_like, "copy_": lambda x, y: y, "dim": lambda x: x.ndim,
        "uniform_": lambda x, a=0.0, b=1.0: a + (b - a) * rand_like(x), "numel": lambda x: x.shape.numel(),
        "normal_": lambda x, mean=0.0, std=1.0: mean + std * randn_like(x), "equal": lambda x, y: bool((x == y).all()),
        "size": lambda x, dim=None: x.shape if dim is None else x.shape[dim],
        "allclose": lambda x, y, rtol=1e-5, atol=1e-8: np.allclose(x.numpy(), y.numpy(), rtol, atol),
    }
)  # fmt: skip
