"""The two tasks with layers, a loss, an optimizer and a dataset."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

from levels.hardware.tasks import Fit
from levels.low_level import GradientTape, function, trace
from levels.support.inputs import check_inputs, check_task

from .data import Dataset
from .layers import Dense
from .losses import BinaryCrossentropy, MeanSquaredError
from .optimizers import SGD


def _train(layers, loss_of, sgd, data, weights):
    """Train a chain of layers from starting weights, one step per batch of the data."""

    def model(rows):
        for layer in layers:
            rows = layer(rows)
        return rows

    (x, y), batches = data.rows()
    trace(model, [x.device.spec((1, *x.shape[1:]), x.dtype)])  # makes the variables
    for layer, *start in zip(layers, weights[::2], weights[1::2]):
        layer.set_weights(start)
    variables = [variable for layer in layers for variable in layer.trainable_variables]

    @function
    def step(rows, target):
        with GradientTape() as tape:
            prediction = model(rows)  # forward
            loss = loss_of(target, prediction)  # loss
        gradients = tape.gradient(loss, variables)  # backward
        sgd.apply_gradients(zip(gradients, variables))  # update
        return loss

    losses = step.over(x, y, batches).numpy()

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model(x).numpy()

    return Fit(losses, [v.numpy() for v in variables], predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error. For the shapes, see `Fit`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    layers = [Dense(1)]  # model
    loss_of = MeanSquaredError()

    data = Dataset.from_batches(x, y, batches)
    return _train(layers, loss_of, SGD(learning_rate), data, weights)


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train a net of 4-8-1 units (relu, relu, sigmoid) by SGD. Shapes: see `Fit`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    layers = [Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")]  # model
    loss_of = BinaryCrossentropy()

    data = Dataset.from_batches(x, y, batches)
    return _train(layers, loss_of, SGD(learning_rate), data, weights)
