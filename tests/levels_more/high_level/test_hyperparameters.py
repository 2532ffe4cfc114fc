"""Hyperparameters are checked where they are given, not where they spoil a training."""

import math

import numpy as np
import pytest

from levels_more import high_level, mid_level

NO_NUMBERS = ("0.1", None, True, math.nan, math.inf, -0.1, 1j, [0.1])
FRACTION, NOT_ZERO = (1, 1.5), (0, 0.0)  # what else is refused
CASES = {  # (class, argument) -> what it refuses besides
    ("SGD", "learning_rate"): (),
    ("SGD", "momentum"): FRACTION,
    ("Adam", "beta_1"): (*FRACTION, *NOT_ZERO),
    ("Adam", "beta_2"): (*FRACTION, *NOT_ZERO),
    ("Adam", "epsilon"): NOT_ZERO,
    ("Adam", "clipnorm"): NOT_ZERO,
    ("AdamW", "weight_decay"): (),
    ("AdamW", "global_clipnorm"): NOT_ZERO,
    ("RMSprop", "rho"): FRACTION,
    ("RMSprop", "epsilon"): NOT_ZERO,
    ("Dropout", "rate"): FRACTION,
    ("BatchNormalization", "momentum"): FRACTION,
    ("BatchNormalization", "epsilon"): NOT_ZERO,
    ("L1", "l1"): (),
    ("L2", "l2"): (),
    ("BinaryAccuracy", "threshold"): FRACTION,
    ("Precision", "thresholds"): (1.5, -0.5),
    ("Recall", "thresholds"): (1.5, -0.5),
    ("Dense", "units"): (0, 2.0, 1.5),
    ("Embedding", "input_dim"): (0, 2.0),
    ("Embedding", "output_dim"): (0, 2.0),
    ("AUC", "num_thresholds"): (0, 1, 2.0),
    ("EarlyStopping", "patience"): (1.5,),
    ("EarlyStopping", "min_delta"): (),
    ("ReduceLROnPlateau", "factor"): (*FRACTION, *NOT_ZERO),
    ("ReduceLROnPlateau", "patience"): (1.5,),
    ("ReduceLROnPlateau", "min_lr"): (),
    ("TensorBoard", "histogram_freq"): (1.5,),
}
NEEDED = {"Embedding": dict(input_dim=5, output_dim=2), "Dense": dict(units=2), "Dropout": dict(rate=0.5)}
OPTIONAL = ("clipnorm", "global_clipnorm", "thresholds")  # None is their default
SIGNLESS = ("min_delta",)


@pytest.mark.parametrize("name, argument", CASES)
def test_what_is_no_such_number_is_refused_by_name(name, argument):
    kind = getattr(mid_level, name, None) or getattr(high_level, name)
    for value in (*NO_NUMBERS, *CASES[name, argument]):
        if (value is None and argument in OPTIONAL) or (value == -0.1 and argument in SIGNLESS):
            continue
        with pytest.raises((ValueError, TypeError)) as refused:
            kind(**NEEDED.get(name, {}) | {argument: value})
        assert repr(value) in str(refused.value) and "expected" in str(refused.value), value


@pytest.mark.parametrize("name, argument", CASES)
def test_what_numpy_calls_a_number_is_one(name, argument):
    kind = getattr(mid_level, name, None) or getattr(high_level, name)
    whole = argument in ("units", "input_dim", "output_dim", "num_thresholds", "patience", "histogram_freq")
    kind(**NEEDED.get(name, {}) | {argument: np.int64(3) if whole else np.float32(0.25)})


@pytest.mark.parametrize("argument", ["initial_learning_rate", "decay_steps", "decay_rate"])
def test_a_schedule_checks_its_numbers(argument):
    for value in (*NO_NUMBERS, 0):
        numbers = dict(initial_learning_rate=0.1, decay_steps=10, decay_rate=0.5) | {argument: value}
        with pytest.raises(ValueError, match=f"ExponentialDecay: {argument} is "):
            mid_level.ExponentialDecay(**numbers)


@pytest.mark.quick
def test_a_rate_is_checked_when_it_changes():
    sgd = mid_level.SGD(0.1)
    for value in NO_NUMBERS:
        with pytest.raises(ValueError, match="SGD: learning_rate is "):
            sgd.learning_rate = value
    assert sgd.learning_rate == 0.1


@pytest.mark.parametrize("rate", [math.nan, -0.1, math.inf, [0.1], "0.1", None])
def test_a_schedule_is_asked_once_for_its_first_rate(rate):
    with pytest.raises(ValueError, match="SGD: learning_rate is .*; expected a positive number"):
        mid_level.SGD(lambda step: rate)
    assert callable(mid_level.SGD(lambda step: 0.1 / (step + 1.0)).learning_rate)
