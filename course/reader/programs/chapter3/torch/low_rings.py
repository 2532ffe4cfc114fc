"""Chapter 3-1 of "eat pytorch in 20 days", the two rings: with the calls of its edition of 2024-09-11
(commit 9e48ab69).

The stored losses are those of PyTorch 2.13.0.
"""

import numpy as np
import torch
from torch import nn

from course import tasks

task = tasks.rings()
np.random.seed(3)
x, y = torch.tensor(task.x), torch.tensor(task.y)


def batches(features, labels, batch_size=8):
    """Batches of the rows in a new order each time; NumPy's draws are the same everywhere."""
    rows = list(range(len(features)))
    np.random.shuffle(rows)
    for first in range(0, len(rows), batch_size):
        chosen = torch.LongTensor(rows[first : first + batch_size])
        yield features.index_select(0, chosen), labels.index_select(0, chosen)


class DNN(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.w1 = nn.Parameter(torch.tensor(start[0]))
        self.b1 = nn.Parameter(torch.zeros(1, 4, dtype=torch.float64))
        self.w2 = nn.Parameter(torch.tensor(start[2]))
        self.b2 = nn.Parameter(torch.zeros(1, 8, dtype=torch.float64))
        self.w3 = nn.Parameter(torch.tensor(start[4]))
        self.b3 = nn.Parameter(torch.zeros(1, 1, dtype=torch.float64))

    def forward(self, x):
        x = torch.relu(x @ self.w1 + self.b1)
        x = torch.relu(x @ self.w2 + self.b2)
        return torch.sigmoid(x @ self.w3 + self.b3)

    def loss(self, y_pred, y_true):
        p = torch.clamp(y_pred, 1e-7, 1.0 - 1e-7)
        return torch.mean(-y_true * torch.log(p) - (1 - y_true) * torch.log(1 - p))

    def accuracy(self, y_pred, y_true):
        answer = torch.where(y_pred > 0.5, torch.ones_like(y_pred), torch.zeros_like(y_pred))
        return torch.mean(1 - torch.abs(y_true - answer))


def step(model, features, labels):
    prediction = model.forward(features)
    loss = model.loss(prediction, labels)
    accuracy = model.accuracy(prediction, labels)
    loss.backward()
    for parameter in model.parameters():
        parameter.data = parameter.data - 0.01 * parameter.grad.data
    model.zero_grad()
    return loss.item(), accuracy.item()


model = DNN(task.weights)
losses = []
for epoch in range(1, 100 + 1):
    found = [step(model, features, labels) for features, labels in batches(x, y, 20)]
    if epoch % 10 == 0:
        loss, accuracy = np.mean(found, axis=0)
        print("epoch", epoch, "loss", loss, "accuracy", accuracy)
        losses.append(loss)

outside = x[torch.squeeze(model.forward(x) >= 0.5)]
print(len(list(model.parameters())), "parameters;", len(outside), "points are said to lie outside")
