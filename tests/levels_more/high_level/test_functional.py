"""Arithmetic with places for numbers; inputs and outputs by name; callbacks that take logs, and that do not."""

import copy

import numpy as np
import pytest

from levels_more.high_level import (
    Input,
    LambdaCallback,
    Model,
    Sequential,
)
from levels_more.mid_level import (
    SGD,
    Arithmetic,
    BatchNormalization,
    Concatenate,
    Dense,
    Layer,
    MeanAbsoluteError,
    MeanLoss,
)
from levels_more.mid_level.names import count_anew
from levels_more.saving import load_model

X = np.random.default_rng(0).normal(size=(20, 4)).astype("f4")
Y = X[:, :1] * 2.0


class MyHTTPLayer(Layer):
    def call(self, x):
        return x


def test_layers_without_a_name_are_numbered_as_in_keras(tmp_path):
    """These are the names that Keras 3.15.1 gives. A file keeps them."""
    count_anew()
    made = [Dense(1), Dense(1), Dense(1, name="mine"), Dense(1), BatchNormalization(), BatchNormalization()]
    made += [MyHTTPLayer(), MyHTTPLayer(), Sequential(), Sequential()]
    assert [layer.name for layer in made] == [
        *("dense", "dense_1", "mine", "dense_2", "batch_normalization", "batch_normalization_1"),
        *("my_http_layer", "my_http_layer_1", "sequential", "sequential_1"),
    ]
    place = Input((2,))
    graphs = [Model(place, Dense(1)(Dense(2)(place))) for _ in "12"]
    assert [graph.name for graph in graphs] == ["functional", "functional_1"]
    assert [layer.name for layer in graphs[1].layers] == ["dense_6", "dense_5"]
    assert "dense_6" in repr(graphs[1].layers[0]) and copy.copy(graphs[1]).layers[0].name == "dense_6"
    graphs[1].save(tmp_path)
    count_anew()
    loaded = load_model(tmp_path)
    assert [loaded.name, *(layer.name for layer in loaded.layers)] == ["functional_1", "dense_6", "dense_5"]


ONES, TARGETS = np.ones((8, 3), "f4"), [np.zeros((8, 1), "f4"), np.full((8, 1), 100.0, "f4")]


def two_outputs(names=("p", "q")):
    """Both outputs are 3 for ONES. So the mean squared errors are 9 and 9409, and the absolute errors 3 and 97."""
    place = Input((3,))
    return Model(place, [Dense(1, name=name, kernel_initializer="ones")(place) for name in names])


class TwoOutputs(Model):
    def __init__(self):
        super().__init__()
        self.graph = two_outputs()

    def call(self, x):
        return self.graph(x)


LOSSES = {"loss": 9418.0, "p_loss": 9.0, "q_loss": 9409.0}
METRICS_OF_TWO = {  # arguments of compile, and the numbers in the order of `evaluate`: those of Keras 3.15.1
    "one loss": ({}, LOSSES),
    "a loss for each": ({"loss": ["mse", "mae"]}, {"loss": 106.0, "p_loss": 9.0, "q_loss": 97.0}),
    "a loss for one": ({"loss": ["mse", None]}, {"loss": 9.0}),
    "weights": ({"loss": ["mse", "mae"], "loss_weights": [2.0, 3.0]}, {"loss": 309.0, "p_loss": 9.0, "q_loss": 97.0}),
    "weights by name": ({"loss_weights": {"q": 1.0, "p": 2.0}}, {"loss": 9427.0, "p_loss": 9.0, "q_loss": 9409.0}),
    "one for each": ({"metrics": ["mae", "mse"]}, LOSSES | {"p_mae": 3.0, "q_mse": 9409.0}),
    "an empty list": ({"metrics": [[], ["mae"]]}, LOSSES | {"q_mae": 97.0}),
    "metrics by name": ({"metrics": {"q": ["mae"], "p": "mse"}}, LOSSES | {"p_mse": 9.0, "q_mae": 97.0}),
    "objects": (
        {"metrics": [[MeanLoss(MeanAbsoluteError(), "a")], [MeanLoss(MeanAbsoluteError(), "a")]]},
        LOSSES | {"p_a": 3.0, "q_a": 97.0},
    ),
    "a subclass": (
        {"metrics": [["mae"], ["mse"]]},
        {"loss": 9418.0, "output_1_loss": 9.0, "output_2_loss": 9409.0, "output_1_mae": 3.0, "output_2_mse": 9409.0},
    ),
    "equal names": ({}, {"loss": 9418.0, "p_loss": 9.0, "p_1_loss": 9409.0}),
}
NETS = {"a subclass": TwoOutputs, "equal names": lambda: two_outputs(("p", "p"))}


@pytest.mark.parametrize("name", METRICS_OF_TWO)
@pytest.mark.filterwarnings("ignore:.*the loss does not depend on:UserWarning")
def test_losses_and_metrics_are_those_of_each_output(name, tmp_path):
    options, wanted = METRICS_OF_TWO[name]
    net = NETS.get(name, two_outputs)()
    net.compile(SGD(0.0), **{"loss": "mse", **options})
    for each in (net, copy.copy(net)):
        for _ in "12":
            logs = each.fit(ONES, TARGETS, batch_size=3, verbose=0, validation_data=(ONES, TARGETS)).history
            assert logs == {name: [number] for name, number in wanted.items()} | {
                f"val_{name}": [number] for name, number in wanted.items()
            }
        assert each.evaluate(ONES, TARGETS, return_dict=True) == wanted
        told = each.evaluate(ONES, TARGETS)
        assert told == ([*wanted.values()] if len(wanted) > 1 else wanted["loss"])
    if name != "objects":
        net.save(tmp_path)
        loaded = load_model(tmp_path, {"TwoOutputs": TwoOutputs})
        assert loaded.fit(ONES, TARGETS, verbose=0).history == {name: [number] for name, number in wanted.items()}


def test_the_loss_of_an_output_weighs_rows_as_its_training_does():
    x = np.arange(5.0, dtype="f4")[:, None]
    place = Input((1,))
    net = Model(place, [Dense(1, name=name, kernel_initializer="ones")(place) for name in "pq"])
    net.compile(SGD(0.0), ["mse", "mae"], loss_weights=[2.0, 0.0])
    logs = net.fit(x, [0.0 * x, 0.0 * x], batch_size=2, verbose=0, sample_weight=np.array([1.0, 0.0, 2.0, 1.0, 0.0]))
    p, q = (0 + 0 + 2 * 4 + 9 + 0) / 5, (0 + 0 + 2 * 2 + 3 + 0) / 5
    found = {name: pytest.approx([number]) for name, number in {"loss": 2 * p, "p_loss": p, "q_loss": q}.items()}
    assert logs.history == found


class Unused(Model):
    """Two heads, of which the result has one."""

    def __init__(self, aside):
        super().__init__()
        self.body = Dense(4, "relu", kernel_initializer="ones")
        self.aux = Dense(1, kernel_initializer="ones") if aside else None
        self.out = Dense(1, kernel_initializer="ones")

    def call(self, x):
        h = self.body(x)
        if self.aux is not None:
            self.aux(h)
        return self.out(h)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_head_that_the_loss_does_not_use_stays_as_it_is(optimizer, tmp_path):
    """As in Keras 3.15.1, which warns. All else trains as without the head, also again, and from a file."""
    with_head, without = Unused(True), Unused(False)
    for net in (with_head, without):
        net.compile(optimizer, "mse")
    told = "the loss does not depend on aux.kernel, aux.bias, which will not be trained"
    for _ in "12":
        with pytest.warns(UserWarning, match=told):
            losses = with_head.fit(X, Y, verbose=0, shuffle=False).losses.tolist()
            with_head.training.programs.clear()
        assert losses == without.fit(X, Y, verbose=0, shuffle=False).losses.tolist()
    assert with_head.aux.kernel.numpy().tolist() == [[1.0]] * 4 and with_head.body.kernel.numpy()[0, 0] != 1.0
    with_head.save(tmp_path)
    loaded = load_model(tmp_path, {"Unused": Unused})
    with pytest.warns(UserWarning, match="aux.kernel"):
        loaded.fit(X, Y, verbose=0, shuffle=False)
    without.fit(X, Y, verbose=0, shuffle=False)
    for name in ("body", "out"):
        assert (getattr(loaded, name).kernel.numpy() == getattr(without, name).kernel.numpy()).all()


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


def test_inputs_and_outputs_by_name(tmp_path):
    left, right = Input((2,), name="left"), Input((2,), name="right")
    both = Concatenate()([left, right])
    net = Model([left, right], [Dense(1, name="price")(both), Dense(1, name="weight")(both)])
    given, targets = {"right": X[:, 2:], "left": X[:, :2]}, {"weight": 3 * Y, "price": Y}
    net.compile("sgd", {"weight": "mae", "price": "mse"}, loss_weights={"weight": 0.5, "price": 2.0})
    net.fit(given, targets, verbose=0)
    a, b = net.predict(given)
    expected = 2.0 * ((a - Y) ** 2).mean() + 0.5 * abs(b - 3 * Y).mean()
    parts = [((a - Y) ** 2).mean(), abs(b - 3 * Y).mean()]
    assert net.evaluate(given, targets) == pytest.approx([expected, *parts], rel=1e-5)
    assert np.array_equal(net(given)[0].numpy(), net([X[:, :2], X[:, 2:]])[0].numpy())
    net.save(tmp_path / "m")
    assert load_model(tmp_path / "m").evaluate(given, targets) == net.evaluate(given, targets)
    for wrong, told in [
        (lambda: net.predict({"left": X[:, :2]}), "got left; its inputs and outputs are left, right or price, weight"),
        (lambda: net.compile("sgd", {"mass": "mse"}), "got mass; its inputs and outputs are"),
        (lambda: net.compile("sgd", "mse", loss_weights=[1.0]), "1 loss_weights for 2 outputs"),
        (lambda: net.compile("sgd", "mse", loss_weights=[1.0, -1.0]), "one of the loss_weights is -1.0"),
        (lambda: net.compile("sgd", "mse", ["mae"]) or net.evaluate(given, targets), "1 metrics for 2 outputs; give"),
    ]:
        with pytest.raises(ValueError, match=told):
            wrong()


def test_callbacks_get_logs_where_they_take_them():
    net, heard = Sequential([Dense(1)]), []
    mixed = LambdaCallback(
        on_train_begin=lambda logs: heard.append(logs),
        on_epoch_begin=lambda epoch: heard.append(epoch),
        on_train_end=lambda logs=None: heard.append(sorted(logs)),
    )
    net.compile("sgd", "mse")
    net.fit(X, Y, epochs=2, verbose=0, callbacks=[mixed], validation_split=0.5)
    assert heard == [{}, 0, 1, ["loss", "val_loss"]]
    with pytest.raises(TypeError, match="LambdaCallback: on_epoch_end is 3"):
        LambdaCallback(on_epoch_end=3)
    with pytest.raises(TypeError, match="LambdaCallback: an argument is 'on_step'; expected a method of callbacks"):
        LambdaCallback(on_step=print)
