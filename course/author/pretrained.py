"""Train the models in `data/models`. `python3 -m course.author.pretrained` makes both again, equal in every bit."""

import math

import numpy as np

from course.reader import tasks

MODELS = tasks.DATA / "models"


def make_models(folder=MODELS):
    """Train the net of record on the rings and on the penguins (on raw measures), and save both models in `folder`."""
    trained(tasks.rings(), "rings").save(folder / "rings")
    model = trained(tasks.penguins_sex(), "penguins_sex")
    w, b, *rest = model.get_weights()
    zero, scale = standardising()
    b = [[math.fsum([bias, *(zero * column)]) for bias, column in zip(b[0], w.T, strict=True)]]
    # (x * scale + zero) @ w + b = x @ (scale * w) + zero @ w + b
    model.set_weights([w * scale[:, None], np.array(b), *rest])
    model.compile("sgd", "binary_crossentropy")  # not compiled with the task's rate, far too high for these measures
    model.save(folder / "penguins_sex")


def trained(task, name):
    """Return the net features-4-8-1, trained on the batches of record."""
    from levels_more.high_level import Sequential
    from levels_more.mid_level import SGD, Dataset, Dense

    model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")], name=name)
    model.build(task.x.shape, task.x.dtype)
    model.set_weights(task.weights)
    model.compile(SGD(task.learning_rate), "binary_crossentropy")
    model.fit(Dataset.from_batches(task.x, task.y, task.batches), verbose=0)
    return model


def standardising():
    """Return (zero, scale): `tasks.standardise` turns the four measures x of a penguin into x * scale + zero."""
    measured = np.array([row[:4] for row in tasks.penguins() if None not in row])
    order = tasks.shuffled(len(measured), seed=1)
    train = measured[order[-len(tasks.penguins_sex().x) :]]
    zero, one = tasks.standardise(train, np.array([[0.0] * 4, [1.0] * 4]))[1]
    return zero, one - zero


if __name__ == "__main__":
    make_models()
