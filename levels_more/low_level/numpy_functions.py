"""Functions of NumPy's as functions of tensors, through which no gradient passes."""

import functools

import numpy as np

from levels.low_level import Operators, Tensor, constant


def numpy_op(function, *args, **how):
    """A NumPy function of the numbers of tensors: a tensor, or a tuple of them, on the device of the first.

    No gradient passes through it. Raises TypeError in a traced function, where the numbers are not known.
    """
    devices = [x.device for x in args if isinstance(x, Operators)]
    put = functools.partial(devices[0].put, kind=Tensor) if devices else constant
    y = function(*(x.numpy() if isinstance(x, Operators) else x for x in args), **how)
    made = [put(np.asarray(each, order="C")) for each in (y if isinstance(y, tuple) else (y,))]
    return tuple(made) if isinstance(y, tuple) else made[0]


def without_gradient(function):
    """The same, as a function of tensors."""
    return functools.partial(numpy_op, function)
