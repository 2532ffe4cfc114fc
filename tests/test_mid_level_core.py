"""Level 4's core alone: right for all it accepts, and the rest is refused in a sentence. With `levels_more` the rest works."""

import copy
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from course import build
from levels import mid_level
from levels.mid_level import SGD, Adam, BinaryCrossentropy, Dataset, Dense, Layer, Loss, known

X = np.arange(8.0).reshape(4, 2)
BEYOND = {  # what the core does not know, and what it says
    "mid_level.Dense(8, 'tanh')": "no activation is called 'tanh'; there are linear, relu, sigmoid",
    "mid_level.Dense(8, 'rleu')": "no activation is called 'rleu'; did you mean 'relu'?",
    "mid_level.Dense(8, kernel_initializer='ones')(X)": "no initializer is called 'ones'; there are zeros, glorot_uniform",
    "mid_level.known('loss', mid_level.LOSSES, 'mae')": "no loss is called 'mae'; did you mean 'mse'?",
    "mid_level.known('optimizer', mid_level.OPTIMIZERS, 'rmsprop')": "no optimizer is called 'rmsprop'; there are sgd, adam",
    "mid_level.Dense(8, use_bias=False)": "Dense.__init__() got an unexpected keyword argument 'use_bias'",
    "mid_level.SGD(0.1, momentum=0.9)": "_Rated.__init__() got an unexpected keyword argument 'momentum'",
    "mid_level.SGD(0.1, 0.9)": "_Rated.__init__() takes from 1 to 2 positional arguments but 3 were given",
    "mid_level.Adam(clipnorm=1.0)": "Adam.__init__() got an unexpected keyword argument 'clipnorm'",
    "mid_level.BinaryCrossentropy(from_logits=True)": "_Checked.__init__() got an unexpected keyword argument 'from_logits'",
    "mid_level.MeanSquaredError()(X, X, np.ones(4))": "type object 'Loss' has no attribute 'weighted'",
    "mid_level.Dense(1)([X, X])": "matmul: x is (2, 4, 2) and w is (2, 1): both need two axes",
    "mid_level.Dataset.from_tensor_slices({'x': X})": "Dataset: expected a tuple of arrays, got {'x': ",
    "mid_level.Dataset.from_tensor_slices(X)": "Dataset: expected a tuple of arrays, got array(",
    "mid_level.Dataset.from_batches(X, X, [[0, 1], [2]])": "from_batches: batches are [[0, 1], [2]]; expected whole numbers [steps, batch]",
    "mid_level.Dataset.from_tensor_slices((X, X)).shuffle(2)": "shuffle: buffer_size is 2; expected a whole number from 4 on",
    "mid_level.Dataset.from_tensor_slices((X, X)).batch(2).batch(2)": "batch: 2 batches make no batch of 2",
    "mid_level.Dataset.from_tensor_slices((X, X)).map(np.add)": "'Dataset' object has no attribute 'map'",
    "mid_level.Dataset.from_csv": "type object 'Dataset' has no attribute 'from_csv'",
    "mid_level.RMSprop": "module 'levels.mid_level' has no attribute 'RMSprop'",
    "mid_level.metrics": "module 'levels.mid_level' has no attribute 'metrics'",
}
NOWHERE = ("mid_level.Dense(8, 'rleu')", "mid_level.Dense(1)([X, X])")  # a mistake, with `levels_more` as well


@pytest.fixture(scope="module")
def said():
    """{what is asked of the core alone: the error}, from a process that has no `levels_more`."""
    code = """
import json, sys
import numpy as np
from levels import mid_level
X, said = np.arange(8.0).reshape(4, 2), {}
for asked in json.load(sys.stdin):
    try:
        said[asked] = "no error: " + repr(eval(asked))
    except (AttributeError, TypeError, ValueError) as error:
        said[asked] = str(error)
print(json.dumps(said))
"""
    env = os.environ | {"PYTHONPATH": str(build.ROOT), "LEVELS_CORE": "yes"}
    options = dict(input=json.dumps([*BEYOND]), capture_output=True, text=True, env=env, timeout=120)
    done = subprocess.run([sys.executable, "-c", code], **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("asked", BEYOND)
def test_the_core_alone_refuses_in_a_sentence(asked, said):
    assert said[asked].startswith(BEYOND[asked])


@pytest.mark.parametrize("asked", [asked for asked in BEYOND if asked not in NOWHERE])
def test_with_levels_more_it_works(asked):
    assert eval(asked, {"mid_level": mid_level, "np": np, "X": X}) is not None


def test_a_misspelt_word_is_answered_with_one_of_levels_more():
    """In a fresh process, where none of its rows is entered yet."""
    code = "from levels.mid_level import *\nfor t, n in [('loss', 'mean_absolut_error'), ('optimizer', 'rmspropp')]:\n"
    code += "    try:\n        known(t, LOSSES if t == 'loss' else OPTIMIZERS, n)\n    except ValueError as e:\n        print(e)"
    env = {name: value for name, value in os.environ.items() if name != "LEVELS_CORE"} | {"PYTHONPATH": str(build.ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    said = "no loss is called 'mean_absolut_error'; did you mean 'mean_absolute_error'?\nno optimizer is called 'rmspropp'; did you mean 'rmsprop'?\n"
    assert done.stdout == said, done.stderr


def test_a_class_that_stands_in_is_one_of_the_core_and_says_so():
    for made, kind in (
        (SGD(0.1, momentum=0.9), SGD),
        (Adam(clipnorm=1.0), Adam),
        (Dense(2, use_bias=False), Dense),
        (BinaryCrossentropy(from_logits=True), BinaryCrossentropy),
    ):
        assert isinstance(made, kind) and type(made) is not kind
        assert type(made).__name__ == kind.__name__ and made.again.func is kind
        assert type(made.again()) is type(made)
    assert type(SGD(0.1)) is type(SGD(0.1, momentum=0.9)) and type(Dense(2)) is type(Dense(2, use_bias=False))


def test_what_nobody_knows_is_refused_by_levels_more_too():
    for make in (lambda: SGD(0.1, momentun=0.9), lambda: Dense(units=2, biases=False), lambda: Loss(1)):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(AttributeError, match="'Stream' object has no attribute 'mapp'"):
        Dataset.from_tensor_slices(X).mapp(abs)


@pytest.mark.quick
def test_a_part_can_be_copied():
    dense = Dense(2, "relu")
    dense(X)
    twin = copy.deepcopy(dense)
    assert twin is not dense and (twin.kernel.numpy() == dense.kernel.numpy()).all()


@pytest.mark.quick
def test_a_class_of_the_readers_is_never_replaced():
    class Dense(Layer):
        def __init__(self, size):
            super().__init__()
            self.size = size

    assert Dense(3).size == 3
    with pytest.raises(TypeError, match="Dense.__init__.. got an unexpected keyword argument 'use_bias'"):
        Dense(3, use_bias=False)


def test_a_function_is_no_name():
    assert known("activation", mid_level.ACTIVATIONS, abs) is abs
