"""Where a cross-entropy takes the logits back from a sigmoid or softmax, and where it clips probabilities.

All numbers are those of Keras 3.15.1 on TensorFlow 2.21.0: a net that is certain and wrong, by its logit of -200.
"""

import gc
import threading

import numpy as np
import pytest

import levels_more.tensorflow as tf
from levels_more.tensorflow import keras
from levels_more.tensorflow import keras_logits as kept

K, L = keras, keras.layers
X, Y = np.array([[-200.0]], "f4"), np.array([[1.0]], "f4")
BCE, CCE, SCC = K.losses.BinaryCrossentropy, K.losses.CategoricalCrossentropy, K.losses.SparseCategoricalCrossentropy
CLIPPED = 16.118095


def dense(activation, units=1, **options):
    return L.Dense(units, activation, use_bias=False, kernel_initializer="ones", **options)


def net(*layers):
    model = K.Sequential([*layers])
    model.build((None, 1))
    return model


class By(L.Layer):
    """A layer of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, x):
        return self.function(x)


class Own(K.Model):
    def __init__(self, activation, then=lambda x: x):
        super().__init__()
        self.dense, self.then = dense(activation), then

    def call(self, x):
        return self.then(self.dense(x))


def graph(activation):
    x = K.Input((1,))
    return K.Model(x, dense(activation)(x))


class Traced(Own):
    @tf.function
    def call(self, x):
        return self.dense(x)


MODELS = {  # a model: its loss called on the model, and in `evaluate`
    "a layer": (lambda: net(dense("sigmoid")), 200.0, 200.0),
    "an Activation": (lambda: net(dense(None), L.Activation("sigmoid")), 200.0, 200.0),
    "a subclass": (lambda: Own("sigmoid"), 200.0, 200.0),
    "a graph": (lambda: graph("sigmoid"), 200.0, 200.0),
    "a model in a model": (lambda: K.Sequential([net(dense("sigmoid"))]), 200.0, 200.0),
    "before a Dropout": (lambda: net(dense("sigmoid"), L.Dropout(0.5)), 200.0, 200.0),
    "tf.nn.sigmoid in a layer": (lambda: net(dense(tf.nn.sigmoid)), CLIPPED, 200.0),
    "tf.sigmoid in call": (lambda: Own(None, tf.sigmoid), CLIPPED, 200.0),
    "tf.sigmoid in a layer of one's own": (lambda: net(dense(None), By(tf.sigmoid)), CLIPPED, 200.0),
    "a sigmoid by hand": (lambda: net(dense(None), By(lambda x: 1.0 / (1.0 + tf.exp(-x)))), CLIPPED, CLIPPED),
    "before a reshape": (lambda: net(dense("sigmoid"), By(lambda x: tf.reshape(x, (-1, 1)))), CLIPPED, CLIPPED),
    "a call that is a tf.function": (lambda: Traced("sigmoid"), CLIPPED, CLIPPED),
    "in float64": (lambda: net(dense("sigmoid", dtype="float64")), CLIPPED, CLIPPED),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", MODELS)
def test_the_loss_of_a_model_that_ends_in_a_sigmoid(name):
    make, called, evaluated = MODELS[name]
    model = make()
    model(X)
    assert float(BCE()(Y, model(X))) == pytest.approx(called, rel=1e-6)
    model.compile(K.optimizers.SGD(1.0), "binary_crossentropy")
    assert model.evaluate(X, Y, verbose=0) == pytest.approx(evaluated, rel=1e-6)
    assert float(BCE()(Y, model.predict(X, verbose=0))) == pytest.approx(CLIPPED, rel=1e-6)  # numbers have no logits


def two(activation):
    model = net(dense(activation, 2))
    model.set_weights([np.array([[1.0, 0.0]], "f4")])
    return model


ONE_HOT, FIRST = np.array([[1.0, 0.0]], "f4"), np.array([[0]])
PAIRS = {  # (activation, loss, y): its value called, in `evaluate`, and the slopes of the weights called
    "softmax": ("softmax", CCE, ONE_HOT, 200.0, 200.0, [200.0, -200.0]),
    "softmax of classes": ("softmax", SCC, FIRST, 200.0, 200.0, [200.0, -200.0]),
    "softmax, binary": ("softmax", BCE, ONE_HOT, 100.34657, 100.34657, [100.0, -50.0]),
    "sigmoid, categorical": ("sigmoid", CCE, ONE_HOT, 200.0, 200.0, [200.0, -200.0]),
    "sigmoid": ("sigmoid", BCE, ONE_HOT, 100.34657, 100.34657, [100.0, -50.0]),
    "tf.nn.softmax": (tf.nn.softmax, CCE, ONE_HOT, CLIPPED, 200.0, [0.0, 0.0]),
    "tf.nn.softmax of classes": (tf.nn.softmax, SCC, FIRST, CLIPPED, 200.0, [0.0, 0.0]),
    "tf.nn.softmax, binary": (tf.nn.softmax, BCE, ONE_HOT, 16.03024, 16.03024, [0.0, 0.0]),
    "tf.nn.sigmoid, categorical": (tf.nn.sigmoid, CCE, ONE_HOT, CLIPPED, CLIPPED, [0.0, 0.0]),
    "tf.nn.sigmoid of classes": (tf.nn.sigmoid, SCC, FIRST, 15.424948, 15.424948, [0.0, -99.999977]),
    "tf.nn.sigmoid": (tf.nn.sigmoid, BCE, ONE_HOT, 8.405622, 100.34657, [0.0, -50.0]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_each_activation_with_each_loss(name):
    activation, loss, y, called, evaluated, slopes = PAIRS[name]
    model = two(activation)
    with tf.GradientTape() as tape:
        value = loss()(y, model(X))
    assert float(value) == pytest.approx(called, rel=1e-6)
    assert tape.gradient(value, model.trainable_variables)[0].numpy()[0] == pytest.approx(slopes, rel=1e-6, abs=1e-9)
    model.compile(K.optimizers.SGD(1.0), loss())
    assert model.evaluate(X, y, verbose=0) == pytest.approx(evaluated, rel=1e-6)


def test_logits_belong_to_the_tensor_that_the_activation_gave():
    model = net(dense("sigmoid"))
    p = model(X)
    for other in (p + 0.0, tf.reshape(p, (1, 1)), tf.constant(p.numpy()), tf.cast(p, "float64")):
        assert float(BCE()(Y, other)) == pytest.approx(CLIPPED, rel=1e-6)
    assert float(BCE()(Y[:, 0], p)) == float(BCE()(Y, p)) == 200.0
    assert K.losses.binary_crossentropy(Y, p).numpy().tolist() == [200.0]
    wide = net(dense("sigmoid", dtype="float64"))(X)
    assert K.losses.binary_crossentropy(Y, wide).numpy().tolist() == [200.0]  # a function casts nothing
    assert BCE(reduction="sum")(Y, p).numpy() == 200.0 and BCE(reduction="none")(Y, p).numpy().tolist() == [200.0]
    assert float(BCE()(Y, p, sample_weight=[0.5])) == 100.0
    assert float(BCE()(Y * 0.3, p)) == pytest.approx(60.0)
    compiled = tf.function(lambda x: {"p": [model(x)]})
    with tf.GradientTape():
        assert float(BCE()(Y, compiled(tf.constant(X))["p"][0])) == pytest.approx(CLIPPED, rel=1e-6)
    for function in (lambda x: BCE()(Y, compiled(x)["p"][0]), tf.function(lambda x: BCE()(Y, compiled(x)["p"][0]))):
        assert float(function(tf.constant(X))) == pytest.approx(CLIPPED, rel=1e-6)  # a function's result has none
    assert float(tf.function(lambda x: BCE()(Y, model(x)))(tf.constant(X))) == 200.0
    assert float(tf.function(lambda z: BCE()(Y, tf.sigmoid(z)))(tf.constant(X))) == 200.0


def test_a_table_of_logits_lives_no_longer_than_its_tensors():
    gc.collect()
    before = len(kept._KEPT)
    model = net(dense("sigmoid"))
    p, q = model(X), model(2 * X)
    model.compile("sgd", "binary_crossentropy")
    model.fit(X, Y, verbose=0)
    seen = []
    other = threading.Thread(target=lambda p: seen.append(float(BCE()(Y, p))), args=[p])
    other.start()
    other.join()
    assert seen == [200.0] and float(BCE()(Y, q)) == 400.0
    del p, q, model
    gc.collect()
    assert len(kept._KEPT) == before


W = np.array([[1.0, 0.5, -2.0], [0.25, -1.0, 3.0]])
ROWS = np.array([[-200.0, 3.0], [40.0, 1.0], [0.5, -90.0], [1e-3, 2.0]])
BINARY, CLASSES = np.array([[1.0], [0.0], [1.0], [0.0]]), np.eye(3)[[0, 1, 2, 0]]
TRAININGS = {  # (activation, loss, y, options of fit): three losses, and the first row of weights, in float64
    "binary": ("sigmoid", "binary_crossentropy", BINARY, {}, [65.6187, 24.8221, 0.13389], [-0.197658]),
    "classes": (
        "softmax",
        "categorical_crossentropy",
        CLASSES,
        {},
        [249.063, 177.866, 117.016],
        [-0.600092, 0.596349, -0.496257],
    ),
    "weights of classes": (
        "softmax",
        "categorical_crossentropy",
        CLASSES,
        {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}},
        [209.219, 135.651, 82.7417],
        [-0.699993, 0.698125, -0.498132],
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TRAININGS)
def test_three_steps_of_a_net_that_is_certain_and_wrong(name, dtype):
    activation, loss, y, options, losses, weights = TRAININGS[name]
    keras.backend.set_floatx(dtype)
    try:
        model = K.Sequential([L.Dense(len(weights), activation)])
        model.build((None, 2))
        model.set_weights([W[:, : len(weights)], np.zeros(len(weights))])
        model.compile(K.optimizers.SGD(0.01), loss)
        y = y.astype(dtype) if y.dtype.kind == "f" else y
        history = model.fit(ROWS.astype(dtype), y, epochs=3, shuffle=False, verbose=0, **options).history
    finally:
        keras.backend.set_floatx("float32")
    assert history["loss"] == pytest.approx(losses, rel=5e-6)  # stored with six digits
    assert model.get_weights()[0][0].tolist() == pytest.approx(weights, rel=2e-5)
