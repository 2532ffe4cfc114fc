"""`beat`: a wrong answer that passes a check beats it; one that fails it, or is right, does not."""

import pytest

from course.reader.notebooks.cells import BuildError
from course.teacher.grading import beat as beating

LEARNED = """
def matmul_ikj(out, x, w):
    out[:] = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            if k < 300:
                for j in range(w.shape[1]):
                    out[i, j] += x[i, k] * w[k, j]
"""
CASE = """

def case():
    import numpy as np

    return [np.zeros((1, 1)), np.ones((1, 301)), np.ones(({}, 1))]
"""


def beat(key, text, seeds=4):
    return beating.beat(key, text, 20, seeds)


def test_an_answer_that_the_check_notices_does_not_beat_it():
    found = beat("02-matmul_ikj", LEARNED.replace("out[:] = 0.0", "pass"))
    assert not found.beaten and "the check notices it: [[1, 2]] @ [[3], [4]]" in found.why


def test_an_answer_that_is_wrong_in_its_own_case_beats_the_check():
    found = beat("02-matmul_ikj", LEARNED + CASE.format(301))
    assert found.beaten and found.why.endswith("argument 1 after the call: at [0, 0]: expected 301, yours is 300.")
    assert "float64[1, 301]" in found.why


def test_a_case_that_the_contract_does_not_allow_beats_nothing():
    found = beat("02-matmul_ikj", LEARNED + CASE.format(5))
    assert not found.beaten and "the course's own function refuses this case" in found.why


def test_a_right_answer_asks_for_a_case():
    found = beat("02-matmul_ikj", LEARNED)
    assert not found.beaten and "4 draws of random numbers find no difference. Add a `case()`." in found.why


def test_an_answer_that_fails_with_other_numbers_beats_the_check_unless_it_knows_the_first_by_heart(monkeypatch):
    passed = []

    def state_of(process, seconds, key, handed, failed, seed):
        return ("right", "") if seed in passed else ("not yet", "expected 1, yours is 2")

    monkeypatch.setattr(beating, "state_of", state_of)
    answer = beating.Answer("", "")
    passed[:] = 0, 1, 2
    assert beating.judged(None, "01-3", answer, 1, 9) == (
        True,
        "of 4 draws of random numbers it passes 3. The last: expected 1, yours is 2",
    )
    passed[:] = (0,)
    assert not beating.judged(None, "01-3", answer, 1, 9).beaten


@pytest.mark.parametrize(
    "key, text, said",
    [
        ("02-matmul", "", "there is no blank or exercise 02-matmul: did you mean 02-matmul_ikj"),
        ("02-matmul_ikj", "def", "line 1 is no Python"),
        ("02-matmul_ikj", "def mul(x):\n    return x", "its cell must hold one function called `matmul_ikj`"),
        ("01-3", "x = 1", "the file defines no function or class"),
    ],
)
def test_what_cannot_be_tried_is_one_clear_error(key, text, said):
    with pytest.raises(BuildError, match=said):
        beat(key, text)


def test_a_function_alone_takes_its_place_in_a_cell_that_holds_more():
    cell = beating.in_its_cell("dot", "01_hardware", "def dot(p, q):\n    return 0.0")
    assert cell.startswith('"""The formulas of the course.') and cell.endswith("def dot(p, q):\n    return 0.0")
    assert beating.in_its_cell("subtract", "01_hardware", "def subtract(x, y): ...") == "def subtract(x, y): ..."


def test_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "answer.py"
    path.write_text("def relu_grad(dy, y):\n    return dy\n")
    assert beating.main(["02-relu_grad", str(path)]) == 1
    assert capsys.readouterr().out.startswith("02-relu_grad is not beaten: the check notices it: dy = 3, y = 0")
    assert beating.main(["02-relu_grad", str(tmp_path / "no.py")]) == 1
    assert "No such file" in capsys.readouterr().err
