"""`torch.utils.data`: datasets by number, and loaders of batches."""

import numpy as np

from levels import low_level as low

from .. import functions as f
from ..functions import Tensor


class Dataset:
    """Write `__len__`, and `__getitem__(index)`."""

    def __add__(self, other):
        return Subset([*self, *other], range(len(self) + len(other)))


class TensorDataset(Dataset):
    """The rows of several tensors, as tuples."""

    def __init__(self, *tensors):
        if len({len(x) for x in tensors}) != 1:
            raise ValueError(f"TensorDataset: tensors of {[len(x) for x in tensors]} rows; expected as many in each")
        self.tensors = tensors

    def __len__(self):
        return len(self.tensors[0])

    def __getitem__(self, index):
        return tuple(x[index] for x in self.tensors)


class Subset(Dataset):
    """The samples of these numbers."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, list(indices)

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]


def random_split(dataset, lengths, generator=None):
    """Parts of a dataset, drawn at random: so many samples each, or such shares of all."""
    if sum(lengths) <= 1.0 and not all(isinstance(n, int) for n in lengths):
        counts = [int(len(dataset) * share) for share in lengths]
        counts[0] += len(dataset) - sum(counts)
        lengths = counts
    if sum(lengths) != len(dataset):
        raise ValueError(f"random_split: {list(lengths)} make {sum(lengths)}; the dataset has {len(dataset)} samples")
    order, ends = low.shuffle(np.arange(len(dataset))).numpy().tolist(), np.cumsum(lengths)
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, lengths, strict=True)]


def default_collate(samples):
    """Samples as a batch: tensors, numbers and arrays one beneath the other; tuples and dicts part by part."""
    first = samples[0]
    if isinstance(first, dict):
        return {name: default_collate([sample[name] for sample in samples]) for name in first}
    if isinstance(first, (tuple, list)):
        return [default_collate(list(part)) for part in zip(*samples, strict=True)]
    if isinstance(first, str):
        return samples
    arrays = [x.numpy() if isinstance(x, Tensor) else np.asarray(x) for x in samples]
    return f.tensor(np.stack(arrays), dtype=np.float64 if type(first) is float else None)


class DataLoader:
    """Batches of a dataset, in order or shuffled anew in each pass. (`num_workers` is accepted: there is no other process.)"""

    def __init__(self, dataset, batch_size=1, shuffle=False, num_workers=0, collate_fn=None, drop_last=False,
                 pin_memory=False, generator=None):  # fmt: skip
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.collate = collate_fn

    def __len__(self):
        return len(self.dataset) // self.batch_size if self.drop_last else -(-len(self.dataset) // self.batch_size)

    def __iter__(self):
        order = low.shuffle(np.arange(len(self.dataset))).numpy() if self.shuffle else np.arange(len(self.dataset))
        for k in range(len(self)):
            rows = order[k * self.batch_size : (k + 1) * self.batch_size]
            if isinstance(self.dataset, TensorDataset) and self.collate is None:
                yield list(self.dataset[rows])  # all rows of a tensor at once
            else:
                yield (self.collate or default_collate)([self.dataset[int(row)] for row in rows])
