"""`torch.utils.data`: data sets with samples `data[k]`, subsets, samplers, and loaders of batches."""

import contextlib
import itertools
import operator

import numpy as np

from levels_more.checks import expect as _expect
from levels_more.checks import sample_of as _sample_of
from levels_more.checks import sizes as _sizes
from levels_more.low_level.random import shuffle as _shuffle
from levels_more.missing import module_api
from levels_more.missing import refuse_arguments as _refuse_arguments
from levels_more.torch import functions as _functions
from levels_more.torch.graph import ShapeError as _ShapeError
from levels_more.torch.tensors import Tensor as _Tensor


class Dataset:
    """The base class. Define `__len__` and `__getitem__(index)`."""

    def __iter__(self):
        return (self[k] for k in range(len(self)))


class TensorDataset(Dataset):
    """The rows of several tensors or arrays, as tuples. Raises ValueError unless all have the same number."""

    def __init__(self, *tensors):
        if len({len(x) for x in tensors}) != 1:
            counts = [len(x) for x in tensors]
            raise ValueError(f"TensorDataset: tensors of {counts} rows; expected tensors with equal numbers of rows")
        self.tensors = tensors

    def __len__(self):
        return len(self.tensors[0])

    def __getitem__(self, index):
        return tuple(x[index] for x in self.tensors)


class Subset(Dataset):
    """The samples of a data set at these indices."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]


def _shuffled(n):
    """Return an array of the integers 0, …, n - 1 in random order."""
    return _shuffle(np.arange(n)).numpy()


def _beneath(dataset, rows):
    """Return the data set beneath all subsets, and the indices of these rows there."""
    while type(dataset) is Subset:
        rows = np.array([operator.index(dataset.indices[row]) for row in rows], dtype=int)
        dataset = dataset.dataset
    return dataset, rows


def random_split(dataset, lengths):
    """Split a data set at random. lengths: counts or fractions. Raises ValueError unless they add up to the whole."""
    counts = list(lengths)
    if all(0.0 <= n <= 1.0 for n in counts) and abs(sum(counts) - 1.0) < 1e-6:
        counts = [int(len(dataset) * share) for share in counts]
        for k in range(len(dataset) - sum(counts)):
            counts[k % len(counts)] += 1
    if sum(counts) != len(dataset):
        raise ValueError(f"random_split: {list(lengths)} make {sum(counts)}; the data set has {len(dataset)} samples")
    ends = [0, *itertools.accumulate(_sizes("random_split: lengths", counts))]
    order = _shuffled(len(dataset)).tolist()
    return [Subset(dataset, order[start:end]) for start, end in itertools.pairwise(ends)]


class Sampler:
    """The order of samples for a `DataLoader`. Define `__iter__`, which yields their keys, and `__len__`."""

    def __init__(self, data_source=None):
        self.data_source = data_source


def _form(sample, first):
    """What samples of a batch have in common, in words."""
    if isinstance(sample, dict):
        names = [name for name in first if name in sample] if isinstance(first, dict) else sample
        return f"the keys {', '.join(map(str, names))}"
    if isinstance(sample, tuple | list):
        return f"{len(sample)} parts"
    return f"the shape {tuple(np.shape(sample))}"


def default_collate(samples):
    """Return a list of samples as one batch: tensors and numbers are stacked, tuples and dicts joined part by part.

    Raises ShapeError, which is a ValueError, for a sample whose keys, parts or shape are not those of the first.
    """
    first = samples[0]
    for k, sample in enumerate(samples):
        if not isinstance(first, str) and _form(sample, first) != _form(first, first):
            told = f"sample {k} of a batch has {_form(sample, first)}, and sample 0 has {_form(first, first)}"
            raise _ShapeError(f"default_collate: {told}; a collate_fn of yours can join them")
    if isinstance(first, dict):
        return {name: default_collate([sample[name] for sample in samples]) for name in first}
    if isinstance(first, tuple | list):
        return [default_collate(list(part)) for part in zip(*samples, strict=True)]
    if isinstance(first, str):
        return samples
    if isinstance(first, _Tensor):
        return _functions.FUNCTIONS["stack"](samples)
    return _functions.tensor(np.stack(samples), dtype=_functions.DOUBLE if isinstance(first, float) else None)


class DataLoader:
    """Batches of a data set: in order, in a new random order in each pass (`shuffle`), or in that of a `sampler`.

    The keys that a sampler yields may be anything that `dataset[key]` takes. `collate_fn` makes a batch of a list of
    samples. `num_workers` and `pin_memory` have no effect. Raises TypeError unless the batch size is a whole number
    from 1 on, and for what is no data set or sampler; ValueError for a sampler together with `shuffle`.
    """

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=False,
        sampler=None,
        *,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        **others,
    ):
        _refuse_arguments("DataLoader", others, DataLoader)
        whole = isinstance(batch_size, int | np.integer) and not isinstance(batch_size, bool) and batch_size > 0
        _expect(whole, "DataLoader: batch_size", batch_size, "a whole number from 1 on")
        needed = ["__getitem__"] if sampler is not None else ["__len__", "__getitem__"]
        fits = all(hasattr(dataset, name) for name in needed) and not isinstance(dataset, type)
        told = "an object with __len__ and __getitem__; make a list of what only has an __iter__"
        _expect(fits, "DataLoader: dataset", dataset, told)
        again = hasattr(sampler, "__iter__") and not isinstance(sampler, type) and not hasattr(sampler, "__next__")
        told = "a list of keys, or an object whose __iter__ gives the keys of each pass"
        _expect(sampler is None or again, "DataLoader: sampler", sampler, told)
        if shuffle and sampler is not None:
            raise ValueError("DataLoader: a sampler gives the order; leave out shuffle")
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.sampler = sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn or default_collate
        whole, _ = _beneath(dataset, ())
        # each tensor is indexed once per batch: without it chapter3/torch/mid_rings takes 1.8 times as long
        self.by_rows = collate_fn is None and type(whole) is TensorDataset

    def __len__(self):
        n = len(self.dataset if self.sampler is None else self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def _keys(self):
        """The keys of all samples, in order."""
        if self.sampler is not None:
            return iter(self.sampler)
        count = len(self.dataset)
        return iter((_shuffled(count) if self.shuffle else np.arange(count)).tolist())

    def _batch(self, keys):
        if self.by_rows and all(isinstance(key, int | np.integer) and not isinstance(key, bool) for key in keys):
            with contextlib.suppress(IndexError):  # it is raised again for the sample that is not there
                whole, rows = _beneath(self.dataset, np.array(keys))
                return list(whole[rows])
        cure = "the sampler gave this key"
        if self.sampler is None:
            cure = f"without a sampler the keys are 0 to {len(self.dataset) - 1}"
        return self.collate_fn([_sample_of(self.dataset, key, cure) for key in keys])

    def __iter__(self):
        keys = self._keys()
        while batch := list(itertools.islice(keys, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self._batch(batch)


__getattr__, __dir__ = module_api("torch.utils.data", globals())
