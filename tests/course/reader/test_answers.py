"""The answers to the predictions: one for each question, none in a question's cell, and told after the result."""

import ast
import tomllib

import pytest

from course import build
from course.reader import answers, checks, progress
from course.reader.notebooks.answers import kept, keys_in
from course.reader.notebooks.names import core_of

ALL = build.all_in(build.ROOT)


def keys_kept(name):
    path = answers.FOLDER / f"{name}.toml"
    return set(tomllib.loads(path.read_text(encoding="utf-8"))) if path.exists() else set()


@pytest.mark.quick
def test_each_notebook_asks_what_its_file_answers():
    """The trail may ask a question of its core, whose answer stands in the core's file."""
    for name in ALL:
        asked = {*progress.questions_in(build.text_path(build.ROOT, name))["predictions"]}
        own = keys_kept(name)
        assert own <= asked <= own | keys_kept(core_of(name)), name
    files = {path.relative_to(answers.FOLDER).as_posix() for path in answers.FOLDER.glob("**/*.toml")}
    assert files <= {f"{name}.toml" for name in ALL}


@pytest.mark.parametrize("name", ALL)
def test_a_question_stands_before_its_result_and_its_answer_after_it(name):
    """And the question's cell, which GitHub and the site show, holds no answer."""
    cells = build.from_text(build.ROOT, name).cells
    asked, told = {}, {}
    for number, cell in enumerate(cells):
        if cell.cell_type == "code" and "checks.predict(" in cell.source:
            calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
            call = next(each for each in calls if ast.unparse(each.func) == "checks.predict")
            assert {each.arg for each in call.keywords} <= {"choices", "slider"} and len(call.args) == 2
            given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
            key, question = map(ast.literal_eval, call.args)
            checks.predict(key, question, **given)  # raises an error if they do not fit the answer
            assert answers.of(key).because.strip() not in cell.source
            asked[key] = number
        elif cell.cell_type == "code" and "checks.answer_to(" in cell.source:
            (key,) = keys_in(cell.source)
            assert cell.source == f'checks.answer_to("{key}")'
            told[key] = number
    assert asked.keys() == told.keys()
    for key, number in asked.items():
        between = cells[number + 1 : told[key]]
        assert between and sum(cell.cell_type == "code" for cell in between) <= 4, f"{key}: where is its result?"
        headings = [cell for cell in between if cell.cell_type == "markdown" and "\n## " in "\n" + cell.source]
        assert not headings, f"{key}: its answer stands in another section"


@pytest.mark.parametrize("name", ALL)
def test_what_is_stored_needs_no_widget(name):
    for cell in build.read_notebook(build.ROOT, name).cells:
        for output in cell.get("outputs", ()):
            assert "application/vnd.jupyter.widget-view+json" not in output.get("data", {}), cell.source


def test_a_key_that_is_not_kept_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="no question has the key '01-onse': did you mean 01-ones"):
        checks.predict("01-onse", "What?")
    with pytest.raises(ValueError, match="no question has the key 12345678: the answers stand in "):
        checks.answer_to(12345678)


def test_two_files_with_one_key_are_refused(tmp_path):
    for file in ("more/01_a.toml", "01_b.toml"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text('[01-one]\nanswer = 1\nbecause = "So."\n')
    with pytest.raises(ValueError, match="more/01_a.toml: another file has 01-one, too"):
        kept(tmp_path)
