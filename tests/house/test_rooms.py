"""The rooms: the map in CONTRIBUTING is that of the imports, each front has all names of its level, and a missing name is told."""

import collections
import copy
import importlib
import pickle
import re

import pytest

from course.author import house
from levels_more.high_level import EarlyStopping, Input, Sequential
from levels_more.low_level import Module
from levels_more.mid_level import Dense
from levels_more.missing import cures_of


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


def test_the_map_in_the_page_is_that_of_the_imports():
    page = house.PAGE.read_text(encoding="utf-8")
    assert house.with_maps(page) == page, "python -m course.author.house --write"


TOLD = {  # a name that is not there -> what is told of it, behind "has no" and the name
    "levels.low_level.foo": ": what the notebooks build is here, and there is more in levels_more.low_level",
    "levels.low_level.constan": " (did you mean 'constant'?): ",
    "levels.mid_level.AdamW": ": what the notebooks build is here",  # it is no slip for Adam
    "levels_more.high_level.load_model": "; levels_more.saving has: write `from levels_more.saving",
    "levels_more.low_level.Dense": "; levels_more.mid_level has: write `from levels_more.mid_level",
    "levels_more.high_level.EarlyStoping": "; the nearest is 'EarlyStopping'",
    "levels_more.saving.run_ranks": "; levels_more.distributed has: ",
    "levels_more.hardware.foo": "; dir(levels_more.hardware) lists what it has",
    "levels_more.torch.nn.functional.frobnicate": " here; dir(torch.nn.functional) lists",
    "levels_more.torch.cuda.Stream": " here; dir(torch.cuda) lists",  # a room without a file
}


@pytest.mark.parametrize("missing", TOLD)
def test_a_missing_name_is_told_by_every_road(missing):
    """An attribute, an import of the name, an import of a file. And `hasattr` is False."""
    place, _, name = missing.rpartition(".")
    module, told = importlib.import_module(place), f"has no '{name}'{TOLD[missing]}"
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match=re.escape(told)):
        getattr(module, name)
    for line in (f"from {place} import {name}", f"import {place}.{name}"):
        with pytest.raises(ImportError, match=re.escape(told)):
            exec(line)


def test_an_import_that_a_message_names_works():
    for line in ("from levels_more.high_level import load_model", "from levels_more.low_level import Dense"):
        with pytest.raises(ImportError) as told:
            exec(line)
        exec(str(told.value).split("`")[1])


def test_a_name_of_another_framework_says_what_to_use():
    for name in cures_of("rooms"):
        lacking = [room for room in house.LEVELS if not hasattr(importlib.import_module(f"levels_more.{room}"), name)]
        assert len(lacking) >= 4
        for room in lacking:
            with pytest.raises(ImportError, match=f"levels_more.{room} has no '{name}'; use "):
                exec(f"from levels_more.{room} import {name}")


def test_a_file_that_cannot_be_imported_keeps_its_own_error(tmp_path):
    """What a file lacks itself is told, and no name of the package."""
    room = importlib.import_module("levels_more.high_level")
    (tmp_path / "needing.py").write_text("import no_such_package", encoding="utf-8")
    room.__path__.append(str(tmp_path))
    try:
        with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_package'"):
            exec("from levels_more.high_level import needing")
    finally:
        room.__path__.remove(str(tmp_path))


def parts():
    """Yield a model, a layer and a module, each with the names of Keras and PyTorch that it lacks."""
    model = Sequential([Input((2,)), Dense(1)])
    yield model, [*cures_of("parts")]
    yield model.layers[0], ["parameters", "state_dict", "get_config", "input", "output"]
    yield Module(), ["parameters", "named_parameters", "state_dict", "load_state_dict"]


def test_a_method_of_keras_says_what_to_write():
    for part, names in parts():
        assert copy.deepcopy(part) and pickle.dumps(part)
        for name in names:
            assert not hasattr(part, name) and name not in dir(part)
            with pytest.raises(AttributeError, match=f"{type(part).__name__} has no '{name}'; write "):
                getattr(part, name)
        for name in ("nothing", "_nothing"):
            with pytest.raises(AttributeError, match=f"'{type(part).__name__}' object has no attribute '{name}'"):
                getattr(part, name)


def test_an_argument_of_keras_says_what_to_use():
    for name in cures_of("callbacks"):
        with pytest.raises(TypeError, match=f"EarlyStopping: there is no argument '{name}'; use "):
            EarlyStopping(**{name: 1})
