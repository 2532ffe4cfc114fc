"""The questions of the checks of notebook 05, and the cases of its blanks."""

from types import SimpleNamespace

import numpy as np

from course.reader.cases import Wrong, cases, question
from course.reader.cases.plain_data import describe


@question
def fitted(mine, said, x, y, optimizer, rate, bound, most):
    """The number of epochs that the function gives, and the weights [w, b] after it, from 0. optimizer: SGD or Adam."""
    from levels import mid_level  # level 4's own parts, whatever the notebook has imported

    model = mine["Sequential"]([mid_level.Dense(1)])
    model.build((None, 1), "float64")
    model.set_weights([np.zeros((1, 1)), np.zeros((1, 1))])
    model.compile(getattr(mid_level, optimizer)(rate), "mse")
    return mine.call(said, mine.function, model, x, y, bound, most), np.concatenate(model.get_weights())


@question
def callback_told(mine, trainings, x, y):
    """The weights of a model after each training, which is given as the weights at its start and after each epoch."""
    model = mine["Sequential"]([mine["Dense"](3), mine["Dense"](1)])
    model.build((None, 2))
    model.compile(mine["SGD"](0.01), "mse")
    callback = mine.made("Callback")
    found = []
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
    """The function's result for a Sequential of Dense layers with these weights, and x after the call."""
    units = [bias.shape[1] for bias in weights[1::2]]
    model = mine["Sequential"]([mine["Dense"](n, how) for n, how in zip(units, activations, strict=True)])
    model.build((None, x.shape[1]), x.dtype.name)
    model.set_weights(weights)
    return mine.call(said, mine.function, model, x), x


@question
def rule_of_softmax(mine, said, dy, x):
    """The gradient in x that a rule computes from dy, and whether a tape recorded it."""
    from levels_more.low_level import softmax

    dy, x = (mine["constant"](each, each.dtype) for each in (dy, x))
    y = softmax(x)
    with mine["GradientTape"]() as tape:
        result = mine.call(said, mine.function, dy, y, x)
    if not hasattr(result, "numpy"):
        raise Wrong(f"{said} gives {describe(result)}, expected a tensor")
    return result.numpy(), result in {record[3] for record in tape.records}


@cases("05-epoch_loss")
def epoch_loss(mine, draw):
    yield mine.on("losses [1, 4] over 30 and 10 rows", np.array([1.0, 4.0]), [30, 10])
    yield mine.on("one step", np.array([0.3]), [7])
    for steps in (3, 40, 400):
        losses = draw.uniform(size=steps)
        rows = draw.integers(1, 100, size=steps).tolist()
        yield mine.on(f"{steps} steps, drawn", losses, rows)


@cases("05-run_epochs")
def run_epochs(mine, draw):
    """The calls of `tell`, `one_pass` and `ended`, in order."""
    for epochs, last in ((2, 9), (1, 9), (5, 1), (5, 0), (0, 9)):
        heard = []
        passes = []

        def tell(*what):
            heard.append(" ".join(map(named, what)))  # noqa: B023

        def one_pass():
            heard.append("a pass")  # noqa: B023
            passes.append({"loss": 7.0})  # noqa: B023
            return passes[-1]  # noqa: B023

        def named(what):
            """`logs 0` for the dict that the first pass gave: callbacks may add to it, so a copy is another one."""
            same = [k for k, logs in enumerate(passes) if logs is what]  # noqa: B023
            return f"logs {same[0]}" if same else "a copy of the logs" if isinstance(what, dict) else str(what)

        def ended(epoch, logs):
            heard.append(f"ended? {epoch} {named(logs)}")  # noqa: B023
            return epoch == last  # noqa: B023

        said = f"{epochs} epochs" + f", ended after epoch {last}" * (last < epochs)
        mine.call(said, mine.function, epochs, tell, one_pass, ended)
        yield said, {"what is heard": "; ".join(heard)}


@cases("05-ended")
def ended(mine, draw):
    """Training goes on; it was stopped; its loss is not finite; or both of these."""
    for stopped in (False, True):
        for epoch, loss in ((0, 7.0), (3, 0.0), (3, np.inf), (1, np.nan), (2, -np.inf), (0, np.nan)):
            model = SimpleNamespace(stop_training=stopped)
            said = f"stop_training {stopped}, a loss of {loss}"
            yield said, mine.call(said, mine.function, model, epoch, {"loss": loss})
