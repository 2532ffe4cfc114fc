"""Chapter 3-2 of "eat pytorch in 20 days", the two rings: with the calls of its edition of 2024-09-11
(commit 9e48ab69).

The stored losses are those of PyTorch 2.13.0.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

from course import tasks

task = tasks.rings()
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


class DNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 4)
        self.fc2 = nn.Linear(4, 8)
        self.fc3 = nn.Linear(8, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return nn.Sigmoid()(self.fc3(x))

    def loss(self, y_pred, y_true):
        return nn.BCELoss()(y_pred, y_true)

    def accuracy(self, y_pred, y_true):
        answer = torch.where(y_pred > 0.5, torch.ones_like(y_pred), torch.zeros_like(y_pred))
        return torch.mean(1 - torch.abs(y_true - answer))

    @property
    def optimizer(self):  # a new Adam for each step, as in the book: it remembers nothing from one step to the next
        return torch.optim.Adam(self.parameters(), lr=0.001)


def step(model, features, labels):
    prediction = model(features)
    loss = model.loss(prediction, labels)
    accuracy = model.accuracy(prediction, labels)
    loss.backward()
    model.optimizer.step()
    model.optimizer.zero_grad()
    return loss.item(), accuracy.item()


model = DNN().double()
for parameter, start in zip(model.parameters(), task.weights):
    parameter.data = torch.tensor(start.T).reshape(parameter.shape)

losses = []
for epoch in range(1, 50 + 1):
    found = [step(model, features, labels) for features, labels in data]
    if epoch % 10 == 0:
        loss, accuracy = np.mean(found, axis=0)
        print("epoch", epoch, "loss", loss, "accuracy", accuracy)
        losses.append(loss)
