"""A part as data that JSON can hold, and back: its class, and the arguments that it was made with."""

import json
import reprlib

from levels import high_level, mid_level
from levels.mid_level import Layer, Made
from levels_more.checks import as_python, expect, word
from levels_more.compiler.dependencies import of_levels
from levels_more.high_level.functional import Call, Input, dry_run
from levels_more.high_level.introspection import made_again
from levels_more.high_level.model import Model, Sequential
from levels_more.high_level.training import Training
from levels_more.mid_level import (
    base_layer,
    feature_columns,
    layers,
    losses,
    merging,
    metrics,
    optimizers,
    preprocessing,
    regularizers,
)
from levels_more.mid_level.initializers import INITIALIZERS
from levels_more.mid_level.layers import ACTIVATIONS


def written(value, seen):
    """What JSON can hold of a value. `seen`: the parts that are written already, {id: what was written}.

    Raises ValueError for what it cannot hold.
    """
    value = as_python(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [written(x, seen) for x in value]
    if isinstance(value, Made):
        return written_part(value, seen)
    names = [name for name, named in ({**ACTIVATIONS, **INITIALIZERS}).items() if named is value]
    if names:
        return names[0]
    if not callable(value) or not getattr(value, "__name__", "").isidentifier():
        cure = "numbers, texts, lists, parts, and functions that `def` gave a name can be saved"
        raise ValueError(f"save: an argument is {reprlib.repr(value)}; {cure}")
    return {"def": value.__name__}


_PLACES = (
    mid_level,  # those of the core, which the classes of that name here stand for
    base_layer,
    layers,
    regularizers,
    preprocessing,
    merging,
    losses,
    metrics,
    optimizers,
    feature_columns,
)
CLASSES = {name: kind for place in _PLACES for name, kind in vars(place).items() if isinstance(kind, type)}
CLASSES = {name: kind for name, kind in CLASSES.items() if issubclass(kind, Made) and not name.startswith("_")}
CLASSES.update({kind.__name__: kind for kind in (Sequential, Input, Call, Training)})
CLASSES["Functional"] = Model  # what a graph of layers is called in files
CLASSES.update({name: made for name, made in vars(feature_columns).items() if hasattr(made, "__wrapped__")})


def written_part(part, seen):
    """A part: its class, and the arguments that it was made with.

    Raises ValueError for a class of yours that is named like one of ours.
    """
    made = made_again(part)
    kind = type(part) if isinstance(part, high_level.Model) else made.func
    name = "Functional" if kind.__name__ == "Model" and getattr(part, "steps", None) else kind.__name__
    name = f"keras.{name}" if CLASSES.get(f"keras.{name}") is kind else name
    if CLASSES.get(name, kind) is not kind and not of_levels(kind):
        raise ValueError(f"save: you have a class {kind.__name__}, and so have we; give yours another name")
    if id(part) in seen:
        return {"is": seen[id(part)].setdefault("id", [*seen].index(id(part)))}
    seen[id(part)] = entry = {"class": name}
    if made.args:
        entry["arguments"] = written(made.args, seen)
    if made.keywords:
        entry["options"] = {name: written(x, seen) for name, x in made.keywords.items()}
    return entry


def reader(own):
    """A hook for `json.loads`, which makes parts again. `own` are classes and functions of yours, {name: object}."""
    classes, parts = CLASSES | {name: kind for name, kind in own.items() if isinstance(kind, type)}, {}

    def find(what, table, name):
        if name not in table:
            raise NameError(f"no {what} is called {reprlib.repr(name)}; pass custom_objects={{{name!r}: the {what}}}")
        return table[name]

    def read(entry):
        if "is" in entry:
            return parts[entry["is"]]
        if "def" in entry:
            return find("function", own, entry["def"])
        if "class" not in entry:
            return entry  # options, or the file as a whole
        kind = find("class", classes, entry["class"])
        part = parts[entry.get("id")] = kind(*entry.get("arguments", ()), **entry.get("options", {}))
        return part

    return read


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
