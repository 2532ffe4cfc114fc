"""Habits of people who come from Keras 3: what they type works, by NumPy's numbers, or is refused with the cure, which works."""

import numpy as np
import pytest

from levels_more.high_level import Input, Model, Sequential
from levels_more.low_level import arg_max, cast, matmul, reduce_sum, reshape
from levels_more.mid_level import SGD, Dense, Layer, Metric
from levels_more.saving import load_model

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 4)).astype("f4")
Y = X @ np.array([[1.0], [-2.0], [0.5], [0.0]], "f4")
CLASSES = np.digitize(Y[:, 0], [-1.0, 1.0])


def test_the_first_layer_is_not_asked_for_the_shape_of_its_inputs():
    with pytest.raises(TypeError, match=r"^Dense: input_shape is not known here; put Input\(\(4,\)\) in front of"):
        Sequential([Dense(8, activation="relu", input_shape=(4,)), Dense(1)])
    model = Sequential([Input((4,)), Dense(8, activation="relu"), Dense(1)])
    assert [w.shape for w in model.get_weights()][::2] == [(4, 8), (8, 1)]


def test_weights_made_in_build_and_options_handed_on():
    class Linear(Layer):
        def __init__(self, units=3, **kwargs):
            super().__init__(**kwargs)
            self.units = units

        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="glorot_uniform", name="w")
            self.b = self.add_weight(shape=(self.units,), initializer="ones", trainable=True, name="b")

        def call(self, inputs):
            return matmul(inputs, self.w) + self.b

    layer = Linear(5, name="lines")
    np.testing.assert_allclose(layer(X).numpy(), X @ layer.w.numpy() + 1.0, rtol=1e-5, atol=1e-5)
    assert layer.name == "lines" and layer.w.shape == (4, 5) and len(layer.trainable_weights) == 2


@pytest.mark.parametrize("told", [True, False])
def test_add_loss_names_penalties_which_are_part_of_the_loss(told):
    class Small(Layer):
        def call(self, inputs):
            if told:
                self.add_loss(0.01 * reduce_sum(inputs * inputs))
            self.penalties = [lambda: 0.01 * reduce_sum(inputs * inputs)]
            return inputs

    model = Sequential([Small(), Dense(1)])
    model.compile(SGD(0.0), "mse")
    if told:
        cure = r"^small: there is no add_loss; in call write self.penalties = \["
        with pytest.raises(NotImplementedError, match=cure):
            model.fit(X, Y, verbose=0)
        return
    (loss,) = model.fit(X, Y, batch_size=200, verbose=0).history["loss"]
    w, b = model.get_weights()
    assert loss == pytest.approx(np.mean((X @ w + b - Y) ** 2) + 0.01 * (X**2).sum(), rel=1e-4)


def test_a_train_step_that_takes_a_pair_is_told_what_fit_gives():
    class Mine(Model):
        def __init__(self):
            super().__init__()
            self.dense = Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            raise AssertionError

    model = Mine()
    model.compile("sgd", "mse")
    told = r"Mine.train_step: fit calls it with a batch's x and y; write def train_step\(self"
    with pytest.raises(TypeError, match=told):
        model.fit(X, Y, verbose=0)


def test_a_metric_of_ones_own_has_variables():
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

    model = Sequential([Dense(3, activation="softmax")])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=[RightAnswers()])
    model.fit(X, CLASSES, epochs=2, verbose=0)
    found = model.evaluate(X, CLASSES, verbose=0, return_dict=True)["right_answers"]
    w, b = model.get_weights()
    assert found == ((X @ w + b).argmax(1) == CLASSES).sum() > 0


def test_a_layer_with_get_config_is_read_with_custom_objects(tmp_path):
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
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "mine.keras")
    again = load_model(tmp_path / "mine.keras", custom_objects={"Scale": Scale})
    w, b = model.get_weights()
    np.testing.assert_allclose(again.predict(X), 3.0 * X @ w + b, rtol=1e-4, atol=1e-5)


def test_export_takes_the_name_of_a_format(tmp_path):
    model = Sequential([Dense(3)])
    model.build((None, 4))
    model.export(tmp_path / "mine.onnx", format="onnx")
    assert (tmp_path / "mine.onnx").stat().st_size > 48
