"""The training loop is owned too: models that fit themselves."""

# Built from notebooks/05_high_level.ipynb: edit there, then run its last cell.

import random

import numpy as np

from levels.low_level import GradientTape, as_tensor, function
from levels.mid_level import SGD, BinaryCrossentropy, Dataset, MeanSquaredError

LOSSES = {
    "mse": MeanSquaredError,
    "mean_squared_error": MeanSquaredError,
    "binary_crossentropy": BinaryCrossentropy,
}
OPTIMIZERS = {"sgd": SGD}


def named(what, table, value):
    """An object from its name in a table, or the object itself."""
    if not isinstance(value, str):
        return value
    if value not in table:
        raise ValueError(f"no {what} is called {value!r}; there are {', '.join(table)}")
    return table[value]()


class History:
    """What happened during `fit`: the loss of every step, and the mean loss of every epoch."""

    def __init__(self):
        self.losses, self.epochs = [], []

    def __repr__(self):
        return f"History({len(self.losses)} steps, {len(self.epochs)} epochs, last loss {self.losses[-1]:.4g})"


def batches_of(x, y, batch_size, shuffle):
    """A Dataset over all rows of x and y; `shuffle` is a random.Random, or None to keep the order."""
    x, y = np.asarray(x), np.asarray(y)
    if len(x) == 0 or len(x) != len(y):
        raise ValueError(f"x has {len(x)} rows and y has {len(y)}; expected the same number, and at least one")
    order = list(range(len(x)))
    if shuffle is not None:
        shuffle.shuffle(order)
    return Dataset.from_batches(x, y, [order[i : i + batch_size] for i in range(0, len(x), batch_size)])


class Sequential:
    """Layers in a row, and the loop that trains them."""

    def __init__(self, layers):
        self.layers, self.optimizer, self.loss = list(layers), None, None

    variables = property(lambda self: [variable for layer in self.layers for variable in layer.variables])

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def build(self, shape, dtype="float32"):
        """Make all variables, for inputs [rows, features] of this shape."""
        self(np.zeros((1, *shape[1:]), dtype))

    def set_weights(self, weights):
        weights = list(weights)
        if len(weights) != len(self.variables):
            raise ValueError(f"the model has {len(self.variables)} weights, got {len(weights)}; is it built?")
        for variable, value in zip(self.variables, weights):
            variable.assign(value)

    def get_weights(self):
        return [variable.numpy() for variable in self.variables]

    def compile(self, optimizer="sgd", loss="mse"):
        """Choose how to train: names or objects."""
        self.optimizer, self.loss = named("optimizer", OPTIMIZERS, optimizer), named("loss", LOSSES, loss)

    def train_step(self, x, y):
        """One step on one batch; the loss before the update."""
        with GradientTape() as tape:
            loss = self.loss(y, self(x))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.variables), self.variables))
        return loss

    def fit(self, x, y=None, batch_size=32, epochs=1, seed=0):
        """Train on arrays x, y in batches, in a new order each epoch; or on a Dataset, as it comes."""
        if self.loss is None:
            raise RuntimeError("fit: the model is not compiled; call model.compile(optimizer, loss) first")
        history, order, step = History(), random.Random(seed), function(self.train_step)
        for _ in range(epochs):
            data = x if isinstance(x, Dataset) else batches_of(x, y, batch_size, order)
            arrays, batches = data.rows()
            losses = step.over(*arrays, batches).numpy().tolist()
            history.losses += losses
            history.epochs.append(sum(losses) / len(losses))
        return history

    def evaluate(self, x, y):
        """The loss on all rows at once."""
        if self.loss is None:
            raise RuntimeError("evaluate: the model is not compiled; call model.compile(optimizer, loss) first")
        return float(self.loss(as_tensor(y), self(x)))

    def predict(self, x):
        """The model's outputs as a NumPy array."""
        return self(x).numpy()

    def summary(self):
        """Print the layers, their output shapes and their numbers of parameters."""
        rows = [("layer", "output shape", "parameters")]
        for layer in self.layers:
            count = sum(int(np.prod(v.shape)) for v in layer.variables)
            rows.append((layer.name, f"(None, {layer.units})", f"{count:,}" if layer.variables else "not built"))
        rows.append(("total", "", f"{sum(int(np.prod(v.shape)) for v in self.variables):,}"))
        for name, shape, count in rows:
            print(f"{name:16} {shape:16} {count:>10}")
