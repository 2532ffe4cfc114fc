"""Recorded tensors made of numbers, of one number, or drawn by chance, with the arguments that PyTorch has for all of them."""

import numpy as np

from levels import low_level
from levels_more.arguments import sizes_of
from levels_more.generators import drawn
from levels_more.promotion import NUMBERS, ORDER
from levels_more.recorded import FUNCTIONS, Recorded


def tensor(data, dtype=None, requires_grad=False, device=None):
    """Numbers as a tensor: floats of Python in the default dtype, whole numbers as int64, arrays as they are."""
    if isinstance(data, list | tuple):
        data = [x.tolist() if isinstance(x, Recorded) else x for x in data]
    array = np.asarray(data.held if isinstance(data, Recorded) else data)
    own = array.dtype if hasattr(data, "dtype") or array.dtype.kind != "f" else NUMBERS[float]
    made = low_level.constant(array.astype(dtype or (ORDER[1] if own.kind in "iu" else own)))
    return Recorded(made, requires_grad=requires_grad).to(device)


def from_numpy(array):
    """The numbers of an array, of which each hears when the other changes. Raises TypeError but for bool, int64, floats."""
    made = Recorded(low_level.constant(array))
    made.memory.array = array
    return made


def maker(make, kind=None):
    """`make(dtype, generator, …)` with PyTorch's arguments; floats are of the default dtype, unless another one is said."""

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
