"""Variables, modules and a tape by TensorFlow's rules: there are gradients only for what the tape watches."""

from levels.low_level import Operators, as_tensor, hand_on
from levels.low_level import Variable as CoreVariable
from levels.support.operators import check_recorded
from levels_more import low_level
from levels_more.compiler.eager.tapes import quickest_walk
from levels_more.low_level.autodiff import leading_to
from levels_more.low_level.module import Module
from levels_more.missing import refusing
from levels_more.tensorflow.nested import leaves, map_leaves, numbers


class Variable(CoreVariable):
    """A tensor that `assign` replaces. `assign` returns the variable."""

    def __init__(self, initial_value, trainable=True, name=None, dtype=None, shape=None):
        value = initial_value() if callable(initial_value) else initial_value
        super().__init__(numbers(value, dtype), name, trainable)

    def assign(self, value, read_value=True):
        """Replace the tensor; lists and arrays take its dtype. Raises ValueError for another shape or dtype."""
        super().assign(value if isinstance(value, Operators) else numbers(value, self.dtype))
        return self

    def assign_add(self, delta, read_value=True):
        """Add `delta` to the variable."""
        return self.assign(self + (delta if isinstance(delta, Operators) else numbers(delta, self.dtype)))

    def assign_sub(self, delta, read_value=True):
        """Subtract `delta` from the variable."""
        return self.assign(self - (delta if isinstance(delta, Operators) else numbers(delta, self.dtype)))

    def numpy(self):
        """A copy of its numbers."""
        return as_tensor(self).numpy()

    def __reduce__(self):
        return Variable, (self.numpy(), self.trainable, self.name)


class SortedModule(Module):
    """A module with a name. Its variables are in the order of their attributes' names."""

    def __init__(self, name=None):
        self.name = type(self).__name__.lower() if name is None else name

    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable))

    @property
    def variables(self):
        """All variables: its own, then those of its parts."""
        named = self.named(CoreVariable)
        return tuple(named[path] for path in sorted(named, key=lambda path: (path.count("."), path)))


class GradientTape(low_level.GradientTape):
    """Records every op. There are gradients for trainable variables, and for tensors given to `watch`."""

    __getattr__ = refusing("a tape", "tensorflow")

    def __init__(self, persistent=False, watch_accessed_variables=True):
        super().__init__(persistent)
        self.watched = set()
        self.all_variables = watch_accessed_variables

    def watch(self, tensor):
        """Also give gradients for this tensor, or for each tensor of a list."""
        self.watched.update(map(as_tensor, tensor if isinstance(tensor, (list, tuple)) else [tensor]))

    def gradient(self, target, sources):
        """d target / d source, for a source or a list, tuple or dict of them. Several targets, or numbers, are summed.

        None if the target does not depend on the source, or if the source neither is watched nor depends on what is.
        Raises RuntimeError if the tape has been read, ValueError if a source was assigned while the tape was open.
        """
        if self.records is None:
            raise RuntimeError("gradient: this tape was read; tf.GradientTape(persistent=True) can be read again")
        reached = self.watched | {x for v, x in self.variables.items() if v.trainable and self.all_variables}
        for _, inputs, _, y in self.records:
            if not reached.isdisjoint(inputs):
                reached.add(y)
        given = leaves(sources)
        for name, x in [*(("a target", y) for y in leaves(target)), *(("a source", x) for x in given)]:
            check_recorded(name, x, Operators)
        found = {}
        variables = [source for source in given if isinstance(source, CoreVariable)]
        reached.update(as_tensor(v) for v in variables if v.trainable and self.all_variables)
        for v in variables:
            if self.variables.get(v, as_tensor(v)) is not as_tensor(v):
                raise ValueError("gradient: a source was assigned while the tape was open; assign after the gradient")
        records = self.records
        self.records = None
        try:
            for y in map(as_tensor, leaves(target)):
                ways = reached & leading_to(records, y)
                wanted = [x for x in dict.fromkeys(map(as_tensor, given)) if x in ways]
                for x, dx in zip(wanted, quickest_walk(records, y, wanted) if wanted else (), strict=True):
                    hand_on(found, x, dx)
        finally:
            self.records = records if self.persistent else None
        return map_leaves(sources, lambda x: found.get(as_tensor(x)))
