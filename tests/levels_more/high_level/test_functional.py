"""Arithmetic with places for numbers; inputs and outputs by name; callbacks that take logs, and that do not."""

import numpy as np
import pytest

from levels_more.high_level import (
    Callback,
    Input,
    LambdaCallback,
    Model,
    ModelCheckpoint,
    Sequential,
)
from levels_more.low_level import constant
from levels_more.mid_level import (
    Arithmetic,
    Concatenate,
    Dense,
    ExponentialDecay,
)
from levels_more.saving import load_model

X = np.random.default_rng(0).normal(size=(20, 4)).astype("f4")
Y = X[:, :1] * 2.0


def model(*front):
    return Sequential([*front, Dense(8, "relu", name="body"), Dense(1, name="head")])


def test_arithmetic_with_places(tmp_path):
    place = Input(shape=(4,))
    y = 1.0 / ((place * 2.0 + 1.0) ** 2 + 1.0) - (-place) + (3.0 - place) * (place - 1.0) / 2.0
    net = Model(place, y)
    x = X.astype("f8")
    expected = 1 / ((2 * x + 1) ** 2 + 1) + x + (3 - x) * (x - 1) / 2
    assert y.shape == (None, 4) and y.dtype == np.float32 and np.allclose(net.predict(X), expected, atol=1e-5)
    net.save(tmp_path / "m")
    assert np.array_equal(load_model(tmp_path / "m").predict(X), net.predict(X))
    table = np.arange(8, dtype="f4").reshape(4, 2)
    assert np.allclose(Model(place, place @ table).predict(X), X @ table, atol=1e-5)
    assert np.allclose(Model(place, np.ones(4, "f4") + place).predict(X), X + 1)
    with pytest.raises(TypeError, match="the other operand of add is 'a'; expected a number"):
        place + "a"
    with pytest.raises(ValueError, match="op is 'sum'; there are add"):
        Arithmetic("sum")


def two_inputs_and_outputs():
    left, right = Input((2,), name="left"), Input((2,), name="right")
    both = Concatenate()([left, right])
    return Model([left, right], [Dense(1, name="price")(both), Dense(1, name="weight")(both)])


def test_inputs_and_outputs_by_name(tmp_path):
    net = two_inputs_and_outputs()
    given, targets = {"right": X[:, 2:], "left": X[:, :2]}, {"weight": 3 * Y, "price": Y}
    net.compile("sgd", {"weight": "mae", "price": "mse"}, loss_weights={"weight": 0.5, "price": 2.0})
    net.fit(given, targets, verbose=0)
    a, b = net.predict(given)
    expected = 2.0 * ((a - Y) ** 2).mean() + 0.5 * abs(b - 3 * Y).mean()
    assert net.evaluate(given, targets) == pytest.approx(expected, rel=1e-5)
    assert np.array_equal(net(given)[0].numpy(), net([X[:, :2], X[:, 2:]])[0].numpy())
    net.save(tmp_path / "m")
    assert load_model(tmp_path / "m").evaluate(given, targets) == pytest.approx(expected, rel=1e-5)
    for wrong, told in [
        (lambda: net.predict({"left": X[:, :2]}), "got left; its inputs and outputs are left, right or price, weight"),
        (lambda: net.compile("sgd", {"mass": "mse"}), "got mass; its inputs and outputs are"),
        (lambda: net.compile("sgd", "mse", loss_weights=[1.0]), "1 loss_weights for 2 outputs"),
        (lambda: net.compile("sgd", "mse", loss_weights=[1.0, -1.0]), "one of the loss_weights is -1.0"),
    ]:
        with pytest.raises(ValueError, match=told):
            wrong()


def test_a_checkpoint_of_the_weights_alone(tmp_path, capsys):
    net, other = model(Input((4,))), model(Input((4,)))
    net.compile("sgd", "mse")
    keep = ModelCheckpoint(tmp_path / "{epoch}.h5", "loss", save_weights_only=True, verbose=1)
    history = net.fit(X, Y, epochs=2, verbose=0, callbacks=[keep]).history
    other.load_weights(tmp_path / "2.h5")
    assert np.array_equal(other.predict(X), net.predict(X)) and (tmp_path / "1.h5").is_file()
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and said[1].endswith(f"2.h5, loss {history['loss'][1]:.6g}")


def test_callbacks_get_logs_where_they_take_them():
    heard = []

    class Mixed(Callback):
        def on_train_begin(self, logs):
            heard.append(logs)

        def on_epoch_begin(self, epoch):
            heard.append(epoch)

        def on_train_end(self, logs=None):
            heard.append(sorted(logs))

    net = model()
    net.compile("sgd", "mse")
    net.fit(X, Y, epochs=2, verbose=0, callbacks=[Mixed()], validation_split=0.5)
    assert heard == [{}, 0, 1, ["loss", "val_loss"]]
    with pytest.raises(TypeError, match="LambdaCallback: on_epoch_end is 3"):
        LambdaCallback(on_epoch_end=3)
    with pytest.raises(TypeError, match="LambdaCallback: an argument is 'on_step'; expected a method of callbacks"):
        LambdaCallback(on_step=print)


def test_a_rate_in_steps():
    rate = ExponentialDecay(0.8, 3, 0.5, staircase=True)
    assert [float(rate(constant(float(k)))) for k in range(7)] == pytest.approx([0.8] * 3 + [0.4] * 3 + [0.2], rel=1e-6)
