"""`torch.utils.data`: data sets by number, and loaders of batches."""

from levels_more.missing import room
from levels_more.torch.datasets import Among as SubsetRandomSampler  # noqa: F401
from levels_more.torch.datasets import AnyOrder as RandomSampler  # noqa: F401
from levels_more.torch.datasets import Batches, Sampler, random_split  # noqa: F401
from levels_more.torch.datasets import Flow as IterableDataset  # noqa: F401
from levels_more.torch.datasets import InGroups as BatchSampler  # noqa: F401
from levels_more.torch.datasets import InOrder as SequentialSampler  # noqa: F401
from levels_more.torch.datasets import Joined as ConcatDataset  # noqa: F401
from levels_more.torch.datasets import Rows as TensorDataset
from levels_more.torch.datasets import Samples as Dataset  # noqa: F401
from levels_more.torch.datasets import Some as Subset  # noqa: F401
from levels_more.torch.datasets import Weighted as WeightedRandomSampler  # noqa: F401
from levels_more.torch.recorded_making import default_collate


class DataLoader(Batches):
    """Batches of a data set. There is no other process: `num_workers` and `pin_memory` change nothing."""

    def __init__(self, dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, prefetch_factor=None, persistent_workers=False):  # fmt: skip
        self.num_workers, self.collate_fn = num_workers, collate_fn or default_collate
        collate = collate_fn or (None if type(dataset) is TensorDataset else default_collate)
        super().__init__(dataset, batch_size, shuffle, collate, drop_last, sampler, generator, batch_sampler)


__getattr__, __dir__ = room("torch.utils.data", globals())
