"""The table of kernels, what depends on the kind of device, checks of launches and indices. Notebook 02 uses them."""

import collections
import difflib
import reprlib
import types
import weakref
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Backend:
    """The functions that depend on the kind of device: a row of BACKENDS."""

    compiler: Callable  # (function, dtype) -> the program for arrays of that dtype
    nest: Callable = None  # (places, line) -> the lines of the loops around that line
    views: Callable = lambda shapes, places: None  # the shapes in which these loops see their arrays, or None
    reduction: Callable = None  # (combine, start) -> the loop that reduces x[i, k, j] to out[i, j]
    names: dict = field(default_factory=dict)  # that loops may use, such as a GPU's `cuda`


class KernelTable(dict):
    """(op, kind of device) -> the function that is compiled for it. Its repr lists each op with its kinds of device."""

    def __init__(self):
        super().__init__()
        self.version = 0  # counts replaced kernels: what was compiled from a replaced one is out of date
        self.first = {}  # (op, kind) -> the function that was entered first

    def __setitem__(self, key, function):
        """Enter a function: the one inside numba's `njit`, if there is one."""
        plain = getattr(function, "py_func", function)
        self.version += self.get(key, plain) is not plain
        self.first.setdefault(key, plain)
        super().__setitem__(key, plain)

    def __getitem__(self, key):
        """Return the function. Raises LookupError for what is in no row."""
        with suppress(KeyError, TypeError):  # TypeError: it cannot be a key
            return super().__getitem__(key)
        op, kind = map(str, key)
        kinds = [k for o, k in [*self] if o == op]
        if kinds:
            raise LookupError(f"{op!r} has no kernel for {kind!r}; it has one for {kinds}")
        near = difflib.get_close_matches(op, {known for known, _ in [*self]}, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "KERNELS shows all, and levels_more.kernels has more"
        raise LookupError(f"no op is called {reprlib.repr(op)}; {hint}")

    def is_first(self, op, kind):
        """Return whether an op still has its first kernel. (A mean also runs the kernel of the sum.)"""
        return all(self[each, kind] is self.first[each, kind] for each in (op, op.replace("mean", "sum")))

    def __repr__(self):
        kinds = {op: " ".join(sorted(kind for o, kind in self if o == op)) for op, _ in sorted(self)}
        return "\n".join(f"{op:16}  {has}" for op, has in kinds.items())


def check_kernel(op, function, kinds, backends):
    """Raise TypeError unless a function can be entered as the kernel of `op` on these kinds of device."""
    if not (isinstance(op, str) and callable(function) and all(str(kind) in backends for kind in kinds)):
        raise TypeError(f"kernel: {op!r:.30} for {kinds!r:.60} is {function!r:.60}; expected names, and a function")


def no_key(op, reads, attrs):
    """Return the TypeError for a launch whose buffers and attributes cannot form the key of a plan."""
    got = f"got {reads!r:.60} and {attrs!r:.60}"
    return TypeError(f"{op!r:.60}: works on live buffers; attributes are numbers or names; {got}")


def kind_of(op, reads):
    """Return the kind of device of these buffers. Raises TypeError if one is freed, ValueError for several devices."""
    if any(x.spec is not x.device.spec(x.shape, x.dtype) for x in reads):  # freed
        raise TypeError(f"{op}: works on live buffers, got {reads!r}")
    devices = sorted({x.device.name for x in reads})
    if len(devices) != 1:
        raise ValueError(f"{op}: inputs lie on {' and '.join(devices) or 'no device'}; copy them to one device")
    return reads[0].device.kind


def check_out(plan, out, reads, updates):
    """Raise ValueError if `out` is no live buffer for the result, or is an input. (An update reads `out` first.)"""
    inputs = reads[1:] if updates else reads
    if getattr(out, "spec", None) is not plan.spec or id(out) in map(id, inputs):
        raise ValueError(f"{plan.op}: needs a live buffer {plan.spec}, and may overwrite no input; got {out!r}")


GUARDED = collections.Counter()  # a function -> how many open blocks have each of its indices checked
TRIED = weakref.WeakSet()  # functions that were tried on hard inputs with that check, and need it no more


@contextmanager
def guarded(function):
    """In a `with` block, compile this function with a check of each index: a wrong one raises IndexError, and no crash."""
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, types.FunctionType):  # it will be refused
        yield
        return
    GUARDED[plain] += 1
    try:
        yield
    finally:
        GUARDED[plain] -= 1
        if not GUARDED[plain]:
            del GUARDED[plain]


def is_guarded(function):
    """Whether each index of a function, or of the one inside numba's `njit`, is to be checked."""
    plain = getattr(function, "py_func", function)
    return plain in GUARDED and plain not in TRIED
