"""The cases of the functions of notebook 05 that a reader writes at the depth *most* only."""

from types import SimpleNamespace

import numpy as np

from course.reader.cases import Wrong, cases
from course.reader.cases.interpreting import interpreted
from course.reader.cases.plain_data import describe


def losses(mine, key):
    """The losses of both tasks with this function in place of the level's own. Only programs are compiled."""
    with interpreted():
        return mine.losses(key, "high_level")


class Steps:
    """A mock of a compiled step, a `function`. The loss of a batch is the mean of its rows of y."""

    def __init__(self, constant):
        self.constant = constant
        self.calls = 0

    def over(self, *given):
        if len(given) != 3:
            raise Wrong(f"`step.over` is given {len(given)} arguments, expected x, y and the batches")
        x, y, batches = given
        self.calls += 1
        return self.constant(np.array([y.numpy()[rows].mean() for rows in batches]))

    def __call__(self, *batch):
        raise Wrong("`step` is called on one batch: hand all batches to one call of `step.over`")


@cases("05-one_pass")
def one_pass(mine, draw):
    """What a pass returns, what it adds to the history, and how often it calls `data.rows`; then both tasks."""
    with mine.placed("one_pass", "high_level"):
        from levels.high_level import History, loops
        from levels.low_level import constant
        from levels.mid_level import Dataset

        def done(said, y, batch_size, history, seed=None):
            """Run a pass over rows with these targets, and return its results."""
            y = np.asarray(y).reshape(-1, 1)
            data = Dataset.from_tensor_slices((np.zeros((len(y), 2), y.dtype), y))
            data = (data if seed is None else data.shuffle(len(y), seed)).batch(batch_size)
            asked, rows, step = [], data.rows, Steps(constant)
            data.rows = lambda: asked.append(0) or rows()
            logs = mine.call(said, loops.one_pass, step, data, history)
            if not isinstance(logs, dict) or logs.keys() != {"loss"}:
                return {"it gives": spelled(logs)}
            told = {"it gives": spelled(logs), "loss": logs["loss"]}
            if history is not None:
                told["history.passes"] = [describe(each) for each in history.passes]
                told["the losses kept"] = np.concatenate([*map(np.atleast_1d, history.passes), []])
            return told | {"how often data.rows() is called": len(asked), "step.over": step.calls}

        history = History()
        said = "a batch of 3 rows with the loss 1, then one of 1 row with the loss 5"
        yield said, done(said, [1.0, 1.0, 1.0, 5.0], 3, history)
        said = "the same history, and a second pass with the losses 2 and 0"
        yield said, done(said, [2.0, 2.0, 0.0], 2, history)
        yield "no history", done("no history", [1.0, 1.0, 1.0, 5.0], 3, None)
        for dtype, rows, batch_size in (("f8", 400, 7), ("f4", 40, 7), ("f8", 30, 10), ("f8", 1, 1)):
            y, history = draw.normal(size=rows).astype(dtype), History()
            said = f"{rows} shuffled rows of {np.dtype(dtype)}, {batch_size} per batch"
            yield said, done(said, y, batch_size, history, seed=5)
        for loss in (np.inf, np.nan):
            yield f"a loss of {loss}", done(f"a loss of {loss}", [0.0, loss, -0.0], 1, History())
    yield "20 steps of both tasks", losses(mine, "one_pass")


def spelled(logs):
    """A dict's keys and the kinds of its values, in words; the kind of anything else."""
    if not isinstance(logs, dict):
        return describe(logs)
    return f"a dict: {', '.join(f'{key!r}: {describe(value)}' for key, value in logs.items())}"


class PassFailed(Exception):
    """An error in the middle of a training, for the cases of `run_training`."""


@cases("05-run_training")
def run_training(mine, draw):
    """The calls of callbacks, in order, and the history, of trainings with and without an error; then both tasks."""
    with mine.placed("run_training", "high_level"):
        from levels.high_level import Callback, History, loops

        def heard(said, epochs, losses, stops=None):
            """Run a training with these losses or errors. stops: the epoch after which a callback stops it."""
            told, left = [], iter(losses)

            class Teller(Callback):
                def on_train_begin(self):
                    told.append("train begins")

                def on_epoch_begin(self, epoch):
                    told.append(f"epoch {epoch} begins")

                def on_epoch_end(self, epoch, logs):
                    told.append(f"epoch {epoch} ends ({logs['loss']})")
                    self.model.stop_training = epoch == stops

                def on_train_end(self):
                    told.append("train ends")

            def one_pass(step, data, history):
                loss = next(left, 1.0)
                if isinstance(loss, Exception):
                    raise loss
                told.append("a pass")
                history.passes.append(np.array([loss]))
                return {"loss": loss}

            def outcome():
                try:
                    found = loops.run_training(model, "data", epochs, [Teller()], one_pass=one_pass)
                except (FloatingPointError, PassFailed) as error:
                    return f"raises {type(error).__name__}"
                return "model.history" if found is model.history else describe(found)

            model = SimpleNamespace(train_step=lambda x, y: y)
            gives = mine.call(said, outcome)
            if not isinstance(model.history, History):
                raise Wrong(f"{said}: model.history is {describe(model.history)}, expected the History of the training")
            history = [logs["loss"] for logs in model.history.epochs]
            return {"what is heard": "; ".join(told), "it gives": gives, "the losses in the history": history}

        for said, *given in (
            ("one epoch", 1, [7.0]),
            ("two epochs", 2, [7.0, 6.0]),
            ("three epochs, and a callback stops after epoch 1", 3, [7.0, 6.0, 5.0], 1),
            ("three epochs, and the loss of epoch 1 is inf", 3, [7.0, np.inf, 5.0]),
            ("three epochs, and the loss of epoch 1, after which a callback stops, is nan", 3, [7.0, np.nan, 5.0], 1),
            ("three epochs, and the pass of epoch 1 raises an error", 3, [7.0, PassFailed()]),
            ("no epoch", 0, []),
        ):
            yield said, heard(said, *given)
    yield "20 steps of both tasks", losses(mine, "run_training")


def columns(*numbers):
    """An array of rows of one number each."""
    return np.array(numbers)[:, None]


@cases("05-Model.train_step")
def train_step(mine, draw):
    """One step to check by hand, steps of other optimizers, frozen and new variables, no variables; then both tasks."""
    with mine.placed("Model.train_step", "high_level"), interpreted():
        from levels.high_level import Sequential
        from levels.low_level import constant
        from levels.mid_level import RANDOM, SGD, Adam, Dense

        class Listening(Sequential):
            """A Sequential that notes the argument `training` of its last call."""

            def __call__(self, x, training=None):
                self.heard = f"training={training}"
                return super().__call__(x, training)

        def stepped(said, model, x, y, steps=1):
            for _ in range(steps):
                loss = mine.call(said, model.train_step, constant(x), constant(y))
            weights = {f"weight {k}": each for k, each in enumerate(model.get_weights())}
            return {"the loss": loss, **weights, "the model is called with": model.heard}

        def made(layers, inputs, optimizer, loss="mse"):
            model = Listening(layers)
            model.compile(optimizer, loss)
            model.build((None, inputs), "float64")
            model.set_weights([draw.normal(size=weight.shape) for weight in model.get_weights()])
            return model

        model = made([Dense(1)], 1, SGD(0.25))
        model.set_weights([columns(1.0), columns(0.0)])
        said = "w = 1, b = 0, one row x = 1, y = 3, SGD(0.25)"
        yield said, stepped(said, model, columns(1.0), columns(3.0))
        x, y = draw.normal(size=(5, 2)), draw.integers(2, size=(5, 1)).astype("f8")
        for said, optimizer in (("two steps of SGD", SGD(0.1)), ("two steps of Adam", Adam(0.1))):
            layers = [Dense(3, "relu"), Dense(1, "sigmoid")]
            yield said, stepped(said, made(layers, 2, optimizer, "binary_crossentropy"), x, y, 2)
        said = "two layers, and the first has trainable = False"
        model = made([Dense(3, "relu"), Dense(1)], 2, SGD(0.1))
        model.layers[0].trainable = False
        yield said, stepped(said, model, x, y)
        said = "a model that was fitted"
        RANDOM.seed(1)
        mine.call(said, model.fit, x, y, epochs=1, verbose=0)
        kept = model.history
        yield said, stepped(said, model, x, y)
        yield said, {"epochs in the history of `fit`": len(kept.epochs), "model.history is that": model.history is kept}
        model = Listening([Dense(1)])
        said = "a model that has no variables yet"
        RANDOM.seed(1)
        model.compile(SGD(0.25), "mse")
        yield said, stepped(said, model, x, y)
        for said, layers in (
            ("a model whose only layer has trainable = False", [Dense(1)]),
            ("a model of no layers", []),
        ):
            model = made(layers, 1, SGD(0.1))
            model.trainable = False
            rows = constant(columns(1.0)), constant(columns(3.0))
            yield said, mine.refused(said, ValueError, model.train_step, *rows)
    yield "20 steps of both tasks", losses(mine, "Model.train_step")


@cases("05-Sequential.call")
def call(mine, draw):
    """Layers without weights, whose order and results can be checked by hand; then both tasks."""
    with mine.placed("Sequential.call", "high_level"), interpreted():
        from levels.high_level import Sequential
        from levels.low_level import constant
        from levels.mid_level import RANDOM, Dense, Layer

        class Double(Layer):
            def call(self, x):
                called.append("Double")
                return x * 2.0

        class PlusOne(Layer):
            def call(self, x):
                called.append("PlusOne")
                return x + 1.0

        twice = Double()
        for said, layers in (
            ("[Double(), PlusOne()] of 3", [twice, PlusOne()]),
            ("[PlusOne(), Double()] of 3", [PlusOne(), twice]),
            ("[twice, twice] of 3, the same layer two times", [twice, twice]),
            ("[PlusOne(), Sequential([twice, PlusOne()])] of 3", [PlusOne(), Sequential([twice, PlusOne()])]),
            ("[] of 3, a model of no layers", []),
        ):
            called = []
            gives = mine.call(said, Sequential(layers), constant(columns(3.0)))
            yield said, {"": gives, "called": " ".join(called)}
        model = Sequential([twice])
        model.add(PlusOne())
        said = "a layer that was added later"
        yield said, mine.call(said, model, constant(columns(3.0)))
        model = Sequential([Dense(2)])
        RANDOM.seed(1)
        said = "a Dense that has no variables yet"
        yield said, mine.call(said, model, constant(columns(3.0)))
    yield "20 steps of both tasks", losses(mine, "Sequential.call")
