"""The cells of more/03_torch that readers copy do what PyTorch's do."""

import contextlib

import pytest

from course.author.build import ROOT
from course.reader.notebooks.stored import from_text

pytestmark = pytest.mark.quick


@pytest.fixture
def cell():
    """The names of the cell that writes `no_grad`."""
    (source,) = [each.source for each in from_text(ROOT, "more/03_torch").cells if "def no_grad" in each.source]
    names = {"Wanting": object}
    exec(source, names)
    return names


def test_no_grad_gives_back_what_was_before(cell):
    """After an error, and inside another block."""
    no_grad, listening = cell["no_grad"], cell["listening"]
    with contextlib.suppress(ZeroDivisionError), no_grad():
        raise ZeroDivisionError
    assert listening == [True]
    with no_grad():
        with no_grad():
            assert listening == [False]
        assert listening == [False]
    assert listening == [True]
