"""`torch.utils.data`: data sets by number, and loaders of batches."""

import numpy as np

from levels_more.missing import room
from levels_more.samples import Among as SubsetRandomSampler  # noqa: F401
from levels_more.samples import AnyOrder as RandomSampler  # noqa: F401
from levels_more.samples import Batches, Sampler, random_split, stacked  # noqa: F401
from levels_more.samples import InGroups as BatchSampler  # noqa: F401
from levels_more.samples import InOrder as SequentialSampler  # noqa: F401
from levels_more.samples import Joined as ConcatDataset  # noqa: F401
from levels_more.samples import Rows as TensorDataset
from levels_more.samples import Samples as Dataset  # noqa: F401
from levels_more.samples import Some as Subset  # noqa: F401
from levels_more.samples import Weighted as WeightedRandomSampler  # noqa: F401

from ..functions import DOUBLE, FUNCTIONS, Tensor, tensor


def default_collate(samples):
    """A list of samples as one batch: tensors and numbers one beneath the other; tuples and dicts part by part."""

    def made(parts):
        if isinstance(parts[0], Tensor):
            return FUNCTIONS["stack"](parts)
        return tensor(np.stack(parts), dtype=DOUBLE if isinstance(parts[0], float) else None)

    return stacked(samples, made)


class DataLoader(Batches):
    """Batches of a data set. There is no other process: `num_workers` and `pin_memory` change nothing."""

    def __init__(self, dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, generator=None, persistent_workers=False):  # fmt: skip
        collate = collate_fn or (None if type(dataset) is TensorDataset else default_collate)
        super().__init__(dataset, batch_size, shuffle, collate, drop_last, sampler, generator, batch_sampler)


__getattr__ = room("torch.utils.data")
