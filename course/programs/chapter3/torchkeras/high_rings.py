import numpy as np
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
import torchkeras
from torch import nn
from torch.utils.data import DataLoader, Sampler, Subset, TensorDataset
from torchkeras import summary
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
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
model = torchkeras.LightModel(
    net,
    loss_fn=nn.BCEWithLogitsLoss(),
    metrics_dict={"acc": Accuracy()},
    optimizer=optimizer,
    lr_scheduler=torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.0001),
)
features, labels = next(iter(train))
summary(model, input_data=features)

best = pl.callbacks.ModelCheckpoint(monitor="val_acc", save_top_k=1, mode="max")
enough = pl.callbacks.EarlyStopping(monitor="val_acc", patience=3, mode="max")
trainer = pl.Trainer(
    logger=True, min_epochs=3, max_epochs=20, gpus=0, callbacks=[best, enough], enable_progress_bar=True
)
trainer.fit(model, train, valid)

table = model.get_history()
print(table.tail())
print(trainer.test(ckpt_path="best", dataloaders=valid, verbose=False))
answers = F.sigmoid(torch.cat(trainer.predict(model, valid, ckpt_path="best")))
print(answers[:10], model.device, trainer.checkpoint_callback.best_model_score)
path = trainer.checkpoint_callback.best_model_path
again = torchkeras.LightModel.load_from_checkpoint(path, net=DNN(), loss_fn=nn.BCEWithLogitsLoss())
print(path, again.net.fc3.bias)
losses = [*table["train_loss"], *table["val_loss"]]
