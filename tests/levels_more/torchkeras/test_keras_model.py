"""KerasModel does what that of torchkeras 4.0.5 does, and refuses in words what is not here; torchmetrics' spelling.

What is called "as in torchkeras" was run on torchkeras 4.0.5 with PyTorch 2.13.0; other numbers are NumPy's.
"""

import numpy as np
import pytest

from levels_more import torch, torchmetrics
from levels_more.torch import nn
from levels_more.torch.utils.data import DataLoader, TensorDataset
from levels_more.torchkeras import KerasModel, metrics, summary

X = np.random.default_rng(0).normal(size=(12, 2))
Y = X @ [[2.0], [-3.0]] + 1.0
W, B = np.array([[0.5, 0.25]]), np.array([0.1])
DATA, HELD = (DataLoader(TensorDataset(torch.tensor(X[:n]), torch.tensor(Y[:n])), batch_size=4) for n in (12, 4))


@pytest.fixture(autouse=True)
def a_folder_of_its_own(tmp_path, monkeypatch):
    """`fit` writes its checkpoint into the working folder."""
    monkeypatch.chdir(tmp_path)


def made(metrics_dict=None, rate=0.01):
    net = nn.Linear(2, 1).double()
    net.weight.data, net.bias.data = torch.tensor(W), torch.tensor(B)
    return KerasModel(net, nn.MSELoss(), metrics_dict, torch.optim.SGD(net.parameters(), lr=rate))


def trained(epochs, rate, norm):
    """SGD on the mean squared error: (the losses of all epochs, those of the held rows)."""
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
    return losses, held


@pytest.mark.quick
def test_predict_is_refused_and_what_the_words_say_works():
    """It is gone since torchkeras 3.3.1. Chapter 3-3 of "eat pytorch in 20 days" calls the net instead."""
    model = made()
    assert not hasattr(model, "predict") and not hasattr(KerasModel, "predict")
    with pytest.raises(
        AttributeError, match=r"a KerasModel has no 'predict' here; use net\(x\), in torch.no_grad\(\)$"
    ):
        model.predict(DATA)
    with torch.no_grad():
        found = torch.cat([model.net(batch[0]) for batch in DATA])
    np.testing.assert_allclose(found.numpy(), X @ W.T + B)


def test_a_fit_of_today_names_its_options_and_prints_a_line_for_each_epoch(capsys):
    """The columns stand as in torchkeras: the loss, the metrics and the rate of training, then what is held out."""
    model = made({"mae": torchmetrics.MeanAbsoluteError()})
    table = model.fit(
        DATA, DATA, epochs=3, ckpt_path="best", patience=10, monitor="val_loss", mode="min", plot=True, cpu=True
    )
    assert [*table.columns] == ["epoch", "train_loss", "train_mae", "lr", "val_loss", "val_mae"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["epoch 1 of 3", "epoch 2 of 3", "epoch 3 of 3"]
    assert f"val_mae {table['val_mae'][2]:.5g}" in lines[2]
    with pytest.raises(TypeError, match="unexpected keyword argument 'quiet'"):  # as in torchkeras
        model.fit(DATA, DATA, quiet=True)
    assert model.evaluate(DATA, quiet=True) == model.evaluate(DATA)


def test_a_checkpoint_is_that_of_the_last_fit():
    model = made()
    model.fit(DATA, DATA, epochs=1, ckpt_path="first")
    first = model.net.weight.tolist()
    model.fit(DATA, DATA, epochs=2, ckpt_path="second")
    second = model.net.weight.tolist()
    assert first != second
    model.load_ckpt("first")
    assert model.net.weight.tolist() == first
    model.load_ckpt()
    assert model.net.weight.tolist() == second
    with torch.no_grad():
        model.net.weight.fill_(7.0)
    model.save_ckpt()
    assert torch.load("second")["weight"].tolist() == [[7.0, 7.0]] and torch.load("first")["weight"].tolist() == first


def test_metrics_keep_their_state_and_a_function_is_refused():
    """As in torchkeras, which copies them for each epoch."""
    mae = torchmetrics.MeanAbsoluteError()
    mae(torch.ones(2), torch.zeros(2))
    model = made({"mae": mae})
    model.fit(DATA, DATA, epochs=1)
    model.evaluate(DATA)
    assert mae.compute().item() == 1.0
    with pytest.raises(TypeError, match="metrics_dict: mae is <.*; expected a module with `compute`"):
        made({"mae": lambda preds, labels: (preds - labels).abs().mean()})


def test_an_accuracy_counts_as_in_torchkeras():
    """sigmoid(-1e-9) is 0.5 in float32, and 0.5 is a yes. Shares are float32. A label 0.5 is a no."""
    metric = metrics.Accuracy()
    logits, true = torch.tensor([[-1e-9], [2.0], [-2.0]]), torch.tensor([[1.0], [0.5], [0.0]])
    share = metric(logits, true)
    assert share.dtype == torch.float32 and share.item() == np.float32(2 / 3)
    torch.set_default_dtype(torch.float64)
    whole = metric.compute()
    torch.set_default_dtype(torch.float32)
    assert whole.dtype == torch.float32 and whole.item() == np.float32(2 / 3)
    with pytest.raises(ValueError, match=r"Accuracy: preds is \(3, 1\), target \(3,\); expected equal shapes"):
        metric(logits, true[:, 0])


def test_a_keras_model_makes_gradients_shorter_and_goes_back_to_the_best():
    model = made(rate=0.4)
    table = model.fit(DATA, HELD, epochs=20, patience=2, plot=False)
    losses, held = trained(len(table), 0.4, norm=1.0)
    np.testing.assert_allclose(table["train_loss"], losses, rtol=1e-9)
    np.testing.assert_allclose(table["val_loss"], held, rtol=1e-9)
    assert [*table.columns] == ["epoch", "train_loss", "lr", "val_loss"] and set(table["lr"]) == {0.4}
    best = int(np.argmin(held))
    assert len(table) == min(20, best + 3) and model.evaluate(HELD) == {"val_loss": table["val_loss"][best]}


def test_the_next_fit_begins_with_a_look():
    model = made()
    first = model.fit(DATA, HELD, epochs=2)
    second = model.fit(DATA, HELD, epochs=1)
    assert [*second["epoch"]] == [0, 1] and [*second["lr"]] == [0.0, 0.01]
    assert second["val_loss"][0] == first["val_loss"].min()


def test_a_summary_tells_what_each_part_gives(capsys):
    net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    text = summary(net, input_shape=(2,))
    rows = [line.split() for line in text.splitlines()]
    assert ["Linear-1", "[-1,", "4]", "12"] in rows and ["ReLU-2", "[-1,", "4]", "0"] in rows
    assert "Total params: 17" in text and "Trainable params: 17" in text and text in capsys.readouterr().out
    assert net(torch.tensor(X)).shape == (12, 1)  # its parts are as they were


def test_a_schedule_steps_with_the_optimizer():
    net = nn.Linear(2, 1).double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    class Falling:
        """A schedule of a reader: each step has four fifths of the rate before."""

        def step(self):
            optimizer.param_groups[0]["lr"] *= 0.8

    model = KerasModel(net, nn.MSELoss(), optimizer=optimizer, lr_scheduler=Falling())
    table = model.fit(DATA, HELD, epochs=2)
    assert [*table["lr"]] == pytest.approx([0.01 * 0.8**3, 0.01 * 0.8**6])
    with pytest.raises(ValueError, match="monitor is 'val_loss'; this training has epoch, train_loss, lr"):
        model.fit(DATA, epochs=1)


@pytest.mark.parametrize("mode", ["min", "max"])
def test_an_epoch_of_no_number_is_never_the_best(mode):
    told, kept = iter([3.0, 1.0, np.nan, np.nan, np.nan, 2.0]), []

    class Told:
        def __call__(self, preds, labels):
            return torch.zeros(1)

        def compute(self):
            kept.append(model.net.weight.tolist())
            return torch.tensor(next(told))

        def reset(self):
            pass

    model = made({"told": Told()})
    table = model.fit(DATA, None, 6, "best", 2, "train_told", mode)
    best = 1 if mode == "min" else 0
    assert len(table) == best + 3 and model.net.weight.tolist() == kept[best]


def test_a_mean_absolute_error_counts_over_batches():
    metric = torchmetrics.MeanAbsoluteError()
    assert metric(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0])).item() == 2.0
    metric.update(torch.tensor([[5.0]]), torch.tensor([[0.0]]))
    assert metric.compute().item() == 3.0
    metric.reset()
    assert np.isnan(metric.compute().item())
    with pytest.raises(ValueError, match=r"preds is \(2, 1\), target \(2,\); expected equal shapes"):
        metric(torch.ones(2, 1), torch.ones(2))
