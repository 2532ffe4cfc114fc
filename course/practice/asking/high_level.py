"""What the checks of notebook 05 ask."""

import numpy as np

from course.practice.asking import Wrong, question


@question
def fitted(mine, said, x, y, momentum, bound, most):
    """How many epochs the function says, and the weight it leaves, which was 0."""
    model = mine["Sequential"]([mine["Dense"](1, use_bias=False, dtype="float64")])
    model.build((None, 1), "float64")
    model.set_weights([np.zeros((1, 1))])
    model.compile(mine["SGD"](0.02, momentum), "mse")
    return mine.call(said, mine.function, model, x, y, bound, most), model.get_weights()[0]


@question
def callback_told(mine, trainings, x, y):
    """The weights of a model after each training, told by those that it has after each epoch, the start before them."""
    model = mine["Sequential"]([mine["Dense"](3), mine["Dense"](1)])
    model.build((None, 2))
    model.compile(mine["SGD"](0.01), "mse")
    callback, found = mine.made("Callback"), []
    callback.model = model
    for start, *epochs in trainings:  # one training after the other
        said = f"{mine.name}(), told of {len(epochs)} epochs,"
        model.set_weights(start)
        mine.call(said, callback.on_train_begin)
        for epoch, weights in enumerate(epochs):
            mine.call(said, callback.on_epoch_begin, epoch)
            model.set_weights(weights)
            mine.call(said, callback.on_epoch_end, epoch, {"loss": 1 / (epoch + 1)})
            if not all(map(np.array_equal, model.get_weights(), weights)):
                raise Wrong(f"{said} changes the weights after epoch {epoch + 1}: the training must go on from its own")
        mine.call(said, callback.on_train_end)
        found.append([np.array(weight) for weight in model.get_weights()])
    mine.call(f"fit with {mine.name}()", model.fit, x, y, 10, 2, 0, [mine.made("Callback")])
    return found


@question
def units_counted(mine, said, activations, weights, x):
    """What the function gives for a Sequential of Dense layers with these weights, and x afterwards."""
    units = [bias.shape[1] for bias in weights[1::2]]
    model = mine["Sequential"]([mine["Dense"](n, how) for n, how in zip(units, activations, strict=True)])
    model.build((None, x.shape[1]), x.dtype.name)
    model.set_weights(weights)
    return mine.call(said, mine.function, model, x), x
