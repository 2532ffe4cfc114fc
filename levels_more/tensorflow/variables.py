"""Variables, modules and a tape by TensorFlow's rules: `assign` takes what can become a tensor, gradients go to what is watched."""

import contextlib
import math

import numpy as np

from levels import low_level, more
from levels.low_level import METHODS, VJPS, Module, Operators, Tensor, Variable, as_tensor, hand_on
from levels_more.compiler.eager.backward import walk_back
from levels_more.low_level.creation import zeros_like
from levels_more.low_level.custom_rules import told
from levels_more.low_level.ops import reshape
from levels_more.low_level.shape import stack
from levels_more.tensorflow.nested import each_leaf, leaves, numbers


class Part(Tensor):
    """A part of a variable, v[index]: a tensor, which may be assigned to."""

    __slots__ = "index", "variable"

    def assign(self, value):
        """Give the variable these numbers there. Returns the variable."""
        array = self.variable.numpy()
        array[self.index] = numbers(value, None if hasattr(value, "dtype") else self.dtype).numpy()
        return self.variable.assign(array)

    def assign_add(self, delta):
        """Add these numbers there. Returns the variable."""
        return self.assign(self + delta)

    def assign_sub(self, delta):
        """Take these numbers away there. Returns the variable."""
        return self.assign(self - delta)


class Assigned(Variable):
    """A tensor that `assign` replaces; the variable is what `assign` gives back."""

    def __init__(self, initial_value, trainable=True, name=None, dtype=None, shape=None):
        value = initial_value() if callable(initial_value) else initial_value
        super().__init__(numbers(value, dtype), name, trainable)

    def assign(self, value, read_value=True):
        """Name another tensor, of the same shape and dtype: lists and arrays of floats become it. Raises ValueError."""
        super().assign(value if isinstance(value, Operators) else numbers(value, self.dtype))
        return self

    def assign_add(self, delta, read_value=True):
        """Name the sum of both."""
        return self.assign(self + (delta if isinstance(delta, Operators) else numbers(delta, self.dtype)))

    def assign_sub(self, delta, read_value=True):
        """Name the difference of both."""
        return self.assign(self - (delta if isinstance(delta, Operators) else numbers(delta, self.dtype)))

    def __getitem__(self, index):
        y = METHODS["Operators.__getitem__"](self, index)
        if type(y) is not Tensor:  # of a function that is traced
            return y
        part = y.device.put(y.numpy(), Part)
        part.variable = self
        part.index = tuple(map(_plain, index)) if isinstance(index, tuple) else _plain(index)
        return told(part, (y,), lambda dy: [dy])

    def value(self):
        """The tensor that it names."""
        return as_tensor(self)

    read_value = value

    def numpy(self):
        """A copy of its numbers."""
        return as_tensor(self).numpy()

    def __reduce__(self):
        return Assigned, (self.numpy(), self.trainable, self.name)


def _plain(index):
    return index.numpy() if isinstance(index, Operators) else index


class SortedModule(Module):
    """Owns variables and modules, in the order of their attributes' names, and has a name."""

    def __init__(self, name=None):
        self.name = type(self).__name__.lower() if name is None else name

    name_scope = property(lambda self: contextlib.nullcontext(self.name))
    submodules = property(lambda self: tuple(part for part in self.named(Module).values() if part is not self))
    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable))

    @property
    def variables(self):
        """All variables: its own, then those of its parts."""
        named = self.named(Variable)
        return tuple(named[path] for path in sorted(named, key=lambda path: (path.count("."), path)))

    @staticmethod
    def with_name_scope(method):
        """The method itself: the names of variables have no prefix here."""
        return method


class WatchingTape(low_level.GradientTape):
    """Writes down every op; gradients go to trainable variables, and to tensors that it was told to watch."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        super().__init__(persistent)
        self.watched, self.all_variables = set(), watch_accessed_variables

    def watch(self, tensor):
        """Gradients go to this tensor as well, or to each of a list."""
        self.watched.update(map(as_tensor, tensor if isinstance(tensor, (list, tuple)) else [tensor]))

    def watched_variables(self):
        """The trainable variables that were read."""
        return tuple(v for v in self.variables if v.trainable)

    @contextlib.contextmanager
    def stop_recording(self):
        """What runs in this `with` block is not written down."""
        records, self.records = self.records, None
        try:
            yield
        finally:
            self.records = records

    def reset(self):
        """Forget what was written down, and what was watched."""
        self.records, self.watched = [], set()
        self.variables.clear()

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients="none"):
        """d target / d source, for a source or for a list, a tuple or a dict of them; None where there is no way to it.

        Several targets, or numbers, stand for their sum, each number times that of `output_gradients`, in the shapes of the
        targets, if they are given. Raises RuntimeError for a tape that was read, ValueError for a source that was assigned.
        """
        if self.records is None:
            raise RuntimeError("gradient: this tape was read; tf.GradientTape(persistent=True) can be read again")
        reached = self.watched | {x for v, x in self.variables.items() if v.trainable and self.all_variables}
        for _, inputs, _, y in self.records:
            if not reached.isdisjoint(inputs):
                reached.add(y)
        given, found = [], {}
        each_leaf(sources, given.append)
        reached.update(as_tensor(v) for v in given if isinstance(v, Variable) and v.trainable and self.all_variables)
        for source in given:
            if isinstance(source, Variable) and self.variables.get(source, as_tensor(source)) is not as_tensor(source):
                raise ValueError("gradient: a source was assigned while the tape was open; assign after the gradient")
        records, self.records = self.records, None
        try:
            targets = [as_tensor(y) for y in leaves(target)]
            shares = [None] * len(targets) if output_gradients is None else leaves(output_gradients)
            for y, share in zip(targets, shares, strict=True):
                ways = reached & _ways(records, y)
                wanted = [x for x in dict.fromkeys(map(as_tensor, given)) if x in ways]
                way = records
                if share is not None:
                    share = numbers(share, y.dtype)
                    scaled = y * share  # as if the tape had written that down
                    way, y = [*records, ("multiply", (y, share), {}, scaled)], scaled
                for x, dx in zip(wanted, walk_back(way, y, wanted) if wanted else (), strict=True):
                    hand_on(found, x, dx)
        finally:
            self.records = records if self.persistent else None
        for x in map(as_tensor, given if unconnected_gradients == "zero" else ()):
            found.setdefault(x, zeros_like(x))
        return each_leaf(sources, lambda x: found.get(as_tensor(x)))

    def jacobian(self, target, sources, unconnected_gradients="none", **options):
        """The slopes of all numbers of a target y, in the shape (*y.shape, *x.shape) for each source x, as `gradient` takes them."""
        y = as_tensor(target)
        ones = np.eye(math.prod(y.shape), dtype=y.dtype).reshape(-1, *y.shape)
        return self._rows(
            y, sources, ones, lambda x, rows: reshape(stack(rows), (*y.shape, *x.shape)), unconnected_gradients
        )

    def batch_jacobian(self, target, source, unconnected_gradients="none", **options):
        """The slopes of y[batch, …] for x[batch, …] row by row, in the shape (batch, *y.shape[1:], *x.shape[1:])."""
        y = as_tensor(target)
        ones = np.eye(math.prod(y.shape[1:]), dtype=y.dtype)[:, None] * np.ones((1, y.shape[0], 1), y.dtype)
        made = lambda x, rows: reshape(stack(rows, 1), (*y.shape, *x.shape[1:]))  # noqa: E731
        return self._rows(y, source, ones.reshape(-1, *y.shape), made, unconnected_gradients)

    def _rows(self, y, sources, shares, made, unconnected_gradients):
        """What `made(x, [a gradient for each of the shares])` gives for each source x."""
        kept, self.persistent = self.persistent, True
        try:
            rows = [leaves(self.gradient(y, sources, share, unconnected_gradients)) for share in shares]
        finally:
            self.persistent, self.records = kept, self.records if kept else None
        found = iter(zip(*rows, strict=True))
        return each_leaf(sources, lambda x: None if (each := next(found))[0] is None else made(x, each))


def _ways(records, y):
    """All floats that the tape led from to y, itself included, by ops that hand a gradient on: `stop_gradient` does not."""
    found = {y}
    for op, inputs, _, result in reversed(records):
        if result in found:
            rules = VJPS[op] if op in VJPS or more("rule", op) else inputs  # what has no rule is told by `walk_back`
            found.update(x for x, rule in zip(inputs, rules, strict=False) if rule is not None and x.dtype.kind == "f")
    return found
