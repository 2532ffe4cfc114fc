import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchkeras import KerasModel

from course import tasks

task = tasks.linear()
order = task.batches[:40].ravel()
train = DataLoader(TensorDataset(torch.tensor(task.x[order]), torch.tensor(task.y[order])), batch_size=10)
test = DataLoader(TensorDataset(torch.tensor(task.x_test), torch.tensor(task.y_test)), batch_size=50)

net = nn.Linear(2, 1, dtype=torch.float64)  # model
net.weight.data = torch.tensor(task.weights[0].T)
net.bias.data = torch.tensor(task.weights[1][0])
model = KerasModel(net, loss_fn=nn.MSELoss(), optimizer=torch.optim.SGD(net.parameters(), lr=0.05))
history = model.fit(train, val_data=test, epochs=5, ckpt_path="line.pt", plot=False)  # forward, loss, backward, update

print(history)
losses = [*history["train_loss"], *history["val_loss"]]
