"""TensorFlow's spelling: what a reader of its books and guides relies on, with numbers worked out apart from it."""

import math
import subprocess
import sys
import threading

import numpy as np
import pytest

import levels_more.tensorflow as tf
from course.build import ROOT, environment
from levels_more.tensorflow import keras, keras_steps
from levels_more.tensorflow.keras import layers

X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25], [-2.0, 1.5]])
Y = np.array([[1.0], [0.0], [1.0], [0.0]])
W, B = np.array([[0.3], [-0.2]]), np.array([0.15])


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


# Tensors.


@pytest.mark.quick
def test_python_floats_are_float32_and_whole_numbers_int64():
    assert tf.constant([1.0]).dtype == tf.float32
    assert tf.constant(np.array([1.0])).dtype == tf.float64
    assert tf.constant([1, 2]).dtype == tf.int32 == tf.int64 == np.int64
    assert tf.constant(np.array([1, 2], "i4")).dtype == tf.int64
    assert tf.constant(2, shape=(2, 3)).numpy().tolist() == [[2, 2, 2], [2, 2, 2]]
    with pytest.raises(TypeError, match="text"):
        tf.constant("hello")
    with pytest.raises(TypeError, match="do not mix"):
        tf.constant([1.0]) + tf.constant([1])


@pytest.mark.parametrize(
    "ours, wanted",
    [
        (lambda: tf.reduce_mean(tf.constant([1, 2, 4])), 2),
        (lambda: tf.reduce_mean(tf.constant([-1, -2])), -1),
        (lambda: tf.argmax(tf.constant([[1.0, 5.0], [2.0, 0.0]])), [1, 0]),
        (lambda: tf.matmul([[1, 2]], [[3], [4]]), [[11]]),
        (lambda: tf.reduce_sum(tf.ones([2, 3]), axis=[0, 1]), 6.0),
        (lambda: tf.one_hot(indices=[1, 0], depth=2), [[0.0, 1.0], [1.0, 0.0]]),
        (lambda: tf.gather(params=tf.constant([5.0, 6.0, 7.0]), indices=[2, 0]), [7.0, 5.0]),
        (lambda: tf.transpose(tf.constant([[1, 2, 3]]), perm=[1, 0]), [[1], [2], [3]]),
        (
            lambda: tf.clip_by_value(tf.constant([-3.0, 0.5, 9.0]), clip_value_min=-1.0, clip_value_max=1.0),
            [-1.0, 0.5, 1.0],
        ),
        (lambda: tf.constant([-7, 7]) % 3, [2, 1]),
        (lambda: tf.constant([-7.5, 7.5]) // 2.0, [-4.0, 3.0]),
        (lambda: tf.cast(tf.constant([1.9, -1.9]), "int32"), [1, -1]),
        (lambda: tf.where(tf.constant([0.0, 2.0, 3.0]) > 1.0), [[1], [2]]),
        (lambda: tf.boolean_mask(tf.constant([[1, 2], [3, 4]]), [True, False], axis=1), [[1], [3]]),
        (lambda: tf.clip_by_norm(tf.constant([3.0, 4.0]), 1.0), [0.6, 0.8]),
        (lambda: tf.math.cumsum(tf.constant([[1, 2], [3, 4]]), axis=1), [[1, 3], [3, 7]]),
        (lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[0.0]), [math.log(2.0)]),
        (lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0], logits=[[0.0, 0.0]]), [math.log(2.0)]),
        (lambda: tf.reshape(tf.range(1, 7, delta=2), [3, 1]), [[1], [3], [5]]),
        (lambda: tf.linalg.diag(tf.constant([1.0, 2.0])), [[1.0, 0.0], [0.0, 2.0]]),
        (lambda: tf.math.confusion_matrix([0, 1, 1], [0, 1, 0]), [[1, 0], [1, 1]]),
        (lambda: tf.math.top_k(tf.constant([1, 7, 5]), 2)[1], [1, 2]),
        (lambda: tf.constant(7) // 2, 3),
        (lambda: tf.constant(-7) % 3, 2),
        (lambda: tf.floor(tf.constant(2.5)), 2.0),
        (lambda: tf.constant([[1, 2], [3, 4]], shape=(4,)), [1, 2, 3, 4]),
        (lambda: tf.roll(tf.constant([1, 2, 3]), shift=1, axis=0), [3, 1, 2]),
        (lambda: tf.squeeze(tf.ones([1, 2, 1]), [0, 2]), [1.0, 1.0]),
        (lambda: keras.losses.get("mse")([[1.0]], [[3.0]]), [4.0]),
        (lambda: keras.optimizers.get("sgd").learning_rate, 0.01),
        (lambda: keras.metrics.get("mse")([[1.0]], [[3.0]]), [4.0]),
        (lambda: keras.initializers.get("ones")((2,)), [1.0, 1.0]),
        (lambda: tf.slice(tf.constant([[1, 2], [3, 4]]), [0, 1], [2, -1]), [[2], [4]]),
        (lambda: tf.reduce_sum(tf.ones([2, 3]), [1]), [3.0, 3.0]),
        (lambda: tf.cumsum(tf.constant([1, 2, 3]), exclusive=True, reverse=True), [5, 3, 0]),
        (lambda: tf.math.cumprod(tf.constant([1, 2, 3]), exclusive=True), [1, 1, 2]),
        (lambda: tf.foldr(lambda a, x: a - x, tf.constant([1, 2, 10])), 7),
        (lambda: tf.scan(lambda a, x: a + x, tf.range(4)), [0, 1, 3, 6]),
        (lambda: tf.map_fn(lambda x: x * x, tf.constant([2.0, 3.0])), [4.0, 9.0]),
        (lambda: tf.while_loop(lambda i: i < 5, lambda i: (i + 2,), [0])[0], 6),
        (lambda: tf.scatter_nd([[0], [2], [0]], [1.0, 2.0, 4.0], [3]), [5.0, 0.0, 2.0]),
        (lambda: tf.tensor_scatter_nd_update(tf.zeros([2, 2]), [[0, 1]], [7.0]), [[0.0, 7.0], [0.0, 0.0]]),
        (lambda: tf.unique(tf.constant([5, 3, 5]))[1], [0, 1, 0]),
        (lambda: tf.tensordot(tf.constant([[1.0, 2.0]]), tf.constant([[3.0], [4.0]]), axes=1), [[11.0]]),
        (lambda: tf.linalg.matvec(tf.constant([[1.0, 2.0]]), tf.constant([3.0, 4.0])), [11.0]),
        (lambda: tf.linalg.inv(tf.constant([[2.0, 0.0], [0.0, 4.0]])), [[0.5, 0.0], [0.0, 0.25]]),
        (lambda: tf.matmul(tf.ones([2, 1, 3]), tf.ones([3, 2])), [[[3.0, 3.0]], [[3.0, 3.0]]]),
        (lambda: tf.sort(tf.constant([1, 3, 2]), direction="DESCENDING"), [3, 2, 1]),
        (lambda: tf.one_hot([1], 2, on_value=5.0, off_value=-1.0), [[-1.0, 5.0]]),
        (lambda: tf.pad(tf.constant([[1, 2]]), [[1, 0], [0, 1]]), [[0, 0, 0], [1, 2, 0]]),
        (lambda: tf.reverse(tf.constant([[1, 2], [3, 4]]), [0, 1]), [[4, 3], [2, 1]]),
        (lambda: tf.maximum(0.0, [1, -1]), [1.0, 0.0]),
        (lambda: tf.pow(tf.constant([2, -3]), 3), [8, -27]),
        (lambda: tf.math.divide_no_nan(tf.constant([1.0, 2.0]), [0.0, 4.0]), [0.0, 0.5]),
        (lambda: tf.math.expm1(tf.constant([1e-6, 1.0])), [1.0000005e-6, math.e - 1.0]),
        (lambda: tf.sinh(tf.constant([1.0])) + tf.cosh(tf.constant([1.0])) - tf.tan(tf.constant([0.0])), [math.e]),
    ],
)
def test_functions_are_tensorflows(ours, wanted):
    found = ours().numpy()
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_curves_are_right_far_from_zero_and_near_it(dtype):
    x = np.array([-np.inf, -80.0, -20.0, -1.0, -1e-7, -0.0, 1e-7, 3.0, 80.0, np.inf, np.nan], dtype)
    for name in ("sinh", "cosh", "expm1"):
        found = getattr(tf.math, name)(tf.constant(x)).numpy()
        np.testing.assert_allclose(found, getattr(np, name)(x), rtol=100 * np.finfo(dtype).eps, err_msg=name)


def test_angles_have_numpys_numbers_and_slopes():
    x = np.array([-0.9, -0.0, 0.3, 0.9])
    sizes = {"asin": np.sqrt(1 - x * x), "acos": -np.sqrt(1 - x * x), "atan": 1 + x * x, "atanh": 1 - x * x}
    sizes |= {"asinh": np.sqrt(1 + x * x)}
    for name, size in sizes.items():
        with tf.GradientTape() as tape:
            v = tf.Variable(x)
            y = getattr(tf, name)(v)
        assert y.numpy().tobytes() == getattr(np, name.replace("a", "arc", 1))(x).tobytes(), name
        np.testing.assert_allclose(tape.gradient(y, v).numpy(), 1 / size, rtol=1e-14, err_msg=name)
    with tf.GradientTape() as tape:
        y, x = tf.Variable([3.0]), tf.Variable([4.0])
        z = tf.atan2(y, x)
    np.testing.assert_allclose([d.numpy()[0] for d in tape.gradient(z, [y, x])], [4 / 25, -3 / 25], rtol=1e-6)


def test_shapes_are_tuples_and_numpys_functions_take_arrays():
    """What the module's docstring says to write instead gives what TensorFlow gives."""
    array = np.array([[1.0, 2.0], [3.0, 4.0]], "f4")
    x = tf.constant(array)
    assert "list(x.shape)" in tf.__doc__ and "np.exp(x.numpy())" in tf.__doc__
    assert list(x.shape) == [2, 2] and len(x.shape) == 2
    for each in (x, tf.Variable(x)):
        with pytest.raises(TypeError, match="takes arrays and got a"):
            np.exp(each)
        assert np.exp(each.numpy()).tobytes() == np.exp(array).tobytes()
        assert isinstance(array + each, tf.Tensor) and isinstance(np.float32(2.0) * each, tf.Tensor)


def test_whole_numbers_are_drawn_below_the_largest():
    drawn = tf.random.uniform([100], 0, 3, dtype=tf.int32)
    assert drawn.dtype == tf.int64 and {*drawn.numpy().tolist()} == {0, 1, 2}


@pytest.mark.quick
def test_slopes_of_what_is_left_of_a_division():
    x, y = tf.Variable(7.5, dtype=tf.float64), tf.Variable(2.0, dtype=tf.float64)
    with tf.GradientTape() as tape:
        z = x % y
    assert [float(d) for d in tape.gradient(z, [x, y])] == [1.0, -3.0]


# Variables and modules.


def test_a_variable_is_what_assign_gives_back():
    v = tf.Variable([1.0, 2.0])
    assert v.assign([3, 4]) is v and v.assign_add([1, 1]).numpy().tolist() == [4.0, 5.0]
    assert v.assign_sub(np.array([1.0, 1.0])).value().numpy().tolist() == [3.0, 4.0]
    with pytest.raises(ValueError, match="assign"):
        v.assign([1.0])


def test_a_module_has_its_variables_in_the_order_of_their_names():
    class Line(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            self.w, self.b = tf.Variable([[1.0]]), tf.Variable([0.0])
            self.fixed = tf.Variable(3.0, trainable=False)

    line = Line(name="line")
    assert line.variables == (line.b, line.fixed, line.w) and line.trainable_variables == (line.b, line.w)
    assert line.name == "line" and Line().name == "line"


# The tape.


def test_gradients_go_to_what_is_watched():
    x, fixed, c = tf.Variable(3.0), tf.Variable(3.0, trainable=False), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(c)
        y = x * x + fixed * fixed + c * x
    dx, dfixed, dc, other = tape.gradient(y, [x, fixed, c, tf.constant(1.0)])
    assert (float(dx), dfixed, float(dc), other) == (8.0, None, 3.0, None)
    with pytest.raises(RuntimeError, match="persistent"):
        tape.gradient(y, x)


def test_sources_and_targets_in_dicts_and_second_order():
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        targets = {"square": x**2, "inverse": 1 / x}
    assert float(tape.gradient(targets, {"x": x})["x"]) == 3.75
    assert tape.gradient(targets, tf.Variable(1.0), unconnected_gradients=tf.UnconnectedGradients.ZERO).numpy() == 0.0
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        dy = inner.gradient(y, x)
    assert (float(dy), float(outer.gradient(dy, x))) == (12.0, 12.0)


def test_an_assigned_source_is_refused():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        x.assign(5.0)
    with pytest.raises(ValueError, match="assigned"):
        tape.gradient(y, x)


# Functions.


def test_a_function_is_traced_once_for_each_signature():
    traced = []

    @tf.function
    def double(x, much=False):
        traced.append(x)
        return x * (4.0 if much else 2.0)

    found = [float(double(tf.constant(v))) for v in (1.0, 3.0)] + [float(double(tf.constant(1.0), much=True))]
    assert found == [2.0, 6.0, 4.0] and len(traced) == 2


def test_arguments_and_results_may_be_nested():
    @tf.function
    def both(pair, named):
        return {"sum": pair[0] + pair[1], "rest": (named["a"] * 2.0, None, 3)}

    found = both((tf.constant(1.0), tf.constant(2.0)), {"a": tf.constant(5.0)})
    assert float(found["sum"]) == 3.0 and float(found["rest"][0]) == 10.0
    assert found["rest"][1] is None and int(found["rest"][2]) == 3
    again = both((tf.constant(10.0), tf.constant(2.0)), {"a": tf.constant(1.0)})
    assert float(again["sum"]) == 12.0 and float(again["rest"][0]) == 2.0


def test_what_cannot_be_traced_runs_op_by_op(capsys):
    @tf.function
    def collatz(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        tf.print("steps:", steps)
        return steps

    assert [int(collatz(tf.constant(n))) for n in (6, 7)] == [8, 16]
    assert capsys.readouterr().out == "steps: 8\nsteps: 16\n"


def test_time_is_not_frozen_in_a_trace():
    now = tf.function(lambda: tf.timestamp())
    first, second = now(), now()
    assert float(second) >= float(first) > 1.6e9 and now.eager


def test_a_variable_is_no_constant_of_a_trace():
    @tf.function
    def grow(v):
        v.assign_add(1.0)
        return v * 2.0

    v, w = tf.Variable(1.0), tf.Variable(10.0)
    assert [float(grow(v)), float(grow(v)), float(grow(w)), float(v), float(w)] == [4.0, 6.0, 22.0, 3.0, 11.0]


def test_an_input_signature_is_heeded():
    class Net(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec(shape=[None, 2], dtype=tf.float64)])
        def __call__(self, x):
            return tf.reduce_sum(x, axis=1)

    assert Net()(X).numpy().tolist() == X.sum(1).tolist()
    for wrong in (X[0], X.astype("f4"), np.ones((3, 3))):
        with pytest.raises(TypeError, match="input_signature says"):
            Net()(wrong)


def test_functions_run_in_threads():
    square = tf.function(lambda x: x * x)
    found = {}

    def work(k):
        found[k] = [float(square(tf.constant(float(k)))) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [float(k * k)] * 20 for k in range(4)}


def test_text_of_tensors(capsys):
    tf.print("w =", tf.constant([1, 2]), sep=" ")
    assert capsys.readouterr().out == "w = [1 2]\n"
    assert tf.strings.format("epoch={}, loss={}", (tf.constant(3), tf.constant(0.5))) == "epoch=3, loss=0.5"
    assert tf.strings.join(["a", "b"], separator=":") == "a:b" and tf.strings.length("abc") == 3


# Data.


def test_stages_of_a_dataset_see_tensors():
    data = tf.data.Dataset.from_tensor_slices((X, Y)).map(
        lambda x, y: (x * 2.0, y), num_parallel_calls=tf.data.AUTOTUNE
    )
    (x, y), *_ = data.batch(3).prefetch(tf.data.AUTOTUNE)
    assert x.numpy().tolist() == (2.0 * X[:3]).tolist() and y.shape == (3, 1)
    numbers = tf.data.Dataset.range(7)
    assert [int(v) for v in numbers.filter(lambda v: v % 2 == 0).map(lambda v: tf.square(v))] == [0, 4, 16, 36]
    assert int(numbers.reduce(0, lambda total, v: total + v)) == 21
    assert [v.tolist() for v in numbers.batch(3).as_numpy_iterator()] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [int(v) for v in numbers.batch(3).unbatch()] == [*range(7)]
    windows = numbers.window(3, shift=2, drop_remainder=True).flat_map(lambda window: window.batch(3))
    assert [v.numpy().tolist() for v in windows] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]


def test_a_generator_with_a_signature():
    data = tf.data.Dataset.from_generator(
        lambda stop: ((k, 0.5 * k) for k in range(stop)),
        args=[3],
        output_signature=(tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.float32)),
    )
    assert [(int(a), float(b), b.dtype == tf.float32) for a, b in data] == [
        (0, 0.0, True),
        (1, 0.5, True),
        (2, 1.0, True),
    ]


# Keras.


def dense(units=1, dtype=None):
    layer = layers.Dense(units, dtype=dtype)
    layer.build(input_shape=(None, 2))
    layer.set_weights([W, B])
    return layer


def test_a_layer_has_keras_shapes_and_dtypes():
    layer = dense()
    assert [w.shape for w in layer.get_weights()] == [(2, 1), (1,)] and layer.kernel.dtype == tf.float32
    y = layer(X)  # float64 comes in, and float32 goes out
    assert y.dtype == tf.float32
    np.testing.assert_allclose(y.numpy(), X @ W + B, rtol=1e-6)
    np.testing.assert_allclose(dense(dtype="float64")(X).numpy(), X @ W + B, rtol=1e-15)


def test_losses_are_those_of_keras():
    p = sigmoid(X @ W + B)
    each = -(Y * np.log(p) + (1.0 - Y) * np.log(1.0 - p))[:, 0]
    np.testing.assert_allclose(keras.losses.binary_crossentropy(Y, p).numpy(), each, rtol=1e-12)
    for reduction, wanted in (("sum_over_batch_size", each.mean()), ("sum", each.sum()), ("none", each)):
        loss = keras.losses.BinaryCrossentropy(reduction=reduction, name="bce")
        np.testing.assert_allclose(loss(Y, p).numpy(), wanted, rtol=1e-12)
    np.testing.assert_allclose(keras.losses.MeanSquaredError()(Y[:, 0], p).numpy(), np.mean((Y - p) ** 2), rtol=1e-12)
    with pytest.raises(ValueError, match="reduction"):
        keras.losses.Huber(reduction="most")


def test_adam_takes_the_steps_of_keras():
    w, optimizer = tf.Variable([0.5, -0.25], dtype=tf.float64), keras.optimizers.Adam(learning_rate=0.01, name="mine")
    v = m = 0.0
    wanted = np.array([0.5, -0.25])
    for t in range(1, 6):
        g = np.array([1e-6, 0.3 * t])  # so small a gradient tells where ε stands
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        wanted = wanted - 0.01 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-7)
        optimizer.apply_gradients([(tf.constant(g), w)])
        assert int(float(optimizer.iterations)) == t
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-12)


def test_gradients_of_nothing():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    optimizer = keras.optimizers.SGD(0.5)
    optimizer.apply_gradients([(tf.constant(1.0), v), (None, w)])
    assert (float(v), float(w)) == (0.5, 1.0)
    with pytest.raises(ValueError, match="no gradient"):
        optimizer.apply_gradients([(None, w)])


def test_metrics_are_tensors_and_forget():
    mean, right = keras.metrics.Mean(name="loss", dtype=tf.float32), keras.metrics.BinaryAccuracy()
    mean.update_state(2.0)
    mean(4.0)
    right.update_state(Y, tf.constant(sigmoid(X @ W + B)))
    assert mean.result().numpy() == 3.0 and right.result().numpy() == np.mean((X @ W + B > 0.0) == (Y > 0.5))
    mean.reset_states()
    assert mean.result().numpy() == 0.0

    class Counter(keras.metrics.Metric):
        def __init__(self, name="counter", **options):
            super().__init__(name=name, **options)
            self.total = self.add_weight(name="total", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign_add(tf.reduce_sum(y_true))

        def result(self):
            return self.total

    counter = Counter()
    counter.update_state(tf.constant([1.0, 1.0]), None)
    assert float(counter.result()) == 2.0
    counter.reset_state()
    assert float(counter.result()) == 0.0


class Net(keras.Model):
    def build(self, input_shape):
        self.hidden = layers.Dense(3, activation="relu", name="hidden")
        self.out = layers.Dense(1, activation="sigmoid", name="out")
        super().build(input_shape)

    def call(self, x, training=None):
        return self.out(self.hidden(x))


def rings(model):
    """Weights and a training of SGD, worked out with NumPy: the losses of three epochs of two batches."""
    rng = np.random.default_rng(0)
    w = [rng.normal(0.0, 0.5, size) for size in ((2, 3), (3,), (3, 1), (1,))]
    model.set_weights(w)
    found = []
    for _ in range(3):
        losses = []
        for rows in ([0, 1], [2, 3]):
            x, y = X[rows], Y[rows]
            h = np.maximum(x @ w[0] + w[1], 0.0)
            p = sigmoid(h @ w[2] + w[3])
            losses.append(-(y * np.log(p) + (1 - y) * np.log(1 - p)).mean())
            dz = (p - y) / 2.0
            dh = dz @ w[2].T * (h > 0.0)
            gradients = x.T @ dh, dh.sum(0), h.T @ dz, dz.sum(0)
            w = [v - 0.1 * dv for v, dv in zip(w, gradients, strict=True)]
        found.append(np.mean(losses))
    return found


def functional():
    inputs = keras.Input(shape=(2,))
    return keras.Model(inputs=inputs, outputs=layers.Dense(1, "sigmoid")(layers.Dense(3, "relu")(inputs)))


def sequential():
    return keras.Sequential(
        [layers.Dense(3, activation="relu", input_shape=(2,)), layers.Dense(1, activation="sigmoid")]
    )


def subclassed():
    model = Net()
    model.build(input_shape=(None, 2))
    return model


@pytest.fixture
def float64():
    keras.backend.set_floatx("float64")
    yield
    keras.backend.set_floatx("float32")


@pytest.mark.parametrize("make", [functional, sequential, subclassed])
def test_three_ways_to_a_model_and_one_training(make, float64):
    model = make()
    wanted = rings(model)
    model.compile(optimizer=keras.optimizers.SGD(learning_rate=0.1), loss="binary_crossentropy", metrics=["accuracy"])
    history = model.fit(X, Y, batch_size=2, epochs=3, shuffle=False, verbose=0)
    np.testing.assert_allclose(history.history["loss"], wanted, rtol=1e-12)
    assert history.epoch == [0, 1, 2] and [*history.history] == ["loss", "accuracy"]
    assert len(model.trainable_variables) == 4 and model.count_params() == 13 and len(model.layers) == 2


def test_a_loop_of_ones_own(float64):
    model, optimizer = functional(), keras.optimizers.SGD(0.1)
    wanted = rings(model)
    loss_of = keras.losses.BinaryCrossentropy()

    @tf.function
    def train_step(model, x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(2)
    found = [np.mean([float(train_step(model, x, y)) for x, y in data]) for _ in range(3)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert not train_step.eager


def test_dropout_has_no_weights_and_is_still_in_evaluation():
    model = keras.Sequential([layers.Dense(1, input_shape=(2,)), layers.Dropout(0.5)])
    assert len(model.get_weights()) == 2 and model.count_params() == 3
    assert model(X).numpy().tolist() == model.layers[0](X).numpy().tolist()


def test_a_callback_hears_the_mean_of_the_epoch_so_far(float64):
    heard = []

    class Hearing(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            heard.append(logs["loss"])

    model = functional()
    (first, *_) = rings(model)
    model.compile(keras.optimizers.SGD(0.1), "binary_crossentropy")
    model.fit(X, Y, batch_size=2, epochs=1, shuffle=False, verbose=0, callbacks=[Hearing()])
    np.testing.assert_allclose(heard[1], first, rtol=1e-12)


def test_what_is_saved_comes_back(tmp_path):
    model = sequential()
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    model.fit(X, Y, epochs=1, verbose=0)
    model.save(tmp_path / "model.keras")
    other = keras.models.load_model(tmp_path / "model.keras")
    assert type(other.layers[0]) is layers.Dense and other.predict(X).tolist() == model.predict(X).tolist()
    assert type(other.optimizer) is keras.optimizers.Adam
    checkpoint = tf.train.Checkpoint(model=model, step=tf.Variable(3))
    path = checkpoint.write(str(tmp_path / "checkpoint"))
    model.layers[0].kernel.assign(np.zeros((2, 3)))
    checkpoint.restore(path)
    assert other.predict(X).tolist() == model.predict(X).tolist()
    with pytest.raises(ValueError, match="expected"):
        tf.train.Checkpoint(net=model).restore(path)


def test_outputs_in_a_dict():
    inputs = keras.Input(shape=(2,))
    ends = {"b": layers.Dense(1, name="b")(inputs), "a": layers.Dense(2, name="a")(inputs)}
    found = keras.Model(inputs, ends).predict(X)
    assert [*found] == ["a", "b"] and found["a"].shape == (4, 2)
    with pytest.raises(ValueError, match="one name"):
        keras.Model(inputs, {"c": ends["a"]})


def test_a_penalty_of_a_call():
    class Penalty(layers.Layer):
        def call(self, x):
            self.add_loss(0.5 * tf.reduce_sum(x))
            return x

    layer = Penalty()
    layer(X), layer(X)
    assert [float(loss) for loss in layer.losses] == [np.float32(0.5 * X.sum())]


def test_columns_are_normalised():
    normal = layers.Normalization()
    normal.adapt(X)
    found = normal(X).numpy()
    np.testing.assert_allclose(found, (X - X.mean(0)) / X.std(0), rtol=1e-5)


def test_summaries_are_written(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        tf.summary.scalar("loss", tf.constant(0.5), step=1)
    writer.close()
    assert [path.name for path in tmp_path.iterdir()][0].startswith("events")


# Names.


def test_a_missing_name_says_what_to_use():
    for place, name, cure in (
        (tf, "TensorArray", "a Python list"),
        (layers, "LSTM", "dir"),
        (tf.keras, "datasets", "course.data"),
        (tf.math, "bessel", "dir"),
    ):
        with pytest.raises(AttributeError, match=cure):
            getattr(place, name)
        assert not hasattr(place, name)
    with pytest.raises(ImportError, match="Conv2D"):
        from levels_more.tensorflow.keras.layers import Conv2D  # noqa: F401


def test_rooms_can_be_imported():
    code = """
import sys
import levels_more.high_level
assert not any(name.startswith("levels_more.tensorflow") for name in sys.modules)
import levels_more.tensorflow.keras.backend as K
from levels_more.tensorflow.keras.layers import Dense, Input
from levels_more.tensorflow.keras.optimizers.schedules import CosineDecay
from levels_more.tensorflow.data import Dataset
assert "tensorflow" not in sys.modules and "pandas" not in sys.modules
print(K.floatx(), Dense(2).units)
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment(ROOT), capture_output=True, text=True)
    assert ran.stdout == "float32 2\n", ran.stderr


def test_callbacks_hear_of_validation_and_prediction(float64):
    heard = []

    class Hearing(keras.callbacks.Callback):
        def on_test_begin(self, logs=None):
            heard.append("test")

        def on_test_end(self, logs=None):
            heard.append(logs["loss"])

        def on_epoch_end(self, epoch, logs=None):
            heard.append((epoch, logs["val_loss"]))

        def on_predict_batch_end(self, batch, logs=None):
            heard.append((batch, logs["outputs"].shape))

    model, kept = functional(), keras.callbacks.History()
    rings(model)
    model.compile(keras.optimizers.SGD(0.1), "binary_crossentropy")
    history = model.fit(X, Y, epochs=1, validation_data=(X, Y), verbose=0, callbacks=[Hearing(), kept])
    (loss,) = history.history["val_loss"]
    assert heard == ["test", loss, (0, loss)] and kept.history == history.history
    assert model.evaluate(X, Y, callbacks=[Hearing()]) == loss
    found = model.predict(X, batch_size=3, callbacks=[Hearing()])
    assert heard[3:] == ["test", loss, (0, (3, 1)), (1, (1, 1))] and found.tolist() == model.predict(X).tolist()

    class Wrong(Hearing):
        def on_train_batch_begins(self, batch, logs=None):
            raise AssertionError

    with pytest.raises(TypeError, match="nobody calls on_train_batch_begins"):
        model.fit(X, Y, verbose=0, callbacks=[Wrong()])


def test_a_metric_that_is_called_in_a_step_leaves_it_traced():
    mean = keras.metrics.Mean()

    @tf.function
    def step(x):
        mean(x)
        return x * 2.0

    @tf.function
    def result(x):
        return mean(x)

    assert [float(step(tf.constant(v))) for v in (1.0, 3.0)] == [2.0, 6.0] and not step.eager
    assert mean.result().numpy() == 2.0
    mean.reset_state()
    assert float(result(tf.constant(5.0))) == 5.0 and not result.eager
    assert float(result(tf.constant(8.0))) == 6.5  # what it is after the call

    @tf.function
    def before(x):
        told = mean.result()
        mean(x)
        return told

    assert float(before(tf.constant(2.0))) == 6.5 and before.eager  # which is not what this one gives


def test_weighted_metrics_heed_weights_of_rows():
    model = functional()
    model.compile(
        "sgd",
        "binary_crossentropy",
        metrics=["mae"],
        weighted_metrics=[keras.metrics.MeanAbsoluteError(name="weighted")],
    )
    weight = np.array([1.0, 0.0, 2.0, 0.0], "f4")
    error = np.abs(model.predict(X) - Y)[:, 0]
    history = model.fit(X, Y, sample_weight=weight, batch_size=4, epochs=1, verbose=0).history
    np.testing.assert_allclose(history["mae"], error.mean(), rtol=1e-6)
    np.testing.assert_allclose(history["weighted"], (error * weight).sum() / 3.0, rtol=1e-6)


# Steps of the reader's own.


class Stepping(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables, strict=True)
        )
        for metric in self.metrics:
            metric.update_state(*(loss,) if metric.name == "loss" else (y, y_pred))
        return {metric.name: metric.result() for metric in self.metrics}


def graph_of(kind):
    inputs = keras.Input((2,))
    model = kind(inputs, layers.Dense(1, "sigmoid")(inputs))
    model.set_weights([W, B])
    model.compile(keras.optimizers.SGD(0.5), "mse", metrics=["mae"])
    return model


def test_a_step_of_data_trains_as_fit_does(float64, monkeypatch):
    """In a class of the reader's that is made of inputs and outputs; the step is traced once, also for what it tells."""
    made, own = [], keras_steps.Function
    monkeypatch.setattr(keras_steps, "Function", lambda python: made.append(own(python)) or made[-1])
    own_step, plain = graph_of(Stepping), graph_of(keras.Model)
    assert isinstance(own_step, Stepping) and type(own_step).__name__ == "Stepping"
    held = {"validation_data": (X[:2], Y[:2]), "shuffle": False, "verbose": 0}
    told = own_step.fit(X, Y, batch_size=2, epochs=3, **held).history
    wanted = plain.fit(X, Y, batch_size=2, epochs=3, **held).history
    assert told.keys() == wanted.keys() == {"loss", "mae", "val_loss", "val_mae"}
    for name in told:
        np.testing.assert_allclose(told[name], wanted[name], rtol=1e-12)
    assert len(made) == 1 and not made[0].eager
    assert len(own_step.history.losses) == 6
    error = sigmoid(X[:2] @ W + B) - Y[:2]
    np.testing.assert_allclose(own_step.history.losses[0], (error**2).mean(), rtol=1e-12)


def test_a_step_may_be_given_rows_alone_and_tell_what_it_likes():
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = layers.Dense(2, kernel_initializer="ones")

        def call(self, x):
            return self.inner(x)

        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(data - self(data)))
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return {"a": loss, "more": {"b": 2.0 * loss}}

        def test_step(self, data):
            return {"loss": tf.reduce_mean(data[0])}

    model, x = Two(), X.astype("f4")
    model.compile("sgd")
    history = model.fit(x, batch_size=4, epochs=2, verbose=0).history
    np.testing.assert_allclose(history["a"][0], ((x - x.sum(1, keepdims=True)) ** 2).mean(), rtol=1e-6)
    assert history["b"] == [2.0 * a for a in history["a"]] and history.keys() == {"a", "b"}
    np.testing.assert_allclose(model.evaluate(x, Y, verbose=0), x.mean(), rtol=1e-6)
    data = tf.data.Dataset.from_tensor_slices(x).batch(2)
    assert len(model.fit(data, epochs=2, steps_per_epoch=1, verbose=0).losses) == 2
    Two.train_step = lambda self, data: None
    with pytest.raises(TypeError, match='expected a dict, such as {"loss": loss}'):
        model.fit(x, verbose=0)


def test_a_step_goes_on_to_keras_own(float64):
    class Counting(keras.Model):
        def train_step(self, data):
            return super().train_step(data) | {"steps": self.optimizer.iterations}

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return 2.0 * super().compute_loss(x, y, y_pred, sample_weight)

    model, weight = graph_of(Counting), np.array([1.0, 0.0, 2.0, 1.0])
    history = model.fit(X, Y, sample_weight=weight, batch_size=4, epochs=2, shuffle=False, verbose=0).history
    error = (sigmoid(X @ W + B) - Y)[:, 0]
    np.testing.assert_allclose(history["loss"][0], 2.0 * (error**2 * weight).mean(), rtol=1e-12)
    np.testing.assert_allclose(history["mae"][0], np.abs(error).mean(), rtol=1e-12)
    assert history["steps"] == [1.0, 2.0]


def test_no_loss_is_refused():
    model = graph_of(keras.Model)
    model.compile("sgd")
    with pytest.raises(ValueError, match="there is no loss"):
        model.fit(X, Y, verbose=0)


@pytest.mark.parametrize("known", [True, False])
def test_an_epoch_of_so_many_steps_ends_with_the_data(known):
    """As in Keras: what is left makes a shorter epoch, and the next one begins anew."""
    data = tf.data.Dataset.range(4) if known else tf.data.Dataset.from_generator(lambda: iter(range(4)))
    data = data.batch(1).steps(3)
    with pytest.warns(UserWarning, match="an epoch has 1 steps, not 3; repeat"):
        assert [[int(x[0]) for x in data] for _ in range(3)] == [[0, 1, 2], [3], [0, 1, 2]]
    data = tf.data.Dataset.range(4).batch(1).steps(2)
    assert [[int(x[0]) for x in data] for _ in range(3)] == [[0, 1], [2, 3], [0, 1]]
    model, options = graph_of(keras.Model), {"batch_size": 1, "verbose": 0}
    with pytest.raises(ValueError, match="steps_per_epoch is 3 of 4 batches"):
        model.fit(X, Y, steps_per_epoch=3, **options)
    assert len(model.fit(X, Y, steps_per_epoch=2, epochs=3, **options).losses) == 6


# More metrics, losses, layers: against NumPy.

RIGHT = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0], "f4")
SAID = np.array([0.9, 0.8, 0.2, 0.7, 0.1, 0.4], "f4")
SHARES = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.1, 0.2, 0.7]], "f4")


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("TruePositives", lambda y, p: (y * p).sum()),
        ("TrueNegatives", lambda y, p: ((1 - y) * (1 - p)).sum()),
        ("FalsePositives", lambda y, p: ((1 - y) * p).sum()),
        ("FalseNegatives", lambda y, p: (y * (1 - p)).sum()),
        ("F1Score", lambda y, p: 2 * (y * p).sum() / (y.sum() + p.sum())),
    ],
)
def test_counts_of_answers(name, wanted):
    options = {"threshold": 0.3} if name == "F1Score" else {"thresholds": 0.3}
    metric = getattr(keras.metrics, name)(**options)
    for part in (slice(0, 4), slice(4, 6)):
        metric.update_state(RIGHT[part, None], SAID[part, None])
    np.testing.assert_allclose(np.ravel(metric.result()), wanted(RIGHT, (SAID > 0.3) * 1.0), rtol=1e-6)
    metric.reset_state()
    assert metric.result().numpy() == 0.0


def test_places_among_the_best_and_sums():
    classes, hot = np.array([1, 2, 1]), np.eye(3, dtype="f4")[[1, 2, 1]]
    for k, wanted in ((1, 1 / 3), (2, 2 / 3), (3, 1.0)):
        for kind, y in (("SparseTopKCategoricalAccuracy", classes), ("TopKCategoricalAccuracy", hot)):
            np.testing.assert_allclose(getattr(keras.metrics, kind)(k)(y, SHARES).numpy(), wanted, rtol=1e-6)
    assert keras.metrics.SparseTopKCategoricalAccuracy().name == "sparse_top_k_categorical_accuracy"
    bad = np.where(hot > 0.0, np.nan, SHARES).astype("f4")
    assert float(keras.metrics.SparseTopKCategoricalAccuracy(3)(classes, bad)) == 0.0
    total = keras.metrics.Sum()
    total.update_state([1.0, 2.0]), total.update_state(4.0)
    assert float(total.result()) == 7.0


def test_the_area_under_precision_over_recall():
    """Of answers in perfect order it is 1; of one score for all it is the share of what is 1."""
    for y_pred, wanted in ((RIGHT * 0.8 + 0.1, 1.0), (np.full(6, 0.5, "f4"), 0.5)):
        np.testing.assert_allclose(float(keras.metrics.AUC(curve="PR")(RIGHT, y_pred)), wanted, rtol=1e-5)
    with pytest.raises(TypeError, match="'ROC' or 'PR'"):
        keras.metrics.AUC(curve="pr")


def test_scores_of_classes():
    y, p = np.eye(3, dtype="f4")[[1, 2, 1]], SHARES  # called 1, 0, 2
    each = np.array([0.0, 2 / 3, 0.0])
    for average, wanted in ((None, each), ("macro", each.mean()), ("micro", 1 / 3), ("weighted", each[1] * 2 / 3)):
        np.testing.assert_allclose(keras.metrics.F1Score(average=average)(y, p).numpy(), wanted, rtol=1e-6)
    with pytest.raises(TypeError, match="'macro', 'micro' or 'weighted'"):
        keras.metrics.F1Score("all")


def smooth(y, share, classes):
    return y * (1.0 - share) + share / classes


def crossed(y, p):
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


@pytest.mark.parametrize(
    "name, options, wanted",
    [
        ("LogCosh", {}, lambda y, p: np.log(np.cosh(p - y)).mean()),
        ("Hinge", {}, lambda y, p: np.maximum(0, 1 - (2 * y - 1) * p).mean()),
        ("SquaredHinge", {}, lambda y, p: (np.maximum(0, 1 - (2 * y - 1) * p) ** 2).mean()),
        ("CategoricalHinge", {}, lambda y, p: np.maximum(0, ((1 - y) * p).max(1) - (y * p).sum(1) + 1).mean()),
        ("KLDivergence", {}, lambda y, p: -(y * np.log(p)).sum(1).mean()),
        ("Poisson", {}, lambda y, p: (p - y * np.log(p)).mean()),
        ("CosineSimilarity", {}, lambda y, p: -((y * p).sum(1) / np.sqrt((p * p).sum(1))).mean()),
        ("MeanSquaredLogarithmicError", {}, lambda y, p: ((np.log1p(p) - np.log1p(y)) ** 2).mean()),
        ("BinaryCrossentropy", {"label_smoothing": 0.2}, lambda y, p: crossed(smooth(y, 0.2, 2), p).mean()),
        (
            "CategoricalCrossentropy",
            {"label_smoothing": 0.3},
            lambda y, p: -(smooth(y, 0.3, 3) * np.log(p)).sum(1).mean(),
        ),
        (
            "BinaryFocalCrossentropy",
            {"apply_class_balancing": True},
            lambda y, p: (
                np.where(y, 0.25, 0.75) * (1 - np.where(y, p, 1 - p)) ** 2 * -np.log(np.where(y, p, 1 - p))
            ).mean(),
        ),
    ],
)
def test_more_losses(name, options, wanted):
    y = np.eye(3, dtype="f4")[[1, 2, 1]]
    loss = getattr(keras.losses, name)(**options)
    np.testing.assert_allclose(float(loss(y, SHARES)), wanted(y.astype("f8"), SHARES.astype("f8")), rtol=2e-5)


def test_a_share_of_what_is_true():
    y, p = np.array([[2.0, -4.0]], "f4"), np.array([[1.0, -5.0]], "f4")
    np.testing.assert_allclose(float(keras.losses.MeanAbsolutePercentageError()(y, p)), 37.5, rtol=1e-6)
    assert keras.losses.kl_divergence(SHARES, SHARES).numpy().tolist() == [0.0, 0.0, 0.0]
    signs = np.array([[-1.0, 1.0]], "f4")
    assert float(keras.losses.Hinge()(signs, np.array([[0.5, 0.5]], "f4"))) == 1.0


Z = np.array([[-1.0, 0.5, 2.0], [3.0, -0.25, -4.0]], "f4")


@pytest.mark.parametrize(
    "made, wanted",
    [
        (lambda: layers.ELU(alpha=0.5), np.where(Z > 0, Z, 0.5 * np.expm1(Z))),
        (lambda: layers.PReLU(alpha_initializer=keras.initializers.Constant(0.1)), np.where(Z > 0, Z, 0.1 * Z)),
        (lambda: layers.ThresholdedReLU(theta=1.0), np.where(Z > 1, Z, 0)),
        (lambda: layers.UnitNormalization(), Z / np.sqrt((Z * Z).sum(1, keepdims=True))),
        (lambda: layers.RepeatVector(2), np.stack([Z, Z], 1)),
        (lambda: layers.Permute((1,)), Z),
        (lambda: layers.GaussianNoise(0.5), Z),
        (lambda: layers.Activation("hard_sigmoid"), np.clip((Z + 3) / 6, 0, 1)),
        (lambda: layers.Activation("exponential"), np.exp(Z)),
    ],
)
def test_more_layers(made, wanted):
    np.testing.assert_allclose(made()(Z).numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "made, wanted",
    [
        (lambda: layers.Dense(4, "relu"), {"units": 4, "activation": "relu"}),
        (lambda: layers.Dropout(0.5, seed=1), {"rate": 0.5, "seed": 1}),
        (lambda: layers.GaussianNoise(0.5, seed=1), {"stddev": 0.5, "seed": 1}),
        (lambda: layers.LeakyReLU(0.1), {"negative_slope": 0.1}),
        (lambda: layers.Add(), {}),
    ],
)
def test_a_layer_is_made_again_of_its_config(made, wanted):
    """Also where its arguments were given by their places."""
    layer = made()
    assert layer.get_config() == wanted
    assert type(layer).from_config(layer.get_config()).get_config() == wanted


def test_layers_that_train_or_add_to_the_loss():
    prelu = layers.PReLU()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(prelu(Z))
    np.testing.assert_allclose(tape.gradient(y, prelu.alpha).numpy(), np.minimum(Z, 0).sum(0))
    kept = layers.ActivityRegularization(l1=0.5, l2=0.1)
    kept(Z)
    penalty = 0.5 * np.abs(Z).sum() + 0.1 * (Z * Z).sum()
    np.testing.assert_allclose(float(kept.losses[0]), penalty / len(Z), rtol=1e-6)
    noise = layers.GaussianNoise(0.5, seed=1)(tf.zeros([100, 100]), training=True).numpy()
    assert abs(noise.mean()) < 0.02 and abs(noise.std() - 0.5) < 0.02
    model = keras.Sequential([layers.Dense(1, input_shape=(2,)), layers.GaussianNoise(0.5), layers.Dropout(0.5)])
    assert model.count_params() == 3 and len(model.get_weights()) == 2  # the random states are none of them
    np.testing.assert_allclose(layers.Dot(axes=1)([Z, 2.0 * Z]).numpy()[:, 0], 2.0 * (Z * Z).sum(1), rtol=1e-6)
    with pytest.raises(ValueError, match="expected two inputs"):
        layers.Dot()([tf.zeros([2, 3, 4]), tf.zeros([2, 3, 4])])
    with pytest.raises(TypeError, match="each axis behind the first once"):
        layers.Permute((0, 1))


def test_constraints_hold_after_each_step():
    for constraint, fits in (
        (keras.constraints.MaxNorm(0.5), lambda w: (np.linalg.norm(w, axis=0) <= 0.5 + 1e-6).all()),
        ("non_neg", lambda w: (w >= 0.0).all()),
        (keras.constraints.UnitNorm(), lambda w: np.allclose(np.linalg.norm(w, axis=0), 1.0, rtol=1e-5)),
    ):
        layer = layers.Dense(2, kernel_constraint=constraint, kernel_initializer="ones")
        model = keras.Sequential([keras.Input((2,)), layer])
        model.compile(keras.optimizers.SGD(1.0), "mse")
        model.fit(X, np.tile(Y, 2) - 9.0, epochs=3, verbose=0)
        assert fits(layer.kernel.numpy()) and layer.bias.numpy().max() < 0.0


# Gradients of the reader's own, checkpoints that rotate.


def test_a_gradient_of_ones_own():
    @tf.custom_gradient
    def clipped(x, scale):
        return x * scale, lambda dy: (tf.clip_by_norm(dy, 0.5), None)

    v = tf.Variable([2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(clipped(v * v, 5.0))
    assert float(y) == 65.0
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), 2.0 * v.numpy() * 0.5 / np.sqrt(2.0), rtol=1e-6)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = same(x)
        return tape.gradient(y, x)

    same = tf.custom_gradient(lambda x: (x, lambda dy: 7.0 * dy))
    assert step(tf.constant([1.0, 2.0])).numpy().tolist() == [7.0, 7.0] and not step.eager
    hidden = tf.custom_gradient(lambda x: (x * v, lambda dy: dy))
    with pytest.raises(TypeError, match="it reads a variable"):
        hidden(tf.constant([1.0, 2.0]))
    wrong = tf.custom_gradient(lambda x: (x * 2.0, lambda dy: (dy, dy)))
    with tf.GradientTape() as tape:
        y = wrong(v)
    with pytest.raises(TypeError, match="expected 1, one for each input"):
        tape.gradient(y, v)


def test_the_last_checkpoints_are_kept(tmp_path):
    value = tf.Variable(0.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(value=value), tmp_path / "kept", max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.restore_or_initialize() is None
    for k in range(1, 4):
        value.assign(float(k))
        path = manager.save()
    assert path == manager.latest_checkpoint == tf.train.latest_checkpoint(tmp_path / "kept")
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == ["checkpoint", "ckpt-2", "ckpt-3"]
    fresh = tf.Variable(9.0)
    checkpoint = tf.train.Checkpoint(value=fresh)
    again = tf.train.CheckpointManager(checkpoint, tmp_path / "kept", max_to_keep=2)
    assert again.restore_or_initialize() == path and float(fresh) == 3.0
    assert again.save().endswith("ckpt-4") and len(again.checkpoints) == 2
    checkpoint.restore(again.checkpoints[0]).expect_partial()
    assert float(fresh) == 3.0


def test_whole_numbers_are_divided_in_float64():
    y = tf.divide([7, 1], [2, 4])
    assert y.dtype == tf.float64 and y.numpy().tolist() == [3.5, 0.25]
    assert tf.math.truediv(tf.constant([1.0]), 2.0).dtype == tf.float32


def test_norms_of_lists_with_gaps():
    clipped, norm = tf.clip_by_global_norm([tf.constant([3.0, 4.0]), None, tf.constant([12.0])], 6.5)
    assert float(norm) == 13.0 and clipped[1] is None
    assert clipped[0].numpy().tolist() == [1.5, 2.0] and clipped[2].numpy().tolist() == [6.0]


def test_a_rate_is_halved_in_place():
    model = graph_of(keras.Model)
    model.fit(X, Y, verbose=0)
    model.optimizer.learning_rate.assign(model.optimizer.learning_rate / 2.0)
    assert float(model.optimizer.learning_rate) == 0.25


def test_an_import_that_fails_says_what_to_use():
    with pytest.raises(ImportError, match="has no 'TensorArray'; a Python list"):
        from levels_more.tensorflow import TensorArray  # noqa: F401
    with pytest.raises(ImportError, match="layers has no 'Conv2D'; here are"):
        from levels_more.tensorflow.keras.layers import Conv2D  # noqa: F401
    assert not hasattr(layers, "Conv2D")


def test_frozen_layers_stay_frozen_in_a_model_made_of_them():
    base = keras.Sequential([keras.Input((2,)), layers.Dense(3), layers.Dense(2)])
    base.trainable = False
    inputs = keras.Input((2,))
    model = keras.Model(inputs, layers.Dense(1)(base(inputs)))
    assert (len(model.trainable_variables), len(model.non_trainable_variables)) == (2, 4)
    alone = layers.Dense(3, trainable=False)
    assert keras.Sequential([keras.Input((2,)), alone, layers.Dense(1)]).trainable_variables[0].shape == (3, 1)
    before = base.get_weights()
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)
    assert all((a == b).all() for a, b in zip(base.get_weights(), before, strict=True))
    base.trainable = True
    assert len(model.trainable_variables) == 6


def nadam(w, gradients, rate=0.1, b1=0.9, b2=0.999, product=1.0, m=0.0, v=0.0):
    for t, g in enumerate(gradients, 1):
        now, ahead = (b1 * (1 - 0.5 * 0.96**step) for step in (t, t + 1))
        product, m, v = product * now, b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        step = ahead * m / (1 - product * ahead) + (1 - now) * g / (1 - product)
        w = w - rate * step / (np.sqrt(v / (1 - b2**t)) + 1e-7)
    return w


def adamax(w, gradients, rate=0.1, m=0.0, u=0.0):
    for t, g in enumerate(gradients, 1):
        m, u = 0.9 * m + 0.1 * g, np.maximum(0.999 * u, np.abs(g))
        w = w - rate / (1 - 0.9**t) * m / (u + 1e-7)
    return w


def adadelta(w, gradients, rate=0.1, a=0.0, d=0.0):
    for g in gradients:
        a = 0.95 * a + 0.05 * g * g
        step = np.sqrt(d + 1e-7) / np.sqrt(a + 1e-7) * g
        w, d = w - rate * step, 0.95 * d + 0.05 * step * step
    return w


@pytest.mark.parametrize("name, steps", [("Nadam", nadam), ("Adamax", adamax), ("Adadelta", adadelta)])
def test_more_optimizers(name, steps):
    start, gradients = np.array([1.0, -2.0]), np.array([[0.5, -1.0], [0.25, 2.0], [-1.0, 0.125]])
    v, optimizer = tf.Variable(start), getattr(keras.optimizers, name)(0.1)
    for g in gradients:
        optimizer.apply_gradients([(tf.constant(g), v)])
    np.testing.assert_allclose(v.numpy(), steps(start, gradients), rtol=1e-9)


def test_the_shape_of_a_batch_is_known_in_a_layer_of_a_graph():
    class Noisy(layers.Layer):
        def call(self, inputs):
            mean, spread = inputs
            return mean + spread * tf.ones((tf.shape(mean)[0], tf.shape(mean)[1]))

    inputs = keras.Input((2,))
    model = keras.Model(inputs, Noisy()([inputs, 2.0 * inputs]))
    np.testing.assert_allclose(model.predict(X, verbose=0), 3.0 * X, rtol=1e-6)
    assert tf.shape(X).numpy().tolist() == [4, 2]


def test_the_diagonal():
    square = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert tf.linalg.diag_part(square).numpy().tolist() == [1.0, 4.0] and float(tf.linalg.trace(square)) == 5.0


class Passing(keras.Model):
    def train_step(self, data):
        return super().train_step(data)


@pytest.mark.parametrize("kind", [keras.Model, Passing])
def test_weights_of_classes_are_for_training_and_validation_has_its_steps(kind, float64):
    model, plain = graph_of(kind), graph_of(keras.Model)
    options = {"batch_size": 2, "epochs": 1, "shuffle": False, "verbose": 0}
    told = model.fit(X, Y, class_weight={0: 5.0, 1: 2.0}, validation_split=0.5, **options).history
    plain.set_weights(model.get_weights())
    np.testing.assert_allclose(told["val_loss"][0], plain.evaluate(X[2:], Y[2:], verbose=0)[0], rtol=1e-12)
    held = tf.data.Dataset.from_tensor_slices((X, Y)).batch(1)
    told = model.fit(X, Y, validation_data=held, validation_steps=1, **options).history
    plain.set_weights(model.get_weights())
    np.testing.assert_allclose(told["val_loss"][0], plain.evaluate(X[:1], Y[:1], verbose=0)[0], rtol=1e-12)


# What programs for the real library told apart: see each name there.


def test_the_cosine_is_large_where_both_point_one_way_but_the_loss_is_small():
    metric = keras.metrics.CosineSimilarity()
    metric.update_state(X, 2.0 * X)
    assert float(metric.result()) == pytest.approx(1.0) and metric.name == "cosine_similarity"
    assert float(keras.losses.CosineSimilarity()(X, 2.0 * X)) == pytest.approx(-1.0)


def test_a_metric_of_whole_batches_counts_batches_and_one_of_rows_rows(float64):
    def error(y, p):
        return tf.reduce_mean(tf.abs(y - p))

    def both(y, p):
        return tf.concat([tf.abs(y - p), tf.abs(y - p)], axis=1)

    x = np.arange(5.0)[:, None]
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse", metrics=[error, both])
    told = model.evaluate(x, 2.0 * x, batch_size=2, verbose=0, return_dict=True)
    assert told["error"] == pytest.approx((0.5 + 2.5 + 4.0) / 3.0) and told["both"] == pytest.approx(2.0)


def two_outputs():
    a, b = keras.Input((2,), name="a"), keras.Input((2,), name="b")
    outputs = layers.Dense(1, name="price")(a), layers.Dense(1, name="kind")(b)
    return keras.Model([a, b], [*outputs])


def test_each_of_several_outputs_has_its_metrics_and_its_loss(float64):
    model = two_outputs()
    model.compile("sgd", loss=["mse", "mae"], loss_weights=[1.0, 0.5], metrics=["mae", "mse"])
    p = [each.numpy() for each in model([X, X])]
    told = model.evaluate([X, X], [Y, Y], verbose=0, return_dict=True)
    square, size = (np.mean((Y - p[0]) ** 2), np.mean(np.abs(Y - p[1])))
    wanted = {"price_loss": square, "kind_loss": size, "loss": square + 0.5 * size}
    wanted |= {"price_mae": np.mean(np.abs(Y - p[0])), "kind_mse": np.mean((Y - p[1]) ** 2)}
    assert told == pytest.approx(wanted) and model.evaluate([X, X], [Y, Y], verbose=0)[1:3] == [
        told["price_loss"],
        size,
    ]
    model.compile("sgd", loss="mse", metrics={"kind": ["mae"]})
    assert [*model.fit([X, X], [Y, Y], verbose=0).history] == ["loss", "price_loss", "kind_loss", "kind_mae"]
    for metrics in (["mae"], {"other": "mae"}):
        with pytest.raises(ValueError, match="give {name: metrics}"):
            model.compile("sgd", "mse", metrics=metrics)


def test_penalties_of_what_a_layer_gives_are_by_rows(float64):
    for layer in (layers.ActivityRegularization(l1=0.5), layers.Dense(2, "linear", activity_regularizer="l1")):
        layer.build((None, 2))
        if layer.trainable_variables:
            layer.set_weights([50.0 * np.eye(2), np.zeros(2)])
        layer(X)
        assert float(sum(layer.losses)) == pytest.approx(0.5 * np.abs(X).sum() / 4.0)


def test_in_a_step_of_ones_own_metrics_of_compile_heed_no_weights(float64):
    class Own(keras.Model):
        def train_step(self, data):
            x, y, weight = data
            p = self(x, training=True)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(self.compute_loss(y=y, y_pred=p, sample_weight=weight))
                else:
                    metric.update_state(y, p, sample_weight=weight)
            return {metric.name: metric.result() for metric in self.metrics}

    model, weights = graph_of(Own), np.array([[1.0], [2.0], [0.5], [3.0]])
    p = model.predict(X, verbose=0)
    model.compile("sgd", "mse", metrics=["mae"])
    told = model.fit(X, Y, sample_weight=weights, verbose=0).history
    assert told["mae"][0] == pytest.approx(np.mean(np.abs(Y - p)))
    model.compile("sgd", "mse", weighted_metrics=["mae"])
    told = model.fit(X, Y, sample_weight=weights, verbose=0).history
    assert told["mae"][0] == pytest.approx((weights * np.abs(Y - p)).sum() / weights.sum())


def test_a_part_of_a_variable_is_assigned_and_stays_on_the_tape():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    v[1, :].assign([0.0, 5.0])
    v[0, tf.constant(0)].assign_add(1.0)
    assert v.numpy().tolist() == [[2.0, 2.0], [0.0, 5.0]]
    with tf.GradientTape() as tape:
        y = v[0, 1] * v[1, 1]
    assert tape.gradient(y, v).numpy().tolist() == [[0.0, 5.0], [0.0, 2.0]]

    @tf.function
    def mark(k):
        v[k].assign([9.0, 9.0])
        return v

    assert mark(tf.constant(1)).numpy().tolist() == [[2.0, 2.0], [9.0, 9.0]]


def test_all_slopes_and_shares_of_targets():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = tf.reduce_sum(y) + tf.stop_gradient(x[0] * 3.0)
    assert tape.jacobian(y, x).numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert tape.gradient(y, x, output_gradients=tf.constant([10.0, 100.0])).numpy().tolist() == [20.0, 400.0]
    assert tape.gradient(z, {"x": x})["x"].numpy().tolist() == [2.0, 4.0]
    rows = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        y = rows * tf.reverse(rows, [1])
    wanted = [[[b, a], [b, a]] for a, b in X]
    np.testing.assert_allclose(tape.batch_jacobian(y, rows).numpy(), wanted)
    other = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        before = other * other
        tape.reset()
        y = x[0] * before
    assert tape.gradient(y, [x, other])[1] is None


def test_callbacks_hear_of_each_step():
    heard = []

    class Hearing(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            heard.append(f"begin {batch}")

        def on_batch_end(self, batch, logs=None):
            heard.append(f"end {batch} {sorted(logs)}")

        def on_test_batch_begin(self, batch, logs=None):
            heard.append(f"test {batch}")

        def on_test_batch_end(self, batch, logs=None):
            heard.append(f"tested {batch} {sorted(logs)}")

        def on_train_end(self, logs=None):
            super().on_train_end(logs)
            heard.append(self.params["steps"])

    for kind in (keras.Model, Passing):
        heard.clear()
        model = graph_of(kind)
        model.fit(X, Y, batch_size=2, validation_data=(X[:3], Y[:3]), verbose=0, callbacks=[Hearing()])
        train = [f"{word} {k}" + " ['loss', 'mae']" * (word == "end") for k in (0, 1) for word in ("begin", "end")]
        test = [f"{word} {k}" + " ['loss', 'mae']" * (word == "tested") for k in (0, 1) for word in ("test", "tested")]
        assert heard == [*train, *test, 2]


def test_a_training_that_never_beats_the_baseline_ends():
    for baseline, last in ((None, 4), (-1.0, 3)):
        stop = keras.callbacks.EarlyStopping("loss", patience=2, baseline=baseline, start_from_epoch=1)
        stop.model = graph_of(keras.Model)
        stop.on_train_begin()
        for epoch, loss in enumerate((0.1, 1.0, 0.9, 0.95, 0.92)):
            if not stop.stopped_epoch:
                stop.on_epoch_end(epoch, {"loss": loss})
        assert stop.stopped_epoch == last


def test_numbers_at_equal_distances_between_whole_ones_are_float64():
    assert tf.linspace(-2, 2, 5).dtype == tf.float64 and tf.linspace(-2.0, 2.0, 5).dtype == tf.float32


def test_starting_weights_may_be_drawn_by_ops():
    model = keras.Sequential([layers.Dense(1, kernel_initializer=tf.random.normal)])
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)
    assert model.layers[0].kernel.shape == (2, 1)


def test_windows_are_datasets_and_rows_of_several_sizes_are_padded():
    data = tf.data.Dataset.range(5)
    assert [[int(v) for v in window] for window in data.window(2)] == [[0, 1], [2, 3], [4]]
    ragged = tf.data.Dataset.from_generator(lambda: ([1] * k for k in (1, 3)), output_types=tf.int32)
    assert [b.numpy().tolist() for b in ragged.padded_batch(2)] == [[[1, 0, 0], [1, 1, 1]]]


def test_classes_may_be_bytes():
    assert keras.utils.to_categorical(np.array([0, 2], "u1"), 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


def test_a_rate_of_ones_own():
    class Falling(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.5 / (tf.cast(step, tf.float32) + 1.0)

    v, optimizer = tf.Variable([1.0]), keras.optimizers.SGD(Falling())
    for _ in range(3):
        optimizer.apply_gradients([(tf.constant([1.0]), v)])
    np.testing.assert_allclose(v.numpy(), 1.0 - 0.5 * (1.0 + 1.0 / 2.0 + 1.0 / 3.0), rtol=1e-6)
    assert tf.eye(2, dtype=tf.dtypes.int32).numpy().tolist() == [[1, 0], [0, 1]]
