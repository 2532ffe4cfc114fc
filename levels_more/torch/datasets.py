"""Samples by number: what `data[k]` gives, all together by batches, some of them, or two data sets behind each other."""

import itertools

import numpy as np

from levels_more.checks import expect
from levels_more.low_level.generator import drawn, shuffled


class Samples:
    """Write `__len__`, and `__getitem__(index)`."""

    def __add__(self, other):
        return Joined([self, other])

    def __iter__(self):
        return (self[k] for k in range(len(self)))


class Flow:
    """Write `__iter__`, which gives samples one after the other. Nobody knows how many there are."""


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


class Sampler:
    """Write `__iter__`, which gives numbers of samples, and `__len__`: a `DataLoader` takes them in this order."""

    def __init__(self, data_source=None):
        self.data_source = data_source


class InOrder(Sampler):
    """The numbers of all samples, in order."""

    def __len__(self):
        return len(self.data_source)

    def __iter__(self):
        return iter(range(len(self)))


class Among(Sampler):
    """These numbers, in another random order in each pass."""

    def __init__(self, indices, generator=None):
        super().__init__()
        self.indices, self.generator = list(indices), generator

    def __len__(self):
        return len(self.indices)

    def __iter__(self):
        return (self.indices[k] for k in shuffled(len(self.indices), self.generator))


class Weighted(Sampler):
    """So many numbers, each drawn as often as its weight says, again and again, or, without replacement, once.

    Raises ValueError for weights that are none, or, without replacement, fewer than are to be drawn.
    """

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        super().__init__()
        self.weights = np.asarray(weights, "float64")
        self.num_samples, self.replacement = num_samples, replacement
        self.generator = generator
        least = 1 if replacement else num_samples
        if self.weights.ndim != 1 or not (self.weights >= 0).all() or (self.weights > 0).sum() < least:
            raise ValueError(f"weights are {self.weights!r:.60}; expected a row of numbers from 0 on, {least} above 0")

    def __len__(self):
        return self.num_samples

    def __iter__(self):
        if self.replacement:
            up_to = np.cumsum(self.weights)
            draws = drawn("uniform", (self.num_samples,), self.generator).numpy() * up_to[-1]
            return iter(np.searchsorted(up_to, np.minimum(draws, up_to[-1] * (1 - 2**-53)), "right").tolist())
        with np.errstate(divide="ignore"):  # each waits for its turn, the shorter the more it weighs
            waits = -np.log(drawn("uniform", self.weights.shape, self.generator).numpy()) / self.weights
        return iter(np.argsort(waits, kind="stable")[: self.num_samples].tolist())


class AnyOrder(Weighted):
    """The numbers of all samples in a random order, or so many of them, each drawn by itself with `replacement`."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        n = len(data_source)
        super().__init__(np.ones(n), n if num_samples is None else num_samples, replacement, generator)
        self.data_source = data_source


class InGroups(Sampler):
    """Lists of so many numbers that another sampler gives, the last one shorter, or left out."""

    def __init__(self, sampler, batch_size, drop_last):
        super().__init__()
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __len__(self):
        return len(self.sampler) // self.batch_size if self.drop_last else -(-len(self.sampler) // self.batch_size)

    def __iter__(self):
        order = list(self.sampler)
        return (order[k * self.batch_size :][: self.batch_size] for k in range(len(self)))


class Batches:
    """Batches of samples, in order or, with `shuffle`, in another one in each pass; `collate` makes a batch of a list.

    Without it, batches of whole `Rows` are rows of their tensors. `sampler` gives the order, by number, `batch_sampler` lists
    of numbers. Raises TypeError for a batch size that is none, ValueError for a sampler beside what it takes the place of.
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, collate=None, drop_last=False, sampler=None,
                 generator=None, batch_sampler=None):  # fmt: skip
        whole = isinstance(batch_size, int | np.integer) and not isinstance(batch_size, bool) and batch_size > 0
        expect(whole, "DataLoader: batch_size", batch_size, "a whole number from 1 on")
        if isinstance(dataset, Flow) and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(
                "DataLoader: an iterable data set has an order of its own; leave shuffle and samplers away"
            )
        if shuffle and sampler is not None:
            raise ValueError("DataLoader: a sampler gives the order; leave shuffle away")
        if batch_sampler is not None and (shuffle or drop_last or sampler is not None or batch_size != 1):
            raise ValueError(
                "DataLoader: a batch_sampler gives the batches; leave batch_size, shuffle, sampler, drop_last away"
            )
        self.dataset, self.batch_size, self.collate = dataset, batch_size, collate
        self.shuffle, self.sampler, self.generator = shuffle, sampler, generator
        self.drop_last, self.batch_sampler = drop_last, batch_sampler

    def __len__(self):
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        n = len(self.dataset if self.sampler is None else self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def _groups(self):
        """The numbers of the samples of each batch, an array."""
        if self.batch_sampler is not None:
            yield from map(np.array, self.batch_sampler)
            return
        if self.sampler is not None:
            order = np.array([*self.sampler])
        else:
            order = shuffled(len(self.dataset), self.generator) if self.shuffle else np.arange(len(self.dataset))
        for k in range(len(self)):
            yield order[k * self.batch_size : (k + 1) * self.batch_size]

    def __iter__(self):
        if isinstance(self.dataset, Flow):
            samples = iter(self.dataset)
            while group := list(itertools.islice(samples, self.batch_size)):
                if len(group) == self.batch_size or not self.drop_last:
                    yield self.collate(group)
            return
        for rows in self._groups():
            if self.collate is None:
                yield list(self.dataset[rows])
            else:
                yield self.collate([self.dataset[int(row)] for row in rows])
