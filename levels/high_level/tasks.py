"""The two tasks as models: compile, fit."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

from levels.hardware.tasks import Fit, check_inputs, check_task
from levels.mid_level import SGD, Dataset, Dense

from .models import Sequential


def _train(model, loss, x, y, weights, batches, learning_rate):
    """A model from given starting weights: one step for each batch."""
    model.build(x.shape, x.dtype)
    model.set_weights(weights)
    model.compile(SGD(learning_rate), loss)
    losses = model.fit(Dataset.from_batches(x, y, batches), verbose=0).losses  # forward, loss, backward, update

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model.predict(x)

    return Fit(losses, model.get_weights(), predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return _train(Sequential([Dense(1)]), "mse", x, y, weights, batches, learning_rate)  # model


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])  # model
    return _train(model, "binary_crossentropy", x, y, weights, batches, learning_rate)
