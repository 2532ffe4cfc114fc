"""Variables, modules and a tape by TensorFlow's rules: `assign` takes what can become a tensor, gradients go to what is watched."""

import contextlib

from levels import low_level
from levels.low_level import Module, Operators, Variable, as_tensor, hand_on, walk_back, zeros_like
from levels_more.nested import each_leaf, leaves, numbers


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

    def value(self):
        """The tensor that it names."""
        return as_tensor(self)

    read_value = value

    def numpy(self):
        """A copy of its numbers."""
        return as_tensor(self).numpy()

    def __reduce__(self):
        return Assigned, (self.numpy(), self.trainable, self.name)


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

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients="none"):
        """d target / d source, for a source or for a list, a tuple or a dict of them; None where there is no way to it.

        Several targets, or numbers, stand for their sum. Raises RuntimeError for a tape that was read, ValueError for a
        source that was assigned meanwhile, NotImplementedError for output_gradients.
        """
        if self.records is None:
            raise RuntimeError("gradient: this tape was read; tf.GradientTape(persistent=True) can be read again")
        if output_gradients is not None:
            raise NotImplementedError("output_gradients: multiply the target by them, while the tape is open")
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
            for y in map(as_tensor, leaves(target)):
                wanted = [x for x in {*map(as_tensor, given)} & reached & _ways(records, y)]
                for x, dx in zip(wanted, walk_back(records, y, wanted) if wanted else (), strict=True):
                    hand_on(found, x, dx)
        finally:
            self.records = records if self.persistent else None
        for x in map(as_tensor, given if unconnected_gradients == "zero" else ()):
            found.setdefault(x, zeros_like(x))
        return each_leaf(sources, lambda x: found.get(as_tensor(x)))

    def jacobian(self, target, sources, **options):
        """Not here. Raises NotImplementedError."""
        raise NotImplementedError("jacobian: take the gradient of each number of the target, with persistent=True")

    batch_jacobian = jacobian


def _ways(records, y):
    """All floats that the tape led from to y, itself included."""
    found = {y}
    for _, inputs, _, result in reversed(records):
        if result in found:
            found.update(x for x in inputs if x.dtype.kind == "f")
    return found
