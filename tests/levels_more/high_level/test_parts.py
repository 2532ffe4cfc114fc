"""A model's layers by name, and taken away; arithmetic with places for numbers; inputs and outputs by name."""

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
    Add,
    Arithmetic,
    Average,
    Concatenate,
    Dense,
    ExponentialDecay,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
)
from levels_more.saving import load_model

X = np.random.default_rng(0).normal(size=(20, 4)).astype("f4")
Y = X[:, :1] * 2.0


def model(*front):
    return Sequential([*front, Dense(8, "relu", name="body"), Dense(1, name="head")])


@pytest.mark.quick
def test_a_layer_by_name_or_number():
    net = model()
    assert net.get_layer("head") is net.layers[1] is net.get_layer(index=-1)

    class Own(Model):
        def __init__(self):
            super().__init__()
            self.one, self.rest = Dense(2, name="one"), Sequential([Dense(3, name="inner")], name="rest")

    assert Own().get_layer("rest").layers[0].units == 3 and Own().get_layer(index=0).units == 2
    two = Sequential([Dense(1), Dense(2)])
    for wrong, told in [
        (lambda: net.get_layer("tail"), "no layer is called 'tail'; there are body, head"),
        (lambda: two.get_layer("dense"), "2 layers are called 'dense'; give an index"),
        (lambda: net.get_layer(), "name is None, index is None; give one of them"),
        (lambda: net.get_layer(index=2), "index is 2; there are 2 layers"),
        (lambda: Sequential([]).pop(), "sequential has no layer left"),
    ]:
        with pytest.raises(ValueError, match=told):
            wrong()


@pytest.mark.parametrize("front", [[], [Input(shape=(4,))]], ids=["rows", "Input"])
def test_pop_after_a_fit(front, tmp_path):
    net = model(*front)
    net.compile("sgd", "mse")
    net.fit(X, Y, verbose=0)
    w, b, *_ = net.get_weights()
    before = net.predict(X)
    assert net.pop().name == "head"
    answer = net.predict(X)
    assert before.shape == (20, 1) and np.allclose(answer, np.maximum(X @ w + b, 0), atol=1e-6)
    assert net.output.shape == (None, 8)
    with pytest.raises(ValueError, match="trains a variable that is in no part of the model; compile it again"):
        net.save(tmp_path / "m")
    net.compile("sgd", "mse")
    net.save(tmp_path / "m")
    assert np.array_equal(load_model(tmp_path / "m").predict(X), answer)


def test_what_goes_in_and_out_of_each_layer():
    net = model()
    with pytest.raises(ValueError, match=r"nobody knows its inputs yet; put Input\(shape\)"):
        print(net.inputs)
    with pytest.raises(ValueError, match="head was called on an Input 0 times"):
        print(net.layers[1].output)
    expected = net.predict(X)
    assert net.inputs[0].shape == (None, 4) and net.output.shape == (None, 1)
    inner = Model(net.inputs, net.get_layer("body").output)
    assert np.allclose(inner.predict(X) @ net.get_weights()[2] + net.get_weights()[3], expected, atol=1e-6)
    shared, place = Dense(2), Input((4,))
    shared(place), shared(place)
    with pytest.raises(ValueError, match="dense was called on an Input 2 times; keep what each"):
        print(shared.output)
    added = model(Input((4,)))
    added.add(Dense(3))
    assert added.output.shape == (None, 3) and added.layers[-1].input.shape == (None, 1)


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
    with pytest.raises(TypeError, match="what stands beside add is 'a'; expected a number"):
        place + "a"
    with pytest.raises(ValueError, match="op is 'sum'; there are add"):
        Arithmetic("sum")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Add, lambda a, b, c: a + b + c),
        (Multiply, lambda a, b, c: a * b * c),
        (Average, lambda a, b, c: (a + b + c) / np.float32(3)),
        (Maximum, lambda *x: np.max(x, 0)),
        (Minimum, lambda *x: np.min(x, 0)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_layers_of_several_inputs(kind, expected):
    parts = X, X[::-1].copy(), X**2
    assert np.allclose(kind()(list(parts)).numpy(), expected(*parts), atol=1e-6)
    with pytest.raises(TypeError, match=f"{kind.__name__.lower()}: expected a list of two inputs or more, got one"):
        kind()(X)


def test_the_difference_of_two():
    assert np.array_equal(Subtract()([X, 3 * X]).numpy(), X - 3 * X)
    with pytest.raises(TypeError, match="expected a list of two inputs, got 3"):
        Subtract()([X, X, X])


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


def test_a_rate_in_steps():
    rate = ExponentialDecay(0.8, 3, 0.5, staircase=True)
    assert [float(rate(constant(float(k)))) for k in range(7)] == pytest.approx([0.8] * 3 + [0.4] * 3 + [0.2], rel=1e-6)
