"""Level 4's core alone: right for all it accepts, and the rest is refused in a sentence. With `levels_more` the rest works."""

import numpy as np
import pytest

from levels import mid_level
from levels.low_level import Variable, constant
from levels.mid_level import SGD, Dense, Layer
from levels.support.checks import lookup

X = np.arange(8.0).reshape(4, 2)
BEYOND = {  # what the core does not know, and what it says
    "mid_level.Dense(8, 'tanh')": "no activation is called 'tanh'; there are linear, relu, sigmoid",
    "mid_level.Dense(8, 'rleu')": "no activation is called 'rleu'; did you mean 'relu'?",
    "mid_level.Dense(8, kernel_initializer='ones')(X)": "Dense has no kernel_initializer; the Dense of levels_more.mid_level may have it",
    "mid_level.Dense(8, bias_initializer='ones')(X)": "Dense has no bias_initializer; the Dense of levels_more.mid_level may have it",
    "mid_level.Layer().add_weight((2, 2), 'ones')": "no initializer is called 'ones'; there are zeros, glorot_uniform",
    "lookup('loss', mid_level.LOSSES, 'mae')": "no loss is called 'mae'; there are mse, mean_squared_error, binary_crossentropy; levels_more.mid_level has more",
    "lookup('optimizer', mid_level.OPTIMIZERS, 'rmsprop')": "no optimizer is called 'rmsprop'; there are sgd, adam",
    "mid_level.Dense(8, use_bias=False)": "Dense has no use_bias; the Dense of levels_more.mid_level may have it",
    "mid_level.SGD(0.1, momentum=0.9)": "SGD has no momentum; the SGD of levels_more.mid_level may have it",
    "mid_level.SGD(0.1, 0.9)": "Optimizer.__init__() takes from 1 to 2 positional arguments but 3 were given",
    "mid_level.Adam(clipnorm=1.0)": "Adam has no clipnorm; the Adam of levels_more.mid_level may have it",
    "mid_level.SGD(lambda step: 0.1)": "SGD: a schedule is for the SGD of levels_more.mid_level",
    "mid_level.BinaryCrossentropy(from_logits=True)": "BinaryCrossentropy has no from_logits; the BinaryCrossentropy of levels_more.mid_level may have it",
    "mid_level.MeanSquaredError()(X, X, np.ones(4))": "MeanSquaredError: weights of samples are for the losses of levels_more.mid_level",
    "mid_level.Dense(1)([X, X])": "matmul: x is (2, 4, 2) and w is (2, 1): both need two axes",
    "mid_level.Dataset.from_tensor_slices({'x': X})": "Dataset: expected a tuple of arrays, got {'x': ",
    "mid_level.Dataset.from_tensor_slices(X)": "Dataset: expected a tuple of arrays, got array(",
    "mid_level.Dataset.from_batches(X, X, [[0, 1], [2]])": "from_batches: batches are [[0, 1], [2]]; expected whole numbers [steps, batch]",
    "mid_level.Dataset.from_tensor_slices((X, X)).shuffle(2)": "shuffle: buffer_size is 2; expected a whole number from 4 on",
    "mid_level.Dataset.from_tensor_slices((X, X)).batch(2).batch(2)": "batch: these are batches; the Dataset of levels_more.mid_level takes them",
    "mid_level.Dataset.from_tensor_slices((X, X)).batch(2).shuffle(2)": "shuffle: these are batches; the Dataset of levels_more.mid_level takes them",
    "mid_level.Dataset.from_tensor_slices((X, X)).map(np.add)": "'Dataset' object has no attribute 'map'",
    "mid_level.Dataset.from_csv": "type object 'Dataset' has no attribute 'from_csv'",
    "mid_level.RMSprop": "levels.mid_level has no 'RMSprop'",
    "mid_level.metrics": "levels.mid_level has no 'metrics'",
}
NOWHERE = ("mid_level.Dense(8, 'rleu')", "mid_level.Dense(1)([X, X])")  # a mistake, with `levels_more` as well


@pytest.mark.parametrize("asked", BEYOND)
def test_the_core_alone_refuses_in_a_sentence(asked, pytestconfig):
    if not pytestconfig.option.core:
        pytest.skip("needs pytest --core, which test_core_alone.py runs")
    with pytest.raises((AttributeError, TypeError, ValueError, NotImplementedError)) as error:
        eval(asked, {"lookup": lookup, "mid_level": mid_level, "np": np, "X": X})
    assert str(error.value).startswith(BEYOND[asked])


@pytest.mark.more("what is wider")
@pytest.mark.parametrize("asked", [asked for asked in BEYOND if asked not in NOWHERE])
def test_with_levels_more_it_works(asked):
    from levels_more import mid_level as wide

    assert eval(asked, {"lookup": lookup, "mid_level": wide, "np": np, "X": X}) is not None


@pytest.mark.quick
@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("mean_absolute_percentage_error", None),  # another quantity
        ("mean_squared_logarithmic_error", None),
        ("adamax", None),  # a known name, and more
        ("adam2", None),
        ("relu6", None),
        ("adamm", "adam"),  # a key held too long
        ("rleu", "relu"),
        ("rlue6", None),
        ("mean_absolut_eror", "mean_absolute_error"),  # two letters
        ("mean_absolt_eror", None),  # three
        ("mes", "mse"),
        ("mse2", None),
        ("", None),
    ],
)
def test_only_a_slip_is_answered_with_the_nearest_name(typed, near):
    names = ["mse", "mae", "mean_absolute_error", "mean_squared_error", "adam", "adamw", "relu", "elu"]
    if near is None:
        with pytest.raises(ValueError, match=f"^no loss is called '{typed}'; there are mse, mae, mean_absolute_error"):
            lookup("loss", dict.fromkeys(names), typed)
    else:
        with pytest.raises(ValueError, match=f"^no loss is called '{typed}'; did you mean '{near}'.$"):
            lookup("loss", dict.fromkeys(names), typed)


@pytest.mark.quick
def test_a_class_of_the_readers_is_never_replaced():
    class Dense(Layer):
        def __init__(self, size):
            super().__init__()
            self.size = size

    assert Dense(3).size == 3
    with pytest.raises(TypeError, match="Dense.__init__.. got an unexpected keyword argument 'use_bias'"):
        Dense(3, use_bias=False)


def test_a_layer_of_the_core_that_asks_for_training_says_where_it_is_given():
    class Noise(Layer):
        def call(self, x, training=None):
            return x

    words = "^noise: call.…, training. is for the Layer of levels_more.mid_level$"
    with pytest.raises(NotImplementedError, match=words):
        Noise()


def test_the_core_reads_and_sets_its_rate_before_and_after_the_first_step():
    sgd = SGD(1)
    assert sgd.learning_rate == 1.0
    sgd.learning_rate = 0.5
    w = Variable(np.array(1.0))
    sgd.apply_gradients([(constant(np.array(1.0)), w)])
    sgd.learning_rate = 0.25
    sgd.apply_gradients([(constant(np.array(1.0)), w)])
    assert float(w) == 0.25 and sgd.learning_rate == 0.25
    for wrong in (-1.0, None, "0.1", np.nan):
        with pytest.raises(ValueError, match="SGD: learning_rate is .*; expected a positive number"):
            sgd.learning_rate = wrong


def test_a_layer_that_is_built_by_hand_keeps_its_weights():
    dense = Dense(1)
    dense.build((4, 2))
    weights = dense.get_weights()
    dense(X.astype("f4"))
    for one, other in zip(dense.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(one, other)


class Outer(Layer):
    def __init__(self):
        super().__init__()
        self.hidden = Dense(2)
        self.top = Dense(1)

    def call(self, x):
        return self.top(self.hidden(x))


def test_a_frozen_layer_of_the_core_freezes_what_is_inside():
    outer = Outer()
    outer(X)
    outer.hidden.trainable = False
    assert outer.trainable_variables == outer.top.variables
    outer.trainable = False
    assert outer.trainable_variables == []
    outer.trainable = outer.hidden.trainable = True
    assert len(outer.trainable_variables) == 4
    with pytest.raises(AttributeError, match="Outer.trainable is already a name of the framework"):
        outer.trainable = "no"
