"""Chapter 3-3 of "eat pytorch in 20 days", the line: with the calls of its edition of 2024-09-11 (commit 9e48ab69).

The stored losses are those of torchkeras 4.0.5 with PyTorch 2.13.0.
"""

import numpy as np
import torch
import torchkeras
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader, Sampler, Subset, TensorDataset
from torchkeras import KerasModel, summary

from course import tasks

print("torch", torch.__version__, "torchkeras", torchkeras.__version__)
torch.set_default_dtype(torch.float64)
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


x, y = torch.tensor(task.x), torch.tensor(task.y)
rows = TensorDataset(x, y)
count = int(len(rows) * 0.7)
train = DataLoader(Subset(rows, range(count)), batch_size=16, sampler=Shuffled(count), num_workers=0)
valid = DataLoader(Subset(rows, range(count, len(rows))), batch_size=16, num_workers=0)


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)

    def forward(self, x):
        return self.fc(x)


net = Line()
features, labels = next(iter(train))
summary(net, input_data=features)
net.load_state_dict({"fc.weight": torch.tensor(task.weights[0].T), "fc.bias": torch.tensor(task.weights[1][0])})

model = KerasModel(
    net=net,
    loss_fn=nn.MSELoss(),
    metrics_dict={"mae": torchmetrics.MeanAbsoluteError()},
    optimizer=torch.optim.Adam(net.parameters(), lr=0.01),
)
table = model.fit(
    train_data=train,
    val_data=valid,
    epochs=100,
    ckpt_path="checkpoint",
    patience=10,
    monitor="val_loss",
    mode="min",
    plot=False,
    cpu=True,
)

print(table.tail(), net.state_dict()["fc.weight"], net.state_dict()["fc.bias"])
print(model.evaluate(valid))
answers = []
with torch.no_grad():  # torchkeras has no model.predict(valid) any more
    for batch in DataLoader(TensorDataset(x)):
        answers.extend(net(batch[0].to(model.accelerator.device)).tolist())
print(np.array(answers).flatten()[:10])
losses = [*table["train_loss"], *table["val_loss"]]
