"""Chapter 3-1 of "eat pytorch in 20 days", the line: with the calls of its edition of 2024-09-11 (commit 9e48ab69).

The stored losses are those of PyTorch 2.13.0.
"""

import numpy as np
import torch

from course import tasks

task = tasks.linear()
np.random.seed(3)
x, y = torch.tensor(task.x), torch.tensor(task.y)


def batches(features, labels, batch_size=8):
    """Batches of the rows in a new order each time; NumPy's draws are the same everywhere."""
    rows = list(range(len(features)))
    np.random.shuffle(rows)
    for first in range(0, len(rows), batch_size):
        chosen = torch.LongTensor(rows[first : first + batch_size])
        yield features.index_select(0, chosen), labels.index_select(0, chosen)


class Line:
    def __init__(self, start):
        self.w = torch.tensor(start[0], requires_grad=True)
        self.b = torch.zeros_like(torch.tensor(start[1]), requires_grad=True)

    def forward(self, x):
        return x @ self.w + self.b

    def loss(self, y_pred, y_true):
        return torch.mean((y_pred - y_true) ** 2 / 2)


def step(model, features, labels):
    loss = model.loss(model.forward(features), labels)
    loss.backward()
    with torch.no_grad():
        model.w -= 0.001 * model.w.grad
        model.b -= 0.001 * model.b.grad
        model.w.grad.zero_()
        model.b.grad.zero_()
    return loss


model = Line(task.weights)
losses = []
for epoch in range(1, 200 + 1):
    for features, labels in batches(x, y, 10):
        loss = step(model, features, labels)
    if epoch % 20 == 0:
        print("epoch", epoch, "loss", loss.item(), "w", model.w.data, "b", model.b.data)
        losses.append(loss.item())
