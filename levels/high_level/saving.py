"""A model that leaves the house: a folder of data, without any code."""

# Built from notebooks/05_high_level.ipynb: edit there, then run its last cell.

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

from .models import Functional, Input, Placeholder, Sequential, dry_run, listed


def written(value, seen):
    """What JSON can hold of a value. `seen`: the parts that are written already, {id: what was written}."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [written(x, seen) for x in value]
    if isinstance(value, (Made, Placeholder)) or (isinstance(value, dict) and all(isinstance(k, str) for k in value)):
        return written_part(value, seen)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    names = [name for table in (ACTIVATIONS, INITIALIZERS) for name, function in table.items() if function is value]
    if names:
        return names[0]
    if not callable(value) or not getattr(value, "__name__", "").isidentifier():
        cure = "numbers, texts, lists, parts, and functions that `def` gave a name can be saved"
        raise ValueError(f"save: an argument is {reprlib.repr(value)}; {cure}")
    return {"function": value.__name__}


LEVEL_4 = [getattr(mid_level, name) for name in mid_level.__all__]
CLASSES = {kind.__name__: kind for kind in LEVEL_4 if isinstance(kind, type) and issubclass(kind, Made)}
CLASSES.update(Sequential=Sequential, Functional=Functional, Input=Input, dict=dict)
CLASSES["call"] = lambda layer, x: listed(x)[0].through(layer, x)


def written_part(part, seen):
    """A part: its class, and the arguments that it was made with."""
    if id(part) in seen:
        entry = seen[id(part)]
        return {"same": entry.setdefault("id", [*seen].index(id(part)))}
    kind, arguments, options = made_with(part)
    seen[id(part)] = entry = {"class": kind}
    if arguments:
        entry["arguments"] = written(arguments, seen)
    if options:
        entry["options"] = {name: written(x, seen) for name, x in options.items()}
    return entry


def made_with(part):
    """(the name of a class, arguments, options)"""
    if isinstance(part, dict):
        return "dict", (), part
    if isinstance(part, Placeholder):
        spec = part.spec
        return (
            ("call", (part.layer, part.inputs), {})
            if part.layer is not None
            else ("Input", (spec.shape[1:], spec.dtype), {})
        )
    kind = type(part)
    if CLASSES.get(kind.__name__, kind) is not kind:
        raise ValueError(f"save: you have a class {kind.__name__}, and so have we; give yours another name")
    return kind.__name__, part.again.args, part.again.keywords


class Reader:
    """Makes parts of what `written` gave. `own` are classes and functions of yours, {name: object}."""

    def __init__(self, own):
        self.own, self.made = own or {}, {}
        self.classes = CLASSES | {name: kind for name, kind in self.own.items() if isinstance(kind, type)}

    def find(self, what, table, name):
        """The class or function of that name."""
        if not isinstance(name, str) or name not in table:
            raise NameError(f"no {what} is called {reprlib.repr(name)}; pass custom_objects={{{name!r}: the {what}}}")
        return table[name]

    def read(self, data):
        """The value that was written so."""
        if isinstance(data, list):
            return [self.read(x) for x in data]
        if not isinstance(data, dict):
            return data
        if "same" in data:
            return self.made[data["same"]]
        if "function" in data:
            return self.find("function", self.own, data["function"])
        kind, options = self.find("class", self.classes, data["class"]), data.get("options", {})
        arguments = self.read(data.get("arguments", []))  # before the options, as they were written
        part = kind(*arguments, **{name: self.read(x) for name, x in options.items()})
        if "id" in data:
            self.made[data["id"]] = part
        return part


def check_built(model, verb):
    """Raise ValueError where nobody knows yet what the model's inputs are like."""
    if model.input_specs is None:
        raise ValueError(f"{verb}: {model.name} is not built; call model.build(shape), or fit it, then {verb} it")


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
    seen, variables, inputs = {}, model.named(Variable), [Placeholder(spec) for spec in model.input_specs]
    config = {"format": "levels 1", "model": written(model, seen), "inputs": written(inputs, seen)}
    config["frozen"] = [name for name, v in variables.items() if not v.trainable]
    files = {WEIGHTS: packed(variables)}
    if model.chosen is not None:
        optimizer, names = model.chosen.optimizer, {id(v): name for name, v in variables.items()}
        training = {"optimizer": optimizer, "loss": model.chosen.losses, "metrics": model.chosen.metrics}
        config["training"] = {name: written(part, seen) for name, part in training.items()}
        if optimizer.owners is not None:
            config["trained"] = [names.get(owner) for owner in optimizer.owners]
            files[OPTIMIZER] = packed(optimizer.named(Variable))
    if None in config.get("trained", ()):
        raise ValueError("save: the optimizer trains a variable that is in no part of the model")
    files[CONFIG] = json.dumps(config, indent=1).encode()
    with replaced(path, FILES) as folder:
        folder.mkdir()
        for name, data in files.items():
            write(folder / name, data)


@contextmanager
def blamed(file):
    """Inside this `with` block every error becomes an OSError or a ValueError that names this file."""
    try:
        yield
    except Exception as error:
        plain, kind = (OSError, ValueError, NameError), OSError if isinstance(error, OSError) else ValueError
        found = " ".join(f"{'' if isinstance(error, plain) else type(error).__name__ + ': '}{error}"[:300].split())
        cure = "" if isinstance(error, NameError) else "; was the file changed, or cut off? Save the model again"
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


def save_weights(model, path):
    """Write the numbers of all variables into one safetensors file, which `fill` reads."""
    with replaced(path) as file:
        write(file, packed(model.named(Variable)))


def fill(part, path):
    """Give all variables the numbers in a safetensors file. Raises OSError or ValueError, and changes none, if it does not fit."""
    with blamed(Path(path)):
        arrays, names = safetensors.numpy.load(Path(path).read_bytes()), part.named(Variable)
        for name in sorted(names.keys() ^ arrays.keys()):
            raise ValueError(f"{name} is only in the {'file' if name in arrays else 'model'}")
        part.set_weights([arrays[name] for name in names])


def folder_of(path):
    """The folder of that path, or of the pretrained model of that name."""
    models = Path(low_level.__file__).parents[2] / "data" / "models"
    names = sorted(folder.name for folder in models.glob("*"))
    if not Path(path).is_dir() and str(path) not in names:
        raise FileNotFoundError(f"there is no folder {path}; pretrained models are {', '.join(names)}")
    return Path(path) if Path(path).is_dir() else models / path


def load_model(path, custom_objects=None):
    """The model in a folder that `save` made, or a pretrained one by its name. It runs no code from the folder.

    `custom_objects` are classes and functions of your own that it uses, {"MyLayer": MyLayer}. Raises OSError or
    ValueError, naming the file, where the folder is not what `save` made.
    """
    folder, reader = folder_of(path), Reader(custom_objects)
    with blamed(folder / CONFIG), nothing_drawn((folder / WEIGHTS).stat().st_size):
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if config["format"] != "levels 1":
            raise ValueError(f"its format is {config['format']!r}; here only 'levels 1' can be read")
        model = reader.read(config["model"])
        dry_run(model, [x.spec for x in reader.read(config["inputs"])])
        for name, variable in model.named(Variable).items():
            variable.trainable = name not in config["frozen"]
        if "training" in config:
            model.compile(**{name: reader.read(part) for name, part in config["training"].items()})
        if "trained" in config:
            model.chosen.optimizer.build([model.named(Variable)[name] for name in config["trained"]])
    fill(model, folder / WEIGHTS)
    if "trained" in config:
        fill(model.chosen.optimizer, folder / OPTIMIZER)
    return model
