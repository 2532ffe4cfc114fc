"""torchkeras' spelling: the loop of a net and its table, with numbers worked out by NumPy."""

import importlib

import numpy as np
import pytest

from levels_more import torch, torchkeras
from levels_more.torch import nn
from levels_more.torch.utils.data import DataLoader, TensorDataset
from levels_more.torchkeras import KerasModel, Model, metrics, summary

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
Y = X @ [[2.0], [-3.0]] + 1.0
W, B = np.array([[0.5, 0.25]]), np.array([0.1])
DATA = DataLoader(TensorDataset(torch.tensor(X), torch.tensor(Y)), batch_size=4)
HELD = DataLoader(TensorDataset(torch.tensor(X[:4]), torch.tensor(Y[:4])), batch_size=4)


def line():
    net = nn.Linear(2, 1).double()
    net.weight.data, net.bias.data = torch.tensor(W), torch.tensor(B)
    return net


def trained(epochs, rate, norm=np.inf):
    """SGD on the mean squared error: (the losses of all epochs, those of the held rows, the weights)."""
    w, b, losses, held = W.copy(), B.copy(), [], []
    for _ in range(epochs):
        found = []
        for k in range(0, 12, 4):
            x, y = X[k : k + 4], Y[k : k + 4]
            error = x @ w.T + b - y
            found.append(np.mean(error**2))
            dw, db = error.T @ x / 2.0, error.sum(0) / 2.0
            size = np.sqrt((dw**2).sum() + (db**2).sum())
            factor = min(1.0, norm / (size + 1e-6))
            w, b = w - rate * factor * dw, b - rate * factor * db
        losses.append(np.mean(found))
        held.append(np.mean((X[:4] @ w.T + b - Y[:4]) ** 2))
    return losses, held, (w, b)


def mae(y_pred, y_true):
    return torch.mean(torch.abs(y_pred - y_true))


@pytest.mark.parametrize("under", [False, True])
def test_the_older_model(under, capsys):
    class Net(Model):
        def __init__(self):
            super().__init__()
            self.line = line()

        def forward(self, x):
            return self.line(x)

    model = Net() if under else Model(line())
    model.compile(
        loss_func=nn.MSELoss(), optimizer=torch.optim.SGD(model.parameters(), lr=0.05), metrics_dict={"mae": mae}
    )
    table = model.fit(3, dl_train=DATA, dl_val=HELD, log_step_freq=10)
    losses, held, (w, b) = trained(3, 0.05)
    assert [*table.columns] == ["loss", "mae", "val_loss", "val_mae"]
    np.testing.assert_allclose(table["loss"], losses, rtol=1e-12)
    np.testing.assert_allclose(table["val_loss"], held, rtol=1e-12)
    assert model.evaluate(HELD)["val_loss"] == table["val_loss"].iloc[-1]
    np.testing.assert_allclose(model.predict(HELD).numpy(), X[:4] @ w.T + b, rtol=1e-12)
    assert capsys.readouterr().out.count("val_mae") == 3


def test_a_keras_model_makes_gradients_shorter_and_goes_back_to_the_best(tmp_path):
    net = line()
    model = KerasModel(net, loss_fn=nn.MSELoss(), optimizer=torch.optim.SGD(net.parameters(), lr=0.4))
    table = model.fit(DATA, HELD, epochs=20, ckpt_path=str(tmp_path / "best"), patience=2, plot=False, quiet=True)
    losses, held, _ = trained(len(table), 0.4, norm=1.0)
    np.testing.assert_allclose(table["train_loss"], losses, rtol=1e-9)
    np.testing.assert_allclose(table["val_loss"], held, rtol=1e-9)
    assert [*table.columns] == ["epoch", "train_loss", "lr", "val_loss"] and set(table["lr"]) == {0.4}
    best = int(np.argmin(held))
    assert len(table) == min(20, best + 3) and model.evaluate(HELD) == {"val_loss": table["val_loss"][best]}


def test_the_next_fit_begins_with_a_look(tmp_path):
    net = line()
    model = KerasModel(net, nn.MSELoss(), optimizer=torch.optim.SGD(net.parameters(), lr=0.01))
    first = model.fit(DATA, HELD, epochs=2, ckpt_path=str(tmp_path / "best"), quiet=True)
    second = model.fit(DATA, HELD, epochs=1, ckpt_path=str(tmp_path / "best"), quiet=True)
    assert [*second["epoch"]] == [0, 1] and [*second["lr"]] == [0.0, 0.01]
    assert second["val_loss"][0] == first["val_loss"].min()


def test_callbacks_and_schedules_are_heard(tmp_path):
    heard = []

    class Hearing:
        def on_fit_start(self, model):
            heard.append("start")

        def on_validation_epoch_end(self, model):
            heard.append(model.history["val_loss"][-1])

    net = line()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    model = KerasModel(net, nn.MSELoss(), optimizer=optimizer, lr_scheduler=schedule)
    table = model.fit(DATA, HELD, epochs=2, ckpt_path=str(tmp_path / "best"), callbacks=[Hearing()], quiet=True)
    assert heard == ["start", *table["val_loss"]] and [*table["lr"]] == [0.005, 0.0025]
    with pytest.raises(ValueError, match="monitor is 'val_loss'; this training has epoch, train_loss, lr"):
        model.fit(DATA, epochs=1, quiet=True)


@pytest.mark.quick
def test_metrics_count_over_batches():
    logits, true = torch.tensor([2.0, -1.0, 3.0, -2.0]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    rows = (metrics.Accuracy, 0.5, 3 / 5), (metrics.Precision, 0.5, 2 / 3), (metrics.Recall, 0.5, 2 / 3)
    for kind, first, both in rows:
        metric = kind()
        assert metric(logits, true).item() == first
        metric(torch.tensor([1.0]), torch.tensor([1.0]))
        assert metric.compute().item() == pytest.approx(both)
        metric.reset()
        assert np.isnan(metric.compute().item())


def test_metrics_of_ranks_count_over_batches():
    logits, true = torch.tensor([2.0, -1.0, 3.0, -2.0]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    for kind, first, both in ((metrics.AUC, 2 / 4, 4 / 6), (metrics.KS, 1 / 2, 2 / 3)):
        metric = kind()
        assert metric(logits, true).item() == pytest.approx(first)
        metric(torch.tensor([-3.0]), torch.tensor([0.0]))
        assert metric.compute().item() == pytest.approx(both)
        metric.reset()
        assert np.isnan(metric.compute().item())


def test_a_summary_tells_what_each_part_gives(capsys):
    net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    text = summary(net, input_shape=(2,))
    rows = [line.split() for line in text.splitlines()]
    assert ["Linear-1", "[-1,", "4]", "12"] in rows and ["ReLU-2", "[-1,", "4]", "0"] in rows
    assert "Total params: 17" in text and "Trainable params: 17" in text and text in capsys.readouterr().out
    assert net(torch.tensor(X)).shape == (12, 1)  # its parts are as they were


def test_seeds_and_missing_names():
    torchkeras.seed_everything(3)
    first = np.random.random(), torch.rand(2).tolist()
    torchkeras.seed_everything(3)
    assert (np.random.random(), torch.rand(2).tolist()) == first
    assert importlib.import_module("levels_more.torchkeras.metrics") is metrics
    with pytest.raises(AttributeError, match="VLog.*KerasModel"):
        torchkeras.VLog  # noqa: B018
