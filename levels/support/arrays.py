"""What NumPy does where a tensor stands beside an array (https://numpy.org/neps/nep-0013-ufunc-overrides.html)."""

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
    """The tensor's own operator for `array + tensor` and the like.

    Raises TypeError for `np.log(tensor)` and all else: it would give an array, of which no tape hears.
    """
    name = REFLECTED.get(ufunc.__name__)
    if name and method == "__call__" and not options and inputs[1] is tensor and hasattr(tensor, name):
        return getattr(tensor, name)(inputs[0])
    raise TypeError(
        f"np.{ufunc.__name__} takes arrays and got a {type(tensor).__name__}: write it with the tensor's operators (`x * x`) and the "
        f"functions of levels.low_level (`log(x)`), or take the numbers, x.numpy()"
    )
