"""The real ones: every question has its places, and what is installed is looked at without being imported."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from course.author.bench.libraries import python_of
from course.author.build import ROOT
from course.author.programs import cli, processes
from course.author.programs import places as looked
from course.reader.inspection.questions import COMMITS, QUESTIONS, VERSIONS, There
from course.reader.inspection.source_index import places

pytestmark = pytest.mark.quick


def test_our_places_are_written_in_a_notebook_and_stand_in_the_built_file():
    index = places()
    for question in QUESTIONS:
        place = question.place(index)
        text = (ROOT / place.file).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(def|class) {place.name.split('.')[-1]}\b", text, re.MULTILINE), place
    gone = QUESTIONS[0]._replace(ours=("low_level", "no_such_name"))
    with pytest.raises(LookupError, match=r"matmul.*no_such_name"):
        gone.place(index)


@pytest.fixture
def packages(tmp_path):
    """A made-up folder of installed packages."""
    for name, text in {
        "torch/tape.py": (
            "class Tape:\n    def other(self):\n        self.free()\n\n\ndef walk():\n    class Inner: ...\n\n"
            "    def step():\n        free()\n\n\ndef kept(): ...\n\n\nfree = 1\n"
        ),
        "torch/new/home.py": "class Tape:\n    @property\n    def gradient(self):\n        self.free()\n",
        "torch/include/torch/csrc/node.h": (
            "// release() free()s\nstruct Node {\n  virtual void release() {}\n  void hold();\n};\n"
            + "\n" * looked.NEAR
            + "void Node::hold() {\n  free(held);\n}\n"
        ),
        "torchgen/packaged/autograd/rules.yaml": (
            "# mm(\n- name: addmm(x)\n  self: mm(x)\n\n- name: mm(x, y)\n  self: free(x)\n\n- name: cat(x)\n\n"
        ),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "file, name, verdict",
    [
        ("torch/tape.py", "Tape.other", ("found", "line 3")),
        ("torch/tape.py", "walk.step", ("found", "line 10")),
        ("torch/tape.py", "kept", ("without its word", "line 13; `free(` does not stand there any more")),
        # an empty method, and a declaration whose body is far below
        ("torch/csrc/node.h", "Node.release", ("without its word", "line 3; `free(` does not stand there any more")),
        ("torch/csrc/node.h", "Node.hold", ("found", f"line {looked.NEAR + 7}")),
        ("tools/autograd/rules.yaml", "mm", ("found", "line 6")),
        ("tools/autograd/rules.yaml", "cat", ("without its word", "line 8; `free(` does not stand there any more")),
        ("torch/csrc/engine.cpp", "Engine.execute", ("not in the wheel", "")),
        ("torch/tape.py", "Tape.gradient", ("moved", "to torch/new/home.py, line 4")),
        ("torch/csrc/old.h", "Node.hold", ("moved", f"to torch/include/torch/csrc/node.h, line {looked.NEAR + 7}")),
        ("torch/tape.py", "Inner", ("moved", "and is in no file of the package")),
    ],
)
def test_the_verdict_on_a_place(packages, file, name, verdict):
    assert looked.look(There("torch", file, name, "free("), packages) == verdict


def test_in_the_version_of_the_table_the_line_counts_too(packages):
    there = There("torch", "torch/tape.py", "walk", "free(", 4)
    assert looked.look(there, packages) == ("found", "line 10")
    assert looked.look(there, packages, same=True) == (
        "moved",
        "to line 10 of the same file; the table says 4",
    )
    assert looked.look(there._replace(line=10), packages, same=True).kind == "found"


def test_the_command_exits_with_1_where_something_has_moved(packages, monkeypatch, capsys):
    two = There("torch", "torch/tape.py", "walk", "free(", 10), There("torch", "torch/engine.cpp", "Engine", "free(")
    question = QUESTIONS[0]._replace(torch=two[0], tensorflow=two[1])
    monkeypatch.setattr(looked, "QUESTIONS", [question])
    monkeypatch.setattr(looked, "installed", lambda given: {"torch": (packages, "2.15.0+cpu")})
    assert cli.main(["--places"]) == 0
    said = capsys.readouterr().out
    assert "PyTorch 2.15.0+cpu" in said and "TensorFlow is not installed: --python tensorflow=PATH" in said
    assert said.endswith("1 found, 0 moved, 1 not in the wheel\n")
    gone = question._replace(torch=There("torch", "torch/tape.py", "Tape.gradient", "free("))
    monkeypatch.setattr(looked, "QUESTIONS", [gone])
    assert cli.main(["--places"]) == 1
    assert "Tape.gradient in torch/tape.py (to torch/new/home.py, line 4)" in capsys.readouterr().out
    monkeypatch.setattr(looked, "installed", lambda given: {})
    assert cli.main(["--places"]) == 1, "nothing was looked at"


@pytest.mark.parametrize("library", ["torch", "tensorflow"])
def test_every_named_place_is_found_in_what_is_installed(library):
    """Where the library is: in this Python, in that of `bench --peer`, or in that which LEVELS_PEERS names."""
    python = os.environ.get("LEVELS_PEERS") or python_of(library, {})
    here = looked.installed({library: python})
    asked = {name: version for name, version in VERSIONS.items() if looked.PYTHON_OF[name] == library}
    if asked.items() - {name: version.partition("+")[0] for name, (_, version) in here.items()}.items():
        pytest.skip(f"{asked} are not installed, but {here}")
    for there in (there for question in QUESTIONS for there in question.theirs if there.library in asked):
        verdict = looked.look(there, here[there.library][0], same=True)
        assert verdict.kind == ("found" if there.in_wheel else "not in the wheel"), (there, verdict)
    if library == "torch":  # the package says from which commit it was made
        version = Path(here["torch"][0], "torch/version.py").read_text(encoding="utf-8")
        assert f"git_version = '{COMMITS['torch']}'" in version
    else:  # the first 11 digits, which only the running library knows
        ask = "import tensorflow as tf; print(tf.version.GIT_VERSION)"
        done = subprocess.run(
            [python, "-c", ask], capture_output=True, encoding="utf-8", env=os.environ | processes.QUIET
        )
        assert COMMITS["tensorflow"].startswith(done.stdout.strip().split("-g")[-1])
