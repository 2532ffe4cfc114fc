"""What a tensor does beside its ops: with NumPy's arrays, by operators from a table, as one number of Python."""

import operator

REFLECTED = {  # NumPy's name of `array + tensor` and the like -> the method of the tensor
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "matmul": "__rmatmul__",
    "power": "__rpow__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "greater": "__lt__",
    "greater_equal": "__le__",
    "equal": "__eq__",
    "not_equal": "__ne__",
}


def array_ufunc(tensor, ufunc, method, *inputs, **options):
    """The tensor's own operator for `array + tensor` (https://numpy.org/neps/nep-0013-ufunc-overrides.html).

    Raises TypeError for `np.log(tensor)` and all else: it would give an array, of which no tape hears.
    """
    name = REFLECTED.get(ufunc.__name__)
    if name and method == "__call__" and not options and inputs[1] is tensor and hasattr(tensor, name):
        return getattr(tensor, name)(inputs[0])
    raise TypeError(
        f"np.{ufunc.__name__} takes arrays and got a {type(tensor).__name__}: write it with the tensor's operators "
        f"(`x * x`) and the functions of levels.low_level (`log(x)`), or take the numbers, x.numpy()"
    )


def of_several_ops(sign):
    """The method that is the row of this sign in the table `operators` of its class. Raises TypeError for none."""

    def method(x, *others):
        if sign not in x.operators:
            raise TypeError(f"{type(x).__name__}: no {sign} here; levels_more.low_level brings it")
        return x.operators[sign](x, *others)

    return method


def number_of(x):
    """The one number of a tensor, as Python's. Raises ValueError for a tensor of any other shape."""
    if x.spec.nbytes != x.dtype.itemsize:
        raise ValueError(f"a tensor of shape {x.shape} is not one number; take one of it, or use where")
    return x.numpy().item()


class SeveralOps:
    """A class made from this one names its table `operators`, {sign: function(x, …)}."""

    __slots__ = ()
    operators = {}
    __array_ufunc__ = array_ufunc  # NumPy's arrays leave `array + tensor` to the tensor
    __hash__ = object.__hash__  # a tensor is a key by who it is, not by its numbers
    __getitem__ = of_several_ops("[]")
    __len__ = of_several_ops("len")
    __iter__ = of_several_ops("iter")
    __abs__ = of_several_ops("abs")
    __eq__ = of_several_ops("==")
    __ne__ = of_several_ops("!=")
    __lt__ = of_several_ops("<")
    __gt__ = of_several_ops(">")
    __le__ = of_several_ops("<=")
    __ge__ = of_several_ops(">=")
    __and__ = of_several_ops("&")
    __or__ = of_several_ops("|")
    __invert__ = of_several_ops("~")
    __mod__ = of_several_ops("%")
    __floordiv__ = of_several_ops("//")
    __rpow__ = of_several_ops("power of a number")
    power = of_several_ops("**")
    item = of_several_ops("item")
    to = of_several_ops("to")
    backward = of_several_ops("backward")
    ndim = property(lambda self: len(self.shape))

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
