"""A chapter of a book, as it is printed, runs statement by statement: what changes, what counts, and what is stored."""

import json
import re

import pytest

from course import build
from course.author.programs import books

MARKDOWN = """# 3-1 A made-up page

```python
import torch \nprint("a", torch.__version__)
%matplotlib inline
```

```
torch.no_such_output
```

```python
def train(epochs):
    runs.append(epochs)

runs = []
train(epochs = 1000)
train(1000);
train(epochs=2)
```

```python
missing
from levels_more.torch import no_such_name
after = [*runs]
assert after == [4, 1000, 2], after
```
"""
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["text"]},
        {"cell_type": "code", "source": ["!ls\n", "import tensorflow as tf\n", "x = tf.constant(1.0)"]},
        {"cell_type": "code", "source": []},
        {"cell_type": "code", "source": ["@tf.function\ndef half(x):\n    return x / 2\n", "half(x)\n", "half(y)"]},
    ]
}


@pytest.fixture
def clones(tmp_path):
    """A folder like that of a reader: a page for each section, and something else."""
    page = tmp_path / "eat_tensorflow2" / "english" / "Chapter3-1.md"
    page.parent.mkdir(parents=True)
    page.write_text(MARKDOWN, encoding="utf-8")
    notebook = tmp_path / "pytorch" / "3-3,高阶API示范.ipynb"
    notebook.parent.mkdir()
    notebook.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


@pytest.mark.quick
def test_statements_run_one_by_one_and_those_that_fail_are_named(clones):
    page = clones / "eat_tensorflow2" / "english" / "Chapter3-1.md"
    told = books.count(books.cells(page), spelled=True)
    assert told == {
        "statements": 11,
        "failed": [
            "cell 3: NameError: name 'missing' is not defined",
            "cell 3: ImportError: torch has no 'no_such_name' here; dir(torch) lists what it has",
        ],
    }


def test_the_cells_of_a_notebook_are_its_code(clones):
    """Without the lines of IPython; and a compiled function finds its source."""
    (section,) = books.sections(clones / "pytorch")
    assert (section.library, section.name) == ("torchkeras", "3-3")
    texts = books.cells(section.file)
    assert [len(text) > 0 for text in texts] == [True, False, True]
    assert books.count(texts, spelled=True) == {
        "statements": 5,
        "failed": ["cell 3: NameError: name 'y' is not defined"],
    }


def test_clones_are_found_and_a_folder_without_any_is_told(clones, tmp_path):
    assert [each[:2] for each in books.sections(clones)] == [("torchkeras", "3-3"), ("tensorflow", "3-1")]
    with pytest.raises(SystemExit, match="holds no clone of the books: `git clone` https://github.com/lyhue1991/eat_p"):
        books.sections(tmp_path / "pytorch" / "nothing")


def test_it_runs_in_a_process_of_its_own(clones, capsys):
    """With one picture window less: nothing is shown, and nothing is written into the reader's folder."""
    before = sorted(clones.rglob("*"))
    assert books.compare(clones / "pytorch") == 0
    text = capsys.readouterr().out
    assert "3-3 on levels_more: 4 of 5 statements run" in text and "cell 3: NameError: name 'y' is not defined" in text
    assert sorted(clones.rglob("*")) == before


STORED = json.loads(books.STORED.read_text(encoding="utf-8")) if books.STORED.exists() else {}


@pytest.mark.quick
def test_the_readme_and_the_page_say_what_was_counted():
    """Each number of statements in them is one that is stored, and what is stored stands in both."""
    readme = " ".join((build.ROOT / "README.md").read_text(encoding="utf-8").split())
    page = (build.ROOT / "course/author/site/pages/beside.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("| eat ")] == books.table(STORED)
    told = [books.total([each["levels_more"] for each in STORED.values()]).removesuffix(" run")] if STORED else []
    for text in (readme, " ".join(page.split())):
        assert re.findall(r"\d+ of (?:its )?\d+ statements", text) == told
