import torch
from torch import nn

from course import tasks

task = tasks.rings()
x, y = torch.tensor(task.x), torch.tensor(task.y)


class DNN(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.w1, self.b1, self.w2, self.b2, self.w3, self.b3 = (nn.Parameter(torch.tensor(w)) for w in weights)

    def forward(self, x):
        h1 = torch.relu(x @ self.w1 + self.b1)
        h2 = torch.relu(h1 @ self.w2 + self.b2)
        return torch.sigmoid(h2 @ self.w3 + self.b3)


model = DNN(task.weights)  # model


def step(rows, target):
    prediction = model(rows)  # forward
    c = torch.clamp(prediction, 1e-7, 1.0 - 1e-7)
    loss = -torch.mean(target * torch.log(c) + (1.0 - target) * torch.log(1.0 - c))  # loss
    loss.backward()  # backward
    with torch.no_grad():
        for w in model.parameters():  # update
            w -= task.learning_rate * w.grad
    model.zero_grad()
    return loss.item()


losses = []
for batch in torch.from_numpy(task.batches[:200]):
    losses.append(step(x.index_select(0, batch), y.index_select(0, batch)))
