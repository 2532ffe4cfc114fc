"""A model that leaves the house: a folder of data, without any code."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

import json
import math
import os
import reprlib
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import safetensors.numpy

from levels import low_level, mid_level
from levels.low_level import Variable
from levels.mid_level import ACTIVATIONS, INITIALIZERS, Made

from .loops import Training
from .models import Call, Functional, Input, Model, Sequential, dry_run


def written(value, seen):
    """What JSON can hold of a value. `seen`: the parts that are written already, {id: what was written}."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [written(x, seen) for x in value]
    if isinstance(value, Made):
        return written_part(value, seen)
    names = [name for name, named in (ACTIVATIONS | INITIALIZERS).items() if named is value]
    if names:
        return names[0]
    if not callable(value) or not getattr(value, "__name__", "").isidentifier():
        cure = "numbers, texts, lists, parts, and functions that `def` gave a name can be saved"
        raise ValueError(f"save: an argument is {reprlib.repr(value)}; {cure}")
    return {"def": value.__name__}


CLASSES = {name: kind for name, kind in vars(mid_level).items() if isinstance(kind, type) and issubclass(kind, Made)}
CLASSES.update({kind.__name__: kind for kind in (Sequential, Functional, Input, Call, Training)})


def written_part(part, seen):
    """A part: its class, and the arguments that it was made with."""
    kind, made_with = type(part), part.again
    if CLASSES.get(kind.__name__, kind) is not kind:
        raise ValueError(f"save: you have a class {kind.__name__}, and so have we; give yours another name")
    if id(part) in seen:
        return {"is": seen[id(part)].setdefault("id", [*seen].index(id(part)))}
    seen[id(part)] = entry = {"class": kind.__name__}
    if made_with.args:
        entry["arguments"] = written(made_with.args, seen)
    if made_with.keywords:
        entry["options"] = {name: written(x, seen) for name, x in made_with.keywords.items()}
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


def packed(variables):
    """Variables {name: variable} as the bytes of a safetensors file."""
    return safetensors.numpy.save({name: np.asarray(v.numpy(), order="C") for name, v in variables.items()})


FILES = CONFIG, WEIGHTS, OPTIMIZER = "config.json", "weights.safetensors", "optimizer.safetensors"


def write(file, data):
    """Bytes into a new file. They are on the disk before this returns."""
    with open(file, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


@contextmanager
def replaced(path, files=()):
    """Inside this `with` block: a path to write to. What is there at its end takes the place of `path`, old or new.

    Raises FileExistsError where `path` is a folder with anything else in it than these files.
    """
    path = Path(path).resolve()
    if path.is_file() and files:
        raise FileExistsError(f"{path.as_posix()} is a file, and a model is a folder; choose another name")
    if path.is_dir() and {file.name for file in path.iterdir()} - {*files, ".DS_Store"}:
        raise FileExistsError(f"{path.as_posix()} is a folder with other things in it; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.", dir=path.parent, ignore_cleanup_errors=True) as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        yield new
        try:
            if path.is_dir():  # which, unlike a file, cannot be replaced in one step
                path.rename(old)
            new.replace(path)
        except BaseException:
            if old.exists() and not path.exists():
                old.rename(path)
            raise


def save(model, path):
    """Make a folder of that name: config.json, weights.safetensors and, once trained, optimizer.safetensors.

    Raises ValueError for a model that is not built, and for an argument that no file can hold.
    """
    check_built(model, "save")
    seen, variables = {}, model.named(Variable)
    inputs = [Input(spec.shape[1:], spec.dtype.name) for spec in model.input_specs]
    config = {"format": "levels 1", "model": written(model, seen), "inputs": written(inputs, seen)}
    config["frozen"] = [name for name, v in variables.items() if not v.trainable]
    files = {WEIGHTS: packed(variables)}
    if model.chosen is not None:
        config["training"], optimizer = written(model.chosen, seen), model.chosen.optimizer
        if optimizer.owners is not None:  # it has been used
            names = {id(v): name for name, v in variables.items()}
            if not names.keys() >= {*optimizer.owners}:
                raise ValueError("save: the optimizer trains a variable that is in no part of the model")
            config["trained"] = [names[owner] for owner in optimizer.owners]
            files[OPTIMIZER] = packed(optimizer.named(Variable))
    files[CONFIG] = json.dumps(config, indent=1).encode()
    with replaced(path, FILES) as folder:
        folder.mkdir()
        for name, data in files.items():
            write(folder / name, data)


def check_built(model, verb):
    """Raise ValueError where nobody knows yet what the model's inputs are like."""
    if model.input_specs is None:
        raise ValueError(f"{verb}: {model.name} is not built; call model.build(shape), or fit it, then {verb} it")


@contextmanager
def blamed(file):
    """Inside this `with` block every error becomes an OSError or a ValueError that names this file."""
    try:
        yield
    except Exception as error:
        found = " ".join(f"{type(error).__name__}: {error}"[:300].split())
        kind = OSError if isinstance(error, OSError) else ValueError
        cure = "" if isinstance(error, NameError) else "; was the file changed, or cut off?"
        raise kind(f"{file.as_posix()}: {found}{cure}") from error


@contextmanager
def nothing_drawn(most):
    """Inside this `with` block the initializers that have names give zeros, and no more than so many."""

    def zeros(shape):
        if math.prod(shape) > most:
            raise ValueError(f"a variable has shape {shape}, and the file of all numbers only {most:,} bytes")
        return np.zeros(shape)

    before = dict(INITIALIZERS)
    INITIALIZERS.update(dict.fromkeys(before, zeros))
    try:
        yield
    finally:
        INITIALIZERS.update(before)


# beside the course's `levels`, or a folder further up from a reader's own
ABOVE = [folder / "data" / "models" for folder in Path(low_level.__file__).parents]
MODELS = next(filter(Path.is_dir, ABOVE), ABOVE[2])


def load_model(path, custom_objects=None):
    """The model in a folder that `save` made, or a pretrained one by its name. It runs no code from the folder.

    `custom_objects` are classes and functions of your own that it uses, {"MyLayer": MyLayer}. Raises OSError or
    ValueError, naming the file, where the folder is not what `save` made.
    """
    folder = Path(path) if Path(path).is_dir() else MODELS / path
    if not folder.is_dir():
        names = ", ".join(sorted(model.name for model in MODELS.glob("*")))
        raise FileNotFoundError(f"there is no folder {path}; pretrained models are {names}")
    with blamed(folder / CONFIG), nothing_drawn((folder / WEIGHTS).stat().st_size):
        text = (folder / CONFIG).read_text(encoding="utf-8")
        config = json.loads(text, object_hook=reader(custom_objects or {}))
        model = config["model"]
        if config["format"] != "levels 1" or not isinstance(model, Model):
            raise ValueError(f"it holds a {type(model).__name__} in the format {config['format']!r}, not 'levels 1'")
        dry_run(model, [x.spec for x in config["inputs"]])
        variables, model.chosen = model.named(Variable), config.get("training")
        for name, variable in variables.items():
            variable.trainable = name not in config["frozen"]
        if "trained" in config:
            model.training.optimizer.build([variables[name] for name in config["trained"]])
    fill(model, folder / WEIGHTS)
    if "trained" in config:
        fill(model.training.optimizer, folder / OPTIMIZER)
    return model


def fill(part, file):
    """Give all variables the numbers in a safetensors file."""
    with blamed(file):
        arrays, names = safetensors.numpy.load(file.read_bytes()), part.named(Variable)
        if arrays.keys() != names.keys():
            raise ValueError(f"it holds {', '.join(arrays)}; expected {', '.join(names)}")
        part.set_weights([arrays[name] for name in names])
