"""Parts to JSON and back: a part is written as its class and the arguments that it was made with."""

import functools
import inspect
import reprlib
import types

from levels import high_level, mid_level
from levels.support.parts import Reconstructible
from levels_more import low_level
from levels_more import mid_level as wide
from levels_more.checks import as_python
from levels_more.compiler.reads import of_levels
from levels_more.high_level.functional import Call, Input
from levels_more.high_level.model import Model, Sequential
from levels_more.high_level.training import Training
from levels_more.mid_level.initializers import INITIALIZERS
from levels_more.mid_level.layers import ACTIVATIONS


def written(value, seen):
    """A value in a form that JSON can hold. `seen`: the parts that are written already, {id: what was written}.

    Raises ValueError if there is no such form.
    """
    value = as_python(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [written(x, seen) for x in value]
    if isinstance(value, Reconstructible):
        return written_part(value, seen)
    place = getattr(getattr(value, "func", value), "__globals__", {}).get("__name__", "")
    bare = inspect.unwrap(value) if place.startswith("levels_more.") else value  # the function that a spelling wraps
    names = [name for name, named in ({**ACTIVATIONS, **INITIALIZERS}).items() if named is value or named is bare]
    if names:
        return names[0]
    for name, named in FUNCTIONS.items():
        if named is value or named is bare:
            return {"import": name}
    if not callable(value) or not getattr(value, "__name__", "").isidentifier():
        cure = "numbers, texts, lists, parts, and functions that `def` gave a name can be saved"
        raise ValueError(f"save: an argument is {reprlib.repr(value)}; {cure}")
    return {"def": value.__name__}


_PARTS = vars(mid_level) | vars(wide)  # classes of levels_more replace those of the core
CLASSES = {name: kind for name, kind in _PARTS.items() if isinstance(kind, type) and issubclass(kind, Reconstructible)}
CLASSES.update({kind.__name__: kind for kind in (Sequential, Input, Call, Training)})
CLASSES["Functional"] = Model  # what a graph of layers is called in files
CLASSES.update({name: made for name, made in vars(wide).items() if hasattr(made, "__wrapped__")})


def _kept_by_name(name, value):
    """Whether a file may refer to this by name: a function of levels whose first argument is x, y_true or shape."""
    ours = isinstance(value, types.FunctionType) and value.__name__ == name
    return ours and next(iter(inspect.signature(value).parameters), "") in ("x", "y_true", "shape")


_NAMED = [pair for place in (low_level, low_level.nn, wide) for pair in vars(place).items()]
FUNCTIONS = {name: value for name, value in _NAMED if _kept_by_name(name, value)}


def made_again(part):
    """`part.recreate`; for a Sequential with its present layers, because some may have been added."""
    again = part.recreate
    if not isinstance(part, Sequential) or not of_levels(type(part).__init__):
        return again
    options = {name: value for name, value in again.keywords.items() if name != "layers"}
    return functools.partial(again.func, [*part.layers], *again.args[1:], **options)


def written_part(part, seen):
    """A part: its class, and the arguments that it was made with.

    Raises ValueError if a user's class has the name of a class of levels.
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
    if isinstance(part, wide.Layer) and "name" not in made.keywords:
        entry["name"] = part.name  # another process would number its layers in another way
    if made.keywords:
        entry["options"] = {name: written(x, seen) for name, x in made.keywords.items()}
    return entry


def reader(own):
    """An `object_hook` for `json.loads` that makes the parts again. `own`: the user's classes and functions by name."""
    classes = CLASSES | {name: kind for name, kind in own.items() if isinstance(kind, type)}
    parts = {}

    def find(what, table, name):
        if name not in table:
            raise NameError(f"no {what} is called {reprlib.repr(name)}; pass custom_objects={{{name!r}: the {what}}}")
        return table[name]

    def read(entry):
        if "is" in entry:
            return parts[entry["is"]]
        if "def" in entry:
            return find("function", own, entry["def"])
        if "import" in entry:
            return find("function of levels", FUNCTIONS, entry["import"])
        if "class" not in entry:
            return entry  # options, or the file as a whole
        kind = find("class", classes, entry["class"])
        part = parts[entry.get("id")] = kind(*entry.get("arguments", ()), **entry.get("options", {}))
        if "name" in entry:
            part.name = entry["name"]
        return part

    return read
