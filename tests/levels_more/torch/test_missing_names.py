"""What the spellings of PyTorch, TensorFlow and torchkeras do not have says what to use, wherever it is asked for."""

import numpy as np
import pytest

import levels_more.tensorflow as tf
from levels_more import missing, torch, torchkeras, torchmetrics

ROOMS = {
    "PyTorch": (
        missing.cures_of("torch"),
        [torch, torch.nn, torch.nn.functional, torch.nn.init, torch.optim, torch.utils.data]
        + [torch.autograd, torch.linalg, torchkeras, torchkeras.metrics, torchmetrics],
        [torch.ones(2), torch.nn.Linear(1, 1)],
    ),
    "TensorFlow": (
        missing.cures_of("tensorflow"),
        [
            tf,
            tf.math,
            tf.nn,
            tf.random,
            tf.data,
            tf.linalg,
            tf.keras,
            tf.keras.layers,
            tf.keras.losses,
            tf.keras.metrics,
        ]
        + [tf.keras.optimizers, tf.keras.initializers, tf.keras.callbacks, tf.keras.models, tf.keras.backend],
        [tf.data.Dataset.from_tensor_slices(np.ones(2)), tf.GradientTape()],
    ),
}


@pytest.mark.parametrize("spelling", ROOMS)
def test_each_name_that_is_not_here_says_what_to_use(spelling):
    """By every road: an attribute, an import, or a method of its objects. And none of them is here after all."""
    cures, rooms, things = ROOMS[spelling]
    assert len(cures) > 250
    for name, cure in cures.items():
        for asked in (*rooms, *things):
            with pytest.raises(AttributeError) as told:
                getattr(asked, name)
            assert str(told.value).endswith(f"has no {name!r} here; use {cure}")
        with pytest.raises(ImportError, match=f"has no '{name}' here; use"):
            exec(f"from {rooms[0].__name__} import {name}", {})


@pytest.mark.parametrize("table", [missing.told_of("torch"), missing.told_of("tensorflow")], ids=ROOMS)
def test_each_name_stands_once(table):
    names = [name for names in table.values() for name in names.split()]
    assert len(names) == len({*names})


def test_what_is_nearly_spelled_is_told_and_all_are_listed():
    with pytest.raises(AttributeError, match="torch has no 'sigmod' here; the nearest is 'sigmoid'"):
        torch.sigmod  # noqa: B018
    with pytest.raises(AttributeError, match=r"torch has no 'frobnicate' here; dir\(torch\) lists what it has"):
        torch.frobnicate  # noqa: B018
    with pytest.raises(AttributeError, match="^a tensor has no 'frobnicate' here$"):
        torch.ones(2).frobnicate  # noqa: B018
    assert {"sigmoid", "float64", "nn", "tensor", "no_grad"} <= {*dir(torch)} and "np" not in dir(torch)
    assert {"mse_loss", "relu"} <= {*dir(torch.nn.functional)} and {"reduce_mean", "float64"} <= {*dir(tf)}
    assert dir(torch.optim) == ["Adam", "Optimizer", "SGD"]
    data = ["DataLoader", "Dataset", "Sampler", "Subset", "TensorDataset", "default_collate", "random_split"]
    assert dir(torch.utils.data) == data
