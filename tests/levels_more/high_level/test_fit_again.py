"""A second `fit` finds the programs of the first, and never a stale one: whatever changed in between is heard."""

import contextlib
import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from course import tasks
from levels_more.compiler.reads import Reads, hearing
from levels_more.high_level import LambdaCallback, Sequential
from levels_more.low_level import GradientTape, Module, Variable, constant, function, reduce_mean, reduce_sum
from levels_more.mid_level import L2, SGD, Dataset, Dense, Layer, MeanSquaredError

RINGS = tasks.rings()
X, Y = RINGS.x[:400], RINGS.y[:400]
RATE = 0.5


class Scale(Layer):
    """Multiplies by what stands in a list."""

    def __init__(self):
        super().__init__()
        self.factors = [0.5]

    def call(self, x):
        return x * self.factors[0]


class Own(Sequential):
    """Trains in its own way: by a global rate, and whatever `hook` does to the loss."""

    def hook(self, loss):
        return loss

    def train_step(self, x, y):
        with GradientTape() as tape:
            loss = self.hook(self.training.loss(self, y, self(x, training=True)))
        for v, dv in zip(self.trainable_variables, tape.gradient(loss, self.trainable_variables), strict=True):
            v.assign(v - RATE * dv)
        return loss


def net(kind=Sequential):
    model = kind([Dense(4, "relu"), Scale(), Dense(8, "relu"), Dense(1, "sigmoid")])
    model.compile(SGD(0.5, clipnorm=1000.0), "mse", ["mae"])
    model.build((None, 2), "f8")
    model.set_weights(RINGS.weights)
    return model


def losses(model):
    return model.fit(X, Y, batch_size=50, shuffle=False, verbose=0).losses.tolist()


def by_hand(_, patch):
    patch.setattr(Sequential, "hook", lambda self, loss: loss * 3.0, raising=False)
    patch.setattr(Sequential, "train_step", Own.train_step)


CHANGES = {
    "the learning rate": lambda model, _: setattr(model.training.optimizer, "learning_rate", 0.1),
    "an attribute of the optimizer": lambda model, _: setattr(model.training.optimizer, "clipnorm", 0.001),
    "a number in a list": lambda model, _: model.layers[1].factors.__setitem__(0, -0.5),
    "an activation": lambda model, _: setattr(model.layers[0], "activation", lambda x: x),
    "a layer more": lambda model, _: model.layers.insert(1, Scale()),
    "a penalty": lambda model, _: model.layers[0].penalties.append(lambda: L2(0.5)(model.layers[0].kernel)),
    "the loss": lambda model, _: model.training.losses.__setitem__(0, lambda y, p: MeanSquaredError()(y, p) * 2.0),
    "a method": by_hand,
    "a method of a layer of ours": lambda _, patch: patch.setattr(
        Dense, "call", lambda self, x: self.activation(x @ self.kernel - self.bias)
    ),
    "the weights": lambda model, _: model.set_weights([w * 0.5 for w in model.get_weights()]),
}
OWN = {
    # an optimizer would refuse to go on with fewer variables
    "a layer is frozen": lambda model, _: setattr(model.layers[0], "trainable", False),
    "a global that its step reads": lambda model, patch: patch.setitem(globals(), "RATE", 0.1),
    "what its step calls": lambda model, patch: patch.setattr(Own, "hook", lambda self, loss: loss * 3.0),
}


@pytest.mark.parametrize("name", [*CHANGES, *OWN])
def test_a_change_between_two_fits_is_heard(name, monkeypatch):
    """The second fit is that of a model that kept nothing, and another one than without the change."""
    models = [net(Own if name in OWN else Sequential) for _ in range(3)]
    assert len({tuple(losses(model)) for model in models}) == 1
    kept, forgets, unchanged = models
    without = losses(unchanged)
    for model in (kept, forgets):
        (CHANGES | OWN)[name](model, monkeypatch)
    forgets.training.programs.clear()
    assert losses(kept) == losses(forgets) != without
    for ours, theirs in zip(kept.get_weights(), forgets.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_second_fit_traces_nothing(monkeypatch, optimizer):
    """A model of our own layers is called in Python while its steps are traced, and never again; until something changes."""
    called, call = [], Dense.call
    monkeypatch.setattr(Dense, "call", lambda self, x: called.append(self) or call(self, x))
    model = Sequential([Dense(4, "relu"), Dense(1, "sigmoid")])
    model.compile(optimizer, "mse", ["mae"])

    def calls():
        called.clear()
        losses(model), model.evaluate(X, Y), model.predict(X)
        return len(called)

    assert calls() > 0 and calls() == 0
    model.training.optimizer.learning_rate = 0.25  # a variable: no trace has read its number
    assert calls() == 0
    model.layers[0].kernel.trainable = False
    model.compile(optimizer, "mse", ["mae"])
    assert calls() > 0 and calls() == 0


class ByName(Layer):
    """Multiplies by the number in an attribute, or in a dict or list that it holds."""

    def __init__(self, name, form):
        super().__init__()
        self.chosen_name, self.form = name, form
        setattr(self, name, form(1.0))

    def call(self, x):
        held = getattr(self, self.chosen_name)
        return x * (held["a"] if isinstance(held, dict) else held[0] if isinstance(held, list) else held)


USED = "place watch programs inputs history"  # names that the framework has used for itself
FORMS = {"a number": lambda n: n, "a list": lambda n: [n], "a dict": lambda n: {"a": n}}


@pytest.mark.parametrize("name, form", [*zip([*USED.split(), "chosen"], [*FORMS] * 2, strict=True)])
def test_a_layers_attribute_is_heard_whatever_its_name(name, form):
    layer = ByName(name, FORMS[form])
    model = Sequential([layer, Dense(1, kernel_initializer="zeros", bias_initializer="ones")])
    model.compile(SGD(0.0), lambda y, predicted: reduce_mean(layer(y) + 0.0 * predicted))
    x = np.ones((2, 1), "f4")
    ones = [model.evaluate(x, x), *model.fit(x, x, verbose=0).losses]
    setattr(layer, name, FORMS[form](5.0))
    assert [model.evaluate(x, x), *model.fit(x, x, verbose=0).losses] == [5.0, 5.0] and ones == [1.0, 1.0]
    assert getattr(layer, name) == FORMS[form](5.0)


class Plain:
    def __init__(self, number):
        self.number = number


def annealed(net, event, change):
    """The losses of three epochs of two steps each, if a callback calls change(1.0), change(2.0), … in this event."""
    calls = iter(np.arange(1.0, 7.0).tolist())
    act = LambdaCallback(**{event: lambda *_: change(next(calls))})
    x = np.ones((4, 1), "f4")
    return net.fit(x, 0.0 * x, batch_size=2, epochs=3, verbose=0, callbacks=[act]).losses.tolist()


SHARED = Plain(1.0)  # what a layer and a callback have in common
READ = {  # a function of the number that a layer reads, and how it is changed
    "an attribute of the layer": (lambda layer: layer.factor, lambda layer, k: setattr(layer, "factor", k)),
    "a plain object": (lambda layer: SHARED.number, lambda layer, k: setattr(SHARED, "number", k)),
    "a dict of the layer": (lambda layer: layer.all["k"], lambda layer, k: layer.all.update(k=k)),
    "a global": (lambda layer: RATE, lambda layer, k: globals().update(RATE=k)),
}


@pytest.mark.parametrize("name", READ)
def test_what_a_callback_changes_is_heard_in_the_next_step(name, monkeypatch):
    read, change = READ[name]
    monkeypatch.setitem(globals(), "RATE", 1.0)

    class Annealed(Layer):
        def __init__(self):
            super().__init__()
            self.factor, self.all = 1.0, {"k": 1.0}
            self.w = self.add_weight((1,), "ones")

        def call(self, x):
            return x * read(self) * self.w

    for event, found in (("on_epoch_begin", [1, 1, 4, 4, 9, 9]), ("on_train_batch_begin", [1, 4, 9, 16, 25, 36])):
        layer = Annealed()
        net = Sequential([layer])
        net.compile(SGD(0.0), "mse")
        for _ in "12":
            assert annealed(net, event, functools.partial(change, layer)) == found


def test_what_a_callback_changes_is_heard_by_the_loss_the_optimizer_and_the_metrics():
    share = [1.0]
    net = Sequential([Dense(1, kernel_initializer="ones")])
    net.compile(SGD(0.0), lambda y, p: (y - p) ** 2 * share[0], [lambda y, p: p * share[0]])
    assert annealed(net, "on_epoch_begin", lambda k: share.__setitem__(0, k)) == [1, 1, 2, 2, 3, 3]
    assert [*net.history.history.values()][1] == [1.0, 2.0, 3.0]
    net.compile(SGD(1.0), "mse")
    net.set_weights([np.ones((1, 1), "f4"), np.zeros((1, 1), "f4")])
    rates = iter([0.0, 0.125, 0.25])
    found = annealed(net, "on_epoch_begin", lambda _: setattr(net.optimizer, "learning_rate", next(rates)))
    np.testing.assert_allclose(found, [1, 1, 1, 0.25, 0.0625, 0.0])


def test_what_data_change_between_two_batches_is_heard():
    """A generator is code of the reader's, and runs between two steps."""
    layer = Scale()
    layer.bias = layer.add_weight((1,), "zeros")
    layer.call = lambda x: x * layer.factors[0] + layer.bias

    def batches():
        for k in (1.0, 2.0, 3.0):
            layer.factors[0] = k
            yield np.ones((2, 1), "f4"), np.zeros((2, 1), "f4")

    net = Sequential([layer])
    net.compile(SGD(0.0), "mse")
    assert net.fit(Dataset.from_generator(batches), epochs=2, verbose=0).losses.tolist() == [1, 4, 9] * 2


def closed(number):
    return lambda x: x * number


def read_of(value):
    """What a trace has read that has read this value, or all attributes of this part."""
    holder = value if isinstance(value, Layer) else Layer()
    holder.value = None if holder is value else value
    with hearing() as heard:
        vars(holder)
    return Reads(heard)


PAIRS = {  # two values that a trace may read differently
    "zeros": (0.0, -0.0),
    "kinds of number": (1, True),
    "an entry": ([1.0, 2.0], [1.0, 3.0]),
    "arguments": (Dense(3), Dense(4)),
    "variables": (Variable(1.0), Variable(1.0)),
    "closures": (closed(2.0), closed(3.0)),
    "code": (lambda x: x + x, lambda x: x * x),
    "arrays": (np.ones(3), np.array([1.0, 1.0, 2.0])),
    "dtypes of arrays": (np.zeros(2, "f4"), np.zeros(2, "i4")),
    "plain objects": (Plain(1.0), Plain(2.0)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_read_tells_values_apart(name):
    for one, other in (PAIRS[name], PAIRS[name][::-1]):
        layer = Scale()
        layer.factors.append(one)
        places = read_of(layer)
        assert not places.changed()
        layer.factors[1] = other
        assert places.changed()
        layer.factors[1] = one
        assert not places.changed()


INSIDE = {  # what is changed, deep in a layer
    "a list's length": lambda layer: layer.factors.append(1.0),
    "an attribute more": lambda layer: setattr(layer, "other", 1.0),
    "an entry of a dict": lambda layer: layer.named_factors.update(a=2.0),
    "what a partial call is given": lambda layer: layer.part.keywords.update(x=3.0),
    "a function's code": lambda layer: setattr(layer.inner, "__code__", (lambda x=2.0: x * x).__code__),
    "the class": lambda layer: setattr(layer, "__class__", Layer),
    "a variable is frozen": lambda layer: setattr(layer.weight, "trainable", False),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_change_inside_is_heard(name):
    layer = Scale()
    layer.named_factors, layer.inner, layer.weight = {"a": 1.0, "b": 1.0}, lambda x=2.0: x, Variable(1.0)
    layer.part = functools.partial(max, x=2.0)
    places = read_of(layer)
    layer.weight.assign(3.0)
    assert not places.changed()
    INSIDE[name](layer)
    assert places.changed()


@pytest.mark.parametrize(
    "value", [{1.0}, np.ones(2**20), np.array([None]), lambda x: x * np.random.rand(), lambda x: time.time(), iter([])]
)
def test_what_is_not_understood_counts_as_changed(value):
    assert read_of(value).changed() and read_of([value]).changed()


def test_a_module_that_is_no_layer_is_compared_as_a_whole():
    model, module = Sequential([Scale()]), Module()
    module.factor = 1.0
    model.layers[0].call = lambda x: x * module.factor
    ones = np.ones((2, 1), "f4")
    assert model.predict(ones).tolist() == ones.tolist()
    module.factor = 5.0
    assert model.predict(ones).tolist() == (5.0 * ones).tolist()


def test_a_new_part_is_heard_where_variables_were_looked_for():
    model = net()
    with hearing() as heard:
        model.trainable_variables  # noqa: B018
    read = Reads(heard)
    model.stop_training = True
    assert not read.changed()
    model.layers[1].more = Variable(1.0)
    assert read.changed()


def test_each_trace_hears_its_own_thread_and_the_traces_inside():
    layers, usual = [Scale() for _ in range(3)], Layer.__getattribute__
    together = threading.Barrier(3)

    def work(layer, opens):
        with hearing() if opens else contextlib.nullcontext([]) as outer:
            together.wait(60)
            layer.factors  # noqa: B018
            with hearing() if opens else contextlib.nullcontext([]) as inner:
                together.wait(60)
                layer.built  # noqa: B018
                together.wait(60)
        return [name for _, name in outer], [name for _, name in inner]

    with ThreadPoolExecutor(3) as threads:
        heard = [*threads.map(work, layers, (True, True, False))]
    assert heard == [(["factors", "built"], ["built"])] * 2 + [([], [])]
    assert Layer.__getattribute__ is usual


def test_a_batch_of_another_size_has_a_program_of_its_own():
    """The graph is the same, as nobody reads the first argument; but only one of the two has rows."""
    other = constant(np.ones((5, 2)))
    unused = function(lambda x, y: reduce_sum(y))
    assert float(unused(np.ones((3, 1)), other)) == 10.0
    assert float(unused(np.ones((5, 1)), other)) == 10.0
    assert float(unused(np.ones((7, 1)), np.ones((7, 2)))) == 14.0
