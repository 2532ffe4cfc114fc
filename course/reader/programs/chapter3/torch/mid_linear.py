"""Chapter 3-2 of "eat pytorch in 20 days", the line: with the calls of its edition of 2024-09-11 (commit 9e48ab69).

The stored losses are those of PyTorch 2.13.0.
"""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

from course import tasks

task = tasks.linear()
np.random.seed(3)


class Shuffled(Sampler):
    """What shuffle=True does, with NumPy's draws, which are the same everywhere."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(np.random.permutation(self.count).tolist())

    def __len__(self):
        return self.count


rows = TensorDataset(torch.tensor(task.x), torch.tensor(task.y))
data = DataLoader(rows, batch_size=10, sampler=Shuffled(len(rows)), num_workers=0)

model = nn.Linear(2, 1).double()
model.load_state_dict({"weight": torch.tensor(task.weights[0].T), "bias": torch.tensor(task.weights[1][0])})
model.loss_fn = nn.MSELoss()
model.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step(model, features, labels):
    loss = model.loss_fn(model(features), labels)
    loss.backward()
    model.optimizer.step()
    model.optimizer.zero_grad()
    return loss.item()


features, labels = next(iter(data))
step(model, features, labels)

losses = []
for epoch in range(1, 50 + 1):
    for features, labels in data:
        loss = step(model, features, labels)
    if epoch % 10 == 0:
        state = model.state_dict()
        print("epoch", epoch, "loss", loss, "w", state["weight"], "b", state["bias"])
        losses.append(loss)
