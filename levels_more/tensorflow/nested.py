"""Nested values: lists, tuples and dicts of tensors, and functions that take and return them."""

import types

import numpy as np

from levels.low_level import DOOR, NoProgram, Operators, Tensor, Trace, Variable, constant
from levels_more import low_level
from levels_more.checks import as_int64
from levels_more.low_level.shape import stack
from levels_more.tensorflow.keras_logits import without


def is_tracing():
    """Whether a function is being traced: then its tensors have no numbers."""
    here = DOOR.top
    while hasattr(here, "below"):  # a tape: look at the interpreter below it
        here = here.below
    return isinstance(here, Trace)


def require_numbers(what):
    """Raise TypeError while a function is traced: `what` has to run in each call. (A `Function` then runs op by op.)"""
    if is_tracing():
        raise TypeError(f"{what}: while a function is traced, no numbers are known; do it outside of fit's functions")


def whole(dtype):
    """A dtype, or its name, as NumPy's dtype. Integers become int64, the only one with kernels. None stays."""
    found = None if dtype is None else np.dtype(dtype)
    return np.dtype(np.int64) if found is not None and found.kind in "iu" else found


def numbers(x, dtype=None):
    """A tensor of tensors, arrays or numbers. Whole numbers become int64, Python's floats float32.

    Raises TypeError for text, and for a dtype that would lose digits.
    """
    if isinstance(x, (list, tuple)) and any(isinstance(each, Operators) for each in x):
        x = stack([*x])
    if isinstance(x, str):
        raise TypeError(f"{x!r:.60} is text; tensors hold numbers, and text stays Python's")
    if hasattr(x, "dtype") and not isinstance(x, Operators) and x.dtype.kind in "iu":
        x = as_int64(np.asarray(x))
    return constant(x, whole(dtype))


def known_shape(x):
    """The shape of a tensor x, int64: a tensor, but in a traced function an array, so that its numbers stay known."""
    shape = np.array(low_level.as_tensor(x).shape, np.int64)
    return shape if is_tracing() else constant(shape)


def map_leaves(x, function):
    """A nested list, tuple or dict of tensors with each leaf replaced by function(leaf)."""
    if isinstance(x, dict):
        return {name: map_leaves(each, function) for name, each in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(map_leaves(each, function) for each in x)
    return function(x)


def leaves(x):
    """The leaves of a nested list, tuple or dict of tensors, a list."""
    found = []
    map_leaves(x, found.append)
    return found


_TENSOR = object()  # a placeholder for a tensor in a form


def _flatten(x, tensors, results=False):
    """The form of x, as a cache key, without its tensors, which are appended to the list `tensors`."""
    if isinstance(x, (Tensor, np.ndarray)) or results and isinstance(x, (Variable, int, float, np.generic)):
        tensors.append(numbers(x))
        return _TENSOR
    if type(x) in (list, tuple):
        return type(x), tuple(_flatten(each, tensors, results) for each in x)
    if type(x) is dict:
        return dict, tuple(x), tuple(_flatten(each, tensors, results) for each in x.values())
    return None, type(x), repr(x) if isinstance(x, float) else x, x


def _unflatten(form, tensors):
    """The value of a form that `_flatten` returned, with the tensors of this iterator."""
    if form is _TENSOR:
        return next(tensors)
    kind, *parts = form
    if kind is None:
        return parts[-1]
    made = [_unflatten(each, tensors) for each in parts[-1]]
    return dict(zip(parts[0], made, strict=True)) if kind is dict else kind(made)


class Function(low_level.Function):
    """A function that is traced for each shape and each Python value that it is given.

    Its arguments and results may be lists, tuples and dicts of tensors. If it cannot be traced, as with an `if` on a
    tensor's numbers or a use of `require_numbers`, it runs op by op. `input_signature` is a list of `TensorSpec`.
    """

    def __init__(self, python, input_signature=None):
        super().__init__(python)
        self.whole = python
        self.signature = input_signature
        self.eager = False
        self.form = None

        def flat(form, *tensors):
            args, options = _unflatten(form, iter(tensors))
            results = []
            self.form = _flatten(self.whole(*args, **options), results, results=True)
            return results

        self.python = flat

    def compile(self, args, over):
        program, _ = super().compile(args, over)
        return program, self.form

    def traced(self, signature, over):
        """As in levels. Raises NoProgram if the function needs numbers, or assigns to a part of a variable."""
        try:
            return super().traced(signature, over)
        except TypeError as error:
            raise NoProgram(f"{self.__name__}: {error}") from error
        except AttributeError as error:
            if not isinstance(error.obj, Operators) or error.name[:6] != "assign":
                raise
            raise NoProgram(f"{self.__name__}: {error}") from error

    def __get__(self, owner, kind=None):
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, *args, **options):
        """Raises TypeError for arguments that are not what `input_signature` says."""
        args = self._signed(args)
        if DOOR.top is not DOOR.bottom:
            return without(self.whole(*args, **options))
        if self.eager:
            return self.at_each_call(args, options)
        try:
            tensors = []
            form = _flatten((args, options), tensors)
            key = (form, *[x.spec for x in tensors])
            hash(key)  # TypeError if an argument is not hashable
        except TypeError:
            return self.at_each_call(args, options)
        try:
            program, result = self.program([form, *tensors], key, False)
        except NoProgram:
            return self.at_each_call(args, options)
        return _unflatten(result, iter(program.run([form, *tensors])))

    def at_each_call(self, args, options):
        """Run op by op, now and in all later calls. Numbers in the result become tensors, as in a traced function."""
        result = self.whole(*args, **options)
        tensors = []
        self.eager = True
        form = _flatten(result, tensors, results=True)
        return _unflatten(form, iter(without(tensors)))

    def _signed(self, args):
        """The arguments as `input_signature` says. It is for the last ones, because a method's first one is `self`."""
        if self.signature is None:
            return args
        first = len(args) - len(self.signature)
        if first not in (0, 1):
            raise TypeError(f"{self.__name__}: {len(args)} arguments; input_signature has {len(self.signature)}")
        pairs = zip(self.signature, args[first:], strict=True)
        return (*args[:first], *(spec.checked(self.__name__, x) for spec, x in pairs))


class TensorSpec:
    """A shape, in which None is any size, and a dtype, for `input_signature`."""

    def __init__(self, shape=None, dtype="float32", name=None):
        self.shape = None if shape is None else tuple(shape)
        self.dtype = whole(dtype)
        self.name = name

    def checked(self, name, x):
        """x as a tensor. Raises TypeError if it has another shape or dtype."""
        x = numbers(x, None if hasattr(x, "dtype") else self.dtype)
        wanted = x.shape if self.shape is None else self.shape
        if (
            len(wanted) != len(x.shape)
            or x.dtype != self.dtype
            or any(n not in (None, size) for n, size in zip(wanted, x.shape, strict=True))
        ):
            raise TypeError(f"{name}: an argument is {x.spec}; input_signature says {self}")
        return x

    def __repr__(self):
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype})"


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False):
    """Make a Function of a function or a method; without one, a decorator. The last three arguments are ignored."""
    return Function(func, input_signature) if func is not None else lambda func: Function(func, input_signature)
