import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from course import tasks

torch.set_default_dtype(torch.float64)
task = tasks.rings()
order = task.batches[:200].ravel()
data = DataLoader(TensorDataset(torch.tensor(task.x[order]), torch.tensor(task.y[order])), batch_size=100)


class DNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(2, 4), nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return torch.sigmoid(self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x))))))


model = DNN()  # model
for parameter, start in zip(model.parameters(), task.weights):
    parameter.data = torch.tensor(start.T).reshape(parameter.shape)
criterion = nn.BCELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=task.learning_rate)

losses = []
for rows, target in data:
    optimizer.zero_grad()
    prediction = model(rows)  # forward
    loss = criterion(prediction, target)  # loss
    loss.backward()  # backward
    optimizer.step()  # update
    losses.append(loss.item())

model.eval()
with torch.no_grad():
    right = (model(torch.tensor(task.x_test)) > 0.5) == torch.tensor(task.y_test)
    print(f"test rows: accuracy {right.double().mean().item():.3f}")
