"""torchkeras' spelling: the loop of a net and its table, with numbers worked out by NumPy; and torchmetrics'."""

import numpy as np
import pytest

from levels_more import torch, torchmetrics
from levels_more.torch import nn
from levels_more.torch.utils.data import DataLoader, TensorDataset
from levels_more.torchkeras import KerasModel, summary

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


def test_a_keras_model_makes_gradients_shorter_and_goes_back_to_the_best(tmp_path):
    net = line()
    model = KerasModel(net, loss_fn=nn.MSELoss(), optimizer=torch.optim.SGD(net.parameters(), lr=0.4))
    table = model.fit(DATA, HELD, epochs=20, ckpt_path=str(tmp_path / "best"), patience=2, plot=False)
    losses, held, _ = trained(len(table), 0.4, norm=1.0)
    np.testing.assert_allclose(table["train_loss"], losses, rtol=1e-9)
    np.testing.assert_allclose(table["val_loss"], held, rtol=1e-9)
    assert [*table.columns] == ["epoch", "train_loss", "lr", "val_loss"] and set(table["lr"]) == {0.4}
    best = int(np.argmin(held))
    assert len(table) == min(20, best + 3) and model.evaluate(HELD) == {"val_loss": table["val_loss"][best]}


def test_the_next_fit_begins_with_a_look(tmp_path):
    net = line()
    model = KerasModel(net, nn.MSELoss(), optimizer=torch.optim.SGD(net.parameters(), lr=0.01))
    first = model.fit(DATA, HELD, epochs=2, ckpt_path=str(tmp_path / "best"))
    second = model.fit(DATA, HELD, epochs=1, ckpt_path=str(tmp_path / "best"))
    assert [*second["epoch"]] == [0, 1] and [*second["lr"]] == [0.0, 0.01]
    assert second["val_loss"][0] == first["val_loss"].min()


def test_a_summary_tells_what_each_part_gives(capsys):
    net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    text = summary(net, input_shape=(2,))
    rows = [line.split() for line in text.splitlines()]
    assert ["Linear-1", "[-1,", "4]", "12"] in rows and ["ReLU-2", "[-1,", "4]", "0"] in rows
    assert "Total params: 17" in text and "Trainable params: 17" in text and text in capsys.readouterr().out
    assert net(torch.tensor(X)).shape == (12, 1)  # its parts are as they were


# torchmetrics --------------------------------------------------------------------------------------------------------


def test_a_mean_absolute_error_counts_over_batches():
    metric = torchmetrics.MeanAbsoluteError()
    assert metric(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0])).item() == 2.0
    metric.update(torch.tensor([[5.0]]), torch.tensor([[0.0]]))
    assert metric.compute().item() == 3.0
    metric.reset()
    assert np.isnan(metric.compute().item())
    with pytest.raises(ValueError, match=r"preds is \(2, 1\), target \(2,\); expected equal shapes"):
        metric(torch.ones(2, 1), torch.ones(2))


# The loop again -------------------------------------------------------------------------------------------------------


def test_a_schedule_steps_with_the_optimizer(tmp_path):
    net = line()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    class Falling:
        """A schedule of a reader: each step has four fifths of the rate before."""

        def step(self):
            optimizer.param_groups[0]["lr"] *= 0.8

    model = KerasModel(net, nn.MSELoss(), optimizer=optimizer, lr_scheduler=Falling())
    table = model.fit(DATA, HELD, epochs=2, ckpt_path=str(tmp_path / "best"))
    assert [*table["lr"]] == pytest.approx([0.01 * 0.8**3, 0.01 * 0.8**6])
    with pytest.raises(ValueError, match="monitor is 'val_loss'; this training has epoch, train_loss, lr"):
        model.fit(DATA, epochs=1)


@pytest.mark.parametrize("mode", ["min", "max"])
def test_an_epoch_of_no_number_is_never_the_best(mode, tmp_path):
    told, kept = iter([3.0, 1.0, np.nan, np.nan, np.nan, 2.0]), []

    class Told:
        def __call__(self, preds, labels):
            return torch.zeros(1)

        def compute(self):
            kept.append(net.weight.tolist())
            return torch.tensor(next(told))

        def reset(self):
            pass

    net = line()
    model = KerasModel(net, nn.MSELoss(), {"told": Told()}, torch.optim.SGD(net.parameters(), lr=0.01))
    table = model.fit(DATA, None, 6, str(tmp_path / "best"), 2, "train_told", mode)
    best = 1 if mode == "min" else 0
    assert len(table) == best + 3 and net.weight.tolist() == kept[best]
