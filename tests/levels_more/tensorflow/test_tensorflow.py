"""TensorFlow's spelling: what a reader of its books and guides relies on, with numbers worked out apart from it."""

import copy
import pickle

import numpy as np
import pytest

import levels_more.tensorflow as tf
from levels_more import low_level
from levels_more.tensorflow import keras
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


@pytest.mark.parametrize("way", [lambda step: step, tf.function, low_level.function])
def test_a_quotient_of_whole_numbers_is_float64(way):
    """Also in a traced function, beside a gradient, and of so many that no small program takes them."""
    w = tf.Variable(np.ones(4))

    @way
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * (x / y))
        return loss, tape.gradient(loss, w)

    for _ in range(3):
        loss, slope = step(tf.constant([7, 0, -1, 3]), tf.constant([2, 1, 4, 3]))
        assert loss.dtype == "float64" and float(loss) == 4.25
        assert slope.numpy().tolist() == [3.5, 0.0, -0.25, 1.0]
    many = np.arange(100_000)
    assert (way(lambda x: x / 3)(tf.constant(many)).numpy() == many / 3).all()


@pytest.mark.parametrize(
    "ours, wanted",
    [
        (lambda: tf.Variable(7) / 2, 3.5),
        (lambda: tf.reduce_mean(tf.zeros([2, 0], "int32"), 1), [0, 0]),
        (lambda: tf.matmul([[1, 2]], [[3], [4]]), [[11]]),
        (lambda: tf.gather(params=tf.constant([5.0, 6.0, 7.0]), indices=[2, 0]), [7.0, 5.0]),
        (lambda: tf.transpose(tf.constant([[1, 2, 3]]), perm=[1, 0]), [[1], [2], [3]]),
        (
            lambda: tf.clip_by_value(tf.constant([-3.0, 0.5, 9.0]), clip_value_min=-1.0, clip_value_max=1.0),
            [-1.0, 0.5, 1.0],
        ),
        (lambda: tf.boolean_mask(tf.constant([[1, 2], [3, 4]]), [True, False], axis=1), [[1], [3]]),
        (lambda: tf.reshape(tf.range(1, 7, delta=2), [3, 1]), [[1], [3], [5]]),
        (lambda: tf.constant([[1, 2], [3, 4]], shape=(4,)), [1, 2, 3, 4]),
        (lambda: tf.matmul(tf.ones([2, 1, 3]), tf.ones([3, 2])), [[[3.0, 3.0]], [[3.0, 3.0]]]),
        (lambda: tf.maximum(0.0, [1, -1]), [1.0, 0.0]),
    ],
)
def test_functions_are_tensorflows(ours, wanted):
    found = ours().numpy()
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


# Variables and modules.


def test_a_variable_is_what_assign_gives_back():
    v = tf.Variable([1.0, 2.0])
    assert v.assign([3, 4]) is v and v.assign_add([1, 1]).numpy().tolist() == [4.0, 5.0]
    assert v.assign_sub(np.array([1.0, 1.0])).numpy().tolist() == [3.0, 4.0]
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
    assert tape.gradient(targets, tf.Variable(1.0)) is None
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


# Data.


def test_stages_of_a_dataset_see_tensors():
    data = tf.data.Dataset.from_tensor_slices((X, Y)).map(
        lambda x, y: (x * 2.0, y), num_parallel_calls=tf.data.AUTOTUNE
    )
    (x, y), *_ = data.batch(3).prefetch(tf.data.AUTOTUNE)
    assert x.numpy().tolist() == (2.0 * X[:3]).tolist() and y.shape == (3, 1)
    numbers = tf.data.Dataset.from_tensor_slices(np.arange(7))
    assert [int(v) for v in numbers.filter(lambda v: v % 2 == 0).map(lambda v: tf.square(v))] == [0, 4, 16, 36]
    assert [v.tolist() for v in numbers.batch(3).as_numpy_iterator()] == [[0, 1, 2], [3, 4, 5], [6]]


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
    np.testing.assert_allclose(layers.Activation("exponential")(X).numpy(), np.exp(X), rtol=1e-6)


def test_losses_are_those_of_keras():
    p = sigmoid(X @ W + B)
    each = -(Y * np.log(p) + (1.0 - Y) * np.log(1.0 - p))[:, 0]
    np.testing.assert_allclose(keras.losses.binary_crossentropy(Y, p).numpy(), each, rtol=1e-12)
    for reduction, wanted in (("sum_over_batch_size", each.mean()), ("sum", each.sum()), ("none", each)):
        loss = keras.losses.BinaryCrossentropy(reduction=reduction, name="bce")
        np.testing.assert_allclose(loss(Y, p).numpy(), wanted, rtol=1e-12)
    np.testing.assert_allclose(keras.losses.MeanSquaredError()(Y[:, 0], p).numpy(), np.mean((Y - p) ** 2), rtol=1e-12)
    with pytest.raises(ValueError, match="reduction"):
        keras.losses.MeanSquaredError(reduction="most")


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
    for values in (5.0, [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]]):  # of any shapes, one after the other
        mean.update_state(values)
    assert mean.result().numpy() == np.float32(18.0 / 7.0)


class Net(keras.Model):
    def build(self, input_shape):
        self.hidden = layers.Dense(3, activation="relu", name="hidden")
        self.out = layers.Dense(1, activation="sigmoid", name="out")
        super().build(input_shape)

    def call(self, x, training=None):
        return self.out(self.hidden(x))


def trained(model, **options):
    """The history of a training from weights that are always the same: three epochs of two batches."""
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(0.0, 0.5, size) for size in ((2, 3), (3,), (3, 1), (1,))])
    model.compile(optimizer=keras.optimizers.SGD(learning_rate=0.1), loss="binary_crossentropy", metrics=["accuracy"])
    return model.fit(X, Y, batch_size=2, epochs=3, shuffle=False, verbose=0, **options)


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
    """The functional one is trained as by Keras: see tensorflow/high_rings.py in course/reader/programs."""
    model = make()
    history = trained(model)
    assert history.history == trained(functional()).history
    assert history.epoch == [0, 1, 2] and [*history.history] == ["accuracy", "loss"]  # as Keras sorts them
    assert len(model.trainable_variables) == 4 and model.count_params() == 13 and len(model.layers) == 2


def test_dropout_has_no_weights_and_is_still_in_evaluation():
    model = keras.Sequential([layers.Dense(1, input_shape=(2,)), layers.Dropout(0.5)])
    assert len(model.get_weights()) == 2 and model.count_params() == 3
    assert model(X).numpy().tolist() == model.layers[0](X).numpy().tolist()


def test_a_callback_hears_the_mean_of_the_epoch_so_far(float64):
    heard = []

    class Hearing(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            heard.append(logs["loss"])

    losses = trained(functional(), callbacks=[Hearing()]).losses
    for k in range(0, 6, 2):  # of each epoch
        np.testing.assert_allclose(heard[k : k + 2], [losses[k], losses[k : k + 2].mean()], rtol=1e-12)


# Layers of the reader's own.


def test_the_shape_of_a_batch_is_known_in_a_layer_of_a_graph():
    class Noisy(layers.Layer):
        def call(self, inputs):
            mean, spread = inputs
            return mean + spread * tf.ones((tf.shape(mean)[0], tf.shape(mean)[1]))

    inputs = keras.Input((2,))
    model = keras.Model(inputs, Noisy()([inputs, 2.0 * inputs]))
    np.testing.assert_allclose(model.predict(X, verbose=0), 3.0 * X, rtol=1e-6)
    assert tf.shape(X).numpy().tolist() == [4, 2]


# What programs for the real library told apart: see each name there.


def test_numbers_out_of_a_function_are_tensors_whether_it_is_traced_or_not():
    untraced = tf.function(lambda x: 0 if x < 0 else 1)
    traced = tf.function(lambda x: (x, 2.5))
    assert untraced(tf.constant(-1.0)).numpy() == 0 and untraced(tf.constant(1.0)).numpy() == 1
    assert traced(tf.constant(1.0))[1].numpy() == 2.5


def _root(y_true, y_pred):
    return tf.sqrt(tf.reduce_mean(tf.square(y_true - y_pred), axis=-1) + 0.1)  # at 0 a root has no slope


FUNCTION_OBJECTS = {  # what may be given as an object of TensorFlow, instead of a word
    "relu": {"activation": tf.nn.relu},
    "loss": {"loss": keras.losses.mean_squared_error},
    "metric": {"metrics": [keras.metrics.mean_absolute_error, keras.metrics.MeanSquaredError()]},
    "own loss": {"loss": _root},
}


@pytest.mark.parametrize("name", FUNCTION_OBJECTS)
def test_a_model_made_of_function_objects_is_saved_pickled_and_copied(name, tmp_path):
    given = {"activation": "relu", "loss": "mse", "optimizer": "adam", "metrics": ["mae"]} | FUNCTION_OBJECTS[name]
    model = keras.Sequential(
        [
            layers.Dense(3, activation=given.pop("activation")),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            layers.Activation("tanh"),
            layers.Dense(1),
        ]
    )
    model.compile(**given)
    model.fit(X, Y, epochs=2, verbose=0)
    model.save(tmp_path / "model")
    own = {"_root": _root} if name == "own loss" else None
    again = [keras.models.load_model(tmp_path / "model", own), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    expected = model.evaluate(X, Y)
    model.fit(X, Y, shuffle=False, verbose=0)
    assert type(again[0].layers[0]) is layers.Dense and type(again[0].optimizer) is type(model.optimizer)
    assert type(model.optimizer) in (keras.optimizers.Adam, keras.optimizers.RMSprop)
    for other in again:
        assert other.evaluate(X, Y) == expected
        other.fit(X, Y, shuffle=False, verbose=0)
        assert np.array_equal(other.predict(X), model.predict(X))
