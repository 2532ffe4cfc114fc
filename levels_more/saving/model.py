"""Save a model as a folder of data, without any code, and load it."""

import functools
import hashlib
import json
import math
import os
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import numpy as np

from levels import low_level
from levels.low_level import Variable
from levels.mid_level import Layer
from levels_more import needed
from levels_more.checks import expect, file_name
from levels_more.high_level.functional import Input, dry_run
from levels_more.high_level.model import Model
from levels_more.high_level.rows import BatchLayout, as_list, column_layers_of
from levels_more.high_level.serialization import reader, written
from levels_more.mid_level import notes
from levels_more.mid_level.base_layer import mark
from levels_more.mid_level.initializers import INITIALIZERS
from levels_more.saving.files import patiently, replace

with needed():
    import safetensors.numpy


def numbers_of(part, before=""):
    """The numbers of all variables, {name: array}, with the prefix `before` in each name."""
    return {before + name: np.asarray(v.numpy(), order="C") for name, v in part.named(Variable).items()}


def states_of(model):
    """Return {name: variable} of layer state that is not a weight, such as the random state of Keras' Dropout."""
    found = {f"/state/{name}": vars(part).get("state") for name, part in model.named(Layer).items()}
    return {name: state for name, state in found.items() if hasattr(state, "excluded")}


# names of further entries; no variable's name begins with a slash
TEXT = "/config"
MEMORY = "/optimizer/"
SUM = "/sha256"


def checksum(arrays):
    """The SHA-256 of all names, dtypes, shapes and bytes, except those of the checksum itself, as uint8[32]."""
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        if name != SUM:
            total.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return np.frombuffer(total.digest(), "u1")


WEIGHTS = "weights.safetensors"


def put(arrays, folder):
    """Write these arrays and their checksum into a folder. It is new, or holds a model, which is replaced.

    Raises FileExistsError if it is a file, or a folder with anything else in it.
    """
    folder = Path(folder).resolve()
    if folder.is_file():
        raise FileExistsError(f"{folder.as_posix()} is a file, and a model is a folder; choose another name")
    new = not folder.exists()
    if not new and {file.name for file in folder.iterdir() if file.suffix != ".new"} - {WEIGHTS, ".DS_Store"}:
        raise FileExistsError(f"{folder.as_posix()} is a folder with other things in it; choose another name")
    try:
        replace(folder / WEIGHTS, safetensors.numpy.save(arrays | {SUM: checksum(arrays)}))
    finally:
        with suppress(OSError):
            if new:
                folder.rmdir()  # only works on an empty folder: after a failed write


def further_config(model):
    """Further entries of a model's config: the names of its inputs, and the layers that are frozen."""
    still = [path for path, part in model.named(Layer).items() if not part.trainable]
    found = {"names": notes.noted(model, "input_names"), "still": still}
    return {name: value for name, value in found.items() if value}


def rebuild(model, config):
    """Build the variables of a model from its config (see `further_config`), and freeze the layers that were frozen."""
    specs = [x.spec for x in config["inputs"]]
    layout = BatchLayout(len(specs), 0, 0, tuple(config.get("names", ())), column_layers_of(model))
    dry_run(lambda x: model(layout.x(as_list(x))), specs)
    for path, part in model.named(Layer).items():
        mark(part, path not in config.get("still", ()))


def save(model: Model, path: str | os.PathLike) -> None:
    """Make a folder with one file, weights.safetensors: the model's numbers, its optimizer's, and the config as text.

    Raises ValueError for a model that is not built, and for an argument that cannot be saved.
    """
    check_built(model, "save")
    path = file_name("save: path", path)
    seen = {}
    variables = model.named(Variable)
    arrays = numbers_of(model)
    inputs = [Input(spec.shape[1:], spec.dtype.name) for spec in specs_of(model)]
    config = {"format": "levels 1", "model": written(model, seen), "inputs": written(inputs, seen)} | further_config(
        model
    )
    arrays |= {name: state.numpy() for name, state in states_of(model).items()}
    config["frozen"] = [name for name, v in variables.items() if not v.trainable]
    if model.chosen is not None:
        config["training"] = written(model.chosen, seen)
        optimizer = model.chosen.optimizer
        if optimizer.trained_variables is not None:  # it has been used
            names = {v: name for name, v in variables.items()}
            if not names.keys() >= {*optimizer.trained_variables}:
                raise ValueError(
                    "save: the optimizer trains a variable that is in no part of the model; compile it again"
                )
            config["trained"] = [names[owner] for owner in optimizer.trained_variables]
            arrays |= numbers_of(optimizer, MEMORY)
    put(arrays | {TEXT: as_bytes(json.dumps(config, indent=1))}, path)


def save_weights(model: Model, filepath: str | os.PathLike) -> None:
    """Write the numbers of all variables, and nothing else, to one file: `load_weights` of a model like this reads it.

    Raises ValueError for a model without variables.
    """
    name = file_name("save_weights: filepath", filepath)
    if not model.variables:
        raise ValueError(f"save_weights: {model.name} has no variables; call model.build(shape), or fit it, before")
    arrays = numbers_of(model)
    replace(name, safetensors.numpy.save(arrays | {SUM: checksum(arrays)}))


def load_weights(model: Model, filepath: str | os.PathLike) -> None:
    """Set all variables to the numbers that `save_weights` wrote. Floats get the dtypes of the model's variables.

    Raises FileNotFoundError or OSError if the file cannot be read, ValueError if it holds other variables or the model
    is not built.
    """
    file = Path(file_name("load_weights: filepath", filepath))
    if not model.variables:
        raise ValueError(f"load_weights: {model.name} has no variables yet; call model.build(shape) before")
    arrays = read_arrays(file)
    del arrays[SUM]
    kinds = {name: v.dtype for name, v in model.named(Variable).items() if v.dtype.kind == "f"}
    arrays = {name: a.astype(kinds.get(name, a.dtype)) if a.dtype.kind == "f" else a for name, a in arrays.items()}
    fill(model, arrays, file)


def as_bytes(text):
    """A text as an array of its bytes."""
    return np.frombuffer(text.encode(), "u1")


def specs_of(model):
    """The Specs of the inputs of the model's latest call, or None before the first."""
    return notes.noted(model, "input_specs")


def check_built(model, verb):
    """Raise ValueError if the model's input shapes are not known yet."""
    if specs_of(model) is None:
        raise ValueError(f"{verb}: {model.name} is not built; call model.build(shape), or fit it, then {verb} it")


LOADING = threading.RLock()
CURE = "; was the file changed, or cut off? Take another copy"


@contextmanager
def naming(file):
    """Inside this `with` block every error becomes an OSError or a ValueError that names this file."""
    try:
        yield
    except Exception as error:
        found = " ".join(f"{type(error).__name__}: {error}"[:300].split())
        missing = isinstance(error, FileNotFoundError)
        kind = FileNotFoundError if missing else OSError if isinstance(error, OSError) else ValueError
        cure = "" if missing or isinstance(error, NameError) else CURE
        raise kind(f"{file.as_posix()}: {found}{cure}") from error


@contextmanager
def nothing_drawn(most):
    """In this `with` block named initializers give this thread zeros; they raise ValueError for more than `most`."""
    here = threading.get_ident()

    def zeros(draw, shape):
        if threading.get_ident() != here:
            return draw(shape)
        if math.prod(shape) > most:
            raise ValueError(f"a variable has shape {shape}, and all that is stored only {most:,} bytes")
        return np.zeros(shape)

    drawing_nothing = {name: functools.partial(zeros, draw) for name, draw in INITIALIZERS.items()}
    with LOADING, mock.patch.dict(INITIALIZERS.maps[0], drawing_nothing):
        yield


def read_arrays(file):
    """Return {name: array}, all that a file of `save` stores. Raises ValueError if its checksum is another."""
    with naming(file):
        arrays = safetensors.numpy.load(patiently(file.read_bytes, PermissionError))
        if SUM not in arrays:
            raise ValueError("it has no checksum")
        if checksum(arrays).tobytes() != arrays[SUM].tobytes():
            raise ValueError("its checksum is not that of what it holds")
    return arrays


# the pretrained models are beside the course's `levels`, or in a folder above a reader's own `levels`
ABOVE = [folder / "data" / "models" for folder in Path(low_level.__file__).parents]
MODELS = next(filter(Path.is_dir, ABOVE), ABOVE[2])


def load_model(path: str | os.PathLike, custom_objects: dict[str, Callable] | None = None) -> Model:
    """Load the model in a folder that `save` made, or a pretrained model by its name. No code from the folder runs.

    `custom_objects` are classes and functions of your own that it uses, {"MyLayer": MyLayer}. Raises FileNotFoundError
    if there is no folder, or no model in it; OSError or ValueError, naming the file, if it is not what `save` made.
    """
    custom = {} if custom_objects is None else custom_objects
    expect(isinstance(custom, dict), "load_model: custom_objects", custom, "a dict {name: class or function}")
    folder = Path(file_name("load_model: path", path))
    folder = folder if folder.is_dir() else MODELS / folder
    if not folder.is_dir():
        names = ", ".join(sorted(model.name for model in MODELS.glob("*")))
        raise FileNotFoundError(f"there is no folder {path}; pretrained models are {names}")
    file = folder / WEIGHTS
    if not file.is_file():
        raise FileNotFoundError(f"{file.as_posix()} is not there: this is no folder that `save` made")
    arrays = read_arrays(file)
    with naming(file), nothing_drawn(sum(array.nbytes for array in arrays.values())):
        config = json.loads(arrays[TEXT].tobytes().decode(), object_hook=reader(custom))
        model = config["model"]
        if config["format"] != "levels 1" or not isinstance(model, Model):
            raise ValueError(f"it holds a {type(model).__name__} in the format {config['format']!r}, not 'levels 1'")
        rebuild(model, config)
        variables = model.named(Variable)
        model.chosen = config.get("training")
        for name, variable in variables.items():
            variable.trainable = name not in config["frozen"]
        if "trained" in config:
            model.training.optimizer.build([variables[name] for name in config["trained"]])
    fill(model, {name: array for name, array in arrays.items() if not name.startswith("/")}, file)
    for name, state in states_of(model).items():
        state.assign(arrays.get(name, state))
    if "trained" in config:
        numbers = {name.removeprefix(MEMORY): arrays[name] for name in arrays if name.startswith(MEMORY)}
        fill(model.training.optimizer, numbers, file)
    return model


def fill(part, arrays, file):
    """Set all variables to the numbers from a file. Raises ValueError if they are those of another model."""
    names = part.named(Variable)
    try:
        if arrays.keys() != names.keys():
            raise ValueError(f"it holds {', '.join(arrays)}; expected {', '.join(names)}")
        part.set_weights([arrays[name] for name in names])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file.as_posix()}: {error}; it is of a model with other layers") from None
