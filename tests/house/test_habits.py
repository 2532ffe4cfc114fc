"""Seventy-one habits of people who come from Keras 3 and scikit-learn: what they type, tried here, and checked.

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

PLACES = {
    "Sequential": 8,
    "functional": 10,
    "subclassing": 9,
    "fit": 18,
    "callbacks": 10,
    "saving": 6,
    "scikit-learn": 10,
}


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


def descent(x, y, weights, rates, sizes, counts=1.0):
    """Steps of gradient descent on the squared error of a line, rows in order: the weights, and the loss of each epoch.

    rates: one for each epoch; sizes: rows in a batch; counts: how often a row counts (the sum is divided by the rows).
    """
    (w, b), losses, counts = weights, [], np.broadcast_to(counts, len(x)).reshape(-1, 1)
    for rate in rates:
        total = 0.0
        for k in range(0, len(x), sizes):
            xb, yb, cb = x[k : k + sizes], y[k : k + sizes], counts[k : k + sizes]
            error = xb @ w + b - yb
            total += float((cb * error**2).sum())
            slope = 2.0 * cb * error / len(xb)
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
    # ------------------------------------------------------------------------------------------------ Sequential, 12
    Habit(
        "Sequential",
        "layers in a list, with names",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential(
            [
                Dense(2, activation="relu", name="first"),
                Dense(3, activation="relu", name="second"),
                Dense(4, name="third"),
            ]
        )
        answer = model(x)
        """,
        """
        assert close(answer.numpy(), forward(x, model.get_weights(), relu, relu, None))
        assert [layer.name for layer in model.layers] == ["first", "second", "third"]
        """,
        ('Dense(3, activation="relu"', 'Dense(3, activation="sigmoid"'),
    ),
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
        "Sequential",
        "all layers but the last are frozen",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(8, activation="relu"), Dense(8, activation="relu"), Dense(1)])
        model.build((None, 4))
        before = model.get_weights()
        for layer in model.layers[:-1]:
            layer.trainable = False
        model.compile(optimizer="adam", loss="mse")
        model.fit(x, y, epochs=2, verbose=0)
        """,
        """
        changed = [not np.array_equal(*pair) for pair in zip(before, model.get_weights(), strict=True)]
        assert changed == [False, False, False, False, True, True] and len(model.trainable_weights) == 2
        """,
        ("model.layers[:-1]", "model.layers[:1]"),
    ),
    Habit(
        "Sequential",
        "a trained base, frozen, with a new head",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        base = Sequential([Dense(8, activation="relu"), Dense(8, activation="relu")])
        base.build((None, 4))
        before = base.get_weights()
        base.trainable = False
        model = Sequential([base, Dense(1)])
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(x, y, epochs=3, verbose=0)
        """,
        """
        assert all(np.array_equal(*pair) for pair in zip(before, base.get_weights(), strict=True))
        assert len(model.trainable_variables) == 2 and history.history["loss"][-1] < history.history["loss"][0]
        """,
        ("base.trainable = False", "base.trainable = True"),
    ),
    # ------------------------------------------------------------------------------------------------ functional, 10
    Habit(
        "functional",
        "Input, layers called in turn, Model(inputs, outputs, name)",
        """
        from levels_more.high_level import Input, Model
        from levels_more.mid_level import Dense

        inputs = Input(shape=(4,))
        h = Dense(8, activation="relu")(inputs)
        h = Dense(8, activation="relu")(h)
        outputs = Dense(3, activation="softmax")(h)
        model = Model(inputs=inputs, outputs=outputs, name="classes")
        answer = model.predict(x)
        """,
        """
        assert model.name == "classes" and close(answer, forward(x, model.get_weights(), relu, relu, softmax))
        """,
        ("outputs = Dense(3, activation", "outputs = Dense(3, name"),
    ),
    Habit(
        "functional",
        "shape and dtype of what stands for numbers to come",
        """
        from levels_more.high_level import Input
        from levels_more.mid_level import Dense

        inputs = Input(shape=(4,))
        outputs = Dense(10)(inputs)
        """,
        """
        assert inputs.shape == (None, 4) and outputs.shape == (None, 10)
        assert inputs.dtype == "float32" and outputs.dtype == "float32"
        """,
        ("Dense(10)", "Dense(11)"),
    ),
    Habit(
        "functional",
        "summary shows the layers, their shapes and how many numbers they hold",
        """
        from levels_more.high_level import Input, Model
        from levels_more.mid_level import Dense

        inputs = Input(shape=(4,))
        outputs = Dense(3, name="the_head")(Dense(8, name="the_body")(inputs))
        Model(inputs, outputs).summary()
        """,
        """
        lines = {word: line for line in said.splitlines() for word in ("the_head", "the_body") if word in line}
        assert "(None, 8)" in lines["the_body"] and "40" in lines["the_body"]
        assert "(None, 3)" in lines["the_head"] and "27" in lines["the_head"] and "67" in said
        """,
        ("Dense(8", "Dense(7"),
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
        "the average of three models",
        """
        from levels_more.high_level import Input, Model
        from levels_more.mid_level import Dense

        def one():
            inputs = Input(shape=(4,))
            return Model(inputs, Dense(1)(inputs))

        models = [one() for _ in range(3)]
        inputs = Input(shape=(4,))
        ensemble = Model(inputs=inputs, outputs=sum(model(inputs) for model in models) / 3.0)
        answer = ensemble.predict(x)
        """,
        """
        assert close(answer, sum(forward(x, model.get_weights(), None) for model in models) / 3)
        """,
        ("for model in models)", "for model in models[:2])"),
    ),
    Habit(
        "functional",
        "several inputs, given in a dict of their names",
        """
        from levels_more.high_level import Input, Model
        from levels_more.mid_level import Concatenate, Dense

        left, right = Input(shape=(3,), name="left"), Input(shape=(1,), name="right")
        outputs = Dense(1)(Concatenate()([left, right]))
        model = Model(inputs=[left, right], outputs=outputs)
        model.compile(optimizer="sgd", loss="mse")
        start = model.get_weights()
        history = model.fit({"right": x[:, 3:], "left": x[:, :3]}, y, batch_size=50, epochs=2, shuffle=False, verbose=0)
        answer = model.predict({"right": x[:, 3:], "left": x[:, :3]})
        """,
        """
        weights, losses = descent(x, y, start, [0.01, 0.01], 50)
        assert close(history.history["loss"], losses) and close(answer, forward(x, weights, None))
        """,
        ('"left": x[:, :3]}, y', '"left": x[:, :3] * 2}, y'),
    ),
    Habit(
        "functional",
        "two outputs, losses in a dict of their names, loss_weights",
        """
        from levels_more.high_level import Input, Model
        from levels_more.mid_level import Dense

        inputs = Input(shape=(4,))
        price = Dense(1, name="price")(inputs)
        sold = Dense(1, activation="sigmoid", name="sold")(inputs)
        model = Model(inputs=inputs, outputs=[price, sold])
        model.compile(
            optimizer="adam",
            loss={"price": "mse", "sold": "binary_crossentropy"},
            loss_weights={"price": 1.0, "sold": 0.2},
        )
        targets = {"sold": two[:, None], "price": y}
        model.fit(x, targets, epochs=2, verbose=0)
        found = model.evaluate(x, targets, return_dict=True, verbose=0)["loss"]
        """,
        """
        a, b = model.predict(x)
        p = np.clip(b[:, 0].astype("f8"), 1e-7, 1 - 1e-7)
        entropy = -np.mean(two * np.log(p) + (1 - two) * np.log(1 - p))
        assert close(found, np.mean((a - y) ** 2) + 0.2 * entropy)
        """,
        ('"sold": 0.2', '"sold": 0.3'),
    ),
    Habit(
        "functional",
        "a block whose input is added to its output",
        """
        from levels_more.high_level import Input, Model
        from levels_more.mid_level import Dense

        inputs = Input(shape=(4,))
        block = Dense(4, activation="relu")(inputs)
        model = Model(inputs, block + inputs)
        answer = model.predict(x)
        """,
        """
        assert close(answer, forward(x, model.get_weights(), relu) + x)
        """,
        ("block + inputs", "block + block"),
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
    # ----------------------------------------------------------------------------------------------- subclassing, 10
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
        "call(self, inputs, training=False) does another thing in fit",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense, Layer

        class Twice(Layer):
            def call(self, inputs, training=False):
                return inputs * 2.0 if training else inputs

        model = Sequential([Twice(), Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(x, y, batch_size=50, epochs=2, shuffle=False, verbose=0)
        answer = model.predict(x)
        """,
        """
        weights, losses = descent(2 * x, y, start, [0.01, 0.01], 50)
        assert close(history.history["loss"], losses) and close(answer, forward(x, weights, None))
        """,
        ("2.0 if training", "2.5 if training"),
    ),
    Habit(
        "subclassing",
        "a Model of one's own, with dropout in it, is fitted",
        """
        from levels_more.high_level import Model
        from levels_more.mid_level import Dense, Dropout

        class Mine(Model):
            def __init__(self):
                super().__init__()
                self.dense1 = Dense(32, activation="relu")
                self.dense2 = Dense(1)
                self.dropout = Dropout(0.5, seed=1)

            def call(self, inputs, training=False):
                h = self.dense1(inputs)
                if training:
                    h = self.dropout(h, training=training)
                return self.dense2(h)

        model = Mine()
        model.compile(optimizer="adam", loss="mse")
        history = model.fit(x, y, epochs=5, verbose=0)
        answer, trained = model.predict(x), model(x, training=True).numpy()
        """,
        """
        dense = model.dense1.get_weights() + model.dense2.get_weights()
        assert close(answer, forward(x, dense, relu, None)) and not close(trained, answer, 0.1)
        assert history.history["loss"][-1] < history.history["loss"][0]
        """,
        ("Dropout(0.5", "Dropout(0.0"),
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
    # ------------------------------------------------------------------------------- fit, evaluate, predict, inputs, 20
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
        "evaluate without metrics gives the loss, a number",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(1)])
        model.compile(optimizer="adam", loss="mse")
        loss = model.evaluate(x, y, batch_size=64, verbose=0)
        """,
        """
        assert isinstance(loss, float) and close(loss, np.mean((forward(x, model.get_weights(), None) - y) ** 2))
        """,
        ('loss="mse"', 'loss="mae"'),
    ),
    Habit(
        "fit",
        "loss, accuracy = evaluate(…), or a dict of them",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(1, activation="sigmoid")])
        model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
        model.fit(x, two, epochs=2, verbose=0)
        loss, accuracy = model.evaluate(x, two, verbose=0)
        both = model.evaluate(x, two, return_dict=True, verbose=0)
        """,
        """
        p = forward(x.astype("f8"), model.get_weights(), sigmoid)[:, 0]
        assert close(loss, -np.mean(two * np.log(p) + (1 - two) * np.log(1 - p)))
        assert accuracy == pytest.approx(np.mean((p > 0.5) == two)) and both == {"loss": loss, "accuracy": accuracy}
        """,
        ("loss, accuracy =", "accuracy, loss ="),
    ),
    Habit(
        "fit",
        "predict(…).argmax(axis=1) are the classes",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Adam, Dense, SparseCategoricalCrossentropy

        model = Sequential([Dense(16, activation="relu"), Dense(3)])
        model.compile(optimizer=Adam(0.01), loss=SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        model.fit(x, three, epochs=30, verbose=0)
        probabilities = model.predict(x, batch_size=32, verbose=0)
        classes = probabilities.argmax(axis=1)
        one = model.predict(x[:1], verbose=0)
        """,
        """
        logits = forward(x, model.get_weights(), relu, None)
        assert isinstance(probabilities, np.ndarray) and close(probabilities, logits) and one.shape == (1, 3)
        assert np.mean(classes == three) > 0.8 and np.array_equal(classes, logits.argmax(1))
        """,
        ("epochs=30", "epochs=0"),
    ),
    Habit(
        "fit",
        "a target of shape (n,) for one unit",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(x, y[:, 0], batch_size=50, epochs=3, shuffle=False, verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.01] * 3, 50)
        assert close(history.history["loss"], losses) and close(model.get_weights(), weights)
        """,
        ("y[:, 0]", "y[::-1, 0]"),
    ),
    Habit(
        "fit",
        "lists of numbers, and integers as labels",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(8, activation="relu"), Dense(1, activation="sigmoid")])
        model.compile(optimizer="adam", loss="binary_crossentropy")
        model.fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0], epochs=2, verbose=0)
        loss = model.evaluate([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0], verbose=0)
        """,
        """
        rows, t = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
        p = forward(rows, model.get_weights(), relu, sigmoid)[:, 0]
        assert close(loss, -np.mean(t * np.log(p) + (1 - t) * np.log(1 - p)))
        """,
        ("= model.evaluate([[0, 0]", "= model.evaluate([[5, 5]"),
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
        "a DataFrame and a Series of pandas",
        """
        import pandas as pd
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        table = pd.DataFrame(x.astype("f8"), columns=["a", "b", "c", "d"]).assign(price=y[:, 0], kept=two)
        features, price = table[["a", "b", "c", "d", "kept"]], table["price"]
        model = Sequential([Dense(1)])
        model.build((None, 5))
        start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(features, price, batch_size=50, epochs=2, shuffle=False, verbose=0)
        answer = model.predict(features)
        """,
        """
        rows = np.concatenate([x, two[:, None]], 1)
        weights, losses = descent(rows, y, start, [0.01, 0.01], 50)
        assert close(history.history["loss"], losses) and close(answer, forward(rows, weights, None))
        """,
        ('"d", "kept"]], table', '"kept", "d"]], table'),
    ),
    Habit(
        "fit",
        "validation_split takes the last rows, before any shuffling",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(1)])
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(x, y, validation_split=0.2, epochs=2, verbose=0)
        """,
        """
        expected = np.mean((forward(x[160:], model.get_weights(), None) - y[160:]) ** 2)
        assert close(history.history["val_loss"][-1], expected)
        """,
        ("validation_split=0.2", "validation_split=0.3"),
    ),
    Habit(
        "fit",
        "sample_weight, one for each row",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        counts = np.where(two == 1, 3.0, 0.5)
        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(x, y, sample_weight=counts, batch_size=50, epochs=2, shuffle=False, verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.01, 0.01], 50, np.where(two == 1, 3.0, 0.5))
        assert close(history.history["loss"], losses) and close(model.get_weights(), weights)
        """,
        ("3.0, 0.5", "3.0, 0.6"),
    ),
    Habit(
        "fit",
        "class_weight, a dict",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        model.fit(x, two, class_weight={0: 1.0, 1: 4.0}, batch_size=50, epochs=2, shuffle=False, verbose=0)
        """,
        """
        weights, losses = descent(x, two[:, None], start, [0.01, 0.01], 50, np.where(two == 1, 4.0, 1.0))
        assert close(model.get_weights(), weights)
        """,
        ("1: 4.0", "1: 3.0"),
    ),
    Habit(
        "fit",
        "a Dataset, shuffled and batched, for fit, evaluate and predict",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dataset, Dense

        train = Dataset.from_tensor_slices((x, y)).shuffle(buffer_size=1024).batch(64)
        test = Dataset.from_tensor_slices((x, y)).batch(64)
        model = Sequential([Dense(1)])
        model.compile(optimizer="adam", loss="mse")
        history = model.fit(train, epochs=3, validation_data=test, verbose=0)
        loss = model.evaluate(test, verbose=0)
        answer = model.predict(test)
        """,
        """
        expected = forward(x, model.get_weights(), None)
        assert close(answer, expected) and close(loss, np.mean((expected - y) ** 2))
        assert close(history.history["val_loss"][-1], loss) and len(history.losses) == 3 * 4
        """,
        ("slices((x, y)).batch", "slices((x[::-1], y)).batch"),
    ),
    Habit(
        "fit",
        "repeat() and steps_per_epoch",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dataset, Dense

        forever = Dataset.from_tensor_slices((x, y)).batch(50).repeat()
        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(forever, steps_per_epoch=6, epochs=2, verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.01] * 3, 50)
        assert close(model.get_weights(), weights) and len(history.history["loss"]) == 2
        assert close(np.mean(history.history["loss"]), np.mean(losses))
        """,
        ("steps_per_epoch=6", "steps_per_epoch=4"),
    ),
    Habit(
        "fit",
        "functions as loss and as metric",
        """
        from levels_more.high_level import Sequential
        from levels_more.low_level import reduce_mean, square
        from levels_more.mid_level import Dense

        def custom_mean_squared_error(y_true, y_pred):
            return reduce_mean(square(y_true - y_pred), axis=-1)

        def largest(y_true, y_pred):
            return square(y_true - y_pred) * 2.0

        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer="sgd", loss=custom_mean_squared_error, metrics=[largest])
        history = model.fit(x, y, batch_size=50, epochs=2, shuffle=False, verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.01, 0.01], 50)
        assert close(history.history["loss"], losses) and close(model.get_weights(), weights)
        assert close(history.history["largest"], 2 * np.array(losses))
        """,
        ("axis=-1)", "axis=-1) * 2.0"),
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
        "a generator of batches, with steps_per_epoch",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        def batches():
            while True:
                for k in range(0, 200, 50):
                    yield x[k : k + 50], y[k : k + 50]

        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(batches(), steps_per_epoch=4, epochs=2, verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.01, 0.01], 50)
        assert close(history.history["loss"], losses) and close(model.get_weights(), weights)
        """,
        ("yield x[k : k + 50]", "yield x[k : k + 50] * 2"),
    ),
    Habit(
        "fit",
        "fit again goes on, with the optimizer's memory; initial_epoch",
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Adam, Dense

        start = [np.full((4, 1), 0.1), np.zeros((1, 1))]
        seen = []
        for stops in [(4,), (2, 4)]:
            model = Sequential([Dense(1, dtype="float64")])
            model.build((None, 4), "float64")
            model.set_weights(start)
            model.compile(optimizer=Adam(learning_rate=0.1), loss="mse")
            done = 0
            for stop in stops:
                history = model.fit(
                    x, y, batch_size=50, epochs=stop, initial_epoch=done, shuffle=False, verbose=0
                )
                done = stop
            seen.append((model.get_weights(), history))
        """,
        """
        (once, all_of_it), (twice, rest) = seen
        assert close(once, twice, 1e-12) and close(all_of_it.history["loss"][2:], rest.history["loss"], 1e-12)
        assert not close(once, start, 0.1)
        """,
        ("(2, 4)]", "(2, 3)]"),
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
    # ------------------------------------------------------------------------------------------------- callbacks, 10
    Habit(
        "callbacks",
        "EarlyStopping restores the best weights",
        """
        from levels_more.high_level import EarlyStopping, Sequential
        from levels_more.mid_level import SGD, Dense

        model = Sequential([Dense(1)])
        model.compile(optimizer=SGD(learning_rate=0.02), loss="mse")
        stopping = EarlyStopping(monitor="val_loss", patience=2, restore_best_weights=True)
        history = model.fit(
            x, y, epochs=50, validation_data=(x, 0.5 * y), callbacks=[stopping], shuffle=False, verbose=0
        )
        """,
        """
        found = history.history["val_loss"]
        best = int(np.argmin(found))
        assert 0 < best and len(found) == best + 3 < 50
        assert close(np.mean((forward(x, model.get_weights(), None) - 0.5 * y) ** 2), found[best])
        """,
        ("restore_best_weights=True", "restore_best_weights=False"),
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
        "CSVLogger",
        """
        from levels_more.high_level import CSVLogger, Sequential
        from levels_more.mid_level import Dense

        model = Sequential([Dense(1)])
        model.compile(optimizer="sgd", loss="mse")
        history = model.fit(x, y, epochs=3, validation_split=0.5, callbacks=[CSVLogger("log.csv")], verbose=0)
        """,
        """
        import csv

        with open("log.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["epoch"] for row in rows] == ["0", "1", "2"]
        assert [float(row["val_loss"]) for row in rows] == history.history["val_loss"]
        """,
        ("epochs=3", "epochs=2"),
    ),
    Habit(
        "callbacks",
        "LearningRateScheduler(function of the epoch and the rate)",
        """
        from levels_more.high_level import LearningRateScheduler, Sequential
        from levels_more.mid_level import SGD, Dense

        def scheduler(epoch, lr):
            return lr if epoch < 2 else lr * 0.5

        model = Sequential([Dense(1)])
        model.build((None, 4))
        start = model.get_weights()
        model.compile(SGD(0.08), loss="mse")
        watch = LearningRateScheduler(scheduler)
        model.fit(x, y, epochs=4, batch_size=50, callbacks=[watch], shuffle=False, verbose=0)
        """,
        """
        weights, losses = descent(x, y, start, [0.08, 0.08, 0.04, 0.02], 50)
        assert close(model.get_weights(), weights) and close(float(model.optimizer.learning_rate), 0.02)
        """,
        ("epoch < 2", "epoch < 3"),
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
        "LambdaCallback",
        """
        from levels_more.high_level import LambdaCallback, Sequential
        from levels_more.mid_level import Dense

        seen = []
        model = Sequential([Dense(1)])
        model.compile("sgd", "mse")
        tell = LambdaCallback(
            on_epoch_end=lambda epoch, logs: seen.append((epoch, logs["loss"])),
            on_train_end=lambda logs: seen.append("over"),
        )
        history = model.fit(x, y, epochs=3, callbacks=[tell], verbose=0)
        """,
        """
        assert seen == [*enumerate(history.history["loss"]), "over"] and len(seen) == 4
        """,
        ("(epoch, logs", "(epoch + 1, logs"),
    ),
    Habit(
        "callbacks",
        "a Callback whose methods all take logs=None",
        """
        from levels_more.high_level import Callback, Sequential
        from levels_more.mid_level import Dense

        seen = []

        class Mine(Callback):
            def on_train_begin(self, logs=None):
                seen.append("begin")

            def on_epoch_begin(self, epoch, logs=None):
                seen.append(("epoch begins", epoch))

            def on_epoch_end(self, epoch, logs=None):
                seen.append(("epoch ends", epoch, list(logs.keys())))

            def on_train_end(self, logs=None):
                seen.append(("end", sorted(logs)))

        model = Sequential([Dense(1)])
        model.compile("sgd", "mse", metrics=["mean_absolute_error"])
        model.fit(x, y, epochs=2, callbacks=[Mine()], verbose=0)
        """,
        """
        keys = ["loss", "mean_absolute_error"]
        epochs = [each for k in range(2) for each in (("epoch begins", k), ("epoch ends", k, keys))]
        assert seen == ["begin", *epochs, ("end", keys)]
        """,
        ("epochs=2", "epochs=3"),
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
        "self.model.stop_training = True",
        """
        from levels_more.high_level import Callback, Sequential
        from levels_more.mid_level import Dense

        class Enough(Callback):
            def on_epoch_end(self, epoch, logs=None):
                if epoch == 2:
                    self.model.stop_training = True

        model = Sequential([Dense(1)])
        model.compile("sgd", "mse")
        history = model.fit(x, y, epochs=10, callbacks=Enough(), verbose=0)
        """,
        """
        assert len(history.history["loss"]) == 3
        """,
        ("epoch == 2", "epoch == 3"),
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
    # ----------------------------------------------------------------------------------------------------- saving, 8
    Habit(
        "saving",
        'save("….keras") and load_model',
        """
        from levels_more.high_level import Sequential
        from levels_more.saving import load_model
        from levels_more.mid_level import Dense

        model = Sequential([Dense(8, activation="relu"), Dense(1)])
        model.compile("adam", "mse")
        model.fit(x, y, epochs=1, verbose=0)
        model.save("mine.keras")
        model.save("mine.keras")
        kept = [w.copy() for w in model.get_weights()]
        model.fit(x, y, epochs=1, verbose=0)
        same = load_model("mine.keras")
        """,
        """
        assert close(same.get_weights(), kept, 0.0) and close(same.predict(x), forward(x, kept, relu, None))
        assert not close(same.get_weights(), model.get_weights())
        """,
        ("kept = [w.copy()", "kept = [w * 2"),
    ),
    Habit(
        "saving",
        'save_weights("….weights.h5") and load_weights into a new model',
        """
        from levels_more.high_level import Sequential
        from levels_more.mid_level import Dense

        def make():
            model = Sequential([Dense(8, activation="relu"), Dense(1)])
            model.build((None, 4))
            return model

        model, other = make(), make()
        model.save_weights("mine.weights.h5")
        different = not np.array_equal(model.get_weights()[0], other.get_weights()[0])
        other.load_weights("mine.weights.h5")
        """,
        """
        assert different and close(other.get_weights(), model.get_weights(), 0.0)
        assert close(other.predict(x), forward(x, model.get_weights(), relu, None))
        """,
        ('other.load_weights("', 'print("'),
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
        "a loaded model goes on as if it had never stopped",
        """
        from levels_more.high_level import Sequential
        from levels_more.saving import load_model
        from levels_more.mid_level import Adam, Dense

        model = Sequential([Dense(8, activation="relu"), Dense(1)])
        model.compile(optimizer=Adam(0.05), loss="mse")
        model.fit(x, y, epochs=2, shuffle=False, verbose=0)
        model.save("checkpoint.keras")
        model.fit(x, y, epochs=2, shuffle=False, verbose=0)
        resumed = load_model("checkpoint.keras")
        resumed.fit(x, y, epochs=2, shuffle=False, verbose=0)
        """,
        """
        assert close(resumed.get_weights(), model.get_weights(), 1e-6)
        """,
        ("resumed.fit(", "resumed.compile(Adam(0.05), 'mse'), resumed.fit("),
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
    # ----------------------------------------------------------------------------------------------- scikit-learn, 10
    Habit(
        "scikit-learn",
        "labels that are words, three of them; score",
        """
        from levels_more.high_level import DNNClassifier
        from sklearn.datasets import load_iris
        from sklearn.model_selection import train_test_split
        from sklearn.preprocessing import StandardScaler

        X, labels = load_iris(return_X_y=True)
        names = load_iris().target_names[labels]
        X_train, X_test, y_train, y_test = train_test_split(StandardScaler().fit_transform(X), names, random_state=0)
        clf = DNNClassifier(hidden_units=(16,), epochs=60, random_state=0).fit(X_train, y_train)
        found, score = clf.predict(X_test), clf.score(X_test, y_test)
        """,
        """
        assert list(clf.classes_) == ["setosa", "versicolor", "virginica"] and set(found) == set(clf.classes_)
        assert score == np.mean(found == y_test) and score > 0.9
        """,
        ("epochs=60", "epochs=0"),
    ),
    Habit(
        "scikit-learn",
        "predict_proba: columns as in classes_, rows that add up to 1",
        """
        from levels_more.high_level import DNNClassifier
        from sklearn.metrics import roc_auc_score

        labels = np.where(two == 1, "yes", "no")
        clf = DNNClassifier(hidden_units=(8,), epochs=30, random_state=0).fit(x, labels)
        p = clf.predict_proba(x)
        """,
        """
        assert p.shape == (200, 2) and np.allclose(p.sum(1), 1.0) and list(clf.classes_) == ["no", "yes"]
        assert np.array_equal(clf.classes_[p.argmax(1)], clf.predict(x)) and roc_auc_score(two, p[:, 1]) > 0.95
        """,
        ("two == 1", "two == 0"),
    ),
    Habit(
        "scikit-learn",
        "make_pipeline(StandardScaler(), …)",
        """
        from levels_more.high_level import DNNClassifier
        from sklearn.datasets import load_breast_cancer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        X, labels = load_breast_cancer(return_X_y=True)
        pipe = make_pipeline(StandardScaler(), DNNClassifier(hidden_units=(8,), epochs=20, random_state=0))
        pipe.fit(X[:400], labels[:400])
        score = pipe.score(X[400:], labels[400:])
        """,
        """
        scaled = (X[400:] - X[:400].mean(0)) / X[:400].std(0)
        assert score == np.mean(pipe[-1].predict(scaled) == labels[400:]) > 0.95
        """,
        ("StandardScaler(),", "'passthrough',"),
    ),
    Habit(
        "scikit-learn",
        "GridSearchCV over a pipeline",
        """
        from levels_more.high_level import DNNClassifier
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import StandardScaler

        pipe = Pipeline([("scale", StandardScaler()), ("net", DNNClassifier(epochs=15, random_state=0))])
        grid = GridSearchCV(pipe, {"net__hidden_units": [(4,), (8, 8)], "net__learning_rate": [1e-6, 0.03]}, cv=3)
        grid.fit(x, two)
        """,
        """
        assert grid.best_params_["net__learning_rate"] == 0.03 and len(grid.cv_results_["params"]) == 4
        assert grid.best_score_ > 0.9 and grid.best_estimator_.named_steps["net"].learning_rate == 0.03
        """,
        ("[1e-6, 0.03]", "[1e-6, 1e-7]"),
    ),
    Habit(
        "scikit-learn",
        "cross_val_score",
        """
        from levels_more.high_level import LinearRegressor
        from sklearn.model_selection import cross_val_score

        estimator = LinearRegressor(random_state=0)
        scores = cross_val_score(estimator, x, y[:, 0], cv=5)
        """,
        """
        from sklearn.linear_model import LinearRegression

        expected = cross_val_score(LinearRegression(), x, y[:, 0], cv=5)
        assert scores.shape == (5,) and close(scores, expected, 1e-3) and not hasattr(estimator, "coef_")
        """,
        ("LinearRegressor(random_state=0)", "LinearRegressor(epochs=1)"),
    ),
    Habit(
        "scikit-learn",
        "clone, get_params, set_params",
        """
        from levels_more.high_level import DNNClassifier
        from sklearn.base import clone

        clf = DNNClassifier(hidden_units=(5,), learning_rate=0.02, random_state=3).fit(x, two)
        other = clone(clf).set_params(learning_rate=0.05)
        """,
        """
        params = clf.get_params()
        assert params["hidden_units"] == (5,) and params["learning_rate"] == 0.02
        assert other.get_params() == params | {"learning_rate": 0.05} and not hasattr(other, "classes_")
        """,
        ("learning_rate=0.05", "learning_rate=0.06"),
    ),
    Habit(
        "scikit-learn",
        "random_state repeats a fit",
        """
        from levels_more.high_level import DNNClassifier

        one, two_, three_ = (DNNClassifier(epochs=3, random_state=seed).fit(x, two) for seed in (7, 7, 8))
        """,
        """
        p, q, r = (clf.predict_proba(x) for clf in (one, two_, three_))
        assert np.array_equal(p, q) and not np.array_equal(p, r)
        """,
        ("(7, 7, 8)", "(7, 8, 8)"),
    ),
    Habit(
        "scikit-learn",
        "a regressor on the diabetes table as it comes",
        """
        from levels_more.high_level import LinearRegressor
        from sklearn.datasets import load_diabetes

        X, target = load_diabetes(return_X_y=True)
        line = LinearRegressor(random_state=0).fit(X, target)
        score = line.score(X, target)
        """,
        """
        from sklearn.linear_model import LinearRegression

        error = target - (X @ line.coef_ + line.intercept_)
        assert score == pytest.approx(1 - (error**2).sum() / ((target - target.mean()) ** 2).sum())
        assert score > LinearRegression().fit(X, target).score(X, target) - 0.01 or "ConvergenceWarning" in warned
        """,
        ("line.score(X, target)", "0.9 * line.score(X, target)"),
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
    Habit(
        "scikit-learn",
        "joblib.dump and load",
        """
        import joblib
        from levels_more.high_level import DNNClassifier

        clf = DNNClassifier(epochs=5, random_state=0).fit(x, two)
        joblib.dump(clf, "clf.joblib")
        same = joblib.load("clf.joblib")
        """,
        """
        assert same is not clf and np.array_equal(same.predict_proba(x), clf.predict_proba(x))
        assert not close(clf.predict_proba(x)[:, 0], np.full(200, 0.5), 0.1)
        """,
        ('joblib.load("clf.joblib")', "DNNClassifier(epochs=6, random_state=0).fit(x, two)"),
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
    return names | CHECKS | {"said": out.getvalue(), "warned": warned, "pytest": pytest}


def code_of(habit, spoiled=False):
    code = textwrap.dedent(habit.code).lstrip()
    if spoiled:
        assert code.count(habit.spoil[0]) == 1, "the text to be changed stands in the code once"
        code = code.replace(*habit.spoil)
    return code


def check(habit, names):
    ran(textwrap.dedent(habit.holds).lstrip(), f"<holds, {habit.place}: {habit.what}>", names)


each_habit = pytest.mark.parametrize("habit", HABITS, ids=lambda habit: f"{habit.place}: {habit.what}")


def test_there_are_seventy_one_and_at_most_eight_do_not_work():
    assert {place: sum(habit.place == place for habit in HABITS) for place in PLACES} == PLACES
    assert len(HABITS) == 71 == len({habit.what for habit in HABITS})
    others = [habit for habit in HABITS if habit.verdict != "works"]
    assert len(others) <= 8 and all(habit.verdict in ("differs", "refused") and habit.tells for habit in others)


@each_habit
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
