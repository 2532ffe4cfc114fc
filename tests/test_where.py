"""`course.where`: the section, the file and the lines of a name, and the ops beneath it."""

import importlib
import re

import pytest

import course
from course import build
from course.figures import LEVELS
from course.inspection.places import ALIASES, place_of, places
from levels.kernels import KERNELS
from levels.mid_level import RANDOM
from levels_more import CONTENTS

pytestmark = pytest.mark.versions

INDEX = places()


@pytest.mark.parametrize(
    "asked, name, level, room",
    [
        ("GradientTape", "GradientTape", "low_level", "autodiff"),
        ("tf.GradientTape", "GradientTape", "low_level", "autodiff"),
        ("tf.keras.layers.Dense", "Dense", "mid_level", "layers"),
        ("torch.nn.Linear", "Dense", "mid_level", "layers"),
        ("torch.nn.ReLU", "relu", "low_level", "nn"),
        ("loss.backward", "backward", "levels_more", "gradients"),
        ("torch.utils.data.DataLoader", "DataLoader", "levels_more", "pipeline"),
        ("torch.optim.Adam", "Adam", "mid_level", "optimizers"),
        ("optimizer.step", "Optimizer.apply_gradients", "mid_level", "optimizers"),
        ("torch.compile", "function", "low_level", "functions"),
        ("tf.keras.Model.compile", "Trainable.compile", "high_level", "models"),
        ("model.fit", "Model.fit", "high_level", "models"),
        ("torch.onnx.export", "export", "levels_more", "exporting"),
        ("VJPS", "VJPS", "low_level", "autodiff"),
        ("subtract", "subtract", "kernels", "elementwise"),
    ],
)
def test_a_name_of_ours_or_of_others_is_found(asked, name, level, room):
    first = course.where(asked).places[0]
    assert (first.name, first.level, first.room) == (name, level, room)


def test_a_name_on_several_levels_is_found_on_each_the_highest_first():
    assert [place.level for place in course.where("exp").places] == ["low_level", "kernels", "hardware"]


@pytest.mark.parametrize("level", LEVELS)
def test_every_public_name_of_a_level_has_its_place(level):
    found = {place.name for place in INDEX if place.level == level}
    assert not {*importlib.import_module(f"levels.{level}").__all__} - found


def test_every_alias_leads_somewhere():
    known = {place.name for place in INDEX}
    assert not {*ALIASES.values()} - known


def test_the_lines_are_those_of_the_built_file_and_the_heading_stands_in_the_notebook():
    files, texts = {}, {}
    for place in INDEX:
        lines = files.setdefault(place.file, (build.ROOT / place.file).read_text("utf-8").split("\n"))
        assert "\n".join(lines[place.first - 1 : place.last]) == place.source, place
        if not place.notebook:  # no notebook shows it
            continue
        text = texts.setdefault(place.notebook, build.text_path(build.ROOT, place.notebook).read_text("utf-8"))
        if place.notebook.startswith("more/"):
            assert f"\n# ## {place.heading}\n" in text, place
            continue
        sought = re.escape(place.source)
        if place.source not in text:  # the reader writes it
            sought = rf"#\| export {place.room} blank .*\n\n*def {place.name}\("
        before = [text[: found.start()] for found in re.finditer(sought, text)]
        headings = [re.findall(r"^# ## (.*)$", part, re.MULTILINE)[-1] for part in before]
        assert place.heading in headings and (not place.part or f"\n# ### {place.part}\n" in text), place


def test_what_is_added_to_a_level_is_shown_beside_it():
    for front, modules in CONTENTS.items():
        for module, names in modules.items() if front.startswith("levels.") else ():
            for name in names.split():
                here = [place for place in INDEX if place.level == "levels_more" and place.name == name]
                assert here, name
                levels = {place.adds_to for place in here if place.room == module}  # (a module hands some names on)
                assert levels <= {front.split(".")[1]}, (module, name)


def test_a_function_knows_its_place_by_its_line():
    for (op, kind), function in KERNELS.items():
        if kind == "cpu" and function.__module__.startswith("levels."):
            place = place_of(function.__code__, INDEX)
            assert place.level == "kernels" and place.name in (op, function.__name__), op
    assert place_of(build.ROOT.joinpath.__code__, INDEX) is None


def test_before_a_level_is_built_there_are_no_lines(tmp_path):
    copy = build.copy_project(build.ROOT, tmp_path, ["hardware"])
    found = {(place.level, place.name): place for place in places(copy)}
    assert found["mid_level", "Dense"].lines == "levels/mid_level/layers.py"
    assert re.fullmatch(r"levels/hardware/device.py, lines \d+ to \d+", found["hardware", "Device"].lines)


@pytest.mark.parametrize(
    "asked, ops",
    [
        ("Dense", ["matmul", "add"]),
        ("MeanSquaredError", ["subtract", "multiply", "reduce_mean"]),
        ("SGD", ["add", "multiply", "subtract"]),
        ("Embedding", ["gather"]),
        ("Concatenate", ["concat"]),
        ("Dropout", ["random_uniform", "add", "less", "divide", "where"]),
        ("tf.where", ["where"]),
        ("clip", ["clip"]),
        ("cast", ["cast"]),
        ("GradientTape", []),  # what it sends depends on what it has written down
        ("save", []),  # is not tried: it would write files
    ],
)
def test_the_ops_beneath(asked, ops):
    before = RANDOM.getstate()
    assert [*course.where(asked).ops] == ops
    assert RANDOM.getstate() == before  # the reader's layers draw on as if nothing had been


@pytest.mark.parametrize(
    "asked, near", [("GradientTaep", "GradientTape"), ("tf.keras.layers.Dnse", "Dense"), ("torch.nn.Lineer", "Linear")]
)
def test_an_unknown_name_gets_near_ones(asked, near):
    with pytest.raises(LookupError, match=near):
        course.where(asked)


@pytest.mark.parametrize("asked", ["torch.nn.LSTM", "", "."])
def test_what_the_course_does_not_have_is_one_clear_error(asked):
    with pytest.raises(LookupError) as error:
        course.where(asked)
    assert len(str(error.value).splitlines()) == 1


def test_it_shows_itself():
    found = course.where("torch.nn.Linear")
    place = found.places[0]
    assert repr(found).startswith(f"torch.nn.Linear is Dense here\n  {place.section}\n      {place.lines}\n")
    page = found._repr_html_()
    assert f'href="04_mid_level.ipynb#{place.heading.replace(" ", "-")}"' in page
    assert (
        "class Dense(Layer):" in page and page.count("<details>") == page.count("</details>") == 2
    )  # there is a wider one
    assert "a &lt; b" in course.where("less")._repr_html_() or "x &lt; y" in course.where("less")._repr_html_()


def test_what_has_an_address_keeps_it():
    """A reader's own cells were written before there were rooms, and still begin so."""
    from course import compare, exercises, reference, tasks, where

    assert where("exp") and compare.measure and reference.dnn_classifier and tasks.linear
    assert exercises is importlib.import_module("course.practice.exercises")


def test_the_package_has_no_other_surprise():
    with pytest.raises(AttributeError, match="no attribute 'wher'"):
        course.wher  # noqa: B018
