"""Tensor operators with NumPy arrays, operators from a table, and conversion of tensors to Python numbers."""

import operator
import reprlib
from inspect import getattr_static

from .cures import CURES

# NumPy's name for `array + tensor` and the like -> the method of the tensor
REFLECTED = {"add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__"}
REFLECTED |= {"matmul": "__rmatmul__", "power": "__rpow__", "less": "__gt__", "less_equal": "__ge__"}
REFLECTED |= {"greater": "__lt__", "greater_equal": "__le__", "equal": "__eq__", "not_equal": "__ne__"}
# NumPy's ufuncs -> the functions that reduce by them
_REDUCING = {"add": "sum", "multiply": "prod", "maximum": "max", "logical_and": "all", "logical_or": "any"}


def array_ufunc(tensor, ufunc, method, *inputs, **options):
    """Call the tensor's operator for `array + tensor` (NEP 13). Raises TypeError for all else: no tape records it."""
    name = REFLECTED.get(ufunc.__name__)
    if name and method == "__call__" and not options and inputs[1] is tensor and hasattr(tensor, name):
        return getattr(tensor, name)(inputs[0])
    wrote = _REDUCING.get(ufunc.__name__, "") if method == "reduce" else ufunc.__name__
    cure = CURES.get(wrote, "it with the tensor's operators (`x * x`) and functions of levels.low_level (`log(x)`)")
    told = f"np.{wrote or ufunc.__name__} takes arrays and got a {type(tensor).__name__}: write {cure}"
    numbers = "" if hasattr(tensor, "trace") else ", or take the numbers, x.numpy()"  # while a function is traced, none
    raise TypeError(told + numbers)


def array_function(symbol, function, types, args, options):
    """Raise TypeError for NumPy's function of a tensor without numbers: it would leave the trace (NumPy's NEP 18)."""
    cure = CURES.get(function.__name__, "a function of levels.low_level or levels_more.low_level")
    told = f"np.{function.__name__} needs numbers, and got {symbol!r}: a function is traced without them"
    raise TypeError(f"{told}; write {cure}")


class NoNumbers:
    """A base class of tensors whose numbers are not known: to read `data` raises TypeError, to set it does nothing."""

    __slots__ = ()
    __array_function__ = array_function  # np.mean(x) says what to write

    def _no_numbers(self):
        cure = "`if` becomes where(mask, x, y), np.mean becomes reduce_mean; return what you need from the function"
        raise TypeError(f"{self!r}: its numbers are not known, for a function is traced without them; {cure}")

    data = property(_no_numbers, lambda self, nothing: None)

    def __repr__(self):
        return f"{type(self).__name__}({self.spec})"


def check_recorded(name, x, kind):
    """Raise TypeError unless x is of this kind, a tensor or a variable: a tape records nothing else."""
    if not isinstance(x, kind):
        cure = "a tape records tensors, and NumPy's functions leave it: write reduce_mean for np.mean"
        raise TypeError(f"gradient: {name} is {' '.join(reprlib.repr(x).split())}, a {type(x).__name__}; {cure}")


class Elsewhere:
    """A descriptor for a name that a class does not have. Its AttributeError says what to write; `hasattr` is False."""

    def __init__(self, name, cure):
        self.name = name
        self.cure = cure

    def __get__(self, x, kind=None):
        raise AttributeError(f"{kind.__name__} has no {self.name!r}; write {self.cure}", name=self.name, obj=x)


_POWER = "; the whole number 2 is a power here, x ** 2, and"
_SIGNS = {"**": _POWER, "power of a number": ", as in 2.0 ** x; exp(x * math.log(2.0)) is, and"}


def of_several_ops(sign):
    """Return a method that calls its class's `operators[sign]`. It raises TypeError if the table has no such entry."""

    def method(x, *others):
        if sign not in x.operators:
            told = f"{type(x).__name__}: no {sign} here{_SIGNS.get(sign, ';')}"
            raise TypeError(f"{told} levels_more.low_level brings it: write `import levels_more.low_level`")
        return x.operators[sign](x, *others)

    return method


def number_of(x):
    """Return the only number of a tensor as a Python number. Raises ValueError if it has several numbers or none."""
    if x.spec.nbytes != x.dtype.itemsize:
        raise ValueError(f"a tensor of shape {x.shape} is not one number; take one of it, or use where")
    return x.numpy().item()


class SeveralOps:
    """A base class of tensors and variables. Subclasses set the table `operators`, {sign: function(x, …)}."""

    __slots__ = ()
    operators = {}
    __array_ufunc__ = array_ufunc  # NumPy arrays delegate `array + tensor` to the tensor
    __hash__ = object.__hash__  # tensors are hashed by identity, not by their numbers
    ndim = property(lambda self: len(self.shape))

    def __pow__(self, other):
        return self * self if type(other) is int and other == 2 else self.power(other)

    def __repr__(self):
        numbers = "freed" if hasattr(self, "release") and self.data is None else self.numpy()  # (a buffer's)
        return f"{type(self).__name__}({numbers}, shape={self.shape}, {self.dtype}, {self.device.name})"

    def __bool__(self):
        return bool(number_of(self))

    def __float__(self):
        return float(number_of(self))

    def __int__(self):
        return int(number_of(self))

    def __index__(self):
        return operator.index(number_of(self))

    def __format__(self, form):
        return format(number_of(self), form) if form else repr(self)

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __dir__(self):
        """Return the names of attributes, without those that are told to be elsewhere."""
        return [name for name in super().__dir__() if not isinstance(getattr_static(type(self), name, None), Elsewhere)]


# the methods of a tensor that look in the table -> the sign there
_SEVERAL = {"__getitem__": "[]", "__len__": "len", "__iter__": "iter", "__abs__": "abs", "__eq__": "==", "__ne__": "!="}
_SEVERAL |= {"__lt__": "<", "__gt__": ">", "__le__": "<=", "__ge__": ">=", "__and__": "&", "__or__": "|"}
_SEVERAL |= {"__invert__": "~", "__mod__": "%", "__floordiv__": "//", "__rpow__": "power of a number", "power": "**"}
_SEVERAL |= {"item": "item", "to": "to", "backward": "backward"}
for _name, _sign in _SEVERAL.items():
    setattr(SeveralOps, _name, of_several_ops(_sign))
for _name, _cure in CURES.items():
    setattr(SeveralOps, _name, Elsewhere(_name, _cure))
