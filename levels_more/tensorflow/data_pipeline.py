"""A pipeline whose functions get tensors, as in `tf.data`, and which takes the arguments of TensorFlow."""

import functools

import numpy as np

from levels.low_level import DTYPES, Operators
from levels_more.checks import called
from levels_more.mid_level import dataset
from levels_more.mid_level.stages import as_element, each_array
from levels_more.missing import refusing
from levels_more.tensorflow.nested import map_leaves, numbers, require_numbers


def _tensors(element):
    return each_array(lambda x: as_element(np.asarray(x)), element)


def _arrays(result):
    return map_leaves(tuple(result) if isinstance(result, list) else result, _numpy)


def _numpy(x):
    if not isinstance(x, Operators) and np.asarray(x).dtype == object:  # a table's column of words
        x = np.asarray(x).tolist()
    return numbers(x).numpy() if isinstance(x, Operators) or np.asarray(x).dtype in DTYPES else np.asarray(x)


class Dataset(dataset.Dataset):
    """A dataset of tensors, or of tuples or dicts of them: its functions take and return tensors."""

    __getattr__ = refusing("a dataset", "tensorflow")

    @classmethod
    def from_tensor_slices(cls, tensors, name=None):
        """The rows of an array, or of all the arrays of a tuple or a dict."""
        return super().from_tensor_slices(
            map_leaves(tensors, _numpy) if not isinstance(tensors, list) else _numpy(tensors)
        )

    @classmethod
    def range(cls, *bounds):
        """The whole numbers of Python's `range(*bounds)`."""
        return cls.from_tensor_slices(np.array(range(*bounds)))

    @classmethod
    def zip(cls, *datasets):
        """Tuples of an element of each dataset. The datasets may be in one tuple. Raises TypeError for other values."""
        return super().zip(*(datasets[0] if len(datasets) == 1 and isinstance(datasets[0], tuple) else datasets))

    def __iter__(self):
        require_numbers("a loop over a dataset")
        return super().__iter__()

    def map(self, map_func, num_parallel_calls=None, deterministic=None):
        """map_func(element), or map_func(x, y) of an element (x, y): a function of tensors that returns tensors."""
        return super().map(_on_tensors(map_func, _arrays))

    def filter(self, predicate):
        """The elements for which predicate(element), or predicate(x, y) of an element (x, y), is true."""
        return super().filter(_on_tensors(predicate, bool))

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None):
        """Batches of so many elements. The last batch may be smaller, or is dropped."""
        return super().batch(batch_size, drop_remainder)

    def as_numpy_iterator(self):
        """A new pass over the elements, as NumPy arrays."""
        return (each_array(np.asarray, element) for element in self)


def _on_tensors(function, convert):
    """A function of tensors as a stage's function of arrays. `convert` is applied to what it returns."""
    called("the stage's function", function)

    def run(*element):
        return convert(function(*(_tensors(x) for x in element)))

    return functools.update_wrapper(run, function, updated=())
