"""Habits of people who come from Keras 3 and scikit-learn that no other test tries: what they type, tried here, and checked.

Each row says where the habit comes from, what is typed, and what must hold then: by NumPy or by counting, not by asking us
twice. Most work. A few differ, or are refused with the cure, each in a sentence of the program's own; none is silently wrong.
"""

import contextlib
import io
import linecache
import textwrap
import warnings
from typing import NamedTuple

import numpy as np
import pytest

from levels_more.mid_level import RANDOM


class Habit(NamedTuple):
    """A row. `spoil` (old, new) is a change of the code after which `holds` must fail: so each check can.

    Of a refused one it is the cure: the code raises `tells`, word for word, and with the cure it runs, and `holds`.
    Where something differs, `tells` is what the program, or the docstring of something imported, says about it.
    """

    place: str
    what: str
    code: str
    holds: str
    spoil: tuple
    verdict: str = "works"
    tells: str = ""


def relu(x):
    return np.maximum(x, 0.0)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def forward(x, weights, *activations):
    """Dense layers in a row: weights [w, b, w, b, …], an activation or None for each pair."""
    for w, b, activation in zip(weights[::2], weights[1::2], activations, strict=True):
        x = x @ w + b
        x = x if activation is None else activation(x)
    return x


def descent(x, y, weights, rates, size):
    """Steps of gradient descent on the squared error of a line, rows in order: the weights, and the loss of each epoch.

    rates: one for each epoch; size: rows in a batch.
    """
    (w, b), losses = weights, []
    for rate in rates:
        total = 0.0
        for k in range(0, len(x), size):
            xb, yb = x[k : k + size], y[k : k + size]
            error = xb @ w + b - yb
            total += float((error**2).sum())
            slope = 2.0 * error / len(xb)
            w, b = w - rate * xb.T @ slope, b - rate * slope.sum(0, keepdims=True)
        losses.append(total / len(x))
    return [w, b], losses


def close(a, b, tolerance=1e-5):
    """Whether two arrays, or two lists of them, are as good as equal, and have the same shapes."""
    if isinstance(a, (list, tuple)) and len(a) and np.ndim(a[0]):
        return len(a) == len(b) and all(close(*pair, tolerance) for pair in zip(a, b, strict=True))
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.allclose(a, b, rtol=tolerance, atol=tolerance)


def given():
    """What the reader of each row has: 200 rows of 4 numbers; a target; two classes; three classes."""
    drawn = np.random.default_rng(0)
    x = drawn.normal(size=(200, 4)).astype("f4")
    y = x @ np.array([[1.0], [-2.0], [0.5], [0.0]], "f4") + 0.3 + drawn.normal(size=(200, 1), scale=0.1).astype("f4")
    return dict(np=np, x=x, y=y, two=(y > 0).astype("i8")[:, 0], three=np.digitize(y[:, 0], [-1.0, 1.0]))


CHECKS = dict(relu=relu, sigmoid=sigmoid, softmax=softmax, forward=forward, descent=descent, close=close)

HABITS = [
    Habit(
        "Sequential",
        "add, layer by layer",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential(name="mine")
        model.add(Dense(8, activation="relu"))
        model.add(Dense(3))
        answer = model(x)
        model.add(Dense(1, activation="sigmoid"))
        then = model(x)
        """,
        """
        assert model.name == "mine" and len(model.layers) == 3
        assert close(answer.numpy(), forward(x, model.get_weights()[:4], relu, None))
        assert close(then.numpy(), forward(x, model.get_weights(), relu, None, sigmoid))
        """,
        ('Dense(1, activation="sigmoid")', "Dense(1)"),
    ),
    Habit(
        "Sequential",
        "weights come with the first call; a bias has the shape (units,)",
        """
        from levels_more.mid_level import Dense

        layer = Dense(3)
        before = list(layer.weights)
        answer = layer(x)
        kernel, bias = layer.weights
        """,
        """
        assert before == [] and kernel.shape == (4, 3) and bias.shape == (1, 3)
        assert close(answer.numpy(), x @ kernel.numpy() + bias.numpy()[0])
        """,
        ("Dense(3)", "Dense(2)"),
        "differs",
        "bias[1, units]",
    ),
    Habit(
        "Sequential",
        "an Input first: weights, summary and count_params before there is data",
        """
        from levels_more.high_level import Input, Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Input(shape=(4,)), Dense(8, activation="relu"), Dense(1)])
        model.summary()
        """,
        """
        assert [tuple(w.shape) for w in model.weights][::2] == [(4, 8), (8, 1)]
        assert model.count_params() == 4 * 8 + 8 + 8 * 1 + 1 == 49 and "49" in said and "(None, 8)" in said
        """,
        ("Dense(8,", "Dense(9,"),
    ),
    Habit(
        "Sequential",
        "build(input_shape=(None, 4))",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(8, activation="relu"), Dense(1)])
        model.build(input_shape=(None, 4))
        """,
        """
        assert [w.shape for w in model.get_weights()][::2] == [(4, 8), (8, 1)] and model.built
        """,
        ("(None, 4)", "(None, 5)"),
    ),
    Habit(
        "Sequential",
        "the first layer says input_shape=(4,)",
        """
        from levels_more.high_level import Input, Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(8, activation="relu", input_shape=(4,)), Dense(1)])
        """,
        """
        assert [w.shape for w in model.get_weights()][::2] == [(4, 8), (8, 1)]
        """,
        ('Dense(8, activation="relu", input_shape=(4,))', 'Input((4,)), Dense(8, activation="relu")'),
        "refused",
        "TypeError: Dense: input_shape is not known here; put Input((4,)) in front of the layers",
    ),
    Habit(
        "functional",
        "a model is called like a layer: an encoder and a decoder",
        """
        from levels_more.high_level import Input, Model
        from levels_more.mid_level import Dense

        first = Input(shape=(4,))
        encoder = Model(first, Dense(2, activation="relu")(first), name="encoder")
        second = Input(shape=(2,))
        decoder = Model(second, Dense(4)(second), name="decoder")
        whole = Input(shape=(4,))
        autoencoder = Model(whole, decoder(encoder(whole)), name="autoencoder")
        autoencoder.compile(optimizer="adam", loss="mse")
        autoencoder.fit(x, x, epochs=2, verbose=0)
        answer = autoencoder.predict(x)
        """,
        """
        assert close(answer, forward(x, encoder.get_weights() + decoder.get_weights(), relu, None))
        assert len(autoencoder.trainable_variables) == 4
        """,
        ('activation="relu"', 'activation="tanh"'),
    ),
    Habit(
        "functional",
        "one layer called on two inputs shares its weights",
        """
        from levels_more.high_level import Input, Model
        from levels_more.mid_level import Concatenate, Dense

        shared = Dense(3, activation="relu")
        left, right = Input(shape=(2,)), Input(shape=(2,))
        outputs = Dense(1)(Concatenate()([shared(left), shared(right)]))
        model = Model([left, right], outputs)
        answer = model.predict([x[:, :2], x[:, 2:]])
        """,
        """
        w, b, v, c = model.get_weights()
        both = np.concatenate([relu(x[:, :2] @ w + b), relu(x[:, 2:] @ w + b)], 1)
        assert close(answer, both @ v + c)
        """,
        ("[x[:, :2], x[:, 2:]]", "[x[:, 2:], x[:, :2]]"),
    ),
    Habit(
        "functional",
        "arithmetic with what stands for numbers to come",
        """
        from levels_more.high_level import Input, Model
        from levels_more.mid_level import Dense

        inputs = Input(shape=(4,))
        scaled = (inputs - 1.0) / 2.0
        outputs = Dense(4)(scaled) + inputs
        model = Model(inputs, outputs)
        answer = model.predict(x)
        """,
        """
        assert close(answer, forward((x - 1.0) / 2.0, model.get_weights(), None) + x)
        """,
        ("/ 2.0", "/ 3.0"),
    ),
    Habit(
        "subclassing",
        "weights made in __init__",
        """
        from levels_more.low_level import matmul
        from levels_more.mid_level import Layer

        class Linear(Layer):
            def __init__(self, units=3, input_dim=4):
                super().__init__()
                self.w = self.add_weight(shape=(input_dim, units), initializer="random_normal", trainable=True)
                self.b = self.add_weight(shape=(units,), initializer="zeros", trainable=True)

            def call(self, inputs):
                return matmul(inputs, self.w) + self.b

        layer = Linear()
        answer = layer(x)
        """,
        """
        assert len(layer.weights) == 2 and layer.w.shape == (4, 3) and not layer.b.numpy().any()
        assert layer.w.numpy().any() and close(answer.numpy(), x @ layer.w.numpy())
        """,
        ('initializer="zeros"', 'initializer="ones"'),
    ),
    Habit(
        "subclassing",
        "weights made in build(input_shape), options handed on",
        """
        from levels_more.low_level import matmul
        from levels_more.mid_level import Layer

        class Linear(Layer):
            def __init__(self, units=3, **kwargs):
                super().__init__(**kwargs)
                self.units = units

            def build(self, input_shape):
                self.w = self.add_weight(
                    shape=(input_shape[-1], self.units), initializer="glorot_uniform", trainable=True, name="w"
                )
                self.b = self.add_weight(shape=(self.units,), initializer="ones", trainable=True, name="b")

            def call(self, inputs):
                return matmul(inputs, self.w) + self.b

        layer = Linear(5, name="lines")
        answer = layer(x)
        """,
        """
        assert layer.name == "lines" and layer.w.shape == (4, 5) and len(layer.trainable_weights) == 2
        assert close(answer.numpy(), x @ layer.w.numpy() + 1.0)
        """,
        ('initializer="ones"', 'initializer="zeros"'),
    ),
    Habit(
        "subclassing",
        "a variable that is not trained, and counts what went by",
        """
        from levels_more.low_level import reduce_sum
        from levels_more.mid_level import Layer

        class Total(Layer):
            def __init__(self, input_dim):
                super().__init__()
                self.total = self.add_weight(initializer="zeros", shape=(input_dim,), trainable=False)

            def call(self, inputs):
                self.total.assign_add(reduce_sum(inputs, axis=0))
                return self.total

        layer = Total(4)
        once = layer(x).numpy()
        twice = layer(x).numpy()
        """,
        """
        assert close(once, x.sum(0), 1e-4) and close(twice, 2 * x.sum(0), 1e-4)
        assert len(layer.weights) == len(layer.non_trainable_weights) == 1 and layer.trainable_weights == []
        """,
        ("twice = layer(x)", "twice = layer(x * 2)"),
    ),
    Habit(
        "subclassing",
        "a block of layers finds the weights of its parts",
        """
        from levels_more.low_level import nn
        from levels_more.mid_level import Dense, Layer

        class Block(Layer):
            def __init__(self):
                super().__init__()
                self.one, self.two, self.three = Dense(8), Dense(8), Dense(1)

            def call(self, inputs):
                return self.three(nn.relu(self.two(nn.relu(self.one(inputs)))))

        block = Block()
        answer = block(x)
        """,
        """
        assert len(block.weights) == 6 and len(block.trainable_weights) == 6
        assert close(answer.numpy(), forward(x, block.get_weights(), relu, relu, None))
        """,
        ("nn.relu(self.two", "(self.two"),
    ),
    Habit(
        "subclassing",
        "add_loss in call",
        """
        from levels_more.high_level import Sequential
        from levels_more.low_level import reduce_sum
        from levels_more.mid_level import Dense, Layer

        class Small(Layer):
            def call(self, inputs):
                self.add_loss(0.01 * reduce_sum(inputs * inputs))
                return inputs

        model = Sequential([Dense(3), Small(), Dense(1)])
        model.build((None, 4))
        w, b, v, c = start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        (loss,) = model.fit(x, y, batch_size=200, verbose=0).history["loss"]
        """,
        """
        h = x @ w + b
        assert close(loss, np.mean((h @ v + c - y) ** 2) + 0.01 * (h**2).sum(), 1e-4)
        slope = 2 * (h @ v + c - y) / 200 @ v.T + 0.02 * h
        assert close(model.get_weights()[0], w - 0.01 * x.T @ slope, 1e-4)
        """,
        (
            "self.add_loss(0.01 * reduce_sum(inputs * inputs))",
            "self.penalties = [lambda: 0.01 * reduce_sum(inputs * inputs)]",
        ),
        "refused",
        "NotImplementedError: small: there is no add_loss; in call write self.penalties = [lambda: value]: "
        "functions whose results are added to the loss",
    ),
    Habit(
        "subclassing",
        "a train_step(self, data) of one's own",
        """
        from levels_more.high_level import Model
        from levels_more.low_level import GradientTape, reduce_mean
        from levels_more.mid_level import Dense

        class Mine(Model):
            def __init__(self):
                super().__init__()
                self.dense = Dense(1)

            def call(self, x):
                return self.dense(x)

            def train_step(self, data):
                x, y = data
                with GradientTape() as tape:
                    loss = reduce_mean((self(x, training=True) - y) ** 2)
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
                return loss

        model = Mine()
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(x, y, batch_size=50, epochs=2, shuffle=False, verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.01, 0.01], 50)
        assert close(history.history["loss"], losses) and close(model.get_weights(), weights)
        """,
        ("(self, data):\n        x, y = data\n", "(self, x, y):\n"),
        "refused",
        "TypeError: Mine.train_step: fit calls it with a batch's x and y; "
        "write def train_step(self, x, y), and return the loss, one number",
    ),
    Habit(
        "subclassing",
        "a training loop by hand",
        """
        from levels_more.high_level import Sequential
        from levels_more.low_level import GradientTape
        from levels_more.mid_level import SGD, Dataset, Dense, MeanSquaredError

        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        optimizer, loss_fn = SGD(learning_rate=0.05), MeanSquaredError()
        dataset = Dataset.from_tensor_slices((x, y)).batch(40)
        losses = []
        for epoch in range(2):
            for step, (x_batch, y_batch) in enumerate(dataset):
                with GradientTape() as tape:
                    loss = loss_fn(y_batch, model(x_batch, training=True))
                gradients = tape.gradient(loss, model.trainable_weights)
                optimizer.apply_gradients(zip(gradients, model.trainable_weights))
                losses.append(float(loss))
        """,
        """
        weights, expected = descent(x, y, start, [0.05, 0.05], 40)
        assert close(model.get_weights(), weights) and close(np.reshape(losses, (2, 5)).mean(1), expected)
        """,
        ("batch(40)", "batch(50)"),
    ),
    Habit(
        "fit",
        "the history's names: loss, accuracy, val_loss, val_accuracy",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Adam, Dense, SparseCategoricalAccuracy, SparseCategoricalCrossentropy

        model = Sequential([Dense(16, activation="relu"), Dense(3, activation="softmax")])
        model.compile(
            optimizer=Adam(learning_rate=0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
        )
        history = model.fit(
            x[:150], three[:150], batch_size=32, epochs=5, validation_data=(x[150:], three[150:]), verbose=0
        )
        """,
        """
        found = history.history
        assert [*found] == ["loss", "accuracy", "val_loss", "val_accuracy"] or set(found) == {
            "accuracy", "loss", "val_accuracy", "val_loss"
        }
        p = forward(x[150:], model.get_weights(), relu, softmax)
        assert close(found["val_loss"][-1], -np.log(p[np.arange(50), three[150:]]).mean())
        assert close(found["val_accuracy"][-1], (p.argmax(1) == three[150:]).mean())
        assert all(len(values) == 5 for values in found.values()) and found["loss"][-1] < found["loss"][0]
        """,
        ("validation_data=(x[150:], three[150:])", "validation_data=(x[:150], three[:150])"),
    ),
    Habit(
        "fit",
        "float64 arrays into a float32 model, and into a Dataset",
        """
        from levels_more.high_level import Input, Sequential
        from levels_more.mid_level import Dataset, Dense

        model = Sequential([Input(shape=(4,)), Dense(1)])
        start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        wide, target = x.astype("float64"), y.astype("float64")
        history = model.fit(wide, target, batch_size=50, epochs=2, shuffle=False, verbose=0)
        model.fit(Dataset.from_tensor_slices((wide, target)).batch(50), epochs=1, verbose=0)
        answer = model.predict(wide)
        """,
        """
        weights, losses = descent(x, y, start, [0.01] * 3, 50)
        assert close(history.history["loss"], losses[:2]) and close(model.get_weights(), weights)
        assert answer.dtype == np.float32 and close(answer, forward(x, weights, None))
        """,
        ("target)).batch(50)", "target)).batch(40)"),
    ),
    Habit(
        "fit",
        "a Metric of one's own: update_state, result, reset_state",
        """
        from levels_more.high_level import Sequential
        from levels_more.low_level import arg_max, cast, reduce_sum, reshape
        from levels_more.mid_level import Dense, Metric

        class RightAnswers(Metric):
            def __init__(self, name="right_answers", **kwargs):
                super().__init__(name=name, **kwargs)
                self.right = self.add_variable(shape=(), name="right", initializer="zeros")

            def update_state(self, y_true, y_pred, sample_weight=None):
                answers = reshape(arg_max(y_pred, axis=1), (-1,))
                self.right.assign_add(reduce_sum(cast(cast(y_true, "int64") == answers, "float32")))

            def result(self):
                return self.right

            def reset_state(self):
                self.right.assign(0.0)

        model = Sequential([Dense(16, activation="relu"), Dense(3, activation="softmax")])
        model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=[RightAnswers()])
        model.fit(x, three, epochs=3, verbose=0)
        found = model.evaluate(x, three, verbose=0, return_dict=True)["right_answers"]
        """,
        """
        assert found == (forward(x, model.get_weights(), relu, softmax).argmax(1) == three).sum()
        """,
        ('"float32")))', '"float32")) * 2.0)'),
    ),
    Habit(
        "fit",
        "a schedule as learning_rate, with staircase=True",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import SGD, Dense, ExponentialDecay

        schedule = ExponentialDecay(initial_learning_rate=0.1, decay_steps=4, decay_rate=0.5, staircase=True)
        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer=SGD(learning_rate=schedule), loss="mse")
        model.fit(x, y, batch_size=50, epochs=3, shuffle=False, verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.1, 0.05, 0.025], 50)
        assert close(model.get_weights(), weights)
        """,
        ("staircase=True", "staircase=False"),
    ),
    Habit(
        "callbacks",
        "ModelCheckpoint keeps the best one only",
        """
        from levels_more.high_level import ModelCheckpoint, Sequential
        from levels_more.saving import load_model
        from levels_more.mid_level import SGD, Dense

        model = Sequential([Dense(1)])
        model.compile(optimizer=SGD(learning_rate=0.02), loss="mse")
        keep = ModelCheckpoint(filepath="best.keras", monitor="val_loss", save_best_only=True, verbose=1)
        history = model.fit(x, y, epochs=12, validation_data=(x, 0.5 * y), callbacks=[keep], shuffle=False, verbose=0)
        kept = load_model("best.keras")
        """,
        """
        best = min(history.history["val_loss"])
        assert best < history.history["val_loss"][-1] * 0.9
        assert close(np.mean((kept.predict(x) - 0.5 * y) ** 2), best)
        """,
        ("save_best_only=True", "save_best_only=False"),
    ),
    Habit(
        "callbacks",
        "ReduceLROnPlateau",
        """
        from levels_more.high_level import ReduceLROnPlateau, Sequential
        from levels_more.mid_level import SGD, Dense

        model = Sequential([Dense(1)])
        model.build((None, 4))
        model.set_weights([np.zeros((4, 1), "f4"), np.zeros((1, 1), "f4")])
        model.compile(SGD(0.02), loss="mse")
        reduce_lr = ReduceLROnPlateau(monitor="val_loss", factor=0.2, patience=2, min_lr=0.001)
        history = model.fit(
            x, y, epochs=5, batch_size=200, validation_data=(x, 0 * y), callbacks=[reduce_lr], shuffle=False, verbose=0
        )
        """,
        """
        # from zero on each epoch is worse than the first: after two such the rate falls, after two more again
        assert np.all(np.diff(history.history["val_loss"]) > 0)
        assert close(history.history["learning_rate"], [0.02, 0.02, 0.02, 0.004, 0.004])
        assert close(float(model.optimizer.learning_rate), 0.001)
        """,
        ("patience=2", "patience=3"),
    ),
    Habit(
        "callbacks",
        "on_train_batch_end(batch, logs) keeps the losses of all steps",
        """
        from levels_more.high_level import Callback, LambdaCallback, Sequential
        from levels_more.mid_level import Dense

        class LossHistory(Callback):
            def on_train_begin(self, logs=None):
                self.losses, self.batches = [], []

            def on_train_batch_end(self, batch, logs=None):
                self.batches.append(batch)
                self.losses.append(logs["loss"])

        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile("sgd", "mse")
        kept, told = LossHistory(), []
        tell = LambdaCallback(on_train_batch_end=lambda batch, logs: told.append(logs["loss"]))
        model.fit(x, y, batch_size=50, epochs=2, shuffle=False, callbacks=[kept, tell], verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.01, 0.01], 50)
        assert close(np.mean(kept.losses[:4]), losses[0]) and close(np.mean(kept.losses[4:]), losses[1])
        assert kept.batches == [0, 1, 2, 3, 0, 1, 2, 3] and told == kept.losses
        """,
        ("epochs=2", "epochs=3"),
        "differs",
        "The loss of a batch is that of its step; Keras tells the mean of the epoch so far.",
    ),
    Habit(
        "callbacks",
        "self.model.optimizer.learning_rate, set by hand",
        """
        from levels_more.high_level import Callback, Sequential
        from levels_more.mid_level import SGD, Dense

        class Halve(Callback):
            def on_epoch_begin(self, epoch, logs=None):
                lr = float(self.model.optimizer.learning_rate)
                if epoch > 0:
                    self.model.optimizer.learning_rate = lr * 0.5

        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer=SGD(learning_rate=0.1), loss="mse")
        model.fit(x, y, epochs=3, batch_size=50, callbacks=[Halve()], shuffle=False, verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.1, 0.05, 0.025], 50)
        assert close(model.get_weights(), weights)
        """,
        ("lr * 0.5", "lr * 0.6"),
    ),
    Habit(
        "saving",
        "get_weights, set_weights; a bias of shape (units,) from elsewhere",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense
        from sklearn.linear_model import LinearRegression

        line = LinearRegression().fit(x, y)
        model, other = Sequential([Dense(1)]), Sequential([Dense(1)])
        model.build((None, 4)), other.build((None, 4))
        model.set_weights([line.coef_.T, line.intercept_])
        other.set_weights(model.get_weights())
        answer = other.predict(x)
        """,
        """
        assert close(answer, line.predict(x), 1e-4)
        """,
        ("line.intercept_]", "line.intercept_.reshape(1, -1)]"),
        "refused",
        "ValueError: layers.0.bias is float32[1, 1] on cpu:0, the weight float32[1] on cpu:0; reshape it",
    ),
    Habit(
        "saving",
        "a layer of one's own, with get_config, and custom_objects",
        """
        from levels_more.high_level import Sequential
        from levels_more.saving import load_model
        from levels_more.mid_level import Dense, Layer

        class Scale(Layer):
            def __init__(self, factor, **kwargs):
                super().__init__(**kwargs)
                self.factor = factor

            def call(self, x):
                return x * self.factor

            def get_config(self):
                config = super().get_config()
                config.update({"factor": self.factor})
                return config

        model = Sequential([Scale(3.0), Dense(1)])
        model.compile("sgd", "mse")
        model.fit(x, y, verbose=0)
        model.save("mine.keras")
        same = load_model("mine.keras", custom_objects={"Scale": Scale})
        """,
        """
        assert close(same.predict(x), forward(3.0 * x, model.get_weights(), None))
        """,
        ("Scale(3.0)", "Scale(4.0)"),
    ),
    Habit(
        "saving",
        'export(…, format="onnx")',
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(8, activation="relu"), Dense(3, activation="softmax")])
        model.build((None, 4))
        model.export("mine.onnx", format="onnx")
        """,
        """
        import onnxruntime

        session = onnxruntime.InferenceSession("mine.onnx", providers=["CPUExecutionProvider"])
        (answer,) = session.run(None, {session.get_inputs()[0].name: x})
        assert close(answer, forward(x, model.get_weights(), relu, softmax))
        """,
        ('activation="relu"', 'activation="tanh"'),
    ),
    Habit(
        "scikit-learn",
        "a DataFrame's columns are remembered",
        """
        import pandas as pd
        from levels_more.high_level import DNNClassifier

        table = pd.DataFrame(x, columns=["a", "b", "c", "d"])
        clf = DNNClassifier(epochs=20, random_state=0).fit(table, pd.Series(two))
        score = clf.score(table, two)
        refused = ""
        try:
            clf.predict(table[["b", "a", "c", "d"]])
        except ValueError as error:
            refused = str(error)
        """,
        """
        assert list(clf.feature_names_in_) == ["a", "b", "c", "d"] and clf.n_features_in_ == 4
        assert "feature names" in refused.lower() and score == np.mean(clf.predict(table) == two) > 0.8
        """,
        ('["b", "a", "c", "d"]]', '["a", "b", "c", "d"]]'),
    ),
]


def ran(code, where, names):
    """Run a program in a namespace. pytest can show its lines."""
    linecache.cache[where] = len(code), None, code.splitlines(keepends=True), where
    exec(compile(code, where, "exec"), names)


def tried(habit, code, folder, monkeypatch):
    """What the reader has after this code, and what the program said: by print, by warnings, in docstrings."""
    monkeypatch.chdir(folder)
    before, out = RANDOM.getstate(), io.StringIO()
    RANDOM.seed(0)
    names = {"__name__": "typed"} | given()
    try:
        with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ran(code, f"<{habit.place}: {habit.what}>", names)
    finally:
        RANDOM.setstate(before)
    warned = "\n".join(f"{each.category.__name__}: {each.message}" for each in told)
    return names | CHECKS | {"said": out.getvalue(), "warned": warned}


def code_of(habit, spoiled=False):
    code = textwrap.dedent(habit.code).lstrip()
    if spoiled:
        assert code.count(habit.spoil[0]) == 1, "the text to be changed stands in the code once"
        code = code.replace(*habit.spoil)
    return code


def check(habit, names):
    ran(textwrap.dedent(habit.holds).lstrip(), f"<holds, {habit.place}: {habit.what}>", names)


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: f"{habit.place}: {habit.what}")
def test_habit(habit, tmp_path, monkeypatch):
    code = code_of(habit)
    if habit.verdict == "refused":
        with pytest.raises(Exception) as error:
            tried(habit, code, tmp_path, monkeypatch)
        assert f"{error.type.__name__}: {error.value}" == habit.tells
        code = code_of(habit, spoiled=True)  # the cure
    names = tried(habit, code, tmp_path, monkeypatch)
    check(habit, names)
    if habit.verdict == "differs":
        documented = [getattr(value, "__doc__", None) or "" for value in names.values()]
        assert any(habit.tells in text for text in [names["said"], names["warned"], *documented])


@pytest.mark.parametrize(
    "habit", [habit for habit in HABITS if habit.verdict != "refused"], ids=lambda habit: f"{habit.place}: {habit.what}"
)
def test_its_check_can_fail(habit, tmp_path, monkeypatch):
    names = tried(habit, code_of(habit, spoiled=True), tmp_path, monkeypatch)
    with pytest.raises(AssertionError):
        check(habit, names)
