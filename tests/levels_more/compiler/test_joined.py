"""Several ops as one: the bits, the gradients and the errors of the several, and whatever replaces one of them is
heard.
"""

import subprocess
import sys

import numpy as np
import pytest

from course.author.build import ROOT, environment
from levels_more.compiler.eager import backward
from levels_more.hardware import pool
from levels_more.kernels import counted, launch, use
from levels_more.low_level import VJPS, GradientTape, Variable, apply, backward_pass, constant, eager, function, nn
from levels_more.mid_level import SGD, BinaryCrossentropy, Dense, MeanSquaredError, affine, losses


@pytest.fixture(autouse=True)
def forgotten():
    backward._WALKS.clear()
    yield
    backward._WALKS.clear()


def layer_of(activation, dtype):
    draw = np.random.default_rng(0)
    layer = Dense(5, activation)
    layer.build_for((7, 3), np.dtype(dtype))
    layer.set_weights([draw.normal(size=size).astype(dtype) for size in ((3, 5), (1, 5))])
    return layer, constant(draw.normal(size=(7, 3)).astype(dtype))


def met(run, times=backward._SELDOM + 2):
    """(the ops on the tape, the value, its gradients) of the first tape, walked op by op, and of a later one, by a
    program.
    """
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


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_squared_error_is_its_ops(dtype):
    draw = np.random.default_rng(2)
    y, z = Variable(draw.normal(size=(9, 2)).astype(dtype)), Variable(draw.normal(size=(9, 2)).astype(dtype))
    loss = MeanSquaredError()
    (_, *wanted), _ = met(lambda: (losses.losses.Loss.__call__(loss, y, z.value), [y, z]), 1)
    for ops, *found in met(lambda: (loss(y, z.value), [y, z])):
        assert ops == ["mean_squared_error"]
        assert same(found, wanted, dtype)

    class Mine(losses.MeanSquaredError):
        def call(self, y_true, y_pred):
            return 0.0 * y_pred + 7.0

    assert float(Mine()(y, z)) == 7.0
    assert float(MeanSquaredError(reduction="sum")(y, z)) != float(loss(y, z))


@pytest.mark.quick
def test_a_launch_of_several_is_counted_as_one():
    layer, x = layer_of("relu", "f8")
    launches, nbytes = counted(lambda: [layer(x) for _ in range(5)])
    parts = counted(lambda: nn.relu(affine(x, layer.kernel, layer.bias)))
    assert (launches, nbytes) == (5, 5 * parts[1]) and parts[0] == 3


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


@pytest.mark.parametrize("often", [1, backward._SELDOM + 3])
@pytest.mark.parametrize("op, which", [("relu", 0), ("add", 1), ("matmul", 1)])
def test_a_rule_that_is_replaced_is_heard(op, which, often, monkeypatch):
    """Before the forward pass, and between it and the gradient; of few tapes, and of many, whose walk is a program."""
    layer, x = layer_of("relu", "f8")
    sources = [layer.kernel, layer.bias]
    met(lambda: (layer(x), sources), often)
    heard, rules = [], VJPS[op]

    def rule(*given, **attrs):
        heard.append(op)
        return rules[which](*given, **attrs) * 3.0

    with GradientTape() as tape:
        y = layer(x)
    monkeypatch.setitem(VJPS, op, (*rules[:which], rule, *rules[which + 1 :]))
    between = tape.gradient(y, sources)
    with GradientTape() as tape:
        y = nn.relu(x @ layer.kernel + layer.bias)
    apart = tape.gradient(y, sources)
    for _ in range(often):
        heard.clear()
        with GradientTape() as tape:
            y = layer(x)
        assert [name for name, *_ in tape.records] == ["matmul", "add", "relu"]
        after = tape.gradient(y, sources)
        assert heard
        for found in (between, after):
            assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(found, apart, strict=True))


def test_the_rule_of_the_mean_is_heard(monkeypatch):
    y, z = constant(np.ones((4, 1))), Variable(np.zeros((4, 1)))
    loss, rules = BinaryCrossentropy(from_logits=True), VJPS["reduce_mean"]
    with GradientTape() as tape:
        value = loss(y, z.value)
    before = tape.gradient(value, z).numpy()
    monkeypatch.setitem(VJPS, "reduce_mean", (lambda *given, **how: rules[0](*given, **how) * 3.0,))
    with GradientTape() as tape:
        value = loss(y, z.value)
    assert np.array_equal(tape.gradient(value, z).numpy(), 3.0 * before)


RULE_FIRST = """
import numpy as np
from levels_more.low_level import VJPS, GradientTape, constant

VJPS["relu"] = (lambda dy, y, x: dy * x,)
from levels_more.mid_level import Dense

layer, x = Dense(1, "relu"), constant(np.array([[2.0]]))
layer.build_for((1, 1), np.dtype("f8"))
layer.set_weights([np.array([[-1.5]]), np.array([[0.5]])])
with GradientTape() as tape:
    y = layer(x)
assert tape.gradient(y, layer.bias).numpy() == -2.5  # what relu was given, not what it gave
"""


TEXT_FIRST = """
import numpy as np
from levels.mid_level import layers, losses
from levels_more import mid_level

def affine(x, kernel, bias):
    return x @ kernel + bias + bias

def call(layer, x):
    return layer.activation(affine(x, layer.kernel, layer.bias)) + 0.0

%s
losses.squared_error = lambda y, z: z - y
layer = mid_level.Dense(1, "relu")
layer.build_for((1, 1), np.dtype("f8"))
layer.set_weights([np.array([[1.0]]), np.array([[0.5]])])
assert layer(np.array([[2.0]])).numpy() == 3.0
assert mid_level.MeanSquaredError()(np.array([[1.0]]), np.array([[4.0]])).numpy() == 3.0
"""


@pytest.mark.parametrize(
    "script",
    [RULE_FIRST, TEXT_FIRST % "layers.affine = affine", TEXT_FIRST % "layers.Dense.call = call"],
)
def test_what_the_reader_wrote_comes_first(script):
    subprocess.run([sys.executable, "-c", script], env=environment(ROOT), check=True)


FACTOR = 1.0


def test_what_a_kernel_reads_is_watched_in_a_walk_and_in_a_step(monkeypatch):
    here = sys.modules[__name__]
    w, optimizer = Variable(np.array([1.0])), SGD(0.5)
    with use("multiply", "cpu", lambda x, y: x * y * FACTOR):
        for _ in range(backward._SELDOM + 3):
            with GradientTape() as tape:
                y = w * 6.0
            (dw,) = tape.gradient(y, [w])
            optimizer.apply_gradients([(constant(np.array([0.0])), w)])
        monkeypatch.setattr(here, "FACTOR", 2.0)
        with GradientTape() as tape:
            y = w * 6.0
        assert dw.numpy() == 6.0 and tape.gradient(y, [w])[0].numpy() == 12.0
        optimizer.apply_gradients([(constant(np.array([1.0])), w)])
        assert w.numpy() == 0.0  # by the rate 0.5, twice


def test_a_loss_and_a_layer_of_the_readers_are_asked():
    class Mine(losses.BinaryCrossentropy):
        def call(self, y_true, y_pred):
            return 0.0 * y_pred + 7.0

    y, z = np.ones((4, 1)), np.zeros((4, 1))
    assert float(Mine(from_logits=True)(y, z)) == 7.0
    loss = BinaryCrossentropy(from_logits=True)
    mean = float(loss(y, z))
    loss.reduction = "sum"
    assert float(loss(y, z)) == 4.0 * mean
    layer, x = layer_of("relu", "f8")
    layer.units, layer.kernel = 1, Variable(np.ones((3, 1)))
    assert layer(x).shape == (7, 5)  # a bias that is wider


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
    x, b = constant(x.numpy()), constant(b.numpy())
    with pytest.raises(LookupError):
        backward_pass([("no_such_op", (x,), {}, b)], b, [x])
