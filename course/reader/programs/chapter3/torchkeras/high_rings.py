"""Chapter 3-3 of "eat pytorch in 20 days", the two rings: with the calls of its edition of 2024-09-11
(commit 9e48ab69).

The stored losses are those of torchkeras 4.0.5 with PyTorch 2.13.0.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Sampler, Subset, TensorDataset
from torchkeras import KerasModel, summary
from torchkeras.metrics import Accuracy

from course import tasks

torch.set_default_dtype(torch.float64)
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
count = int(len(rows) * 0.7)
train = DataLoader(Subset(rows, range(count)), batch_size=100, sampler=Shuffled(count), num_workers=0)
valid = DataLoader(Subset(rows, range(count, len(rows))), batch_size=100, num_workers=0)


class DNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 4)
        self.fc2 = nn.Linear(4, 8)
        self.fc3 = nn.Linear(8, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


net = DNN()
for parameter, start in zip(net.parameters(), task.weights):
    parameter.data = torch.tensor(start.T).reshape(parameter.shape)
features, labels = next(iter(train))
summary(net, input_data=features)

model = KerasModel(
    net,
    loss_fn=nn.BCEWithLogitsLoss(),
    metrics_dict={"acc": Accuracy()},
    optimizer=torch.optim.Adam(net.parameters(), lr=0.001),
)
table = model.fit(
    train_data=train,
    val_data=valid,
    epochs=100,
    ckpt_path="checkpoint",
    patience=10,
    monitor="val_acc",
    mode="max",
    plot=False,
    cpu=True,
)

print(table.tail())
print(model.evaluate(valid))
device = model.accelerator.device


@torch.no_grad()
def predict(net, data):
    net.eval()
    return torch.cat([net.forward(batch[0].to(device)) for batch in data]).data


print(F.sigmoid(predict(net, valid)[:10]))
losses = [*table["train_loss"], *table["val_loss"]]
