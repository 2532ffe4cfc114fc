"""A model's layers, as readers of Keras ask for them: by name, taken away, copied, told as text, and what goes in and out."""

import inspect
import json

from levels.high_level import Sequential
from levels.low_level import METHODS
from levels.mid_level import Layer, Made
from levels_more.checks import as_python, expect, word
from levels_more.high_level.functional import Functional, Input, dry_run
from levels_more.high_level.serialization import made_again, reader, written


def layers_of(model):
    """The layers of a model [a list], none that is inside another: those it was made of, or those in its attributes."""
    if "layers" in vars(model):
        return model.layers
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


def pop(model):
    """Take the last layer away, and return it. Raises ValueError where there is none."""
    if not model.layers:
        raise ValueError(f"{model.name} has no layer left")
    layer = model.layers.pop()
    if model.place:
        model.begin(model.place)  # its outputs are others now
    return layer


def places(model):
    """The `Input` in front of a Sequential, or one like the rows that it was called on. Raises ValueError before both."""
    if model.place is None:
        if vars(model).get("input_specs") is None:
            raise ValueError(f"{model.name}: nobody knows its inputs yet; put Input(shape) in front of its layers")
        (spec,) = model.input_specs
        model.begin(Input(spec.shape[1:], spec.dtype.name))
    return [model.place]


def ends(model):
    """What a Sequential gives for its `Input`, a list of one."""
    places(model)
    return [model.end]


def one_call(layer):
    """The call of this layer on places for numbers. Raises ValueError where there was none, or more than one."""
    calls = vars(layer).get("calls", ())
    if len(calls) != 1:
        cure = "put Input(shape) in front of it" if not calls else "keep what each of these calls gave"
        raise ValueError(f"{layer.name} was called on an Input {len(calls)} times; {cure}")
    return calls[0]


def output_of(layer):
    """What a layer, or a model, gives: a place for numbers, or a list of them. Raises ValueError, see `one_call`."""
    found = layer.outputs if isinstance(layer, (Functional, Sequential)) else [one_call(layer)]
    return found[0] if len(found) == 1 else found


def input_of(layer):
    """What a layer, or a model, is called on: a place for numbers, or a list of them. Raises ValueError, see `one_call`."""
    found = layer.inputs if isinstance(layer, (Functional, Sequential)) else one_call(layer).inputs
    return found[0] if len(found) == 1 else found


def get_config(part):
    """{name: the argument that a layer, a loss, … was made with}: `type(part)(**part.get_config())` makes one like it.

    There is no `from_config`: a class is called with its arguments.
    """
    given = made_again(part)
    bound = inspect.signature(type(part).__init__).bind(part, *given.args, **given.keywords)
    kinds = {name: parameter.kind for name, parameter in bound.signature.parameters.items()}
    found = {}
    for name, value in [*bound.arguments.items()][1:]:
        found |= value if kinds[name] is inspect.Parameter.VAR_KEYWORD else {name: value}
    return {name: as_python(value) for name, value in found.items()}


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


def to_json(model):
    """A text of a model's layers, without its weights, for `model_from_json`. Raises ValueError for what no text can hold."""
    seen = {}
    places = [Input(spec.shape[1:], spec.dtype.name) for spec in vars(model).get("input_specs") or ()]
    return json.dumps({"model": written(model, seen), "inputs": written(places, seen)}, indent=1)


def model_from_json(json_string, custom_objects=None):
    """The model that `to_json` told, with weights of its own; `custom_objects` as in `load_model`. Raises ValueError."""
    custom = {} if custom_objects is None else custom_objects
    expect(isinstance(custom, dict), "model_from_json: custom_objects", custom, "a dict {name: class or function}")
    try:
        found = json.loads(word("model_from_json: the text", json_string), object_hook=reader(custom))
        model, specs = found["model"], [place.spec for place in found["inputs"]]
        expect(isinstance(model, Layer), "the model", model, "a model")
    except (KeyError, TypeError, ValueError, AttributeError, NameError) as error:
        raise ValueError(f"model_from_json: no text of to_json ({type(error).__name__}: {error})") from error
    if specs:
        dry_run(model, specs)
    return model


METHODS.update(
    {"Model.layers": property(layers_of), "Model.get_layer": get_layer, "Sequential.pop": pop, "Model.to_json": to_json}
)
METHODS.update({"Sequential.inputs": property(places), "Sequential.outputs": property(ends)})
METHODS.update({"Layer.output": property(output_of), "Layer.input": property(input_of), "Layer.get_config": get_config})
