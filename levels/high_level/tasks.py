"""The two tasks as models, trained with `compile` and `fit`."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

from levels.hardware.tasks import Fit
from levels.mid_level import SGD, Dataset, Dense
from levels.support.inputs import check_inputs, check_task

from .models import Sequential


def _train(model, x, y, weights, batches):
    """Train a compiled model from given starting weights, with one step per batch."""
    model.build(x.shape, x.dtype)
    model.set_weights(weights)
    data = Dataset.from_batches(x, y, batches)
    losses = model.fit(data, verbose=0).losses  # forward, loss, backward, update

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model.predict(x)

    return Fit(losses, model.get_weights(), predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error. For the shapes, see `Fit`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    model = Sequential([Dense(1)])  # model
    model.compile(SGD(learning_rate), "mse")

    return _train(model, x, y, weights, batches)


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train a net of 4-8-1 units (relu, relu, sigmoid) by SGD. Shapes: see `Fit`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    layers = [Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")]  # model
    model = Sequential(layers)
    model.compile(SGD(learning_rate), "binary_crossentropy")

    return _train(model, x, y, weights, batches)
