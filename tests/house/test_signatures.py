"""What Shift+Tab, `help` and completion show: every argument of a class, and of a namespace only what the framework has."""

import inspect
from typing import get_overloads, get_type_hints

import numpy as np
import pytest

from levels.low_level import Tensor
from levels.mid_level import Layer
from levels_more import high_level, mid_level, tensorflow, torch

K = tensorflow.keras
ROOMS = [mid_level, high_level, K.layers, K.losses, K.optimizers, K.metrics, K.callbacks, torch.nn, torch.optim]
CLASSES = {
    f"{room.__name__}.{name}": value
    for room in ROOMS
    for name, value in vars(room).items()
    if isinstance(value, type) and not name.startswith("_") and "__init__" in dir(value)
}
HIDDEN = {
    "FeatureColumn",
    "LambdaCallback",
    "Placeholder",
    "Reconstructible",
}  # made by functions, from nothing, or of any events


def test_a_signature_shows_every_argument():
    for name, kind in CLASSES.items():
        if name.rsplit(".", 1)[1] in HIDDEN or issubclass(kind, dict | tuple | Exception):
            continue
        shown = inspect.signature(kind)
        kinds = {parameter.kind for parameter in shown.parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, f"{name}{shown}"


def test_arguments_that_are_handed_on_are_shown_where_they_are_taken():
    assert [*inspect.signature(mid_level.Adam).parameters][:2] == ["learning_rate", "beta_1"]
    shown = inspect.signature(K.layers.Dropout)
    assert [*shown.parameters] == ["rate", "seed", "name", "dtype", "trainable", "input_shape"]
    given = shown.bind(0.5, seed=1, name="drop").arguments
    assert K.layers.Dropout(**given).name == "drop"


def test_an_object_that_can_be_called_keeps_its_own_signature():
    assert [*inspect.signature(mid_level.Dense(3)).parameters] == ["x", "training"]


@pytest.mark.parametrize("room", [mid_level, high_level], ids=lambda room: room.__name__)
def test_hints_name_what_there_is(room):
    """A name in quotes that is misspelled would be found by no import, only by an editor."""
    found = [value for name, value in vars(room).items() if isinstance(value, type) and not name.startswith("_")]
    methods = [method for kind in found for method in vars(kind).values() if inspect.isfunction(method)]
    hints = [get_type_hints(each) for each in (*found, *methods)]
    assert sum(map(bool, hints)) > 20


def test_an_editor_knows_what_a_training_gives():
    fit = get_type_hints(high_level.Model.fit)
    assert fit["return"] is high_level.History and fit["epochs"] is int
    assert get_type_hints(high_level.Model.predict)["return"] == np.ndarray | list[np.ndarray]
    assert get_type_hints(high_level.Sequential)["layers"] == list[Layer]
    assert get_type_hints(mid_level.Dataset.batch)["return"] is mid_level.Dataset
    assert get_type_hints(mid_level.Dense.__init__)["units"] is int
    called = [get_type_hints(each) for each in get_overloads(mid_level.Layer.__call__)]
    assert called[-1]["return"] is Tensor
