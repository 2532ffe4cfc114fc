"""A model's layers, as readers of Keras ask for them: by name, by number, and copied."""

import functools

from levels.high_level import Sequential
from levels.mid_level import Layer, Made
from levels_more.checks import expect, word
from levels_more.compiler.dependencies import of_levels
from levels_more.high_level.functional import dry_run


def layers_of(model):
    """The layers of a model [a list], none that is inside another: those it was made of, or those in its attributes."""
    if "layers" in vars(model):
        return vars(model)["layers"]
    found = model.named(Layer)
    return [part for path, part in found.items() if path and not any(p and path.startswith(f"{p}.") for p in found)]


def get_layer(model, name=None, index=None):
    """The layer of that name, or with that number. Raises ValueError where there is none, or several of that name."""
    layers = layers_of(model)
    if (name is None) == (index is None):
        raise ValueError(f"get_layer: name is {name!r}, index is {index!r}; give one of them")
    if index is not None:
        if isinstance(index, bool) or not isinstance(index, int) or not -len(layers) <= index < len(layers):
            raise ValueError(f"get_layer: index is {index!r}; there are {len(layers)} layers, from 0 on")
        return layers[index]
    found = [layer for layer in layers if layer.name == word("get_layer: name", name)]
    if len(found) != 1:
        told = ", ".join(layer.name for layer in layers)
        several = f"{len(found)} layers are called {name!r}; give an index, or each its own name"
        raise ValueError(f"get_layer: {several if found else f'no layer is called {name!r}; there are {told}'}")
    return found[0]


def cloned(value, done):
    """A part, and all that it was made with, made again; what is no part stays. `done`: {id: (part, its clone)}."""
    if isinstance(value, (list, tuple)):
        return type(value)(cloned(each, done) for each in value)
    if isinstance(value, dict):
        return {name: cloned(each, done) for name, each in value.items()}
    if not isinstance(value, Made):
        return value
    if id(value) not in done:
        given = made_again(value)
        done[id(value)] = value, given.func(*cloned(given.args, done), **cloned(given.keywords, done))
    return done[id(value)][1]


def clone_model(model):
    """A model of the same layers, which draws weights of its own. It is not compiled.

    Raises TypeError for what is no model or layer.
    """
    expect(isinstance(model, Layer), "clone_model: the model", model, "a model")
    other = cloned(model, {})
    if specs := vars(model).get("input_specs"):
        dry_run(other, specs)
    for part, twin in zip(model.named(Layer).values(), other.named(Layer).values(), strict=True):
        twin.changes = part.changes
    return other


def made_again(part):
    """`part.again`; for a Sequential with the layers that it has now, for some may have been added."""
    again = part.again
    if not isinstance(part, Sequential) or not of_levels(type(part).__init__):
        return again
    options = {name: value for name, value in again.keywords.items() if name != "layers"}
    return functools.partial(again.func, [*part.layers], *again.args[1:], **options)
