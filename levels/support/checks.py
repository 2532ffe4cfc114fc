"""Checks of arguments, the same on every level. Each error says what was given, what was expected, and what to do."""

import difflib
import inspect

import numpy as np


def numeric_array(values):
    """Return these numbers as a NumPy array. Raises TypeError for non-numbers, and if a mask would be lost."""
    if type(values) in (list, tuple):
        for each in values:
            if isinstance(each, (list, tuple, np.ma.MaskedArray)):
                numeric_array(each)
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("a masked array keeps no mask here; fill it, as in x.filled(0), or drop those rows")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.empty((), object)
    if array.dtype.kind not in "biufc":
        told = "others have no kernels"
        if words := words_in(values):
            told = f"these are words ({words}): number them with np.unique(y, return_inverse=True)[1]"
        raise TypeError(f"{values!r:.60}: expected an array of numbers; {told}")
    return array


def words_in(values):
    """Return the first different strings among these values for an error, as "'a', 'b', …", or "" if there are none."""
    try:
        found = dict.fromkeys(x for x in np.asarray(values, object).flat if isinstance(x, (str, bytes)))
    except (TypeError, ValueError):  # not an array
        found = {}
    shown = [repr(x[:20] if isinstance(x, bytes) else str(x[:20])) for x in found]
    return ", ".join([*shown[:3], *["…"] * (len(shown) > 3)])


def real(value):
    """Convert a real number of Python or NumPy to int or float. Return None for anything else, including bools."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
        return int(value)
    return float(value) if isinstance(value, (float, np.floating)) else None


def check_bool(name, value):
    """Return the value as a bool if it is True or False. Else raise TypeError."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r:.60}; expected True or False")
    return bool(value)


def meant(name, names):
    """Return which of `names` a mistyped name means, or None. Short ones (mae, mse) must have the same letters."""
    near = [*difflib.get_close_matches(name, names, 1), ""][0]
    parts = difflib.SequenceMatcher(None, name, near).get_opcodes()
    edits = sum(max(b - a, d - c) for kind, a, b, c, d in parts if kind != "equal")  # 2 for swapped letters
    slip = edits <= 2 if len(name) > 4 else sorted(near) == sorted(name)
    longer = name.startswith(near) and name != near + near[-1:]  # relu6 is not relu
    return near if slip and near[:1] == name[:1] and not longer else None


def lookup(what, table, name):
    """Return the entry `name` of a table, or `name` itself if it acts like an entry. Raises ValueError, TypeError."""
    does = {"optimizer": "apply_gradients", "metric": "update_state"}.get(what, "__call__")
    if not isinstance(name, str):
        if not hasattr(name, does):
            raise TypeError(f"{what} is {name!r:.60}; expected the name of one, or what has {does}")
        return name
    if name not in table:
        core = type(table) is dict and what in ("activation", "initializer", "loss", "optimizer")
        known = f"there are {', '.join(table)}{'; levels_more.mid_level has more' * core}"
        cure = f"did you mean {near!r}?" if (near := meant(name, table)) else known
        raise ValueError(f"no {what} is called {name!r}; {cure}")
    return table[name]


def check_options(kind, options):
    """Raise TypeError for an option that a class of `levels` does not have, because one of `levels_more` may have it."""
    for name in options:
        if kind.__module__.startswith("levels.") and name not in inspect.signature(kind.__init__).parameters:
            wide = f"the {kind.__name__} of levels_more.{kind.__module__.split('.')[1]}"
            raise TypeError(f"{kind.__name__} has no {name}; {wide} may have it")


def check_int(least, name, value):
    """Return the value as an int if it is an integer >= `least`. Else raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; expected a whole number from {least} on")
    return int(value)


def check_positive(name, value, below=np.inf, zero=False):
    """Return the value as a Python number if 0 < value < `below` (0 is allowed with `zero`). Else raise ValueError."""
    number = real(value)
    if number is None or not (0.0 < number < below or (zero and number == 0)):
        raise ValueError(f"{name} is {value!r}; expected a positive number" + f" below {below:g}" * (below < np.inf))
    return number


def check_weights(weights, named, convert):
    """Return weights, arrays, for {name: variable}, each by convert(weight, variable). Raises ValueError."""
    weights = weights if isinstance(weights, (list, tuple)) else [weights]
    if len(weights) != len(named):
        raise ValueError(f"{len(weights)} weights for {len(named)} variables; are all parts built?")
    values = [*map(convert, weights, named.values())]
    for (name, w), value in zip(named.items(), values):
        if value.spec is not w.spec:
            cure = "; reshape it" if value.spec.nbytes == w.spec.nbytes else ""
            raise ValueError(f"{name} is {w.spec}, the weight {value.spec}{cure}")
    return values


def check_pairs(given, kind, convert):
    """Return [convert(gradient, variable)] and [variable] of pairs of both. Raises TypeError, ValueError for others."""
    pairs = [*given] if hasattr(given, "__iter__") else given
    fit = isinstance(pairs, list) and pairs
    if not fit or not all(isinstance(x, (tuple, list)) and len(x) == 2 and isinstance(x[1], kind) for x in pairs):
        raise TypeError(f"apply_gradients: got {pairs!r:.60}; expected pairs (gradient, variable)")
    variables = [w for _, w in pairs]
    if len({*map(id, variables)}) < len(pairs):
        raise ValueError("apply_gradients: a variable stands in two pairs; add its gradients")
    gradients = [dw if dw is None else convert(dw, w) for dw, w in pairs]
    for k, (dw, w) in enumerate(zip(gradients, variables)):
        if (given := getattr(dw, "spec", None)) is not w.spec:
            told = f"gradient {k} is {given}, and its variable is {w.spec}; expected the same"
            raise ValueError(f"apply_gradients: {told}")
    return gradients, variables


def cache_key(x):
    """Return the part of a trace's key for an argument that is not a tensor. Raises TypeError if it cannot be a key."""
    if type(x).__hash__ is None:
        raise TypeError(f"a {type(x).__name__} is no argument: expected tensors, arrays, variables, numbers or names")
    if isinstance(x, tuple):
        return type(x), *map(cache_key, x)
    if isinstance(x, (float, complex, np.inexact)):
        return type(x), repr(x)  # which distinguishes 0.0 from -0.0, and makes NaN equal to itself
    alone = type(x).__eq__ is object.__eq__  # equal to itself only; otherwise equal objects may differ in 0.0 and -0.0
    return (type(x), x) if alone else (type(x), x, repr(x))


def not_copied(what, why):
    """Return a `__reduce__` that raises TypeError, for an object that can be neither copied nor saved."""

    def __reduce__(self):
        raise TypeError(f"{what} cannot be copied: {why}")

    return __reduce__
