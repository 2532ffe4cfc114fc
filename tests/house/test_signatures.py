"""What Shift+Tab, `help` and completion show: every argument of a class, and of a namespace only what the framework has."""

import inspect

import pytest

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


@pytest.mark.parametrize("name", CLASSES)
def test_a_signature_shows_every_argument(name):
    if name.rsplit(".", 1)[1] in HIDDEN or issubclass(CLASSES[name], dict | tuple | Exception):
        return
    shown = inspect.signature(CLASSES[name])
    assert inspect.Parameter.VAR_KEYWORD not in {parameter.kind for parameter in shown.parameters.values()}, shown


def test_arguments_that_are_handed_on_are_shown_where_they_are_taken():
    assert [*inspect.signature(mid_level.Adam).parameters][:2] == ["learning_rate", "beta_1"]
    shown = inspect.signature(K.layers.Dropout)
    assert [*shown.parameters] == ["rate", "seed", "name", "dtype", "trainable", "input_shape"]
    given = shown.bind(0.5, seed=1, name="drop").arguments
    assert K.layers.Dropout(**given).name == "drop"


def test_an_object_that_can_be_called_keeps_its_own_signature():
    assert [*inspect.signature(mid_level.Dense(3)).parameters] == ["x", "training"]


@pytest.mark.parametrize("namespace", [torch, torch.nn, torch.optim, tensorflow, K], ids=lambda room: room.__name__)
def test_a_namespace_lists_no_helper_of_ours(namespace):
    found = [name for name in dir(namespace) if "room" in name or name.startswith(("keras_", "graph", "tensors"))]
    assert found == [] and not {"FUNCTIONS", "KINDS", "TENSORFLOW", "require_numbers"} & {*dir(namespace)}
