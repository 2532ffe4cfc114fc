"""A mistake in a reader's layer shows the reader's lines, not the framework's."""

import traceback

import numpy as np
import pytest

import levels.high_level
import levels.mid_level
from levels.support import tracebacks
from levels_more import high_level, mid_level
from levels_more.tensorflow import keras

X = np.ones((8, 2), np.float32)
Y = np.ones((8, 1), np.float32)


def broken(package):
    class Broken(package.Layer):
        def call(self, x):
            return helped(x)

    return Broken()


def helped(x):
    return x.nothing_here


@pytest.mark.parametrize(
    ("models", "layers"),
    [(levels.high_level, levels.mid_level), (high_level, mid_level), (keras, keras.layers)],
)
def test_at_most_eight_frames_and_the_reader_s_among_them(models, layers):
    for call, given in (("fit", (X, Y)), ("evaluate", (X, Y)), ("predict", (X,)), ("__call__", (X,))):
        model = models.Sequential([layers.Dense(3), broken(layers), layers.Dense(1)])
        model.compile("sgd", "mse")
        with pytest.raises(AttributeError, match="nothing_here") as caught:
            getattr(model, call)(*given)
        found = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert len(found) <= 8 and found[-2:] == ["call", "helped"], (call, found)


def test_the_cause_is_short_too_and_all_frames_can_be_had(monkeypatch):
    class Caught(mid_level.Layer):
        def call(self, x):
            try:
                return broken(mid_level)(x)
            except AttributeError as error:
                raise RuntimeError("mine") from error

    model = high_level.Sequential([Caught()])
    lengths = []
    for short in (True, False):
        monkeypatch.setattr(tracebacks, "SHORT", short)
        with pytest.raises(RuntimeError, match="mine") as caught:
            model.predict(X)
        errors = caught.value, caught.value.__cause__
        lengths.append([len(traceback.extract_tb(each.__traceback__)) for each in errors])
    assert max(lengths[0]) <= 8 < max(lengths[1])
