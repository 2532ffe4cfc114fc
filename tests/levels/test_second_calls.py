"""A second call on the same object: it gives what a fresh object gives, whatever the first call was and however it ended."""

import numpy as np
import pytest
from core_alone import more

from course import tasks
from levels_more.hardware import Assembler, pool
from levels_more.high_level import Callback, Sequential
from levels_more.kernels import KERNELS, launch, use
from levels_more.low_level import GradientTape, Module, Variable, constant, function, reduce_sum
from levels_more.mid_level import RANDOM, SGD, Adam, Dataset, Dense

CPU = pool()["cpu:0"]
TASK = tasks.linear()
X, Y = TASK.x[:12] / 10.0, TASK.y[:12] / 10.0
NAN = np.where(np.arange(12)[:, None] == 5, np.nan, Y)


def plain(value):
    """What a call gave, in Python's numbers."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [*map(plain, value)]
    return value.numpy().tolist() if hasattr(value, "numpy") else getattr(value, "tolist", lambda: value)()


def net():
    """A net with starting weights that are always the same, compiled."""
    RANDOM.seed(4)
    model = Sequential([Dense(3, "relu"), Dense(1)])
    model.compile(Adam(0.05), "mse")
    model.build((None, 2), "f8")
    return model


def fitted(model, x=X, y=Y, **options):
    """What a training says, and leaves behind."""
    options = {"batch_size": 4, "shuffle": False, "verbose": 0} | options
    history = model.fit(x, y, **options)
    return history.losses, history.history, model.get_weights()


def line_of(x):
    """The slope of sum((x·w)²) at w = 3, by a tape inside a function."""
    w = Variable(np.array([[3.0], [1.0]]))

    @function
    def step(x):
        with GradientTape() as tape:
            y = x @ w
            loss = reduce_sum(y * y)
        return tape.gradient(loss, w)

    return step


def weights():
    """Three variables in a module; the last one is the smallest."""
    module = Module()
    module.parts = [Variable(np.ones((2, 2))), Variable(np.ones(2)), Variable(np.ones(1))]
    return module


def doubled():
    """A program of level 1: y = 2·x."""
    a = Assembler("doubled", "f8")
    x, y = a.array("x", "rows", 1), a.array("y", "rows", 1)
    with a.loop("rows") as r:
        a.store(a.load(x, r, 0) * 2.0, y, r, 0)
    return a.assemble()


def ran(program, rows):
    """What the program of level 1 gives for so many rows."""
    y = CPU.alloc((rows, 1), "f8")
    program(x=CPU.put(np.arange(float(rows))[:, None]), y=y)
    return y


def pairs(optimizer, gradients=(1.0, 2.0)):
    """What a step of an optimizer makes of its variables, which are made for the first step."""
    if not hasattr(optimizer, "mine"):
        optimizer.mine = [Variable(np.array(1.0)), Variable(np.array(5.0))]
    optimizer.apply_gradients([(constant(np.array(dw)), w) for dw, w in zip(gradients, optimizer.mine, strict=True)])
    return optimizer.mine


def tape_of(power, persistent):
    """A tape, closed, with x and x² or x³ under it."""
    x = Variable(np.array(2.0))
    options = {"persistent": True} if persistent else {}  # the core's tape has no options
    with GradientTape(**options) as tape:
        y = x * x if power == 2 else x * x * x
    tape.ends = y, x
    return tape


def batches():
    return Dataset.from_tensor_slices((X, Y)).batch(5)


# what is made, and what is called twice
TWICE = {
    "a program": (doubled, lambda program: ran(program, 3)),
    "a function": (lambda: line_of(X), lambda step: step(X)),
    "a function over batches": (
        lambda: function(lambda x: reduce_sum(x)),
        lambda step: step.over(X, np.arange(12).reshape(3, 4)),
    ),
    "a persistent tape": (lambda: tape_of(3, True), lambda tape: tape.gradient(*tape.ends)),
    "set_weights": (weights, lambda module: [module.set_weights([X[:2], X[0], Y[0]]), module.get_weights()]),
    "a dataset": (batches, list),
    "a dataset within itself": (batches, lambda data: [[x.shape, y.shape] for x, _ in data for _, y in data]),
    "the rows of a dataset": (batches, lambda data: data.rows()[1]),
    "predict": (net, lambda model: model.predict(X)),
    "evaluate": (net, lambda model: model.evaluate(X, Y, batch_size=5)),
    "evaluate on a dataset": (net, lambda model: model.evaluate(batches())),
    "fit for no epochs": (net, lambda model: fitted(model, epochs=0)),
}


def cases(table):
    """The cases of a table; the tape that can be read again is that of `levels_more`."""
    alone = [case for case in table if case != "a persistent tape"]
    return [*alone, *more("GradientTape(persistent=True)", ("a persistent tape",))]


# what is made, one call, another call
OTHERS = {
    "a program, more rows": (doubled, lambda program: ran(program, 3), lambda program: ran(program, 70)),
    "a function, other rows": (lambda: line_of(X), lambda step: step(X), lambda step: step(X[:5])),
    "a function, another dtype": (
        lambda: function(lambda x: x + x),
        lambda double: double(X),
        lambda double: double(X.astype("f4")),
    ),
    "a function, over batches": (
        lambda: function(lambda x: reduce_sum(x)),
        lambda total: total(X),
        lambda total: total.over(X, np.arange(12).reshape(4, 3)),
    ),
    "a function, under a tape": (lambda: line_of(X), lambda step: step(X), lambda step: under_a_tape(step, X)),
    "predict, other rows": (net, lambda model: model.predict(X), lambda model: model.predict(X[3:4])),
    "evaluate, other batches": (
        net,
        lambda model: model.evaluate(X, Y, batch_size=12),
        lambda model: model.evaluate(X[:7], Y[:7], batch_size=2),
    ),
    "fit after predict": (net, lambda model: model.predict(X), lambda model: fitted(model, epochs=2)),
    "fit after evaluate": (net, lambda model: model.evaluate(X, Y), lambda model: fitted(model, epochs=2)),
    "fit after fit for no epochs": (net, lambda model: fitted(model, epochs=0), lambda model: fitted(model)),
    "compile": (net, lambda model: model.compile("sgd", "mse"), lambda model: recompiled(model)),
}


def under_a_tape(step, x):
    with GradientTape():
        return step(x)


def recompiled(model):
    model.compile(SGD(0.1), "mean_squared_error")
    return fitted(model)


OTHERS |= {case: (make, call, call) for case, (make, call) in TWICE.items()}


@pytest.mark.parametrize("case", cases(OTHERS))
def test_a_call_before_changes_nothing(case):
    """The second call gives what it gives on a fresh object."""
    make, first, second = OTHERS[case]
    made = make()
    first(made)
    assert plain(second(made)) == plain(second(make()))


# what is made, a wrong call, its words, a right call: that one gives what it gives on a fresh object
SHORT = r"\[3, 12\] rows|x has 3 rows, y has 12 rows"  # the core's words, or levels_more's
FAILED = {
    "a program": (doubled, lambda program: program(x=CPU.put(X)), "y", lambda program: ran(program, 3)),
    "a kernel in use": (
        lambda: CPU.put(X),
        lambda x: broken_in_use(x),
        "mine",
        lambda x: [launch("negative", None, x), KERNELS["negative", "cpu"] is NEGATIVE],
    ),
    "a function": (lambda: line_of(X), lambda step: step(X.T), "inner sizes", lambda step: step(X)),
    "a function, over batches": (
        lambda: function(lambda x: reduce_sum(x)),
        lambda total: total.over(X, np.array([[0, 12]])),
        "row|range",
        lambda total: total.over(X, np.array([[0, 11]])),
    ),
    "a persistent tape": (
        lambda: tape_of(2, True),
        lambda tape: tape.gradient(tape.ends[0], Variable(np.array(1.0))),
        "was not used",
        lambda tape: tape.gradient(*tape.ends),
    ),
    "a variable": (
        lambda: Variable(X),
        lambda variable: variable.assign(X[:, :1]),
        "the value",
        lambda variable: variable,
    ),
    "set_weights, one too few": (
        weights,
        lambda module: module.set_weights([2.0 * np.ones((2, 2)), 2.0 * np.ones(2)]),
        "2 weights for 3 variables",
        lambda module: module.get_weights(),
    ),
    "set_weights, the last one too large": (
        weights,
        lambda module: module.set_weights([2.0 * np.ones((2, 2)), 2.0 * np.ones(2), np.ones(3)]),
        r"parts.2 is float64\[1\].*, the weight float64\[3\]",
        lambda module: module.get_weights(),
    ),
    "an optimizer, before its first step": (
        lambda: Adam(0.1),
        lambda adam: adam.apply_gradients([]),
        "expected",
        pairs,
    ),
    "compile": (net, lambda model: model.compile("sdg", "mse"), "did you mean 'sgd'", lambda model: fitted(model)),
    "predict": (net, lambda model: model.predict(X[:, :1]), "inner sizes", lambda model: model.predict(X)),
    "evaluate": (net, lambda model: model.evaluate(X, NAN), "not a finite number", lambda model: model.evaluate(X, Y)),
    "fit, x too short": (net, lambda model: fitted(model, X[:3]), SHORT, lambda model: fitted(model)),
    "fit, y with NaN": (net, lambda model: fitted(model, y=NAN), "y is not a finite", lambda model: fitted(model)),
    "fit, an error in a callback": (
        net,
        lambda model: fitted(model, epochs=3, callbacks=[Failing()]),
        "mine",
        lambda model: [model.set_weights(net().get_weights()), model.compile(Adam(0.05), "mse"), fitted(model)],
    ),
}

NEGATIVE = KERNELS["negative", "cpu"]


def broken_in_use(x):
    with use("negative", "cpu", lambda x: 0.0 - x if x == 0.0 else -x):
        launch("negative", None, x)
        raise RuntimeError("mine")


class Failing(Callback):
    def on_epoch_begin(self, epoch):
        if epoch == 1:
            raise RuntimeError("mine")


@pytest.mark.parametrize("case", cases(FAILED))
def test_after_a_call_that_failed_all_is_as_it_was(case):
    make, wrong, words, right = FAILED[case]
    made = make()
    for _ in "12":
        with pytest.raises((TypeError, ValueError, IndexError, RuntimeError), match=words):
            wrong(made)
    assert plain(right(made)) == plain(right(make()))


# What is refused the second time is refused in words.


@pytest.mark.parametrize("persistent", [False, *more("GradientTape(persistent=True)", (True,))])
def test_a_tape_records_once(persistent):
    tape = tape_of(2, persistent)
    with pytest.raises(RuntimeError, match="this tape was open before; make another one"), tape:
        pass
    assert tape.gradient(*tape.ends).numpy() == 4.0


# A training after a training.


class Stop(Callback):
    """Ends the training after its first epoch."""

    def on_epoch_end(self, epoch, logs):
        self.model.stop_training = True


def test_fit_trains_again_after_a_callback_stopped_it():
    model = net()
    assert len(model.fit(X, Y, epochs=5, verbose=0, callbacks=[Stop()]).history["loss"]) == 1
    assert len(model.fit(X, Y, epochs=5, verbose=0).history["loss"]) == 5
    assert len(model.fit(X, Y, epochs=5, verbose=0, callbacks=[Stop()]).history["loss"]) == 1


def test_two_trainings_are_one_of_all_epochs():
    """The optimizer goes on with its memory. The second history is a new one, and the first stays."""
    once, twice = net(), net()
    whole = once.fit(X, Y, batch_size=4, epochs=5, shuffle=False, verbose=0)
    first = twice.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    second = twice.fit(X, Y, batch_size=4, epochs=3, shuffle=False, verbose=0)
    assert plain(once.get_weights()) == plain(twice.get_weights())
    assert plain(whole.losses) == plain(first.losses) + plain(second.losses)
    assert len(first.history["loss"]) == 2 and twice.history is second


def test_a_layer_added_after_a_training_is_trained_by_the_next():
    model = net()
    fitted(model)
    before = plain(model.get_weights())
    model.add(Dense(1))
    model.compile("sgd", "mse")
    assert model.predict(X).shape == (12, 1)
    assert plain(model.get_weights())[:4] == before
    fitted(model)
    changed = [old != new for old, new in zip(before, plain(model.get_weights())[:4], strict=True)]
    assert any(changed) and len(model.get_weights()) == 6
