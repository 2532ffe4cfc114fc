"""Batches of a subset of tensors: its rows are taken at once, and they are those that are taken one by one."""

import operator

import numpy as np
import pytest

from levels_more import torch
from levels_more.torch.utils.data import DataLoader, Subset, TensorDataset, random_split

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10)
ROWS = TensorDataset(torch.tensor(X), torch.tensor(Y))


@pytest.mark.parametrize(
    "indices", [[9, -1, 3, 2, 5], range(1, 10, 2), np.array([4, 4, 0]), torch.tensor([4, 0, 1])], ids=repr
)
def test_the_rows_of_a_subset_of_a_subset(indices):
    part = Subset(Subset(ROWS, [*range(10)][::-1]), indices)
    wanted = [9 - operator.index(k) % 10 for k in indices]
    batches = [*DataLoader(part, batch_size=2)]
    assert [len(x) for x, _ in batches] == [len(wanted[k : k + 2]) for k in range(0, len(wanted), 2)]
    np.testing.assert_array_equal(np.concatenate([x.numpy() for x, _ in batches]), X[wanted])
    assert [k for _, y in batches for k in y.tolist()] == Y[wanted].tolist()
    assert [part[k][1].item() for k in range(len(part))] == Y[wanted].tolist()


def test_each_batch_of_a_split_reads_the_tensors_once(monkeypatch):
    """A row at a time would need a program for each row: 3,000 rows took half a minute."""
    asked = []
    read = TensorDataset.__getitem__
    monkeypatch.setattr(TensorDataset, "__getitem__", lambda self, index: asked.append(index) or read(self, index))
    train, held = random_split(ROWS, [7, 3])
    assert len([*DataLoader(train, batch_size=3, shuffle=True)]) == 3 and len(asked) == 3
    assert sorted(y for part in (train, held) for _, labels in DataLoader(part) for y in labels.tolist()) == [
        *range(10)
    ]
