import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchkeras import KerasModel
from torchkeras.metrics import Accuracy

from course import tasks

task = tasks.rings()
order = task.batches[:40].ravel()
train = DataLoader(TensorDataset(torch.tensor(task.x[order]), torch.tensor(task.y[order])), batch_size=100)
test = DataLoader(TensorDataset(torch.tensor(task.x_test), torch.tensor(task.y_test)), batch_size=100)

net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).double()  # model
for parameter, start in zip(net.parameters(), task.weights):
    parameter.data = torch.tensor(start.T).reshape(parameter.shape)
model = KerasModel(
    net,
    loss_fn=nn.BCEWithLogitsLoss(),
    metrics_dict={"acc": Accuracy()},
    optimizer=torch.optim.SGD(net.parameters(), lr=task.learning_rate),
)
history = model.fit(  # forward, loss, backward, update
    train, val_data=test, epochs=5, ckpt_path="rings.pt", patience=3, monitor="val_acc", mode="max", plot=False
)

print(history)
losses = [*history["train_loss"], *history["val_loss"], *history["val_acc"]]
