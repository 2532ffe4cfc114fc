"""KerasModel does what that of torchkeras 4.0.5 does, and refuses in words what is not here.

What is called "as in torchkeras" was run on torchkeras 4.0.5 with PyTorch 2.13.0.
"""

import numpy as np
import pytest

from levels_more import torch, torchmetrics
from levels_more.torch import nn
from levels_more.torch.utils.data import DataLoader, TensorDataset
from levels_more.torchkeras import KerasModel, metrics

RNG = np.random.default_rng(3)
X = torch.tensor(RNG.normal(size=(12, 2)))
Y = X @ torch.tensor([[2.0], [-3.0]], dtype=torch.float64) + 1.0
DATA = DataLoader(TensorDataset(X, Y), batch_size=4)


@pytest.fixture(autouse=True)
def a_folder_of_its_own(tmp_path, monkeypatch):
    """`fit` writes its checkpoint into the working folder."""
    monkeypatch.chdir(tmp_path)


def made(metrics_dict=None, rate=0.01):
    net = nn.Linear(2, 1).double()
    with torch.no_grad():
        net.weight.fill_(0.5)
        net.bias.fill_(0.0)
    return KerasModel(net, nn.MSELoss(), metrics_dict, torch.optim.SGD(net.parameters(), lr=rate))


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
    np.testing.assert_allclose(found.numpy(), X.numpy() @ model.net.weight.data.numpy().T + model.net.bias.data.numpy())


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
