"""The table of differences: it shows the stored answers with their versions, where they are decided, and `levels`."""

import html
import re

import pytest

from course.reader.inspection import differences
from course.reader.programs import lines

pytestmark = pytest.mark.quick
FILE = re.compile(r"[\w*/-]+\.(py|pyi|cpp|cc|h|cu|yaml|td|pyx|pxd|tp)\b")


@pytest.fixture(scope="module")
def rows():
    return lines.rows()


def test_every_stored_answer_stands_beside_its_version(rows):
    """Read from the stored file, not through the table's own grouping."""
    assert len(rows) > 90
    for row in rows:
        page = html.unescape(re.sub(r"<[^>]*>", "\n", differences.as_html([row])))
        for library, versions in row.answers.items():
            first, _, beneath = library.partition(" on ")
            for version, answer in versions.items():
                one, _, other = version.partition(" on ")
                told = f"{one} on {differences.NAMES[beneath]} {other}" if beneath else one
                assert library == lines.OURS or told, f"{row.key}: {library} has no version"
                told = told or differences.NAMES[first]
                (who,) = [those for found, those in differences.who(row).items() if found == answer]
                assert any(told in each for each in who if each.startswith(differences.NAMES[first])), (row.key, told)
                assert answer in page and told in page, (row.key, library)
        assert html.unescape(row.ours.replace("`", "")) in page.replace("\n", ""), row.key


def test_answers_are_grouped_and_versions_named():
    row = lines.rows()[0]._replace(
        answers={
            "torch": {"2.13.0": "1", "2.14.1": "0"},
            "keras on torch": {"3.6.0 on 2.13.0": "1", "3.15.1 on 2.14.1": "1"},
            "levels": {"": "0"},
        },
        decided={"torch": "torch/a.py, f", "keras on torch": "keras/b.py"},
    )
    assert differences.who(row) == {
        "1": ["PyTorch 2.13.0", "Keras 3.6.0 on PyTorch 2.13.0 and Keras 3.15.1 on PyTorch 2.14.1"],
        "0": ["PyTorch 2.14.1", "levels"],
    }
    assert differences.places(row) == ["PyTorch: torch/a.py, f", "Keras: keras/b.py"]
    assert differences.differs(row)
    alike = {"torch": {"2.13.0": "1.0 float32"}, "levels": {"": "1.0000001 float32"}}
    assert not differences.differs(row._replace(answers=alike))


def test_a_place_names_a_file_of_a_library_that_is_asked(rows):
    for row in rows:
        asked = {library.partition(" on ")[0] for library in row.lines} | {*row.lines}
        assert {*row.decided} <= asked, row.key
        for library, place in row.decided.items():
            assert FILE.search(place), f"{row.key}: {library}: no file in {place!r}"


def test_a_row_that_is_not_there_is_named():
    with pytest.raises(LookupError, match="no row no_such_row"):
        differences.table("slope_of_abs_at_0", "no_such_row")


def test_the_notebooks_table_has_every_row_that_differs_once(rows):
    shown = [row.key for group in differences.tables().groups.values() for row in group]
    assert sorted(shown) == sorted(row.key for row in rows if differences.differs(row))
    assert {row.about for row in rows} <= {*differences.ABOUT}
    assert "levels" in repr(differences.table("slope_of_abs_at_0")) and "JAX" in repr(differences.table(rows[0].key))
