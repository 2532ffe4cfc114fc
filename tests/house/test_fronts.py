"""The names that each front hands on, and how they are called, are those in golden/fronts.json: a change there is meant.

`python3 -m pytest tests/house/test_fronts.py --new-fronts` writes the file anew.
"""

import importlib
import inspect
import json
import re

from course.build import ROOT

GOLDEN = ROOT / "tests" / "support" / "golden" / "fronts.json"
LEVELS = "hardware", "kernels", "low_level", "mid_level", "high_level"
SPELLED = (
    "torch",
    "torch.autograd",
    "torch.linalg",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.optim",
    "torch.utils.data",
    "tensorflow",
    "torchkeras",
)
KERAS = [
    "activations",
    "callbacks",
    "datasets",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "regularizers",
    "utils",
]


def called(value):
    """How a name is called: its signature, without defaults that print an address; of a value its type."""
    if inspect.ismodule(value):
        return "module"
    if not callable(value):
        return type(value).__name__
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "callable"
    return re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", re.sub(r" at 0x[0-9a-f]+", "", text))


def wide_names(level):
    """{name: value} of a level and of all that levels_more adds to it."""
    front = importlib.import_module(f"levels_more.{level}")
    return {name: getattr(front, name) for name in (*front.__all__, *getattr(front, "_HEAVY", ()))}


def public_names(module):
    """{name: value} of what a module lists, or of what it holds under public names."""
    names = getattr(module, "__all__", None) or [name for name in dir(module) if name[0] != "_"]
    return {name: getattr(module, name) for name in names}


def fronts():
    """{front: {name: how it is called}}"""
    found = {}
    for level in LEVELS:
        found[f"levels_more.{level}"] = wide_names(level)
    for name in SPELLED:
        found[f"levels_more.{name}"] = public_names(importlib.import_module(f"levels_more.{name}"))
    keras = importlib.import_module("levels_more.tensorflow").keras
    for name in KERAS:
        if hasattr(keras, name):
            found[f"levels_more.tensorflow.keras.{name}"] = public_names(getattr(keras, name))
    return {front: {name: called(names[name]) for name in sorted(names)} for front, names in found.items()}


def test_fronts_hand_on_the_names_that_are_promised(request):
    found = fronts()
    if request.config.getoption("--new-fronts"):
        GOLDEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert found.keys() == golden.keys()
    for front, names in golden.items():
        changed = {name for name in names.keys() | found[front].keys() if names.get(name) != found[front].get(name)}
        told = {name: (names.get(name), found[front].get(name)) for name in sorted(changed)}
        assert not told, f"{front}: {told}"
