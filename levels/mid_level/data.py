"""Data that arrives in batches."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.

import numpy as np

from levels.low_level import as_tensor, constant, gather


class Dataset:
    """Batches (x, y), to be walked through as often as wished."""

    def __init__(self, x, y, batches):
        self.x, self.y, self.batches = as_tensor(x), as_tensor(y), batches

    @classmethod
    def from_batches(cls, x, y, batches):
        """One batch for each entry of `batches`, an array of row numbers."""
        if len(x) != len(y):
            raise ValueError(f"Dataset: x has {len(x)} rows, y has {len(y)}")
        if not len(batches) or not all(len(rows) for rows in batches):
            raise ValueError("Dataset: there is no batch, or an empty one")
        return cls(constant(x), constant(y), batches)

    in_memory = True

    @classmethod
    def from_tensor_slices(cls, parts):
        return cls(*parts, np.arange(len(parts[0])))

    def shuffle(self, n, seed):
        self.rng = np.random.Generator(np.random.SFC64(seed))
        return self

    def batch(self, n):
        self.size = n
        return self

    def rows(self):
        if hasattr(self, "rng"):
            self.rng.shuffle(self.batches)
        if hasattr(self, "size"):
            full = len(self.batches) // self.size * self.size
            b = self.batches[:full].reshape(-1, self.size)
            return (self.x, self.y), b if full == len(self.batches) else [*b, self.batches[full:]]
        return (self.x, self.y), self.batches

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for rows in self.batches:
            yield gather(self.x, rows), gather(self.y, rows)
