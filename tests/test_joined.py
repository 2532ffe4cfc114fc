"""Several ops as one: the bits, the gradients and the errors of the several, and whatever replaces one of them is heard."""

import numpy as np
import pytest

from levels.hardware import pool
from levels.kernels import launch, use
from levels.low_level import VJPS, GradientTape, Variable, apply, constant, eager, function, nn, walk_back
from levels.mid_level import BinaryCrossentropy, Dense
from levels_more import walks


@pytest.fixture(autouse=True)
def forgotten():
    walks._WALKS.clear()
    yield
    walks._WALKS.clear()


def layer_of(activation, dtype):
    draw = np.random.default_rng(0)
    layer = Dense(5, activation)
    layer.build_for((7, 3), np.dtype(dtype))
    layer.set_weights([draw.normal(size=size).astype(dtype) for size in ((3, 5), (1, 5))])
    return layer, constant(draw.normal(size=(7, 3)).astype(dtype))


def met(run, times=walks._SELDOM + 2):
    """(the ops on the tape, the value, its gradients) of the first tape, walked op by op, and of a later one, by a program."""
    found = []
    for _ in range(times):
        with GradientTape() as tape:
            value, sources = run()
        ops = [op for op, *_ in tape.records]
        found.append((ops, value.numpy(), *[dx.numpy() for dx in tape.gradient(value, sources)]))
    return found[0], found[-1]


def same(found, wanted, dtype):
    equal = np.array_equal if dtype == "f8" else lambda a, b: np.allclose(a, b, 1e-5, 1e-6)
    return all(map(equal, found, wanted))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("activation", [None, "relu", "sigmoid"])
def test_a_layer_is_its_ops(activation, dtype):
    layer, x = layer_of(activation, dtype)
    sources = [layer.kernel, layer.bias, x]

    def apart():
        y = x @ layer.kernel + layer.bias
        return {"relu": nn.relu, "sigmoid": nn.sigmoid, None: lambda y: y}[activation](y), sources

    (_, *wanted), _ = met(apart, 1)
    for ops, *found in met(lambda: (layer(x), sources)):
        assert ops == {"relu": ["affine_relu"], "sigmoid": ["affine", "sigmoid"], None: ["affine"]}[activation]
        assert same(found, wanted, dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_loss_is_its_ops(dtype):
    draw = np.random.default_rng(1)
    y, z = constant(draw.integers(0, 2, (9, 1)).astype(dtype)), Variable(draw.normal(size=(9, 1)).astype(dtype))
    loss = BinaryCrossentropy(from_logits=True)

    def apart():
        each = apply("logits_crossentropy", y, z)
        return apply("reduce_mean", each, axis=None, keepdims=False), [z]

    (_, *wanted), _ = met(apart, 1)
    for ops, *found in met(lambda: (loss(y, z.value), [z])):
        assert ops == ["mean_logits_crossentropy"]
        assert same(found, wanted, dtype)
    with GradientTape() as tape:
        value = loss(y, z.value, sample_weight=np.ones((9, 1), dtype))  # this one is made of its parts
    assert len(tape.records) > 1 and same([value.numpy()], wanted, "f4")


def test_what_is_traced_stays_apart():
    layer, x = layer_of("relu", "f8")
    step = function(lambda x: layer(x))
    assert np.array_equal(step(x).numpy(), layer(x).numpy())
    ((program, _),) = step.programs.values()
    assert [node.op for node in program.graph.ops] == ["matmul", "add", "relu"]


def test_who_wants_each_op_gets_each():
    layer, x = layer_of("relu", "f8")
    with GradientTape() as tape, eager():
        apart = layer(x)
    assert [op for op, *_ in tape.records] == ["matmul", "add", "relu"]
    assert np.array_equal(apart.numpy(), layer(x).numpy())


def test_a_kernel_that_is_swapped_is_heard():
    layer, x = layer_of("relu", "f8")
    before, more = layer(x).numpy(), 1.0000000000001  # too little for a trial to refuse it
    kernel, bias = layer.kernel.numpy(), layer.bias.numpy()

    def product(out, x, w):
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                total = 0.0
                for k in range(x.shape[1]):
                    total += x[i, k] * w[k, j]
                out[i, j] = total * more

    with use("matmul", "cpu", product):
        y = (x @ kernel).numpy()
        assert np.array_equal(layer(x).numpy(), np.maximum(y + bias, 0.0)) and not np.array_equal(y, x.numpy() @ kernel)
        assert not np.array_equal(layer(x).numpy(), before)
    with use("relu", "cpu", lambda x: 0.0 if x <= 0.0 else x * more):
        assert np.array_equal(layer(x).numpy(), before * more)
    assert np.array_equal(layer(x).numpy(), before)


def test_a_joined_op_takes_a_kernel_too():
    layer, x = layer_of(None, "f8")
    before, more = layer(x).numpy(), 1.0000000000001

    def affine(out, x, w, b):
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                total = 0.0
                for k in range(x.shape[1]):
                    total += x[i, k] * w[k, j]
                out[i, j] = (total + b[0, j]) * more

    with use("affine", "cpu", affine):
        assert np.array_equal(layer(x).numpy(), before * more)
    assert np.array_equal(layer(x).numpy(), before)

    def mean(out, y, z):
        out[()] = 0.0

    with (
        pytest.raises(ValueError, match="mean_logits_crossentropy: refused"),
        use("mean_logits_crossentropy", "cpu", mean),
    ):
        pass


def test_a_rule_that_is_replaced_is_heard(monkeypatch):
    layer, x = layer_of("relu", "f8")
    z = (x @ layer.kernel + layer.bias).numpy()
    monkeypatch.setitem(VJPS, "relu", (lambda dy, y, z: dy * z,))
    with GradientTape() as tape:
        y = layer(x)
    assert np.allclose(tape.gradient(y, layer.bias).numpy(), z.sum(0, keepdims=True))


def test_gradients_of_gradients():
    layer, x = layer_of("relu", "f8")
    with GradientTape() as outer:
        with GradientTape() as inner:
            y = layer(x) * layer(x)
        (dw,) = inner.gradient(y, [layer.kernel])
    found = outer.gradient(dw, layer.kernel).numpy()
    with GradientTape() as outer:
        with GradientTape() as inner:
            y = nn.relu(x @ layer.kernel + layer.bias) * nn.relu(x @ layer.kernel + layer.bias)
        (dw,) = inner.gradient(y, [layer.kernel])
    assert np.array_equal(found, outer.gradient(dw, layer.kernel).numpy()) and found.any()


def test_wrong_shapes_are_told_as_by_the_ops_alone():
    cpu = pool()["cpu:0"]
    x, w, b = (cpu.put(np.ones(shape)) for shape in ((2, 3), (3, 4), (1, 4)))
    assert launch("affine", None, x, w, b).numpy().tolist() == [[4.0] * 4] * 2
    with pytest.raises(ValueError, match="matmul: x is .* inner sizes 3 and 2 differ"):
        launch("affine", None, x, x, b)
    with pytest.raises(ValueError, match="add: shapes"):
        launch("affine", None, x, w, x)
    with pytest.raises(ValueError, match="a number for each column"):
        launch("affine", None, x, w, cpu.put(np.ones((5, 1, 4))))
    with pytest.raises(LookupError):
        walk_back([("no_such_op", (x,), {}, b)], b, [x])
