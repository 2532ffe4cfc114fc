import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from course import tasks

torch.set_default_dtype(torch.float64)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
task = tasks.linear()
order = task.batches[:200].ravel()
data = DataLoader(TensorDataset(torch.tensor(task.x[order]), torch.tensor(task.y[order])), batch_size=10)


class LinearRegression(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.linear = nn.Linear(inputs, 1)

    def forward(self, x):
        return self.linear(x)


def train(model, data, sgd):
    model.train()
    for rows, target in data:
        rows, target = rows.to(device), target.to(device)
        prediction = model(rows)  # forward
        loss = F.mse_loss(prediction, target)  # loss
        loss.backward()  # backward
        sgd.step()  # update
        sgd.zero_grad()
        yield loss.item()


model = LinearRegression(inputs=2).to(device)  # model
w, b = task.weights
model.load_state_dict({"linear.weight": torch.tensor(w.T), "linear.bias": torch.tensor(b[0])})
losses = list(train(model, data, torch.optim.SGD(model.parameters(), lr=task.learning_rate)))
