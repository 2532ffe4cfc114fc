"""`course.where`: the section, the file and the lines of a name."""

import functools
import importlib
import inspect
import re

import pytest

import course
from course import build
from course.reader.figures import LEVELS
from course.reader.inspection import where as where_module
from course.reader.inspection.source_index import place_of, places
from course.reader.inspection.where import ALIASES
from levels_more.kernels import KERNELS

pytestmark = pytest.mark.versions

INDEX = places()


@pytest.fixture(scope="module", autouse=True)
def read_once():
    """All names of the course are looked for once for all of these tests, not by each `where`: it takes half a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where_module, "places", functools.cache(places))
        yield


@pytest.mark.parametrize(
    "asked, name, level, room",
    [
        ("GradientTape", "GradientTape", "low_level", "autodiff"),
        ("torch.nn.Linear", "Dense", "mid_level", "layers"),
        ("loss.backward", "backward", "levels_more", "low_level/autodiff"),
        ("torch.utils.data.DataLoader", "DataLoader", "levels_more", "mid_level/dataset"),
        ("torch.compile", "function", "low_level", "functions"),
        ("tf.keras.Model.compile", "Model.compile", "high_level", "models"),
        ("model.fit", "Model.fit", "high_level", "models"),
        ("torch.randn", "normal", "levels_more", "low_level/random"),
        ("model.load_state_dict", "Module.set_weights", "low_level", "module"),
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
    """Those that levels_more adds are shown beside it."""
    own, front = (importlib.import_module(f"{package}.{level}") for package in ("levels", "levels_more"))
    found = {(place.level, place.name) for place in INDEX}
    assert {(level, name) for name in own.__all__} <= found
    for name in {*front.__all__} - {*own.__all__}:
        assert ("levels_more", name) in found or inspect.ismodule(getattr(front, name)), name


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


def test_a_function_knows_its_place_by_its_line():
    for (op, kind), function in KERNELS.items():
        if kind == "cpu" and function.__module__.startswith("levels."):
            place = place_of(function.__code__, INDEX)
            level = "low_level" if op == "spread" else "kernels"
            assert place.level == level and place.name in (op, function.__name__), op
    assert place_of(build.ROOT.joinpath.__code__, INDEX) is None


def test_before_a_level_is_built_there_are_no_lines(tmp_path):
    copy = build.copy_project(build.ROOT, tmp_path, ["hardware"])
    found = {(place.level, place.name): place for place in places(copy)}
    assert found["mid_level", "Dense"].lines == "levels/mid_level/layers.py"
    assert re.fullmatch(r"levels/hardware/device.py, lines \d+ to \d+", found["hardware", "Device"].lines)


@pytest.mark.parametrize(
    "asked, near",
    [
        ("GradientTaep", "GradientTape"),
        ("tf.keras.layers.Dnse", "Dense"),
        ("torch.nn.Lineer", "Linear"),
        ("torch.nn.LSTM", ""),
        ("", ""),
        (".", ""),
    ],
)
def test_what_the_course_does_not_have_is_one_clear_error_with_near_names(asked, near):
    with pytest.raises(LookupError, match=near) as error:
        course.where(asked)
    assert len(str(error.value).splitlines()) == 1


def test_it_shows_itself(monkeypatch):
    found = course.where("torch.nn.Linear")
    place, called = found.places[0], found.spelling
    assert repr(found).startswith(
        f"torch.nn.Linear is Dense here\n  more/03_torch, import levels_more.torch\n      {called.lines}\n"
        f"  {place.section}\n      {place.lines}\n"
    )
    assert 'href="more/03_torch.ipynb"' in found._repr_html_()
    assert not re.search(r"<summary>((?!</summary>).)*<a ", found._repr_html_()), "one press cannot unfold and lead"
    page = found._repr_html_()
    assert f'href="04_mid_level.ipynb#{place.heading.replace(" ", "-")}"' in page
    assert "class Dense(Layer):" in page
    assert page.count("<details>") == page.count("</details>") == 3  # there is a wider one, and a spelling
    monkeypatch.setattr("course.reader.inspection.source_index.WATCHED", ["more/05_cost"])
    assert 'href="../more/03_torch.ipynb"' in found._repr_html_()
    assert "a &lt; b" in course.where("less")._repr_html_() or "x &lt; y" in course.where("less")._repr_html_()


@pytest.mark.parametrize(
    "asked, file, says",
    [
        ("tf.random.normal", "tensorflow/", "normal"),
        ("tf.keras.layers.Dense", "", "Dense"),
        ("nn.Linear", "", "class Linear"),
        ("torch.no_grad", "torch/", "no_grad"),
    ],
)
def test_what_others_call_so_leads_to_a_line_that_spells_it(asked, file, says):
    place = course.where(asked).spelling
    assert place.file.startswith(f"levels_more/{file}") and says in place.source
    lines = (build.ROOT / place.file).read_text(encoding="utf-8").split("\n")
    assert "\n".join(lines[place.first - 1 : place.last]) == place.source


@pytest.mark.parametrize("asked", ["Dense", "model.fit", "torch.nn.Lineer", "tf.random.exp", "tf", "torch."])
def test_what_cannot_be_called_so_has_no_spelling(asked):
    assert where_module.spelling_of(asked) is None


def test_every_name_of_the_two_spellings_has_its_line():
    for package in ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "tensorflow", "tensorflow.keras.layers"):
        module = importlib.import_module(f"levels_more.{package}")
        for name, thing in vars(module).items():
            if not name.startswith("_") and not inspect.ismodule(thing):
                place = where_module.spelling_of(f"{package.replace('tensorflow', 'tf', 1)}.{name}")
                assert place and place.source, (package, name)
