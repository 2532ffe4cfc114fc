"""What a reader of another library writes first, on the core alone: the error names it, and says what to write."""

import math

import numpy as np
import pytest

from levels import low_level
from levels.high_level import Model, Sequential
from levels.low_level import GradientTape, Variable, constant, function, reduce_mean
from levels.mid_level import SGD, Dense, Layer
from levels.support import cures

X, Y = np.ones((8, 3), "f4"), np.ones((8, 1), "f4")
CURES = cures.cures(cures.INSTEAD)


def fitted(model, loss="mse", optimizer="sgd"):
    model.compile(optimizer, loss)
    return model.fit(X, Y, verbose=0)


@pytest.mark.quick
@pytest.mark.parametrize("name", CURES)
def test_a_method_that_tensors_do_not_have_names_what_works(name):
    x, w = constant(np.array([[0.5, 0.25], [0.125, 2.0]])), Variable(np.ones((2, 2)))
    for tensor in (x, w) if name != "grad" else (x,):  # a variable has one
        with pytest.raises(AttributeError, match=f"{type(tensor).__name__} has no '{name}'; write ") as told:
            getattr(tensor, name)
        assert str(told.value).endswith(CURES[name]) and not hasattr(tensor, name) and name not in dir(tensor)
    if "gradient" not in CURES[name]:
        space = vars(low_level) | {"x": x, "w": w, "low": 0.0, "high": 1.0, "math": math}
        found, right = eval(CURES[name], space), getattr(np, {"average": "mean", "clamp": "clip"}.get(name, name), None)
        if name in ("sum", "mean", "exp", "log", "sqrt", "square"):
            np.testing.assert_allclose(found.numpy(), right(x.numpy()), rtol=1e-15)


@pytest.mark.quick
@pytest.mark.parametrize(
    "name", ["sum", "mean", "max", "min", "std", "dot", "clip", "where", "reshape", "median", "argmax"]
)
def test_numpys_function_of_a_traced_tensor_is_named(name):
    given = {"dot": [X.T], "clip": [0, 1], "where": [1.0, 2.0], "reshape": [(-1,)]}.get(name, [])
    told = rf"np\.{name} (needs numbers, and got Symbol.*|takes arrays and got a Symbol:) ?.*write "
    with pytest.raises(TypeError, match=told):
        function(lambda x: getattr(np, name)(x, *given))(constant(X))
    with pytest.raises(TypeError, match=told):
        fitted(Sequential([Dense(1)]), lambda y, p: getattr(np, name)((y - p) * (y - p), *given))


def test_numpys_functions_of_numbers_stay():
    x = constant(np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert np.mean(x) == 2.75 and np.size(x) == 4 and np.shape(x) == (2, 2) and np.allclose(x, x)
    assert np.concatenate([x, x]).shape == (4, 2) and np.array(x).tolist() == [[1.0, 2.0], [3.0, 5.0]]
    for call, told in (
        (lambda: np.sum(x), r"np.sum takes arrays and got a Tensor: write reduce_sum\(x\), or take the numbers"),
        (lambda: np.max(x), r"np.max takes arrays and got a Tensor: write reduce_max\(x\) of levels_more.low_level"),
        (lambda: np.exp(x), r"np.exp takes arrays and got a Tensor: write exp\(x\), or take the numbers, x.numpy\(\)"),
        (lambda: np.tan(x), r"np.tan takes arrays and got a Tensor: write it with the tensor's operators"),
    ):
        with pytest.raises(TypeError, match=told):
            call()


@pytest.mark.quick
def test_a_loss_that_left_the_tape_is_named():
    w = Variable(np.ones((3, 1), "f4"))
    for loss in (lambda e: np.mean(e * e), lambda e: float(reduce_mean(e * e)), lambda e: (e * e).numpy()):
        with GradientTape() as tape:
            y = loss(constant(X) @ w)
        with pytest.raises(
            TypeError, match="gradient: the target is .* a tape records tensors, and NumPy's functions leave"
        ):
            tape.gradient(y, w)
    with GradientTape() as tape:
        y = reduce_mean(constant(X) @ w)
    with pytest.raises(TypeError, match="gradient: source 1 is array"):
        tape.gradient(y, [w, X])


def without_super(base):
    class NoSuper(base):
        def __init__(self):
            if base is not SGD:
                self.dense = Dense(1)

        def call(self, x):
            return self.dense(x)

    return NoSuper()


@pytest.mark.quick
def test_a_part_whose_init_was_not_called_says_so():
    told = r"NoSuper is not ready: write super\(\).__init__\(\) as the first line of its __init__"
    for run in (
        lambda: without_super(Layer)(X),
        lambda: fitted(Sequential([without_super(Layer)])),
        lambda: without_super(Model)(X),
        lambda: without_super(Model).predict(X),
        lambda: fitted(without_super(Model)),
        lambda: fitted(Sequential([Dense(1)]), optimizer=without_super(SGD)),
    ):
        with pytest.raises(AttributeError, match=told):
            run()


@pytest.mark.parametrize("base", [Layer, Model])
def test_pytorchs_name_for_call_is_recognised(base):
    named = type("Net", (base,), {"forward": lambda self, x: x})
    for kind, told in (
        (named, "Net has no call; rename its `forward`"),
        (type("Net", (base,), {}), "Net has no call; write"),
    ):
        with pytest.raises(NotImplementedError, match=rf"{told}.*: `def call\(self, x\):`"):
            kind()(X)
    with pytest.raises(NotImplementedError, match="Net has no call; rename its `forward`"):
        fitted(named() if base is Model else Sequential([named()]))


@pytest.mark.quick
@pytest.mark.parametrize(
    "returns, told",
    [
        (lambda loss: None, "train_step returns nothing; expected the loss, one number"),
        (lambda loss: (loss, loss), "train_step returns a tuple; expected the loss, one number"),
        (lambda loss: {"loss": loss}, "Net.train_step: returns a dict; expected tensors"),
    ],
)
def test_a_train_step_without_one_loss_is_named(returns, told):
    class Net(Sequential):
        def train_step(self, x, y):
            return returns(super().train_step(x, y))

    with pytest.raises(TypeError, match=told):
        fitted(Net([Dense(1)]))
