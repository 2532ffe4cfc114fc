"""Epochs that are done before the loop asks for them: the same numbers, errors and interrupts as one by one."""

import contextlib
import math
import signal
import threading

import numpy as np
import pytest

from course import tasks
from levels_more.high_level import Callback, Sequential
from levels_more.high_level.loop import LookAhead
from levels_more.low_level import eager
from levels_more.mid_level import RANDOM, SGD, Dense, Dropout

RINGS = tasks.rings()
X, Y = RINGS.x[:400], RINGS.y[:400]


def net(dtype="f8", optimizer="adam", *more):
    RANDOM.seed(1)
    model = Sequential([Dense(4, "relu"), *more, Dense(8, "relu"), Dense(1, "sigmoid")])
    model.build((None, 2), dtype)
    model.compile(optimizer, "binary_crossentropy")
    return model


@pytest.fixture
def calls(monkeypatch):
    """How many steps each call that went ahead had."""
    found, before = [], LookAhead.run

    def run(self, program, left):
        before(self, program, left)
        found.append(len(self.sizes) * len(self.done))

    monkeypatch.setattr(LookAhead, "run", run)
    return found


def state(model):
    return [*model.get_weights(), *model.optimizer.get_weights()]


def same(one, other):
    assert one.history.losses.tolist() == other.history.losses.tolist()
    assert one.history.history == other.history.history
    assert all(map(np.array_equal, state(one), state(other)))


@pytest.mark.parametrize(
    "dtype, shuffle, more, size",
    [
        ("f4", True, [], 20),
        ("f8", False, [], 20),
        ("f8", True, [Dropout], 20),
        ("f4", False, [Dropout], 20),
        *(("f8", True, [], size) for size in (30, np.int64(399), 401)),  # a shorter batch ends what is done at once
    ],
)
def test_the_numbers_are_those_of_epochs_one_by_one(dtype, shuffle, more, size, calls):
    """A callback, which might ask for something, is told after each."""
    models = [net(dtype, "adam", *(kind(0.5) for kind in more)) for _ in range(2)]
    for model, callbacks in zip(models, ([], [Callback()]), strict=True):
        calls.clear()
        for _ in range(2):
            model.fit(X, Y, batch_size=size, epochs=30, verbose=0, seed=3, shuffle=shuffle, callbacks=callbacks)
        if callbacks:
            assert not calls
        else:
            assert max(calls) > 100 if size == 20 else max(calls) == math.ceil(400 / size)
    same(*models)


@pytest.mark.parametrize("options", [{"steps_per_epoch": 5}, {"validation_split": 0.2}])
def test_who_wants_something_between_epochs_gets_it(options, calls):
    net().fit(X, Y, batch_size=20, **options, epochs=20, verbose=0)
    model = net()
    model.compile("sgd", "mse", ["mae"])
    model.fit(X, Y, batch_size=20, epochs=20, verbose=0)
    with eager():
        net().fit(X, Y, batch_size=400, epochs=3, verbose=0)
    assert not calls


def test_training_ends_behind_the_epoch_that_went_wrong():
    """Behind a hundred good ones: a rate that grows."""
    models = [Sequential([Dense(1, kernel_initializer="ones")]) for _ in range(2)]
    for model, callbacks in zip(models, ([], [Callback()]), strict=True):
        model.compile(SGD(lambda step: 0.00001 * step), "mse")
        with pytest.raises(FloatingPointError, match="after epoch .*; try a lower learning rate") as error:
            model.fit(X, Y, batch_size=20, epochs=2000, verbose=0, seed=3, callbacks=callbacks)
        model.told = str(error.value)
    assert models[0].told == models[1].told and len(models[0].history.epochs) > 10
    assert models[0].history.losses.tobytes() == models[1].history.losses.tobytes()
    for one, other in zip(*map(state, models), strict=True):
        np.testing.assert_array_equal(one, other)


STOPS = {  # what stops it, and what its caller sees
    "ctrl-c": (lambda _: signal.raise_signal(signal.SIGINT), pytest.raises(KeyboardInterrupt, match="fit was stopped")),
    "stop_training": (lambda model: setattr(model, "stop_training", True), contextlib.nullcontext()),
}


@pytest.mark.parametrize("how", STOPS)
def test_who_stops_it_finds_the_weights_of_the_history(how):
    (stop, seen), model, again = STOPS[how], net(), net()
    model.fit(X, Y, batch_size=20, epochs=1, verbose=0, seed=3)
    threading.Timer(0.3, stop, [model]).start()
    with seen:
        model.fit(X, Y, batch_size=20, epochs=10**6, verbose=0, seed=3)
    assert len(model.history.losses) < 20 * 10**6
    again.fit(X, Y, batch_size=20, epochs=1, verbose=0, seed=3)
    again.fit(X, Y, batch_size=20, epochs=len(model.history.losses) // 20, verbose=0, seed=3)
    told = len(model.history.epochs)
    assert len(again.history.epochs) - told in (0, 1)  # as with one epoch in a call
    assert model.history.epochs == again.history.epochs[:told]
    assert model.history.losses.tolist() == again.history.losses.tolist()
    assert all(map(np.array_equal, state(model), state(again)))
