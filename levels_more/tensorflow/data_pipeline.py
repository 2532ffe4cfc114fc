"""A pipeline whose functions see tensors, as in `tf.data`, with the stages that TensorFlow's readers expect."""

import functools
import itertools
import operator
import warnings

import numpy as np

from levels.low_level import DTYPES, Operators, constant
from levels_more.checks import called, expect
from levels_more.mid_level.dataset import Stream, as_element, each_array
from levels_more.tensorflow.nested import each_leaf, known_now, numbers


def _tensors(element):
    return each_array(lambda x: as_element(_whole(np.asarray(x))), element)


def _whole(array):
    return array.astype(np.int64) if array.dtype.kind in "iu" else array


def _arrays(result):
    return each_leaf(tuple(result) if isinstance(result, list) else result, _numpy)


def _numpy(x):
    if not isinstance(x, Operators) and np.asarray(x).dtype == object:  # a table's column of words
        x = np.asarray(x).tolist()
    return numbers(x).numpy() if isinstance(x, Operators) or np.asarray(x).dtype in DTYPES else np.asarray(x)


class TensorStream(Stream):
    """A dataset of tensors, or of tuples or dicts of them: its functions take and return tensors."""

    @classmethod
    def from_tensor_slices(cls, tensors, name=None):
        """The rows of an array, or of all the arrays of a tuple or a dict."""
        return super().from_tensor_slices(
            each_leaf(tensors, _numpy) if not isinstance(tensors, list) else _numpy(tensors)
        )

    @classmethod
    def from_tensors(cls, tensors):
        """One element: these tensors."""
        return cls("from_tensors", lambda: iter([_arrays(tensors)]), 1)

    @classmethod
    def range(cls, *bounds):
        """Whole numbers, as Python's range gives them."""
        return cls.from_tensor_slices(np.arange(*bounds))

    @classmethod
    def from_generator(cls, generator, output_types=None, output_shapes=None, args=(), output_signature=None):
        """What generator(*args) gives, anew for each pass; numbers in the dtypes of `output_signature`, if it is given."""
        called("from_generator: generator", generator)
        kinds = output_types if output_signature is None else output_signature

        def one(element):
            if kinds is None:
                return _arrays(element)
            several = isinstance(kinds, (tuple, list))
            pairs = zip(element, kinds, strict=True) if several else [(element, kinds)]
            made = tuple(numbers(x, getattr(kind, "dtype", kind)).numpy() for x, kind in pairs)
            return made if several else made[0]

        return super().from_generator(lambda: map(one, generator(*args)))

    @classmethod
    def zip(cls, *datasets):
        """Tuples of an element of each dataset, given one by one or in a tuple."""
        return super().zip(*(datasets[0] if isinstance(datasets[0], tuple) else datasets))

    def __iter__(self):
        known_now("a loop over a dataset")
        return super().__iter__()

    def map(self, map_func, num_parallel_calls=None, deterministic=None):
        """map_func(element), or map_func(x, y) of an element (x, y), of tensors."""
        return super().map(_on_tensors(map_func, _arrays))

    def filter(self, predicate):
        """The elements for which predicate(element), or predicate(x, y) of an element (x, y), is true."""
        return super().filter(_on_tensors(predicate, bool))

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None):
        """So many elements as one; the last may be fewer, or is dropped."""
        return super().batch(int(batch_size), drop_remainder)

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=0, drop_remainder=False):
        """So many elements as one, each with `padding_values` behind it, up to the sizes of the largest. Of arrays, or tuples.

        Raises TypeError for padded_shapes: the sizes are those of the largest.
        """
        expect(padded_shapes is None, "padded_batch: padded_shapes", padded_shapes, "None, the sizes of the largest")

        def make():
            elements = self.numpy_elements()
            while part := [*itertools.islice(elements, batch_size)]:
                if len(part) == batch_size or not drop_remainder:
                    yield each_array(lambda *rows: _padded(rows, padding_values), *part)

        return self._of("padded_batch", make, np.nan)

    @classmethod
    def counter(cls, start=0, step=1):
        """Whole numbers from start on, without end."""
        return cls("counter", lambda: map(np.int64, itertools.count(start, step)), np.inf)

    def with_options(self, options):
        """The dataset itself: options say how to be quick, which changes nothing here."""
        return self

    def steps(self, count):
        """A dataset whose passes are the next `count` elements each. Where the last element comes first, a pass is shorter, and
        warns; the pass behind the last element begins with the first, as in Keras."""
        rest, seen = None, 0

        def make():
            nonlocal rest, seen
            given, first = 0, [] if rest is None else [*itertools.islice(rest, 1)]
            if not first:
                rest, seen = iter(self.each()), 0
            for element in itertools.islice(itertools.chain(first, rest), count):
                given, seen = given + 1, seen + 1
                yield element
            if given < count:
                warnings.warn(f"{self.stage}: an epoch has {given} steps, not {count}; repeat() the data", stacklevel=2)
            if given < count or seen >= self.length:
                rest = None

        return type(self)(f"steps({count})", make, count, self.arrays, self.batches, self.stages)

    def _of(self, stage, make, length):
        return type(self)(stage, make, length, before=self.stages)

    def numpy_elements(self):
        """A new pass over the elements, as NumPy arrays."""
        return (each_array(np.asarray, element) for element in self)

    as_numpy_iterator = numpy_elements

    def concatenate(self, dataset):
        """Its elements, then those of another dataset."""
        make = lambda: itertools.chain(self.numpy_elements(), dataset.numpy_elements())  # noqa: E731
        return self._of("concatenate", make, self.length + dataset.length)

    def enumerate(self, start=0):
        """(number, element)"""
        make = lambda: ((np.int64(n), x) for n, x in enumerate(self.numpy_elements(), start))  # noqa: E731
        return self._of("enumerate", make, self.length)

    def shard(self, num_shards, index):
        """Each element whose number, divided by `num_shards`, leaves `index`."""
        return self._of("shard", lambda: itertools.islice(self.numpy_elements(), index, None, num_shards), np.nan)

    def unbatch(self):
        """The rows of its elements, one by one."""
        rows = lambda x: (each_array(operator.itemgetter(k), x) for k in range(_count(x)))  # noqa: E731
        return self.flat_map(rows, "unbatch")

    def flat_map(self, function, stage="flat_map"):
        """The elements of each dataset that function(element) gives, one dataset behind the other."""
        given = lambda x: getattr(function(x), "numpy_elements", lambda: function(x))()  # noqa: E731
        return self._of(stage, lambda: itertools.chain.from_iterable(map(given, self.numpy_elements())), np.nan)

    def window(self, size, shift=None, drop_remainder=False):
        """Datasets of `size` elements each, which begin `shift` elements apart."""

        def make():
            rows = [*self.numpy_elements()]
            for first in range(0, len(rows), shift or size):
                part = rows[first : first + size]
                if len(part) == size or not drop_remainder:
                    yield TensorStream("window", functools.partial(iter, part), len(part))

        return _Windows("window", make, np.nan, before=self.stages)

    def reduce(self, initial_state, reduce_func):
        """reduce_func(state, element) of each element in turn: the last state."""
        state = each_leaf(initial_state, numbers)
        for element in self:
            state = each_leaf(reduce_func(state, element), numbers)
        return state

    def apply(self, transformation_func):
        """transformation_func(dataset)"""
        return transformation_func(self)

    def cardinality(self):
        """How many elements there are, a tensor; -1 for no end, -2 where only a pass can tell."""
        return constant(-1 if self.length == np.inf else -2 if np.isnan(self.length) else int(self.length))

    @property
    def element_spec(self):
        """What the first element is like: (shape, dtype), or a tuple or a dict of them."""
        return each_leaf(next(iter(self)), lambda x: (tuple(x.shape), str(x.dtype)))


class _Windows(TensorStream):
    """A dataset whose elements are datasets."""

    def __iter__(self):
        return self.make()

    numpy_elements = __iter__

    def _of(self, stage, make, length):
        return TensorStream(stage, make, length, before=self.stages)


def _padded(rows, value):
    """Arrays [sizes] one beside another [rows, largest sizes], with that value behind the smaller ones."""
    sizes = np.max([row.shape for row in rows], axis=0)
    return np.stack(
        [np.pad(a, [(0, n - m) for n, m in zip(sizes, a.shape, strict=True)], constant_values=value) for a in rows]
    )


def _count(element):
    sizes = []
    each_array(lambda a: sizes.append(len(a)), element)
    expect(sizes, "unbatch: an element", element, "rows")
    return sizes[0]


def _on_tensors(function, convert):
    """A function of tensors, for a pipeline of arrays."""
    called("the stage's function", function)

    def run(*element):
        return convert(function(*(_tensors(x) for x in element)))

    return functools.update_wrapper(run, function, updated=())
