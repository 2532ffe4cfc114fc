"""The cures for names that tensors do not have work with levels_more, and so do its layers' words."""

import math

import numpy as np
import pytest

import levels_more.tensorflow as tf
from levels.support import cures
from levels_more import high_level, low_level, mid_level

CURES = cures.cures(cures.MORE)
RIGHT = {
    "amax": "max",
    "amin": "min",
    "T": "transpose",
    "t": "transpose",
    "swapaxes": "transpose",
    "permute": "transpose",
}
X, Y = np.ones((8, 3), "f4"), np.ones((8, 1), "f4")


@pytest.mark.parametrize("name", CURES)
def test_a_method_that_tensors_do_not_have_names_what_works(name):
    x = low_level.constant(np.array([[0.5, 0.25], [0.125, 2.0]]))
    truths = name in ("any", "all")
    space = vars(low_level) | {"x": x > 0.2 if truths else x, "y": x, "mask": x > 1.0, "shape": (-1,), "axis": 1}
    with pytest.raises(AttributeError, match=f"Tensor has no '{name}'; write .* of levels_more.low_level"):
        getattr(x, name)
    found = eval(CURES[name], space | {"dtype": "float64", "math": math}).numpy()
    function = getattr(np, RIGHT.get(name, name), None)
    if name in (
        "max",
        "amax",
        "min",
        "amin",
        "argmax",
        "std",
        "var",
        "T",
        "t",
        "permute",
        "swapaxes",
        "tanh",
        "any",
        "all",
    ):
        np.testing.assert_allclose(found, function(x.numpy() > 0.2 if truths else x.numpy()), rtol=1e-12)


KINDS = {
    "levels_more": (mid_level.Layer, high_level.Model, mid_level.Dense),
    "Keras": (tf.keras.layers.Layer, tf.keras.Model, tf.keras.layers.Dense),
}


@pytest.mark.quick
@pytest.mark.parametrize("spelling", KINDS)
def test_what_a_class_of_ones_own_forgets_is_told(spelling):
    layer, model, dense = KINDS[spelling]

    def init(self):
        self.dense = dense(1)

    def call(self, x):
        return self.dense(x)

    for base in (layer, model):
        bare = type("Bare", (base,), {"__init__": init, "call": call})
        with pytest.raises(AttributeError, match=r"Bare is not ready: write super\(\).__init__\(\) as the first line"):
            bare()(X)
        named = type("Net", (base,), {"forward": lambda self, x: x})
        with pytest.raises(
            NotImplementedError, match=r"Net has no call; rename its `forward`.*: `def call\(self, x\):`"
        ):
            named()(X)
        with pytest.raises(NotImplementedError, match="Net has no call; write one"):
            type("Net", (base,), {})()(X)


@pytest.mark.parametrize("spelling", KINDS)
@pytest.mark.parametrize(
    "wrong, told", [({"loss": 1.0}, "a dict"), (None, "None"), ([1.0], "a list"), ((1.0, 2.0), "a tuple")]
)
def test_what_a_train_step_returns_is_told(spelling, wrong, told):
    _, model, dense = KINDS[spelling]

    class Net(model):
        def __init__(self):
            super().__init__()
            self.dense = dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, x, y):
            super().train_step(x, y)
            return wrong

    net = Net()
    net.compile("sgd", "mse")
    with pytest.raises(TypeError, match=f"Net.train_step: it returns {told}; expected the loss, one number"):
        net.fit(X, Y, verbose=0)


def test_metrics_losses_and_optimizers_whose_init_was_not_called_say_so():
    def fitted(optimizer="sgd", loss="mse", metrics=()):
        net = high_level.Sequential([mid_level.Dense(1)])
        net.compile(optimizer, loss, metrics)
        return net.fit(X, Y, verbose=0)

    nothing = {"__init__": lambda self: None}
    for run in (
        lambda: fitted(type("Mine", (mid_level.SGD,), nothing)()),
        lambda: fitted(loss=type("Mine", (mid_level.Reduced,), nothing | {"call": lambda self, y, p: p - y})()),
        lambda: fitted(metrics=[type("Mine", (mid_level.Metric,), nothing | {"parts": lambda self, y, p: (y,)})()]),
    ):
        with pytest.raises(AttributeError, match="Mine is not ready: write super"):
            run()


@pytest.mark.quick
@pytest.mark.parametrize("name", ["amp", "vmap", "clip", "exp2", "func", "set_default_device", "autocast"])
def test_the_cure_for_a_name_of_pytorch_is_about_that_name(name):
    from levels_more import torch

    wrong = {"vmap": "nothing here compiles", "func": "nothing here compiles", "clip": "where", "amp": "clamp"}
    with pytest.raises(AttributeError, match=f"torch has no '{name}' here; use ") as told:
        getattr(torch, name)
    assert wrong.get(name, "nearest") not in str(told.value)


@pytest.mark.quick
@pytest.mark.parametrize(
    "name, act",
    [
        ("x // y", lambda x: x // 10),
        ("x // y", lambda x: low_level.constant([7, 7]) // x),
        ("x % y", lambda x: x % 10),
        ("floor", lambda x: tf.floor(x)),
    ],
)
def test_what_is_no_op_is_refused_by_its_name_while_a_function_is_traced(name, act):
    x = low_level.constant([3, 47])
    right = act(x).numpy().tolist()
    with pytest.raises(TypeError, match=f"^{name}: Symbol.* has no numbers yet .*: compute it from the rows with"):
        low_level.function(act)(x)
    assert tf.function(act)(x).numpy().tolist() == right  # it runs op by op what is no op of a graph
