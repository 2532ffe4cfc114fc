"""Habits of people who come from Keras 3 and scikit-learn that no other test tries: what they type, tried here, and checked.

Each row says where the habit comes from, what is typed, and what must hold then: by NumPy or by counting, not by asking us
twice. Most work. The others are refused with the cure, each in a sentence of the program's own; none is silently wrong.
"""

import linecache
import textwrap
from typing import NamedTuple

import numpy as np
import pytest

from levels_more.mid_level import RANDOM


class Habit(NamedTuple):
    """A row. `spoil` (old, new) is a change of the code after which `holds` must fail: so each check can.

    Of a refused one it is the cure: the code raises `tells`, word for word, and with the cure it runs, and `holds`.
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


CHECKS = dict(relu=relu, softmax=softmax, forward=forward, descent=descent, close=close)

HABITS = [
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
    """What the reader has after this code."""
    monkeypatch.chdir(folder)
    before = RANDOM.getstate()
    RANDOM.seed(0)
    names = {"__name__": "typed"} | given()
    try:
        ran(code, f"<{habit.place}: {habit.what}>", names)
    finally:
        RANDOM.setstate(before)
    return names | CHECKS


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


@pytest.mark.parametrize(
    "habit", [habit for habit in HABITS if habit.verdict != "refused"], ids=lambda habit: f"{habit.place}: {habit.what}"
)
def test_its_check_can_fail(habit, tmp_path, monkeypatch):
    names = tried(habit, code_of(habit, spoiled=True), tmp_path, monkeypatch)
    with pytest.raises(AssertionError):
        check(habit, names)
