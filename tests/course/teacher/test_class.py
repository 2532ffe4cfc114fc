"""`grade` on a class: what is asked of whom, totals, pages for students, and what a gradebook takes."""

import csv
import inspect

import nbformat
import pytest

from course import build
from course.reader.cases import CASES
from course.reader.notebooks.cells import BuildError
from course.teacher.grading import grade as grading
from course.teacher.grading import own_notebooks, reports, whole_class
from solutions import hardware


def handed_in(folder, student, name, sources=(), shut=False):
    """A notebook of a student which holds only these cells; `shut`: a file that is no notebook."""
    (folder / student).mkdir(parents=True, exist_ok=True)
    path = folder / student / f"{name}.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    path.write_text("{" if shut else nbformat.writes(nbformat.v4.new_notebook(cells=cells)))


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """A class of four, graded twice: each on what was handed in, and all on 01, by two processes."""
    folder = tmp_path_factory.mktemp("class")
    descend = "#| blank descend\ndef descend(w, slope, learning_rate):\n    return w - learning_rate * slope"
    wrong = descend.replace("-", "+")
    exercise = "from course.reader import exercises\n\n\n" + inspect.getsource(hardware.centre)
    handed_in(folder, "anna", "1_hardware", [descend])
    handed_in(folder, "anna", "01_hardware", [descend, exercise + '\n\nexercises.check("01-2", centre)'])
    handed_in(folder, "ben", "1_hardware", [wrong])
    handed_in(folder, "a b", "1_hardware", shut=True)
    handed_in(folder, "a!b", "2_kernels", [])
    out = tmp_path_factory.mktemp("out")
    for name, more in {"own": ["-j", "1"], "named": ["--notebook", "01", "-j", "2"]}.items():
        options = {part: str(out / f"{name} {part}") for part in ("csv", "feedback", "gradebook")}
        files = [each for part, path in options.items() for each in (f"--{part}", path)]
        assert whole_class.main([str(folder), *files, *more]) == 0
    return out


def rows_of(path) -> list[list[str]]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_a_student_is_asked_only_what_was_handed_in_unless_an_assignment_is_named(marked):
    asked = {f"{row[0]}: {row[1]}" for row in rows_of(marked / "own csv")[1:]}
    assert asked == {"anna: 1_hardware", "anna: 01_hardware", "ben: 1_hardware", "a b: 1_hardware", "a!b: 2_kernels"}
    named = rows_of(marked / "named csv")[1:]
    keys = own_notebooks.keys_of(build.ROOT, "01_hardware")
    assert [row[:3] for row in named] == [
        [s, "01_hardware", key] for s in ("a b", "a!b", "anna", "ben") for key in keys
    ]
    assert {row[3] for row in named if row[0] == "ben"} == {"missing"}
    assert {row[3] for row in named if row[:3] == ["anna", "01_hardware", "01-2"]} == {"right"}


def test_a_gradebook_has_the_columns_that_canvas_reads_and_counts_functions_alone(marked):
    head, *students = rows_of(marked / "own gradebook")
    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "01_hardware", "1_hardware", "2_kernels"]
    points = {row[0]: row[5:] for row in students}
    assert points == {"anna": ["1", "1", ""], "ben": ["", "0", ""], "a b": ["", "0", ""], "a!b": ["", "", "0"]}
    assert all(row[3] == row[0] for row in students)
    assert rows_of(marked / "named gradebook")[0][5:] == ["01_hardware"]


def test_each_student_gets_a_page_in_words_for_a_student(marked):
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (marked / "own feedback").iterdir()}
    assert set(pages) == {"anna", "ben", "a_b", "a_b 2"}
    assert "- `descend`: right.\n" in pages["anna"] and "- exercise 01-2: right.\n" in pages["anna"]
    assert "- `line_slopes`: its cell is missing.\n" in pages["anna"]
    assert "- `descend`: not yet. " in pages["ben"] and "your `levels`" not in pages["ben"]
    assert "The notebook cannot be read: it is no JSON" in pages["a_b"] + pages["a_b 2"]
    named = (marked / "named feedback" / "ben.md").read_text(encoding="utf-8")
    assert named == "# ben\n\n## 01_hardware\n\n01_hardware.ipynb was not handed in.\n"


def test_what_is_there_is_not_overwritten(marked, tmp_path, capsys):
    handed_in(tmp_path, "anna", "1_hardware", [])
    for part in ("csv", "feedback", "gradebook"):
        there = marked / f"own {part}"
        assert whole_class.main([str(tmp_path), f"--{part}", str(there), "-j", "1"]) == 1
        assert f"{there} is there already" in capsys.readouterr().err


def test_an_assignment_names_notebooks_and_keys():
    every = whole_class.assignment_of(build.ROOT, [], [], "some")
    assert not every.named and len(every.keys) == len(own_notebooks.texts(build.ROOT))
    assert every.counted == {key for keys in every.keys.values() for key in keys if key in CASES}
    some = whole_class.assignment_of(build.ROOT, ["02", "01_hardware"], ["02-1", "01-descend"], "some")
    assert some == ({"02_kernels": ["02-1"], "01_hardware": ["01-descend"]}, True, {"02-1", "01-descend"})
    with pytest.raises(BuildError, match="--only 02-matmul: there is no such key here, but 01-line_slopes, "):
        whole_class.assignment_of(build.ROOT, ["01"], ["02-matmul"], "some")
    with pytest.raises(BuildError, match="no notebook is called '07'"):
        whole_class.assignment_of(build.ROOT, ["07"], [], "some")


def test_a_table_counts_each_state_of_each_exercise():
    right, wrong = (grading.Row("", "02", "02-planned", state, "", 0) for state in ("right", "not yet"))
    unreadable, optional = grading.Row("", "", "", "unreadable", "", 0), grading.Row("", "02", "02-1", "right", "", 0)
    rows = {"anna": [right], "ben": [wrong, unreadable], "carl": [right]}
    head, line = reports.by_exercise(rows).strip("\n").splitlines()
    assert head.split() == ["right", "not", "yet"] and line.split() == ["02-planned", "2", "1"]
    assert reports.total(rows["carl"], {"02-planned"}).strip() == "1 right of 1"
    assert reports.total([wrong, optional], {"02-planned"}).strip() == "0 right of 1, and 1 of 1 optional exercises"
