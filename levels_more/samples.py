"""Samples by number: what `data[k]` gives, all together by batches, some of them, or two data sets behind each other."""

import itertools

import numpy as np

from levels_more.checks import expect
from levels_more.generators import shuffled


class Samples:
    """Write `__len__`, and `__getitem__(index)`."""

    def __add__(self, other):
        return Joined([self, other])

    def __iter__(self):
        return (self[k] for k in range(len(self)))


class Rows(Samples):
    """The rows of several tensors or arrays, as tuples. Raises ValueError where one has more rows than another."""

    def __init__(self, *tensors):
        if len({len(x) for x in tensors}) != 1:
            raise ValueError(
                f"Rows: tensors of {[len(x) for x in tensors]} rows; expected one or more, with as many in each"
            )
        self.tensors = tensors

    def __len__(self):
        return len(self.tensors[0])

    def __getitem__(self, index):
        return tuple(x[index] for x in self.tensors)


class Some(Samples):
    """The samples of these numbers."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]


class Joined(Samples):
    """The samples of several data sets, one behind the other. Raises IndexError behind the last."""

    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __len__(self):
        return sum(map(len, self.datasets))

    def __getitem__(self, index):
        index = index + len(self) if index < 0 else index
        for dataset in self.datasets:
            if index < len(dataset):
                return dataset[index]
            index -= len(dataset)
        raise IndexError(f"{len(self)} samples; there is none with number {index + len(self)}")


def random_split(dataset, lengths, generator=None):
    """Parts of a data set, drawn at random: so many samples each, or such shares of all. Raises ValueError for other sums."""
    counts = list(lengths)
    if all(0.0 <= n <= 1.0 for n in counts) and abs(sum(counts) - 1.0) < 1e-6:
        counts = [int(len(dataset) * share) for share in counts]
        for k in range(len(dataset) - sum(counts)):
            counts[k % len(counts)] += 1
    if sum(counts) != len(dataset):
        raise ValueError(f"random_split: {list(lengths)} make {sum(counts)}; the data set has {len(dataset)} samples")
    order, ends = shuffled(len(dataset), generator).tolist(), [0, *itertools.accumulate(counts)]
    return [Some(dataset, order[start:end]) for start, end in itertools.pairwise(ends)]


def stacked(samples, make):
    """Samples as a batch, made by `make` of a stack of tensors, numbers or arrays; tuples and dicts part by part."""
    first = samples[0]
    if isinstance(first, dict):
        return {name: stacked([sample[name] for sample in samples], make) for name in first}
    if isinstance(first, tuple | list):
        return [stacked(list(part), make) for part in zip(*samples, strict=True)]
    return samples if isinstance(first, str) else make(samples)


class Batches:
    """Batches of samples, in order or, with `shuffle`, in another one in each pass; `collate` makes a batch of a list.

    Without it, batches of whole `Rows` are rows of their tensors. `sampler` gives the order, by number. Raises TypeError for
    a batch size that is none.
    """

    def __init__(
        self, dataset, batch_size=1, shuffle=False, collate=None, drop_last=False, sampler=None, generator=None
    ):
        whole = isinstance(batch_size, int | np.integer) and not isinstance(batch_size, bool) and batch_size > 0
        expect(whole, "DataLoader: batch_size", batch_size, "a whole number from 1 on")
        self.dataset, self.batch_size, self.collate = dataset, batch_size, collate
        self.shuffle, self.sampler, self.generator = shuffle, sampler, generator
        self.drop_last = drop_last

    def __len__(self):
        n = len(self.dataset if self.sampler is None else self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self):
        if self.sampler is not None:
            order = np.array([*self.sampler])
        else:
            order = shuffled(len(self.dataset), self.generator) if self.shuffle else np.arange(len(self.dataset))
        for k in range(len(self)):
            rows = order[k * self.batch_size : (k + 1) * self.batch_size]
            if self.collate is None:
                yield list(self.dataset[rows])
            else:
                yield self.collate([self.dataset[int(row)] for row in rows])
