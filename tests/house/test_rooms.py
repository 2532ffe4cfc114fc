"""The house: imports point downward, to the file where a name is defined, and the map in CONTRIBUTING is that of the imports."""

import collections
import copy
import importlib
import pickle
import pkgutil
import re

import pytest

import levels_more
from course.build import ROOT
from course.inspection import house
from levels_more.high_level import EarlyStopping, Input, Sequential
from levels_more.low_level import Module
from levels_more.mid_level import Dense
from levels_more.missing import cures_of, told_of

LATER = {  # (a file, what it imports from above when it is called): the seed of weights, a model's own methods
    ("levels_more/low_level/random.py", "levels.mid_level"),
    ("levels_more/high_level/model.py", "levels_more.saving.model"),
    ("levels_more/high_level/model.py", "levels_more.saving.onnx"),
    ("levels_more/high_level/model.py", "levels_more.saving.hub"),
}
LEVELS = {f"levels_more.{level}" for level in house.LEVELS}


def height(module):
    """How high a room of a package stands; nothing for a file that stands in no room."""
    package, *rest = module.split(".")
    rooms = house.ROOMS[package]
    return rooms.index(rest[0]) if rest and rest[0] in rooms else None


def beneath(here, there):
    """Whether a room may import the other: what lies below it in its own package, or in `levels` what its own room adds to."""
    if here.split(".")[0] == there.split(".")[0]:
        return height(there) < height(here)
    room = here.split(".")[1]
    own = {"compiler": "low_level"}.get(room, room)
    return height(there) <= height(f"levels.{own if own in house.LEVELS else 'high_level'}")


def test_imports_point_downward():
    wrong = []
    for (here, there), uses in house.arrows().items():
        if height(here) is None or height(there) is None:
            continue
        if not beneath(here, there):
            wrong += [(file, module) for file, module, _, at_once in uses if at_once or (file, module) not in LATER]
    assert wrong == []


def test_the_core_imports_nothing_of_what_is_built_on_it():
    upward = [pair for pair in house.arrows() if pair[0].startswith("levels.") and pair[1].startswith("levels_more")]
    assert upward == []


def test_a_name_is_imported_from_the_file_that_defines_it():
    """Not through the front of a room, which hands on names of many files: a front gives whole files alone."""
    files = {*modules()}
    through = []
    for uses in house.arrows(own=True).values():
        for file, module, names, _ in uses:
            through += [(file, module, name) for name in names if module in LEVELS and f"{module}.{name}" not in files]
    assert through == []


def test_a_front_hands_on_all_names_of_its_level():
    for level in house.LEVELS:
        own, wide = (importlib.import_module(f"{package}.{level}") for package in ("levels", "levels_more"))
        assert {*own.__all__} <= {*wide.__all__}
        for name in wide.__all__:
            core, more = getattr(own, name, None) if name in own.__all__ else None, getattr(wide, name)
            subclass = isinstance(core, type) and issubclass(more, core)
            # `pool` and `use` call the core's, and do more: other devices, a trial. A mean is one op here.
            its_own = name in ("pool", "use", "reduce_mean")
            wider = subclass or isinstance(more, (dict, collections.ChainMap)) or its_own
            assert core is None or more is core or wider, name


def modules():
    return sorted(each.name for each in pkgutil.walk_packages(levels_more.__path__, "levels_more."))


def test_each_file_stands_in_a_room():
    beside = {name.split(".")[1] for name in modules()} - {*house.ROOMS["levels_more"]}
    assert beside == {"checks", "missing", "moved"}


def test_the_map_in_the_page_is_that_of_the_imports():
    page = house.PAGE.read_text(encoding="utf-8")
    assert house.in_page(page) == house.draw(), "python -m course.inspection.house --write"
    assert ROOT == house.ROOT


@pytest.mark.parametrize("old", told_of("files"))
def test_an_import_of_version_1_is_told_its_new_line(old):
    with pytest.raises(ImportError) as raised:
        exec(f"from levels_more import {old}")
    line = str(raised.value).split("`")[1]
    scope = {}
    exec(line, scope)
    assert scope[line.split()[-1]].__name__ == "levels_more." + told_of("files")[old]
    assert not hasattr(levels_more, old)


@pytest.mark.parametrize("room, old", [(room, old) for room, names in told_of("renamed").items() for old in names])
def test_a_name_that_was_renamed_is_told_its_new_one(room, old):
    front, new = f"levels_more.{room}", told_of("renamed")[room][old]
    assert hasattr(importlib.import_module(front), new)
    with pytest.raises(ImportError, match=f"{old} is called {new} now: write `from {front} import {new}`"):
        exec(f"from {front} import {old}")


def imports_of_version_1():
    """Yield the imports of the notebooks of version 1, each as a line, `*` and whole modules too."""
    text = (ROOT / "tests" / "support" / "golden" / "imports_of_version_1.txt").read_text(encoding="utf-8")
    for module in text.replace("\n  ", " ").splitlines():
        front, _, names = module.partition(": ")
        yield from [f"from {front} import {name}" for name in names.split()] or [f"import {front.rstrip(':')}"]


def leads_on(line, hops=3):
    """Whether an import works, or its error shows a line that does, or says what to use instead."""
    try:
        exec(line, {})
    except (ImportError, AttributeError) as error:
        lines = re.findall("`((?:from|import) .*?)`", str(error))
        return bool(re.search("[:,] use ", str(error))) or hops > 0 and any(leads_on(each, hops - 1) for each in lines)
    return True


def test_each_import_of_the_notebooks_of_version_1_works_or_leads_on():
    assert [line for line in imports_of_version_1() if not leads_on(line)] == []


@pytest.mark.parametrize(
    "given, told",
    {
        "from levels_more.gpu import cuda": "hardware.gpu.device now: write `from levels_more.hardware import cuda`",
        "import levels_more.machines": "now: write `from levels_more.distributed import collectives`",
        "from levels.high_level import load_model": "try `from levels_more.saving import load_model`",
        "from levels_more.pipeline import Stream": "now: use Dataset instead of Stream",
        "import levels_more.parts": "levels_more.parts is no file any more: use model.layers",
        "from levels_more.low_level import Alone": "write `from levels_more.distributed import SingleMessage`",
    }.items(),
)
def test_an_old_import_is_told_what_to_write(given, told):
    with pytest.raises(ImportError, match=re.escape(told)):
        exec(given)


def former_parts():
    """Yield a model, a layer and a module, each with the names of version 1 that it has no more."""
    model = Sequential([Input((2,)), Dense(1)])
    yield model, [*cures_of("parts")]
    yield model.layers[0], ["parameters", "state_dict", "get_config", "input", "output"]
    yield Module(), ["parameters", "named_parameters", "state_dict", "load_state_dict"]


def test_a_method_of_version_1_says_what_to_use():
    for part, names in former_parts():
        assert copy.deepcopy(part) and pickle.dumps(part)
        for name in names:
            assert not hasattr(part, name) and name not in dir(part)
            with pytest.raises(AttributeError, match=f"has no '{name}' here; use "):
                getattr(part, name)
        for name in ("nothing", "_nothing"):
            with pytest.raises(AttributeError, match=f"'{type(part).__name__}' object has no attribute '{name}'"):
                getattr(part, name)


@pytest.mark.parametrize("name", cures_of("callbacks"))
def test_an_argument_of_version_1_says_what_to_use(name):
    with pytest.raises(TypeError, match=f"EarlyStopping: there is no argument '{name}'; use "):
        EarlyStopping(**{name: 1})
