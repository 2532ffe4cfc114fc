"""Tensor tensors made of numbers, of one number, or drawn by chance, with PyTorch's arguments."""

import numpy as np

from levels_more import low_level
from levels_more.checks import as_int64
from levels_more.low_level.random import drawn
from levels_more.torch.op_arguments import NUMBERS, ORDER, sizes_of
from levels_more.torch.recorded import FUNCTIONS, Tensor, device, dtype
from levels_more.torch.recording import OperandError

BOOL, LONG, FLOAT, DOUBLE = map(dtype, ORDER)
KINDS = {
    "bool": BOOL,
    "int": LONG,
    "int32": LONG,
    "int64": LONG,
    "long": LONG,
    "float": FLOAT,
    "float32": FLOAT,
    "double": DOUBLE,
    "float64": DOUBLE,
}


def tensor(data, dtype=None, requires_grad=False, device=None):
    """Numbers as a tensor: floats of Python in the default dtype, whole numbers as int64, arrays as they are."""
    first = data
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if isinstance(data, list | tuple):
        data = [x.tolist() if isinstance(x, Tensor) else x for x in data]
    array = np.asarray(data.held if isinstance(data, Tensor) else data)
    own = array.dtype if hasattr(first, "dtype") or array.dtype.kind != "f" else NUMBERS[float]
    wanted = np.dtype(dtype or (ORDER[1] if own.kind in "iu" else own))
    array = as_int64(array) if wanted.kind == "i" and array.dtype.kind == "u" else array.astype(wanted)
    made = low_level.constant(array)
    return Tensor(made, requires_grad=requires_grad).to(device)


def of_kind(kind):
    """What makes tensors of one dtype: of numbers, or of a shape, (2, 3), with numbers to be filled in."""

    def run(data=(), *sizes):
        return FUNCTIONS["zeros"](data, *sizes, dtype=kind) if isinstance(data, int) else tensor(data, kind)

    return run


def from_numpy(array):
    """The numbers of an array, with which they share their memory. Raises TypeError but for bool, int64, floats."""
    made = Tensor(low_level.constant(array))
    made.memory.array = array
    return made


def as_tensor(data, dtype=None, device=None):
    """What is given as a tensor: itself, or an array, whose memory it shares, or numbers; in another dtype a copy."""
    if isinstance(data, np.ndarray) and data.dtype in ORDER:
        data = from_numpy(data)
    return data.to(dtype, device) if isinstance(data, Tensor) else tensor(data, dtype, device=device)


def maker(make, kind=None):
    """`make(dtype, generator, …)` with PyTorch's arguments; floats are of the default dtype unless it is said."""

    def run(*args, dtype=kind, requires_grad=False, device=None, generator=None, **how):
        made = make(np.dtype(dtype or NUMBERS[float]), generator, *args, **how)
        return tensor(made, dtype or (NUMBERS[float] if made.dtype.kind == "f" else None), requires_grad, device)

    return run


def shaped(make):
    """The maker of a shape: `make(shape, dtype, generator)`."""
    return maker(lambda dtype, g, *sizes, size=None: make(sizes_of(sizes if size is None else (size,)), dtype, g))


def like(make):
    """A maker that takes the shape and, unless it is said otherwise, the dtype of another tensor."""
    return lambda x, *args, **how: make(x.shape, *args, **{"dtype": x.dtype, **how})


def whole(dtype, generator, *given, low=0, high=None, size=None):
    """Whole numbers below `high`, from `low` on or from 0: randint(high, size), or randint(low, high, size)."""
    *bounds, size = (x for x in (*given, high, size) if x is not None)
    start, end = (low, *bounds)[-2:]
    return start + np.floor(drawn("uniform", size, generator).numpy() * (end - start))


def normal(mean=0.0, std=1.0, size=None, generator=None):
    """Normal numbers of that mean and deviation: numbers, with a `size`, or tensors of one shape."""
    size = np.broadcast_shapes(np.shape(mean), np.shape(std)) if size is None else size
    return FUNCTIONS["randn"](size, generator=generator) * std + mean


def to(x, *how, **options):
    """x[…] in the dtype that is named, or is another tensor's; there is one device. Raises TypeError for others."""
    for each in (*how, *options.values()):
        kind = getattr(KINDS.get(each) if isinstance(each, str) else each, "dtype", each)
        if isinstance(kind, np.dtype):
            x = x if kind == x.dtype else low_level.cast(x, kind)
        elif isinstance(each, str):
            device(each)
        elif not isinstance(each, bool | None):
            raise TypeError(f"to: {each!r:.60}; expected a dtype, a device or a tensor")
    return x


def get_default_dtype():
    """The dtype of Python's floats."""
    return dtype(NUMBERS[float])


def set_default_dtype(kind):
    """The dtype of Python's floats from now on: torch.float32 or torch.float64. Raises OperandError for others."""
    if np.dtype(kind).kind != "f":
        raise OperandError(f"set_default_dtype: {kind!r}; expected floats, as torch.float64")
    NUMBERS[float] = np.dtype(kind)
